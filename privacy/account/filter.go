package account

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mathext"
)

// Filter holds a sequence of mechanisms to a budget when each of them, its noise
// and whether there is another may be chosen from earlier answers, as over the
// studies that a site takes part in. There the value of Epsilon over all of
// them is no bound; it is one only for mechanisms fixed beforehand.
//
// As long as everything was admitted before it was released, all of it together
// is (ε, δ)-differentially private for the budget of the filter.
type Filter interface {
	// Admit says whether the proposed mechanisms may still be released after
	// those spent. An error is one of a mechanism that makes no sense.
	Admit(spent, proposed []Mechanism) (bool, error)
	// Left is the share of the budget that is left after those spent, in [0, 1]:
	// of μ² or of the Rényi divergence, which add up, and not of ε. A release of
	// the same kind with √n times the noise takes an n-th.
	Left(spent []Mechanism) (float64, error)
}

// GaussianFilter admits while Σ μ² ≤ μ_B², with μ_B the Gaussian differential
// privacy that just attains the budget: for Gaussian mechanisms it loses
// nothing (Smith & Thakurta 2022; Koskela, Tobaben, Honkela 2022).
//
// Laplace noise is counted by the least μ that bounds its pure ε. A sampled
// Gaussian is counted as if every record entered: that bounds it, but gives
// away what sampling gains. A site that grants many of those is better served
// by a RenyiFilter.
type GaussianFilter struct {
	adjacency Adjacency
	mu2       float64
}

// NewGaussianFilter makes a filter for a budget.
func NewGaussianFilter(b Budget, a Adjacency) (*GaussianFilter, error) {
	if err := a.Check(); err != nil {
		return nil, err
	}
	if err := checkRelease(b.Epsilon, b.Delta, 1); err != nil {
		return nil, err
	}
	mu := gaussianMu(b)
	return &GaussianFilter{a, mu * mu}, nil
}

// Admit says whether Σ μ² of all mechanisms is within the budget.
func (f *GaussianFilter) Admit(spent, proposed []Mechanism) (bool, error) {
	return admit(f, spent, proposed)
}

// Left is 1 − Σ μ²/μ_B², not below 0.
func (f *GaussianFilter) Left(spent []Mechanism) (float64, error) {
	used, err := f.used(spent)
	return max(1-used, 0), err
}

func (f *GaussianFilter) used(ms []Mechanism) (float64, error) {
	if err := checkAll(ms, f.adjacency); err != nil {
		return 0, err
	}
	sum := 0.0
	for _, m := range ms {
		mu := m.shift(f.adjacency) / m.Noise
		if m.Kind == Laplace {
			mu = laplaceMu(mu)
		}
		sum += float64(m.Count) * mu * mu
	}
	return sum / f.mu2, nil
}

// laplaceMu is 2Φ⁻¹(exp ε/(1 + exp ε)): the least μ for which every pure ε
// mechanism is μ-Gaussian differentially private (Dong, Roth, Su 2022: the
// trade-off function of μ goes through the one corner of that of ε, and is
// convex). It is rounded up.
func laplaceMu(eps float64) float64 {
	var z float64
	switch {
	case eps < 8: // Φ(z) − Φ(−z) = tanh(ε/2)
		z = math.Sqrt2 * math.Erfinv(math.Tanh(eps/2))
	case eps < 600:
		z = -mathext.NormalQuantile(math.Exp(-eps) / (1 + math.Exp(-eps)))
	default: // Φ(−z) ≤ ½ exp(−z²/2)
		z = math.Sqrt(2 * eps)
	}
	return 2 * z * (1 + 1e-9)
}

// RenyiFilter admits while the Rényi divergences of one order, fixed from the
// budget alone, add up to no more than what that order allows (Feldman & Zrnic
// 2021; Lécuyer 2021), with the conversion of ConvertRDP. It takes sampled
// mechanisms at their own price.
type RenyiFilter struct {
	adjacency Adjacency
	order     float64
	limit     float64 // Rényi divergence that attains the budget
}

// NewRenyiFilter makes a filter for a budget. Its order is the one that allows
// the most Gaussian releases: the largest limit relative to the order.
func NewRenyiFilter(b Budget, a Adjacency) (*RenyiFilter, error) {
	if err := a.Check(); err != nil {
		return nil, err
	}
	if err := checkRelease(b.Epsilon, b.Delta, 1); err != nil {
		return nil, err
	}
	f := &RenyiFilter{adjacency: a}
	for _, o := range defaultOrders {
		if limit := (b.Epsilon - improvedRest(o, b.Delta)) * (1 - roundUp); limit*f.order > f.limit*o || f.order == 0 {
			f.order, f.limit = o, limit
		}
	}
	if !(f.limit > 0) {
		return nil, fmt.Errorf("epsilon %v at delta %v is too little for a Rényi filter: no order up to %g allows "+
			"anything", b.Epsilon, b.Delta, defaultOrders[len(defaultOrders)-1])
	}
	return f, nil
}

// Order is the Rényi order that the budget fixed.
func (f *RenyiFilter) Order() float64 { return f.order }

// Admit says whether the divergences of all mechanisms add up to no more than
// the limit.
func (f *RenyiFilter) Admit(spent, proposed []Mechanism) (bool, error) {
	return admit(f, spent, proposed)
}

// Left is 1 − Σ divergence/limit, not below 0.
func (f *RenyiFilter) Left(spent []Mechanism) (float64, error) {
	used, err := f.used(spent)
	return max(1-used, 0), err
}

func (f *RenyiFilter) used(ms []Mechanism) (float64, error) {
	rdp, err := RDP(ms, f.adjacency, []float64{f.order})
	if err != nil {
		return 0, err
	}
	return rdp[0] / f.limit, nil
}

// meter is a filter that adds up.
type meter interface {
	used([]Mechanism) (share float64, err error)
}

// admit adds what is spent and what is proposed, and is generous by what adding
// up may be off: the limits themselves are that much too low.
func admit(f meter, spent, proposed []Mechanism) (bool, error) {
	before, err := f.used(spent)
	if err != nil {
		return false, fmt.Errorf("spent so far: %w", err)
	}
	now, err := f.used(proposed)
	if err != nil {
		return false, fmt.Errorf("proposed: %w", err)
	}
	return before+now <= 1+roundUp, nil
}
