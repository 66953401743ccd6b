package account

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/dsp/fourier"
)

// spectrum is the transform of a product of distributions on a cyclic grid.
type spectrum struct {
	n       int
	fft     *fourier.FFT
	product []complex128
	one     []complex128
	grid    []float64
	rounds  float64 // Σ count, in which the relative errors grow
	// alive are the frequencies that still matter, once they are few.
	alive []int
	few   bool
}

// gone is the modulus below which a frequency is left out for good: no
// factor can raise it again.
const gone = 1e-22

func newSpectrum(n int) *spectrum {
	s := &spectrum{n: n, fft: fourier.NewFFT(n), product: make([]complex128, n/2+1), grid: make([]float64, n)}
	for i := range s.product {
		s.product[i] = 1
	}
	return s
}

// multiply convolves with a distribution of sum 1, count times.
func (s *spectrum) multiply(found []dot, count int) {
	s.rounds += float64(count)
	at := func(i int) int { // the index on the cyclic grid
		i %= s.n
		if i < 0 {
			i += s.n
		}
		return i
	}
	if s.few && len(found)*len(s.alive) < s.n*4 {
		s.one = slices.Grow(s.one[:0], len(s.alive))[:len(s.alive)]
		clear(s.one)
		for _, d := range found {
			i := at(d.index)
			turn := s.root(i)
			var z complex128
			for j, f := range s.alive {
				// Turning on from the last frequency, for a few: errors add up.
				if j%turns == 0 || f != s.alive[j-1]+1 {
					z = s.root(i*f%s.n) * complex(d.weight, 0)
				} else {
					z *= turn
				}
				s.one[j] += z
			}
		}
		for j, f := range s.alive {
			s.product[f] *= power(s.one[j], count)
		}
	} else {
		clear(s.grid)
		for _, d := range found {
			s.grid[at(d.index)] += d.weight
		}
		s.one = s.fft.Coefficients(slices.Grow(s.one[:0], s.n/2+1)[:s.n/2+1], s.grid)
		for i, z := range s.one {
			if s.product[i] != 0 {
				s.product[i] *= power(z, count)
			}
		}
	}
	s.alive = s.alive[:0]
	for i, z := range s.product {
		switch a := math.Abs(real(z)) + math.Abs(imag(z)); {
		case a > gone:
			s.alive = append(s.alive, i)
		case a > 0:
			s.product[i] = 0
		}
	}
	s.few = true
}

// turns is how many frequencies in a row are had from one evaluation of sine
// and cosine.
const turns = 16

// root returns exp(−2πi k/n).
func (s *spectrum) root(k int) complex128 {
	sin, cos := math.Sincos(-2 * math.Pi * float64(k) / float64(s.n))
	return complex(cos, sin)
}

// inverse returns the weights from an index of the loss on, with a bound on
// their rounding errors added.
func (s *spectrum) inverse(first int) []float64 {
	var modulus float64
	for i, z := range s.product {
		m := math.Hypot(real(z), imag(z))
		if i > 0 && i < s.n/2 {
			m *= 2
		}
		modulus += m
	}
	n := float64(s.n)
	// A coefficient of a factor has an error of about ulp (turns + log₂ n), which the
	// power multiplies by its count; then come the power itself and the inverse.
	guard := modulus/n*ulp*(s.rounds*(8+turns+math.Log2(n))+16) + gone
	s.grid = s.fft.Sequence(s.grid, s.product)
	out := make([]float64, s.n)
	for i := range out {
		j := (first + i) % s.n
		if j < 0 {
			j += s.n
		}
		out[i] = math.Max(0, s.grid[j]/n) + guard
	}
	return out
}

// power returns zⁿ for |z| ≤ 1.
func power(z complex128, n int) complex128 {
	if n == 1 {
		return z
	}
	re, im := real(z), imag(z)
	m := float64(n) * math.Log(re*re+im*im) / 2
	if !(m > -60) {
		return 0
	}
	sin, cos := math.Sincos(float64(n) * math.Atan2(im, re))
	r := math.Exp(m)
	return complex(r*cos, r*sin)
}
