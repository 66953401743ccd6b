package ppca

import "fmt"

// Scale maps each feature to (x − Shift)·Factor. It is the same at all sites
// and kept with the model.
type Scale struct {
	Shift, Factor []float64 // d each; factors finite and positive
}

// Check says what is wrong with a scale.
func (s *Scale) Check(l Layout) error {
	if d := l.Features(); len(s.Shift) != d || len(s.Factor) != d {
		return fmt.Errorf("scale: %d shifts and %d factors for %d features", len(s.Shift), len(s.Factor), d)
	}
	for j, f := range s.Factor {
		if !(f >= 1/Largest && f <= Largest) {
			return fmt.Errorf("scale: factor %v of feature %d is not positive and finite, from %g to %g", f, j, 1/Largest, Largest)
		}
	}
	return Finite("scale", s.Shift)
}

// Scaled returns the statistics of the subjects after every value x of
// feature j has become (x − Shift)·Factor.
func (b *Block) Scaled(s *Scale) Block {
	p := len(b.Features)
	out := Block{Features: b.Features, N: b.N, Mean: make([]float64, p)}
	for i, j := range b.Features {
		out.Mean[i] = (b.Mean[i] - s.Shift[j]) * s.Factor[j]
	}
	product := func(src []float64, row func(i int) float64) []float64 {
		if src == nil {
			return nil
		}
		dst := make([]float64, len(src))
		for i := range len(src) / p {
			f := row(i)
			for k, j := range b.Features {
				dst[i*p+k] = src[i*p+k] * (f * s.Factor[j])
			}
		}
		return dst
	}
	out.Scatter = product(b.Scatter, func(i int) float64 { return s.Factor[b.Features[i]] })
	out.Factor = product(b.Factor, func(int) float64 { return 1 })
	if b.Diag != nil {
		out.Diag = make([]float64, p)
		for i, j := range b.Features {
			out.Diag[i] = b.Diag[i] * s.Factor[j] * s.Factor[j]
		}
	}
	return out
}
