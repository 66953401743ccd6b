package account

import (
	"fmt"
	"math"
)

// The functions below say how much Gaussian noise makes one release of a sum
// (ε, δ)-differentially private: a factor, its standard deviation over the l2
// sensitivity of the sum.

// AnalyticGaussian is the least factor that will do (Balle & Wang 2018), rounded
// up, for a positive finite ε and δ in (0, 1).
func AnalyticGaussian(epsilon, delta float64) (factor float64, err error) {
	if err := checkRelease(epsilon, delta, 1); err != nil {
		return 0, err
	}
	return 1 / gaussianMu(Budget{epsilon, delta}), nil
}

// ZhaoGaussian is (c + √(c² + ε)) / (ε√2) with c = √ln(2/(√(16δ+1) − 1)), and c
// (Zhao et al. 2019; Theorem 5 of the Fed-mv-PPCA paper), for δ below ½. It is
// valid, and larger than the least factor: by a few to 50 % at usual budgets.
func ZhaoGaussian(epsilon, delta float64) (factor, c float64, err error) {
	if err := checkRelease(epsilon, delta, 0.5); err != nil {
		return 0, 0, err
	}
	// √(16δ+1) − 1 without cancellation for small δ.
	r := 16 * delta / (math.Sqrt(16*delta+1) + 1)
	c = math.Sqrt(math.Log(2 / r))
	return (c + math.Sqrt(c*c+epsilon)) / (epsilon * math.Sqrt2), c, nil
}

// ClassicGaussian is √(2 ln(1.25/δ)) / ε (Dwork & Roth 2014, Theorem A.1). It is
// proven for ε ≤ 1 only, which is what proven says; above, the δ that it
// attains may be far larger, as GaussianDelta tells.
func ClassicGaussian(epsilon, delta float64) (factor float64, proven bool, err error) {
	if err := checkRelease(epsilon, delta, 1); err != nil {
		return 0, false, err
	}
	return math.Sqrt(2*math.Log(1.25/delta)) / epsilon, epsilon <= 1, nil
}

// GaussianDelta is the δ that Gaussian noise of a factor really attains at ε, in
// one release. It may underflow to 0.
func GaussianDelta(factor, epsilon float64) (float64, error) {
	if !(factor > 0) || !(epsilon >= 0) {
		return 0, fmt.Errorf("noise factor %v at epsilon %v: want a positive factor and epsilon of at least 0",
			factor, epsilon)
	}
	return math.Exp(gaussianLogDelta(1/factor, epsilon)), nil
}

func checkRelease(epsilon, delta, below float64) error {
	if !(epsilon > 0) || math.IsInf(epsilon, 1) || !(delta > 0 && delta < below) {
		return fmt.Errorf("epsilon %v and delta %v: want a positive epsilon and delta between 0 and %v", epsilon,
			delta, below)
	}
	return nil
}
