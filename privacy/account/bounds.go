package account

import (
	"fmt"
	"math"
)

// Bound is what one way of counting says of a composition.
type Bound struct {
	Name    string  // of the way: "tight", "Rényi", "zCDP", "optimal", "advanced" or "basic"
	Epsilon float64 // +Inf where it says nothing
	Note    string  // what it rests on, or why it says nothing
}

// Bounds counts a composition at δ in (0, 1) in every way that applies, for
// comparison, the tight value first. All of them are true; Epsilon is the one to
// use. The theorems on (ε, δ) releases divide δ equally among the Gaussian
// releases (half of it being the slack of optimal and advanced composition), and
// take each release at its own tight ε.
func Bounds(ms []Mechanism, a Adjacency, delta float64) ([]Bound, error) {
	if err := checkDelta(delta); err != nil {
		return nil, err
	}
	tight, err := Epsilon(ms, a, delta)
	if err != nil {
		return nil, err
	}
	renyi, order, err := epsilonRDP(ms, a, delta)
	if err != nil {
		return nil, err
	}
	bounds := []Bound{{"tight", tight, "exact composition, rounded up"},
		{"Rényi", renyi, fmt.Sprintf("divergence of order %.4g", order)}}
	rho, ok, err := zcdp(ms, a)
	if err != nil {
		return nil, err
	}
	if ok {
		epsilon, _, err := epsilonZCDP(rho, delta)
		if err != nil {
			return nil, err
		}
		bounds = append(bounds, Bound{"zCDP", epsilon, fmt.Sprintf("ρ = %.4g", rho)})
	} else {
		bounds = append(bounds, Bound{"zCDP", math.Inf(1), "says nothing of sampled records"})
	}
	half, pure, err := releases(ms, a, delta/2)
	if err != nil {
		return nil, err
	}
	if len(half) == 1 && half[0].Count <= mostOptimal {
		epsilon, err := optimal(half[0], delta)
		if err != nil {
			return nil, err
		}
		bounds = append(bounds, Bound{"optimal", epsilon, fmt.Sprintf("of any releases with ε %.4g, δ %.2g each",
			half[0].Each.Epsilon, half[0].Each.Delta)})
	}
	slack := delta / 2
	if pure {
		slack = delta
	}
	advanced, err := advancedComposition(half, slack)
	if err != nil {
		return nil, err
	}
	whole, _, err := releases(ms, a, delta)
	if err != nil {
		return nil, err
	}
	basic, err := Basic(whole)
	return append(bounds, Bound{"advanced", advanced.Epsilon, ""},
		Bound{"basic", basic.Epsilon, "the sum of all releases"}), err
}

// releases takes each mechanism at its own price: Laplace noise at its pure ε,
// a Gaussian release at the tight ε at its part of δ. pure means that none was
// needed.
func releases(ms []Mechanism, a Adjacency, delta float64) (rs []Releases, pure bool, err error) {
	gaussian := 0
	for _, m := range ms {
		if m.Kind == Gaussian {
			gaussian += m.Count
		}
	}
	for _, m := range ms {
		r := Releases{Each: Budget{Epsilon: m.shift(a) / m.Noise}, Count: m.Count}
		if m.Kind == Gaussian {
			r.Each.Delta = delta / float64(gaussian)
			one := m
			one.Count = 1
			if r.Each.Epsilon, err = Epsilon([]Mechanism{one}, a, r.Each.Delta); err != nil {
				return nil, false, err
			}
		}
		rs = append(rs, r)
	}
	return rs, gaussian == 0, nil
}
