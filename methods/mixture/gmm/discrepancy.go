package gmm

import (
	"fmt"
	"math"
)

// Kind names a set discrepancy.
type Kind string

const (
	Energy Kind = "energy" // 2 E|g − y| − E|g − g′| − E|y − y′|: no scale to choose, a slope from far away
	MMD    Kind = "mmd"    // E k(g, g′) − 2 E k(g, y) + E k(y, y′), k a Gaussian kernel
)

// Discrepancy is a distance between sets of rows that may be summed over sites
// whose rows are unlike: Σ_j (n_j/n) D(G, Y_j) is D(G, all rows) and a constant that
// does not depend on the generated set G. Other distances are not offered: summed
// over sites with one mode each, Wasserstein distances prefer a single blob between
// the modes to the truth.
//
// All means are over all pairs (V-statistics). Sets are n × dim, by rows, and not
// empty.
type Discrepancy struct {
	Kind      Kind    `json:"kind" cbor:"kind"`
	Bandwidth float64 `json:"bandwidth,omitempty" cbor:"bandwidth,omitempty"` // h of exp(−|x−y|²/2h²), in features' units; MMD only
}

// Check reports what is wrong with a discrepancy.
func (d Discrepancy) Check() error {
	switch {
	case d.Kind != Energy && d.Kind != MMD:
		return fmt.Errorf("discrepancy %q may not be summed over sites, or is not known: want %q or %q", string(d.Kind), Energy, MMD)
	case d.Kind == MMD && (!(d.Bandwidth > 0) || math.IsInf(d.Bandwidth, 1)):
		return fmt.Errorf("bandwidth %v of %q: want a positive number", d.Bandwidth, MMD)
	case d.Kind == Energy && d.Bandwidth != 0:
		return fmt.Errorf("%q takes no bandwidth", Energy)
	}
	return nil
}

// Cross returns the mean over all pairs of a row of a and a row of b: of |a − b|
// for Energy, of the kernel for MMD. With generated rows as a and its own as b it is
// what a site answers.
func (d Discrepancy) Cross(a, b []float64, dim int) float64 {
	total, scale := 0.0, -1/(2*d.Bandwidth*d.Bandwidth)
	for i := 0; i < len(a); i += dim {
		x, s := a[i:i+dim], 0.0
		for j := 0; j < len(b); j += dim {
			if q := SquaredDistance(x, b[j:j+dim]); d.Kind == Energy {
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
func (d Discrepancy) Combine(within, across, rows float64) float64 {
	if d.Kind == Energy {
		return 2*across - within - rows
	}
	return within - 2*across + rows
}

// Between returns D(a, b).
func (d Discrepancy) Between(a, b []float64, dim int) float64 {
	return d.Combine(d.Cross(a, a, dim), d.Cross(a, b, dim), d.Cross(b, b, dim))
}

// Over returns D(G, all rows) less the part that no generated set changes, from
// what each site answers, its [Discrepancy.Cross], and its number of rows: right for
// any split of the rows. It may be negative.
func (d Discrepancy) Over(within float64, across []float64, rows []int) float64 {
	n, s := 0, 0.0
	for j, c := range across {
		n += rows[j]
		s += float64(rows[j]) * c
	}
	return d.Combine(within, s/float64(n), 0)
}
