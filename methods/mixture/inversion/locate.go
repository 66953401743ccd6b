package inversion

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
	locateStarts   = 32 // landmarks that the search for one row begins at
	locateRestarts = 12 // of the search for several
)

// Locate finds rows whose features add up to what was observed: the attack on
// [sketch.Landmarks] without noise. One row is what two releases differ by, see
// [Difference]; several are all rows of a small site. With noise of one standard
// deviation on each entry it is a maximum-likelihood guess.
//
// Rows are returned one after the other, in no particular order. With more unknown
// numbers than landmarks, rows × Dim, they are not determined, which is an error.
func Locate(l sketch.Landmarks, sum []float64, rows int) ([]float64, error) {
	if err := l.Check(); err != nil {
		return nil, err
	}
	if len(sum) != l.Len() || gmm.NotFinite(sum) >= 0 {
		return nil, fmt.Errorf("a sum of %d numbers that are finite is wanted, one for each landmark", l.Len())
	}
	if rows < 1 || rows*l.Dim > l.Len() {
		return nil, fmt.Errorf("%d rows of %d features are not determined by %d sums", rows, l.Dim, l.Len())
	}
	best := pursue(l, sum, rows)
	loss := fitRows(l, best, sum)
	r := rand.New(rand.NewPCG(uint64(rows), 0)) // starts of a search
	for range locateRestarts {
		if rows == 1 || loss <= 1e-18*gmm.Squares(sum) {
			break
		}
		x := scatterStart(l, r, sum, rows)
		if v := fitRows(l, x, sum); v < loss {
			best, loss = x, v
		}
	}
	return best, nil
}

// fit moves rows to where the sum of their features is closest to what was observed.
func fitRows(l sketch.Landmarks, x, sum []float64) (loss float64) {
	d, phi := l.Dim, make([]float64, l.Len())
	return LeastSquares(x, len(sum), func(r, jac, x []float64) {
		for i, v := range sum {
			r[i] = -v
		}
		for k := 0; k < len(x); k += d {
			l.Features(phi, x[k:k+d])
			for i, v := range phi {
				r[i] += v
				if jac == nil {
					continue
				}
				c := l.Point(i)
				for a := range d { // ∂φ/∂x_a = −φ (x_a − c_a)/h_a²
					jac[i*len(x)+k+a] = -v * (x[k+a] - c[a]) / (l.Bandwidth[a] * l.Bandwidth[a])
				}
			}
		}
	})
}

// pursue takes one row after the other: the best for what those before left.
func pursue(l sketch.Landmarks, sum []float64, rows int) (x []float64) {
	left, phi := slices.Clone(sum), make([]float64, len(sum))
	for range rows {
		one := locateOne(l, left)
		l.Features(phi, one)
		for i, v := range phi {
			left[i] -= v
		}
		x = append(x, one...)
	}
	return x
}

// one finds one row, from the landmarks that are closest to it.
func locateOne(l sketch.Landmarks, sum []float64) []float64 {
	phi := make([]float64, len(sum))
	type start struct {
		at   int
		loss float64
	}
	starts := make([]start, l.Len())
	for i := range starts {
		l.Features(phi, l.Point(i))
		starts[i] = start{i, gmm.SquaredDistance(phi, sum)}
	}
	slices.SortFunc(starts, func(a, b start) int { return cmp.Or(cmp.Compare(a.loss, b.loss), a.at-b.at) })
	var best []float64
	least := math.Inf(1)
	for _, s := range starts[:min(len(starts), locateStarts)] {
		x := slices.Clone(l.Point(s.at))
		if v := fitRows(l, x, sum); v < least {
			best, least = x, v
		}
	}
	return best
}

// scatterStart draws rows near landmarks whose sums are large.
func scatterStart(l sketch.Landmarks, r *rand.Rand, sum []float64, rows int) (x []float64) {
	weights := make([]float64, len(sum))
	for i, v := range sum {
		weights[i] = max(v, 1e-12)
	}
	for range rows {
		for a, c := range l.Point(gmm.Pick(r, normalised(weights))) {
			x = append(x, c+l.Bandwidth[a]*r.NormFloat64())
		}
	}
	return x
}

func normalised(w []float64) []float64 {
	sum := 0.0
	for _, v := range w {
		sum += v
	}
	out := make([]float64, len(w))
	for i, v := range w {
		out[i] = v / sum
	}
	return out
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

// Slope returns what Cross does of the row x and a set, and writes its derivatives.
func Slope(d gmm.Discrepancy, dst, x, set []float64) (mean float64) {
	clear(dst)
	dim, n := len(x), float64(len(set)/len(x))
	for g := range slices.Chunk(set, dim) {
		q := gmm.SquaredDistance(x, g)
		value, by := math.Sqrt(q), 0.0 // by × (x − g) is the derivative
		if d.Kind == gmm.Energy {
			by = 1 / max(value, 1e-300)
		} else {
			value = math.Exp(-q / (2 * d.Bandwidth * d.Bandwidth))
			by = -value / (d.Bandwidth * d.Bandwidth)
		}
		mean += value / n
		for i, v := range x {
			dst[i] += by * (v - g[i]) / n
		}
	}
	return mean
}
