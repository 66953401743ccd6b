package mvppca

import (
	"fmt"
	"math"
)

// What anybody sends is held to limits that no measured data and no honest
// program come near, so narrow that nothing computed within them overflows or
// falls below the smallest number: then whatever was taken in fails nothing later.
const (
	// largest bounds every number that is taken in: the product of four has a
	// finite sum over any number of features and subjects.
	largest = 1e75
	// largestValue bounds a value, and everything in a site's answer that is in
	// the units of values; variances are bounded by its square. It leaves what is
	// made of the answers of many sites, such as the spread between them, far
	// within largest. In grams, it is the mass of fifty suns.
	largestValue = 1e35
	// least bounds every variance from below: with largest, no quotient overflows.
	least = 1e-100
	// leastVariance is that of what a site says is a variance of its values.
	leastVariance = 1e-90
	// largestCount bounds the subjects of a site, as the noised sums do.
	largestCount = 1 << 31
	// clearest bounds how far the factors of a model stand out of its noise,
	// tr WᵀΨ⁻¹W: beyond, the precision of the factors is not to be inverted.
	clearest = 1e13
	// largestPatterns bounds how many sets of views the subjects of a site have.
	largestPatterns = 1 << 16
)

// finite says which entry is not a number of sensible size.
func finite(what string, x []float64) error { return within(what, x, largest) }

// within says which entry is not a number of at most the limit in size.
func within(what string, x []float64, limit float64) error {
	for i, v := range x {
		if !(math.Abs(v) <= limit) {
			return fmt.Errorf("%s: entry %d is %v, want a finite number of at most %g in size", what, i, v, limit)
		}
	}
	return nil
}

// counts says which entry is not a count of at most the limit.
func counts(what string, x []float64, limit float64) error {
	for i, v := range x {
		if !(v >= 0 && v <= limit) || v != math.Trunc(v) {
			return fmt.Errorf("%s: entry %d is %v, want a whole number from 0 to %g", what, i, v, limit)
		}
	}
	return nil
}

// measured holds what a site says of its parameters to what values can be.
func (p *Params) measured(l Layout) error {
	if err := within("parameters: loadings", p.W, largestValue); err != nil {
		return err
	}
	if err := within("parameters: means", p.Mu, largestValue); err != nil {
		return err
	}
	for g, used := range p.groups(l) {
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
	if !(v >= leastVariance && v <= largestValue*largestValue) {
		return fmt.Errorf("a variance of %v, want from %g to %g", v, leastVariance, largestValue*largestValue)
	}
	return nil
}

// measured holds a site's moments to what values can be.
func (b *Block) measured() error {
	if err := counts("moments: subjects", []float64{b.N}, largestCount); err != nil {
		return err
	}
	if err := within("moments: means", b.Mean, largestValue); err != nil {
		return err
	}
	if err := within("moments: scatter", b.Scatter, b.N*largestValue*largestValue); err != nil {
		return err
	}
	return nil
}

// possible makes the scatter matrix one that data can have, where more than
// rounding keeps it from that: a fit to any other may fail. It is judged as
// correlations, so that units have no part in it.
func (b *Block) possible() error {
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
	if err := finite("moments: correlations", c); err != nil {
		return err
	}
	e := newEigen(p)
	if !e.factorise(c, p) {
		return fmt.Errorf("moments: the eigenvalues of the scatter matrix did not converge")
	}
	const rounding = 1e-6
	if e.val[0] >= -rounding {
		return nil
	}
	clear(c)
	for a, x := range e.val {
		for i := range p {
			for j := range p {
				c[i*p+j] += max(x, 0) * e.vec[i*p+a] * e.vec[j*p+a]
			}
		}
	}
	symmetrise(c, p, p)
	for i := range p {
		for j := range p {
			b.Scatter[i*p+j] = root[i] * root[j] * c[i*p+j]
		}
	}
	return nil
}

// measured holds what a site says of its parameters to what values can be.
func (m *SiteMessage) measured() error {
	if err := within("site message: Y", m.Y, largestValue); err != nil {
		return err
	}
	if err := within("site message: mean of the factors", m.Nu, largestValue); err != nil {
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
	if err := counts("site message: values", m.Cells, maxFeatures*largestCount); err != nil {
		return err
	}
	return counts("site message: subjects", []float64{m.Subjects}, largestCount)
}
