package account

import (
	"fmt"
	"math"
)

// defaultOrders are the orders over which epsilonRDP takes its minimum: dense
// where plans for a usable ε have theirs (2 to 60), and wide enough for both
// ends: orders near 1 for a loss of thousands, large ones for a tiny loss.
var defaultOrders = func() (orders []float64) {
	for a := 0.001; a < 9; a *= 1.1 {
		orders = append(orders, 1+a)
	}
	for a := 10.0; a < 20000; a = max(a+1, math.Floor(1.05*a)) {
		orders = append(orders, a)
	}
	return orders
}()

// RDP is the Rényi divergence of each order (> 1) between what a composition
// releases on two neighbouring data sets, the larger of both directions: the
// composition is (α, RDP(α))-Rényi differentially private (Mironov 2017).
//
// Gaussian: α·d²/2s², d being how far the mean moves. Laplace: Mironov 2017,
// table II. Sampled Gaussian: Mironov, Talwar, Zhang 2019, exact at all orders
// (error about 1e-12 relative), but for noise below 0.05 of the bound, where
// fractional orders are answered with the larger value of the unsampled one.
// A divergence too large for a float64 is +Inf.
func RDP(ms []Mechanism, a Adjacency, orders []float64) ([]float64, error) {
	if err := checkAll(ms, a); err != nil {
		return nil, err
	}
	out := make([]float64, len(orders))
	for i, order := range orders {
		if !(order > 1) || math.IsInf(order, 1) {
			return nil, fmt.Errorf("order %v of a Rényi divergence is not above 1 and finite", order)
		}
		for _, m := range ms {
			out[i] += float64(m.Count) * m.divergence(a, order)
		}
	}
	return out, nil
}

// checkAll checks every mechanism of a composition, and the adjacency.
func checkAll(ms []Mechanism, a Adjacency) error {
	if err := a.Check(); err != nil {
		return err
	}
	for i, m := range ms {
		if err := m.Check(); err != nil {
			return fmt.Errorf("mechanism %d: %w", i+1, err)
		}
	}
	return nil
}

// divergence is the Rényi divergence of one application.
func (m Mechanism) divergence(a Adjacency, order float64) float64 {
	switch {
	case m.Kind == Laplace:
		return laplaceDivergence(m.shift(a)/m.Noise, order)
	case m.Rate < 1:
		return sampledDivergence(m.Noise, m.Rate, a, order)
	default:
		mu := m.shift(a) / m.Noise
		return order * mu * mu / 2
	}
}

// laplaceDivergence is 1/(α−1)·ln(α/(2α−1)·exp((α−1)ε) + (α−1)/(2α−1)·exp(−αε))
// for Laplace noise whose mean moves by ε scales.
func laplaceDivergence(eps, order float64) float64 {
	b := order - 1
	p, q := order/(order+b), b/(order+b)
	if b*eps > 1 {
		// The first term leads; the second may be far below it.
		return eps + math.Log(p+q*math.Exp(-(order+b)*eps))/b
	}
	// The sum is 1 + p·f(bε) + q·f(−αε) with f(x) = exp(x) − 1 − x ≥ 0: the
	// linear terms cancel, here and not in rounded numbers.
	return math.Log1p(p*expRest(b*eps)+q*expRest(-order*eps)) / b
}

// expRest is exp(x) − 1 − x without cancellation.
func expRest(x float64) float64 {
	if math.Abs(x) > 0.5 {
		return math.Expm1(x) - x
	}
	sum, term := 0.0, x
	for k := 2.0; k < 20; k++ {
		term *= x / k
		sum += term
	}
	return sum
}

// ConvertRDP turns Rényi divergences into ε at δ in (0, 1): the least of
//
//	ε = r(α) + ln(1 − 1/α) − ln(δα)/(α − 1),
//
// or 0 if that is negative, and the order that attains it (Canonne, Kamath,
// Steinke 2020, Proposition 12; Asoodeh et al. 2020). ε is +Inf if no
// divergence is finite.
func ConvertRDP(orders, rdp []float64, delta float64) (epsilon, order float64, err error) {
	return convertRDP(orders, rdp, delta, func(a, r float64) float64 { return r + improvedRest(a, delta) })
}

// improvedRest is what Proposition 12 adds to a divergence of order a.
func improvedRest(a, delta float64) float64 {
	return math.Log1p(-1/a) - (math.Log(delta)+math.Log(a))/(a-1)
}

// ConvertRDPClassic is the weaker conversion r(α) + ln(1/δ)/(α − 1) of Mironov
// 2017, Proposition 3, which most published totals rest on.
func ConvertRDPClassic(orders, rdp []float64, delta float64) (epsilon, order float64, err error) {
	return convertRDP(orders, rdp, delta, func(a, r float64) float64 { return r - math.Log(delta)/(a-1) })
}

func convertRDP(orders, rdp []float64, delta float64,
	epsilonAt func(order, rdp float64) float64) (epsilon, order float64, err error) {
	if err := checkDelta(delta); err != nil {
		return 0, 0, err
	}
	if len(orders) == 0 || len(orders) != len(rdp) {
		return 0, 0, fmt.Errorf("%d divergences of %d Rényi orders", len(rdp), len(orders))
	}
	epsilon = math.Inf(1)
	for i, a := range orders {
		if !(a > 1) || math.IsInf(a, 1) || !(rdp[i] >= 0) {
			return 0, 0, fmt.Errorf("divergence %v of Rényi order %v: want one that is not negative, and an order "+
				"above 1", rdp[i], a)
		}
		if e := epsilonAt(a, rdp[i]); e < epsilon {
			epsilon, order = e, a
		}
	}
	return max(epsilon, 0), order, nil
}

// epsilonRDP is an upper bound on ε at δ through Rényi divergences, by the
// conversion of ConvertRDP over a fixed list of orders, and the order that
// attains it. It is usually 5 to 15 % above the tight value of Epsilon, and
// serves as a second opinion and for filters.
func epsilonRDP(ms []Mechanism, a Adjacency, delta float64) (epsilon, order float64, err error) {
	if err := checkDelta(delta); err != nil {
		return 0, 0, err
	}
	epsilon = math.Inf(1)
	for i, o := range defaultOrders {
		r, err := RDP(ms, a, defaultOrders[i:i+1])
		if err != nil {
			return 0, 0, err
		}
		if e := r[0] + improvedRest(o, delta); e < epsilon {
			epsilon, order = e, o
		}
		// Divergences grow with the order, and so does the conversion's part
		// without δ: nothing that follows can be less.
		if r[0]+math.Log1p(-1/o)-math.Log(o)/(o-1) > epsilon {
			break
		}
	}
	return max(epsilon, 0), order, nil
}

// checkDelta refuses what is no probability strictly between 0 and 1.
func checkDelta(delta float64) error {
	if !(delta > 0 && delta < 1) {
		return fmt.Errorf("delta %v is not between 0 and 1", delta)
	}
	return nil
}
