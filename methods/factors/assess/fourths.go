package assess

import (
	"fmt"
	"math"

	"parley/methods/factors/ppca"
)

// Fourths are q × q moments E z_f² z_b² of factors' scores z of variance 1, which say how the
// covariances of a sample of factors vary: those of normal ones, 3 and 1, where it is nil.
type Fourths []float64

// AddFourths adds to the sums of [NewFourths] a subject's: the factors' mean z and covariance,
// q × q, given what was observed of the subject.
func AddFourths(squares, fourths, z, cov []float64) {
	q := len(z)
	of := func(f int) float64 {
		known := 1 - cov[f*q+f]
		if known < leastTold {
			return 1
		}
		return z[f] * z[f] / known
	}
	for f := range z {
		squares[f] += of(f)
		for b := range z {
			fourths[f*q+b] += of(f) * of(b)
		}
	}
}

// leastTold is the variance of a score below which nothing but rounding is in it.
const leastTold = 1e-9

// hardly is how many standard errors above those of normal factors a moment has to be: by chance
// one in forty is.
const hardly = 2

// NewFourths returns moments of q factors, given the sums over subjects of z_f² and of z_f² z_b².
// Those that chance explains, or that are smaller, are those of normal factors.
func NewFourths(squares, fourths []float64, subjects float64) Fourths {
	q, normal := len(squares), true
	out := make(Fourths, q*q)
	for f, s := range squares {
		for b, t := range squares {
			moment, chance := 1.0, math.Sqrt(8/subjects)
			if f == b {
				moment, chance = 3, math.Sqrt(24/subjects)
			}
			if m := (fourths[f*q+b] / s) * (subjects / t); m > moment+hardly*chance && m < ppca.Largest {
				moment, normal = m, false
			}
			out[f*q+b] = moment
		}
	}
	if normal {
		return nil
	}
	return out
}

// Check refuses what no q factors have.
func (m Fourths) Check(q int) error {
	if m != nil && len(m) != q*q {
		return fmt.Errorf("%d fourth moments for %d factors", len(m), q)
	}
	for i, x := range m {
		least := 1.0
		if i%(q+1) == 0 {
			least = 3
		}
		if !(x >= least && x < ppca.Largest) {
			return fmt.Errorf("a fourth moment of %v, which is not at least %v", x, least)
		}
	}
	return nil
}

// variance is that of √N times the covariance of two factors in a sample of N.
func (m Fourths) variance(f, b, q int) float64 {
	switch {
	case m != nil && f == b:
		return m[f*q+b] - 1
	case m != nil:
		return m[f*q+b]
	case f == b:
		return 2
	}
	return 1
}

// excess is what E z_f² z_b² has beyond that of normal factors.
func (m Fourths) excess(f, b, q int) float64 {
	switch {
	case m == nil:
		return 0
	case f == b:
		return m[f*q+b] - 3
	}
	return m[f*q+b] - 1
}
