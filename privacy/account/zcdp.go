package account

import (
	"fmt"
	"math"
)

// zcdp is the parameter ρ of zero-concentrated differential privacy (Bun &
// Steinke 2016): d²/2s² for each Gaussian release whose mean moves by d, ε²/2
// for each pure ε of Laplace noise. Sampled mechanisms have none that keeps
// what sampling gains, and ok is false.
func zcdp(ms []Mechanism, a Adjacency) (rho float64, ok bool, err error) {
	if err := checkAll(ms, a); err != nil {
		return 0, false, err
	}
	for _, m := range ms {
		if m.Rate < 1 {
			return 0, false, nil
		}
		e := m.shift(a) / m.Noise
		rho += float64(m.Count) * e * e / 2
	}
	return rho, true, nil
}

// epsilonZCDPClassic is ρ + 2√(ρ ln(1/δ)) (Bun & Steinke 2016, Proposition 1.3),
// for ρ ≥ 0 and δ in (0, 1).
func epsilonZCDPClassic(rho, delta float64) (float64, error) {
	if err := checkRho(rho, delta); err != nil {
		return 0, err
	}
	return rho + 2*math.Sqrt(-rho*math.Log(delta)), nil
}

// epsilonZCDP is the least ε at δ over all real Rényi orders α, the divergence
// of order α being ρα, by the conversion of ConvertRDP; and the order that
// attains it, the root of ρ(α−1)² = ln(1/δα).
func epsilonZCDP(rho, delta float64) (epsilon, order float64, err error) {
	if err := checkRho(rho, delta); err != nil {
		return 0, 0, err
	}
	if rho == 0 {
		return 0, 1 / delta, nil
	}
	// The left side grows with α and the right side falls, to 0 at 1/δ.
	// Bisection on ln(α−1), which may be of any size.
	excess := func(t float64) float64 {
		b := math.Exp(t)
		return rho*b*b + math.Log(delta) + math.Log1p(b)
	}
	lo, hi := -400.0, -math.Log(delta)
	for range 200 {
		mid := lo + (hi-lo)/2
		if mid == lo || mid == hi {
			break
		}
		if excess(mid) > 0 {
			hi = mid
		} else {
			lo = mid
		}
	}
	order = 1 + math.Exp(lo)
	return max(rho*order+improvedRest(order, delta), 0), order, nil
}

func checkRho(rho, delta float64) error {
	if !(rho >= 0) || math.IsInf(rho, 1) {
		return fmt.Errorf("rho %v is not finite and at least 0", rho)
	}
	return checkDelta(delta)
}
