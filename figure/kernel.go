package figure

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// KernelDensity estimates the density of points in the plane at the crossings of
// a regular grid: row j holds the values at y[j], one for each of x. Kernels are
// Gaussian, as wide along each axis as Silverman's rule says for that many points
// (1986, section 4.3.2; the smaller of standard deviation and IQR/1.34, so that
// far points do not blur the rest), but no narrower than half a step of the grid.
// The kernel's centre is rounded to the grid, linearly shared among its neighbours.
//
// Points that are not available or lie beyond the grid take no part. With those that lie beyond, the estimate integrates to 1 over the plane. Nil is returned if no point
// takes part, or if the grid has fewer than two places along an axis or does not
// rise. Where points are few the estimate shows each of them, so one of subjects' values
// is for their own site alone.
func KernelDensity(px, py, x, y Numbers) []Numbers {
	s := newSample(px, py)
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

// sample is points in the plane.
type sample struct{ x, y []float64 }

// newSample keeps the points that are available.
func newSample(x, y Numbers) (s sample) {
	for i := range min(len(x), len(y)) {
		if a, b := x.at(i), y.at(i); available(a) && available(b) {
			s.x, s.y = append(s.x, a), append(s.y, b)
		}
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
	some, w := false, 1/float64(max(len(s.x), 1))
	for k := range s.x {
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
	kx, ky := kernel(s.x, dx), kernel(s.y, dy)
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

// kernel returns half of a Gaussian kernel in steps of a grid, from its middle.
func kernel(v []float64, step float64) []float64 {
	sorted := slices.Sorted(slices.Values(v))
	quantile := func(p float64) float64 { return stat.Quantile(p, stat.Empirical, sorted, nil) }
	spread := math.Sqrt(stat.PopVariance(sorted, nil)) / step
	if iqr := (quantile(0.75) - quantile(0.25)) / step / 1.34; iqr > 0 {
		spread = min(spread, iqr)
	}
	h := spread * math.Pow(float64(len(v)), -1./6) // (4/(d+2))^(1/(d+4)) is 1 for d = 2
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

// steps returns n places from lo to hi, ends included.
func steps(lo, hi float64, n int) []float64 {
	at := make([]float64, n)
	for i := range at {
		t := float64(i) / float64(n-1)
		at[i] = lo*(1-t) + hi*t
	}
	return at
}
