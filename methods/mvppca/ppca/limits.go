package ppca

import (
	"fmt"
	"math"

	"parley/methods/mvppca/linalg"
)

// What anybody sends is held to limits that no measured data and no honest
// program come near, so narrow that nothing computed within them overflows or
// falls below the smallest number: then whatever was taken in fails nothing later.
const (
	// Largest bounds every number that is taken in: the product of four has a
	// finite sum over any number of features and subjects.
	Largest = 1e75
	// LargestValue bounds a value, and everything in a site's answer that is in
	// the units of values; variances are bounded by its square. It leaves what is
	// made of the answers of many sites, such as the spread between them, far
	// within largest. In grams, it is the mass of fifty suns.
	LargestValue = 1e35
	// least bounds every variance from below: with largest, no quotient overflows.
	least = 1e-100
	// leastVariance is that of what a site says is a variance of its values.
	leastVariance = 1e-90
	// LargestCount bounds the subjects of a site, as the noised sums do.
	LargestCount = 1 << 31
	// Clearest bounds how far the factors of a model stand out of its noise,
	// tr WᵀΨ⁻¹W: beyond, the precision of the factors is not to be inverted.
	Clearest = 1e13
	// LargestPatterns bounds how many sets of views the subjects of a site have.
	LargestPatterns = 1 << 16
)

// Finite says which entry is not a number of sensible size.
func Finite(what string, x []float64) error { return Within(what, x, Largest) }

// Within says which entry is not a number of at most the limit in size.
func Within(what string, x []float64, limit float64) error {
	for i, v := range x {
		if !(math.Abs(v) <= limit) {
			return fmt.Errorf("%s: entry %d is %v, want a finite number of at most %g in size", what, i, v, limit)
		}
	}
	return nil
}

// Counts says which entry is not a count of at most the limit.
func Counts(what string, x []float64, limit float64) error {
	for i, v := range x {
		if !(v >= 0 && v <= limit) || v != math.Trunc(v) {
			return fmt.Errorf("%s: entry %d is %v, want a whole number from 0 to %g", what, i, v, limit)
		}
	}
	return nil
}

// Measured holds what a site says of its parameters to what values can be.
func (p *Params) Measured(l Layout) error {
	if err := Within("parameters: loadings", p.W, LargestValue); err != nil {
		return err
	}
	if err := Within("parameters: means", p.Mu, LargestValue); err != nil {
		return err
	}
	for g, used := range p.Groups(l) {
		if used {
			if err := variance(p.Noise[g]); err != nil {
				return fmt.Errorf("parameters: noise group %d: %w", g, err)
			}
		}
	}
	return nil
}

// variance holds a variance of values to what it can be.
func variance(v float64) error {
	if !(v >= leastVariance && v <= LargestValue*LargestValue) {
		return fmt.Errorf("a variance of %v, want from %g to %g", v, leastVariance, LargestValue*LargestValue)
	}
	return nil
}

// Measured holds a site's moments to what values can be.
func (b *Block) Measured() error {
	if err := Counts("moments: subjects", []float64{b.N}, LargestCount); err != nil {
		return err
	}
	if err := Within("moments: means", b.Mean, LargestValue); err != nil {
		return err
	}
	if err := Within("moments: scatter", b.Scatter, b.N*LargestValue*LargestValue); err != nil {
		return err
	}
	return nil
}

// MakePossible makes the scatter matrix one that data can have, where more than
// rounding keeps it from that: a fit to any other may fail. It is judged as
// correlations, so that units have no part in it.
func (b *Block) MakePossible() error {
	p := len(b.Features)
	root, c := make([]float64, p), make([]float64, p*p)
	for i := range p {
		root[i] = math.Sqrt(b.Scatter[i*p+i])
	}
	for i := range p {
		for j := range p {
			if s := root[i] * root[j]; s > 0 {
				c[i*p+j] = b.Scatter[i*p+j] / s
			} else {
				b.Scatter[i*p+j] = 0 // what does not vary goes with nothing
			}
		}
	}
	if err := Finite("moments: correlations", c); err != nil {
		return err
	}
	e := linalg.NewEigen(p)
	if !e.Factorise(c, p) {
		return fmt.Errorf("moments: the eigenvalues of the scatter matrix did not converge")
	}
	const rounding = 1e-6
	if e.Values[0] >= -rounding {
		return nil
	}
	clear(c)
	for a, x := range e.Values {
		for i := range p {
			for j := range p {
				c[i*p+j] += max(x, 0) * e.Vectors[i*p+a] * e.Vectors[j*p+a]
			}
		}
	}
	linalg.Symmetrise(c, p, p)
	for i := range p {
		for j := range p {
			b.Scatter[i*p+j] = root[i] * root[j] * c[i*p+j]
		}
	}
	return nil
}

// Measured holds what a site says of its parameters to what values can be.
func (m *SiteMessage) Measured() error {
	if err := Within("site message: Y", m.Y, LargestValue); err != nil {
		return err
	}
	if err := Within("site message: mean of the factors", m.Nu, LargestValue); err != nil {
		return err
	}
	for g, n := range m.Cells {
		if n == 0 {
			continue
		}
		if err := variance(m.Noise[g]); err != nil {
			return fmt.Errorf("site message: noise group %d: %w", g, err)
		}
		if err := variance(m.SS[g] / n); err != nil {
			return fmt.Errorf("site message: residuals of noise group %d: %w", g, err)
		}
	}
	if err := Counts("site message: values", m.Cells, MaxFeatures*LargestCount); err != nil {
		return err
	}
	return Counts("site message: subjects", []float64{m.Subjects}, LargestCount)
}
