package account

import (
	"fmt"
	"math"
)

// Rounds is what one centre releases in Algorithm 2 of the Fed-mv-PPCA paper,
// over all rounds: of each of K views the clipped differences of μ and W with
// Gaussian noise by ZhaoGaussian, and that of σ² with Laplace noise, each of
// them (ε, δ)-differentially private alone (ε, for Laplace noise). A record is
// a whole centre, lengths are in units of the clipping bound of each part, and
// the noise fits the diameter 2 of the ball: use it under ReplaceOne. Gaussian
// mechanisms come first, Laplace second.
func Rounds(views, rounds int, each Budget) ([]Mechanism, error) {
	if views < 1 || rounds < 1 || views > math.MaxInt32/2/rounds {
		return nil, fmt.Errorf("%d views in %d rounds", views, rounds)
	}
	factor, _, err := ZhaoGaussian(each.Epsilon, each.Delta)
	if err != nil {
		return nil, err
	}
	return []Mechanism{
		{Kind: Gaussian, Noise: 2 * factor, Rate: 1, Diameter: 2, Count: 2 * views * rounds},
		{Kind: Laplace, Noise: 2 / each.Epsilon, Rate: 1, Diameter: 2, Count: views * rounds},
	}, nil
}

// ScaleRounds is the largest ε, to 0.1 % and rounded down, that every release of
// Rounds may have, at the given δ of each, so that all of them together keep to
// the total.
func ScaleRounds(views, rounds int, eachDelta float64, total Budget) (eachEpsilon float64, err error) {
	if err := checkRelease(total.Epsilon, total.Delta, 1); err != nil {
		return 0, err
	}
	// excess is how far ln ε lies above that of the total, at ln ε of each release.
	excess := func(logEach float64) float64 {
		ms, e := Rounds(views, rounds, Budget{math.Exp(logEach), eachDelta})
		if e == nil {
			var epsilon float64
			epsilon, e = Epsilon(ms, ReplaceOne, total.Delta)
			if e == nil {
				return max(math.Log(epsilon/total.Epsilon), -100)
			}
		}
		err = e
		return 0
	}
	lo := math.Log(total.Epsilon)
	hi, at := lo, excess(lo)
	atLo, atHi := at, at
	for atLo > 0 && err == nil {
		hi, atHi = lo, atLo
		lo--
		atLo = excess(lo)
	}
	for atHi <= 0 && err == nil {
		lo, atLo = hi, atHi
		hi++
		atHi = excess(hi)
	}
	// The curve is nearly straight, with a slope of 1 to 2: aim a little below.
	for atLo < -1e-3 && err == nil {
		share := (-5e-4 - atLo) / (atHi - atLo)
		mid := lo + (hi-lo)*min(max(share, 0.05), 0.95)
		if at := excess(mid); at > 0 {
			hi, atHi = mid, at
		} else {
			lo, atLo = mid, at
		}
	}
	return math.Exp(lo), err
}
