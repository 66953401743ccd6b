package graffl

import (
	"fmt"
	"math"
	"math/rand/v2"

	"parley/methods/mixture/gmm"
)

// discrepancyKind names a set discrepancy.
type discrepancyKind string

const (
	byEnergy discrepancyKind = "energy" // 2 E|g − y| − E|g − g′| − E|y − y′|: no scale to choose, a slope from far away
	byMMD    discrepancyKind = "mmd"    // E k(g, g′) − 2 E k(g, y) + E k(y, y′), k a Gaussian kernel
)

// discrepancy is a distance between sets of rows that may be summed over sites whose rows are unlike: Σ_j (n_j/n) D(G,
// Y_j) is D(G, all rows) and a constant that does not depend on the generated set G. Other distances are not offered:
// summed over sites with one mode each, Wasserstein distances prefer a single blob between the modes to the truth.
//
// All means are over all pairs (V-statistics). Sets are n × dim, by rows, and not empty.
type discrepancy struct {
	Kind discrepancyKind `json:"kind" cbor:"kind"`
	// h of exp(−|x−y|²/2h²), in features' units; MMD only
	Bandwidth float64 `json:"bandwidth,omitempty" cbor:"bandwidth,omitempty"`
}

// Check reports what is wrong with a discrepancy.
func (d discrepancy) Check() error {
	switch {
	case d.Kind != byEnergy && d.Kind != byMMD:
		return fmt.Errorf("discrepancy %q may not be summed over sites, or is not known: want %q or %q", string(d.Kind),
			byEnergy, byMMD)
	case d.Kind == byMMD && (!(d.Bandwidth > 0) || math.IsInf(d.Bandwidth, 1)):
		return fmt.Errorf("bandwidth %v of %q: want a positive number", d.Bandwidth, byMMD)
	case d.Kind == byEnergy && d.Bandwidth != 0:
		return fmt.Errorf("%q takes no bandwidth", byEnergy)
	}
	return nil
}

// Cross returns the mean over all pairs of a row of a and a row of b: of |a − b| by energy, of the kernel by MMD. With
// generated rows as a and its own as b it is what a site answers.
func (d discrepancy) Cross(a, b []float64, dim int) float64 {
	total, scale := 0.0, -1/(2*d.Bandwidth*d.Bandwidth)
	for i := 0; i < len(a); i += dim {
		x, s := a[i:i+dim], 0.0
		for j := 0; j < len(b); j += dim {
			if q := gmm.SquaredDistance(x, b[j:j+dim]); d.Kind == byEnergy {
				s += math.Sqrt(q)
			} else {
				s += math.Exp(scale * q)
			}
		}
		total += s
	}
	return total / (float64(len(a)/dim) * float64(len(b)/dim))
}

// Combine returns D(G, Y) given the means over pairs within G, across, and within Y.
func (d discrepancy) Combine(within, across, rows float64) float64 {
	if d.Kind == byEnergy {
		return 2*across - within - rows
	}
	return within - 2*across + rows
}

// Over returns D(G, all rows) less the part that no generated set changes, from what each site answers, its
// discrepancy.Cross, and its number of rows: right for any split of the rows. It may be negative.
func (d discrepancy) Over(within float64, across []float64, rows []int) float64 {
	n, s := 0, 0.0
	for j, c := range across {
		n += rows[j]
		s += float64(rows[j]) * c
	}
	return d.Combine(within, s/float64(n), 0)
}

// simulateBalanced draws rows that stand for a mixture with less chance than independent ones:
// components in their shares (systematic sampling), and each row with its mirror
// image at the component's mean, if it has one. Every row alone has the mixture's density.
func simulateBalanced(m gmm.Mixture, r *rand.Rand, rows []float64) error {
	d := m.Dim
	l := append([]float64(nil), m.Covs...)
	for k := range m.Weights {
		if _, ok := gmm.Cholesky(l[k*d*d:][:d*d], d); !ok {
			return fmt.Errorf("the covariance of component %d is not positive definite", k)
		}
	}
	n := len(rows) / d
	z := make([]float64, d)
	at, k, sum := r.Float64(), 0, m.Weights[0]
	pairs := (n + 1) / 2
	for i := range n {
		if i%2 == 0 {
			for share := (at + float64(i/2)) / float64(pairs); share > sum &&
				k < len(m.Weights)-1; sum += m.Weights[k] {
				k++
			}
			for c := range z {
				z[c] = r.NormFloat64()
			}
		} else {
			for c := range z {
				z[c] = -z[c]
			}
		}
		for c, x := range m.Mean(k) { // μ_k + L_k z
			for j, v := range z[:c+1] {
				x += l[k*d*d+c*d+j] * v
			}
			rows[i*d+c] = x
		}
	}
	return nil
}
