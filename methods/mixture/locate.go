package mixture

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"parley/methods/mixture/gmm"
	"parley/methods/mixture/sketch"
)

const (
	locateCandidates = 4096 // places that the search for one of several rows compares
	locateRestarts   = 12   // of the search for several
)

// locate finds rows whose features add up to what was observed: the attack on sums without noise. One row is
// what two releases differ by; several are all rows of a small site. With noise of one standard
// deviation on each entry it is a maximum-likelihood guess.
//
// Rows are returned one after the other, in no particular order. With more unknown
// numbers than sums, rows × Dim, they are not determined, which is an error.
func locate(f sketch.Frequencies, sum []float64, rows int) ([]float64, error) {
	if len(sum) != f.Len() || gmm.NotFinite(sum) >= 0 {
		return nil, fmt.Errorf("a sum of %d numbers that are finite is wanted, a cosine and a sine for each frequency", f.Len())
	}
	if rows < 1 || rows*f.Dim > f.Len() {
		return nil, fmt.Errorf("%d rows of %d features are not determined by %d sums", rows, f.Dim, f.Len())
	}
	if rows == 1 {
		return locateOne(f, sum), nil
	}
	var best []float64
	least := math.Inf(1)
	r := rand.New(rand.NewPCG(uint64(rows), 0)) // places of a search
	for range locateRestarts {
		x := pursue(f, r, sum, rows)
		if v := fitRows(f, x, sum, math.Inf(1)); v < least {
			best, least = x, v
		}
		if least <= 1e-18*gmm.Squares(sum) {
			break
		}
	}
	return best, nil
}

// fitRows moves rows to where the sum of their features is closest to what was observed, at frequencies up
// to a length.
func fitRows(f sketch.Frequencies, x, sum []float64, longest float64) (loss float64) {
	d, m := f.Dim, f.Count()
	phi := make([]float64, f.Len())
	seen := make([]float64, m)
	for j := range seen {
		if math.Sqrt(gmm.Squares(f.Omega[j*d:][:d])) <= longest {
			seen[j] = 1
		}
	}
	return LeastSquares(x, len(sum), func(r, jac, x []float64) {
		for i, v := range sum {
			r[i] = -v * seen[i%m]
		}
		for k := 0; k < len(x); k += d {
			f.Features(phi, x[k:k+d])
			for j, on := range seen {
				r[j] += on * phi[j]
				r[m+j] += on * phi[m+j]
				for a := 0; jac != nil && a < d; a++ {
					by := on * f.Omega[j*d+a] / f.Scale[a]
					jac[j*len(x)+k+a] = -by * phi[m+j]
					jac[(m+j)*len(x)+k+a] = by * phi[j]
				}
			}
		}
	})
}

// locateOne goes from the shortest frequencies, to which the whole box is one valley, to all.
func locateOne(f sketch.Frequencies, sum []float64) []float64 {
	x := slices.Clone(f.Centre)
	var lengths []float64
	for w := range slices.Chunk(f.Omega, f.Dim) {
		lengths = append(lengths, math.Sqrt(gmm.Squares(w)))
	}
	slices.Sort(lengths)
	for far := lengths[min(f.Dim, len(lengths)-1)]; far < lengths[len(lengths)-1]; far *= 1.5 {
		fitRows(f, x, sum, far)
	}
	fitRows(f, x, sum, math.Inf(1))
	return x
}

// pursue takes one row after the other: the best place for what those before left.
func pursue(f sketch.Frequencies, r *rand.Rand, sum []float64, rows int) (x []float64) {
	phi := make([]float64, len(sum))
	type place struct {
		at []float64
		on float64
	}
	for range rows {
		left := slices.Clone(sum)
		for row := range slices.Chunk(x, f.Dim) {
			f.Features(phi, row)
			for i, v := range phi {
				left[i] -= v
			}
		}
		best := place{on: math.Inf(-1)}
		for range locateCandidates {
			p := place{at: make([]float64, f.Dim)}
			for i, c := range f.Centre {
				p.at[i] = c + f.Half()*f.Scale[i]*(2*r.Float64()-1)
			}
			f.Features(phi, p.at)
			for i, v := range phi {
				p.on += v * left[i]
			}
			if cmp.Compare(p.on, best.on) > 0 {
				best = p
			}
		}
		x = append(x, best.at...)
		fitRows(f, x, sum, math.Inf(1))
	}
	return x
}

// LeastSquares moves x to a minimum of |r(x)|² by the steps of Levenberg and
// Marquardt, and returns it. residuals writes m residuals and, unless jac is nil, their
// derivatives, m × len(x) by rows.
func LeastSquares(x []float64, m int, residuals func(r, jac, x []float64)) (loss float64) {
	n := len(x)
	r, jac := make([]float64, m), make([]float64, m*n)
	gram, l, slope, step, to := make([]float64, n*n), make([]float64, n*n), make([]float64, n), make([]float64, n), make([]float64, n)
	residuals(r, jac, x)
	loss = gmm.Squares(r)
	damping := 1e-3
	for range 200 {
		clear(gram)
		clear(slope)
		for i, v := range r {
			row := jac[i*n:][:n]
			for a, g := range row {
				if g == 0 {
					continue
				}
				slope[a] += g * v
				for b, h := range row[:a+1] {
					gram[a*n+b] += g * h
				}
			}
		}
		before, better := loss, false
		for range 16 {
			copy(l, gram)
			for a := range n {
				l[a*n+a] += damping*gram[a*n+a] + 1e-300
			}
			if _, ok := gmm.Cholesky(l, n); ok {
				copy(step, slope)
				gmm.Forward(l, n, step)
				gmm.BackwardSolve(l, n, step)
				for a := range to {
					to[a] = x[a] - step[a]
				}
				residuals(r, nil, to)
				if v := gmm.Squares(r); v < loss {
					copy(x, to)
					loss, better = v, true
					damping = max(damping/10, 1e-15)
					break
				}
			}
			damping = 10 * max(damping, 1e-12)
		}
		if !better || before-loss <= 1e-12*loss {
			break
		}
		residuals(r, jac, x)
	}
	return loss
}

// difference is what two answers to one question tell about the record by which two
// sets differ: with sums (means times numbers of rows) of the larger and the smaller
// set, its own contribution. Where answers are exact, so is it; where they carry
// noise, it carries that of both.
func difference(larger, smaller []float64) ([]float64, error) {
	if len(larger) != len(smaller) {
		return nil, fmt.Errorf("sums of %d and of %d numbers", len(larger), len(smaller))
	}
	d := make([]float64, len(larger))
	for i := range d {
		d[i] = larger[i] - smaller[i]
	}
	return d, nil
}

// mostAdvantage returns how often, at most, anybody is right who must tell from a
// release under (ε, δ) which of two records it held, both equally likely
// beforehand: (e^ε + δ)/(1 + e^ε) (Kairouz, Oh and Viswanath 2015).
func mostAdvantage(epsilon, delta float64) float64 {
	e := math.Exp(-epsilon)
	return min(1, (1+delta*e)/(1+e))
}
