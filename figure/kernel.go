package figure

import (
	"cmp"
	"math"
	"slices"
)

// KernelDensity estimates the density of points in the plane at the crossings of
// a regular grid: row j holds the values at y[j], one for each of x. Kernels are
// Gaussian, as wide along each axis as Silverman's rule says for that many points
// (1986, section 4.3.2; the smaller of standard deviation and IQR/1.34, so that
// far points do not blur the rest), but no narrower than half a step of the grid.
// The kernel's centre is rounded to the grid, linearly shared among its neighbours.
//
// Without weights all are alike. Points that are not available, have no positive
// weight or lie beyond the grid take no part. With those that lie
// beyond, the estimate integrates to 1 over the plane. Nil is returned if no point
// takes part, or if the grid has fewer than two places along an axis or does not
// rise. Where points are few the estimate shows each of them, so one of subjects' values
// is for their own site alone.
func KernelDensity(px, py, weights, x, y Numbers) []Numbers {
	s := newSample(px, py, weights)
	l, ok := s.lattice(x, y)
	if !ok {
		return nil
	}
	dx, dy := (x[len(x)-1]-x[0])/float64(len(x)-1), (y[len(y)-1]-y[0])/float64(len(y)-1)
	rows := make([]Numbers, len(y))
	for j := range rows {
		rows[j] = l.values[j*len(x):][:len(x)]
		for i := range rows[j] {
			rows[j][i] = rows[j][i] / dx / dy
		}
	}
	return rows
}

// sample is weighted points in the plane; weights sum to 1.
type sample struct{ x, y, w []float64 }

// shares scales the weights of n values to sum to 1: none stand for equal ones. What
// is not positive, or not available, is 0. All are 0 if none is positive.
func shares(weights Numbers, n int) []float64 {
	w := make([]float64, n)
	top := 0.0
	for i := range w {
		if w[i] = 1; len(weights) > 0 {
			w[i] = max(weights.at(i), 0)
			if math.IsNaN(w[i]) {
				w[i] = 0
			}
		}
		top = max(top, w[i])
	}
	if top == 0 {
		return w
	}
	sum := 0.0
	for i := range w {
		w[i] /= top
		sum += w[i]
	}
	for i := range w {
		w[i] /= sum
	}
	return w
}

// newSample keeps the points that are available and have a weight.
func newSample(x, y, weights Numbers) (s sample) {
	n := min(len(x), len(y))
	w := shares(weights, n)
	total := 0.0
	for i := range n {
		if a, b := x.at(i), y.at(i); available(a) && available(b) && w[i] > 0 {
			s.x, s.y, s.w = append(s.x, a), append(s.y, b), append(s.w, w[i])
			total += w[i]
		}
	}
	for i := range s.w {
		s.w[i] /= total
	}
	return s
}

// lattice is [KernelDensity] times the area of a cell of the grid: the share of the
// points around each crossing.
func (s sample) lattice(x, y []float64) (lattice, bool) {
	l := lattice{x: x, y: y, values: make([]float64, len(x)*len(y))}
	if len(x) < 2 || len(y) < 2 || !rises(x) || !rises(y) {
		return l, false
	}
	dx, dy := (x[len(x)-1]-x[0])/float64(len(x)-1), (y[len(y)-1]-y[0])/float64(len(y)-1)
	some := false
	for k, w := range s.w {
		u, v := (s.x[k]-x[0])/dx, (s.y[k]-y[0])/dy
		if !(u >= 0 && u <= float64(len(x)-1) && v >= 0 && v <= float64(len(y)-1)) {
			continue
		}
		some = true
		i, j := min(int(u), len(x)-2), min(int(v), len(y)-2)
		u, v = u-float64(i), v-float64(j)
		at := j*len(x) + i
		l.values[at] += w * (1 - u) * (1 - v)
		l.values[at+1] += w * u * (1 - v)
		l.values[at+len(x)] += w * (1 - u) * v
		l.values[at+len(x)+1] += w * u * v
	}
	if !some {
		return l, false
	}
	size := 0.0
	for _, w := range s.w {
		size += w * w
	}
	kx, ky := kernel(s.x, s.w, dx, size), kernel(s.y, s.w, dy, size)
	smooth(l.values, len(x), len(y), 1, len(x), kx)
	smooth(l.values, len(y), len(x), len(x), 1, ky)
	return l, true
}

func rises(v []float64) bool {
	for i := range v {
		if !available(v[i]) || i > 0 && !(v[i] > v[i-1]) {
			return false
		}
	}
	return true
}

// kernel returns half of a Gaussian kernel in steps of a grid, from its middle. The
// squares of the weights sum to square: its inverse is how many points they are
// worth.
func kernel(v, w []float64, step, square float64) []float64 {
	mean, variance := 0.0, 0.0
	for i := range v {
		mean += w[i] * v[i] / step
	}
	for i := range v {
		t := v[i]/step - mean
		variance += w[i] * t * t
	}
	spread := math.Sqrt(variance)
	if iqr := (weightedQuantile(v, w, 0.75) - weightedQuantile(v, w, 0.25)) / step / 1.34; iqr > 0 {
		spread = min(spread, iqr)
	}
	h := spread * math.Pow(square, 1./6) // (4/(d+2))^(1/(d+4)) is 1 for d = 2
	if !(h >= 0.5) {
		h = 0.5
	}
	h = min(h, 1e3)
	half := make([]float64, int(4*h)+1)
	sum := 0.0
	for i := range half {
		t := float64(i) / h
		half[i] = math.Exp(-t * t / 2)
		sum += 2 * half[i]
	}
	sum -= half[0]
	for i := range half {
		half[i] /= sum
	}
	return half
}

// smooth convolves lines of n values that lie stride apart; the lines begin at
// multiples of between. What lies beyond the ends is nothing.
func smooth(values []float64, n, lines, stride, between int, half []float64) {
	in := make([]float64, n)
	for k := range lines {
		line := values[k*between:]
		for i := range in {
			in[i] = line[i*stride]
		}
		for i := range in {
			sum := half[0] * in[i]
			for t := 1; t < len(half); t++ {
				if i >= t {
					sum += half[t] * in[i-t]
				}
				if i+t < n {
					sum += half[t] * in[i+t]
				}
			}
			line[i*stride] = sum
		}
	}
}

// weightedQuantile returns the smallest of the values at which a share p of the
// weight is reached, which sums to 1. There must be values.
func weightedQuantile(values, weights []float64, p float64) float64 {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(values[a], values[b]) })
	sum := 0.0
	for _, i := range order {
		if sum += weights[i]; sum >= p {
			return values[i]
		}
	}
	return values[order[len(order)-1]]
}

// holding returns the level above which a density on an even grid has a share p of
// what it has on all of it: the border of the smallest region that holds it.
func (l lattice) holding(p float64) float64 {
	sorted := slices.Clone(l.values)
	slices.SortFunc(sorted, func(a, b float64) int { return cmp.Compare(b, a) })
	total := 0.0
	for _, v := range sorted {
		total += v
	}
	sum := 0.0
	for _, v := range sorted {
		if sum += v; sum >= p*total {
			return v
		}
	}
	return 0
}

// steps returns n places from lo to hi, ends included.
func steps(lo, hi float64, n int) []float64 {
	at := make([]float64, n)
	for i := range at {
		t := float64(i) / float64(n-1)
		at[i] = lo*(1-t) + hi*t
	}
	return at
}
