package figure

import (
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"
)

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

// lattice is the share of the points around each crossing of a regular grid. Kernels are
// Gaussian, as wide along each axis as Silverman's rule says for that many points
// (1986, section 4.3.2; the smaller of standard deviation and IQR/1.34, so that
// far points do not blur the rest), but no narrower than half a step of the grid.
// The kernel's centre is rounded to the grid, linearly shared among its neighbours.
// Points beyond the grid take no part, and it is not ok if none does, or if the grid has fewer than two places
// along an axis or does not rise.
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

// lattice is a function of the plane, known at the crossings of a grid: value
// j·len(x)+i belongs to (x[i], y[j]). Positions rise. Values are finite, or NaN
// where there is none.
type lattice struct {
	x, y   []float64
	values []float64
}

// point is a place in the plane.
type point struct{ x, y float64 }

// outlines traces the borders of where the function is at least level, as closed
// loops that follow the edge of the grid where the region reaches it. Filled by
// the even-odd rule they are that region. Between crossings the function is
// taken to be linear along the lines of the grid (marching squares, with the
// mean of four corners where opposite ones agree).
func (l lattice) outlines(level float64) (loops [][]point) {
	// One line of crossings around the grid lies below every level, at the place
	// of its neighbour: what it closes follows the edge.
	w, h := len(l.x)+2, len(l.y)+2
	at := func(i, j int) float64 {
		if i < 1 || i > len(l.x) || j < 1 || j > len(l.y) {
			return math.NaN()
		}
		return l.values[(j-1)*len(l.x)+i-1]
	}
	place := func(i, j int) point {
		return point{l.x[min(max(i-1, 0), len(l.x)-1)], l.y[min(max(j-1, 0), len(l.y)-1)]}
	}
	// Lines of the grid that are crossed: along x first, then along y. Each is left
	// in one direction only, with the region at the same hand.
	along := func(i, j int) int { return j*w + i }
	across := func(i, j int) int { return w*h + j*w + i }
	next := slices.Repeat([]int{-1}, 2*w*h)
	for j := range h - 1 {
		for i := range w - 1 {
			a, b, c, d := at(i, j), at(i+1, j), at(i+1, j+1), at(i, j+1)
			corners := 0
			for k, v := range []float64{a, b, c, d} {
				if v >= level { // not so for NaN
					corners |= 1 << k
				}
			}
			south, north, west, east := along(i, j), along(i, j+1), across(i, j), across(i+1, j)
			switch corners {
			case 1:
				next[south] = west
			case 2:
				next[east] = south
			case 3:
				next[east] = west
			case 4:
				next[north] = east
			case 6:
				next[north] = south
			case 7:
				next[north] = west
			case 8:
				next[west] = north
			case 9:
				next[south] = north
			case 11:
				next[east] = north
			case 12:
				next[west] = east
			case 13:
				next[south] = east
			case 14:
				next[west] = south
			case 5, 10:
				joined := (a+b+c+d)/4 >= level
				switch {
				case corners == 5 && joined:
					next[south], next[north] = east, west
				case corners == 5:
					next[south], next[north] = west, east
				case joined:
					next[east], next[west] = north, south
				default:
					next[east], next[west] = south, north
				}
			}
		}
	}
	crossing := func(e int) point {
		i, j := e%w, e/w
		k, m := i+1, j
		if j >= h {
			j -= h
			k, m = i, j+1
		}
		p, q := place(i, j), place(k, m)
		u, v := at(i, j), at(k, m)
		t := 0.5
		if !math.IsNaN(u) && !math.IsNaN(v) {
			t = (level - u) / (v - u)
		} else if math.IsNaN(v) {
			t = 0
		} else {
			t = 1
		}
		return point{p.x + t*(q.x-p.x), p.y + t*(q.y-p.y)}
	}
	for start := range next {
		var loop []point
		for e := start; next[e] >= 0; {
			loop = append(loop, crossing(e))
			e, next[e] = next[e], -1
		}
		if len(loop) > 2 {
			loops = append(loops, loop)
		}
	}
	return loops
}

// finer returns the function at n times as many crossings along each axis, by
// cubic interpolation (Catmull and Rom 1974), which passes through what is known.
func (l lattice) finer(n int) lattice {
	if n < 2 || len(l.x) < 2 || len(l.y) < 2 {
		return l
	}
	spread := func(at []float64) (out []float64) {
		for i := range at[1:] {
			for k := range n {
				out = append(out, at[i]+(at[i+1]-at[i])*float64(k)/float64(n))
			}
		}
		return append(out, at[len(at)-1])
	}
	f := lattice{x: spread(l.x), y: spread(l.y)}
	wide := make([]float64, 0, len(f.x)*len(l.y))
	for j := range l.y {
		row := l.values[j*len(l.x):][:len(l.x)]
		for i := range f.x {
			wide = append(wide, cubic(func(k int) float64 { return row[k] }, len(row), i, n))
		}
	}
	for j := range f.y {
		for i := range f.x {
			f.values = append(f.values, cubic(func(k int) float64 { return wide[k*len(f.x)+i] }, len(l.y), j, n))
		}
	}
	return f
}

// cubic interpolates value at/n of a list of count values.
func cubic(value func(int) float64, count, at, n int) float64 {
	i, t := at/n, float64(at%n)/float64(n)
	if t == 0 {
		return value(i)
	}
	b, c := value(i), value(i+1)
	a, d := 2*b-c, 2*c-b // beyond the ends it goes on straight
	if i > 0 && !math.IsNaN(value(i-1)) {
		a = value(i - 1)
	}
	if i+2 < count && !math.IsNaN(value(i+2)) {
		d = value(i + 2)
	}
	return b + t/2*(c-a+t*(2*a-5*b+4*c-d+t*(3*(b-c)+d-a)))
}

// area writes loops as one path on the page.
func area(loops [][]point, x, y scale) string {
	var d strings.Builder
	for _, loop := range loops {
		last := ""
		for i, p := range loop {
			op := "L"
			if i == 0 {
				op = "M"
			}
			to := pixel(x.at(p.x)) + " " + pixel(y.at(p.y))
			if to != last {
				d.WriteString(op + to)
			}
			last = to
		}
		d.WriteString("z")
	}
	return d.String()
}

// pixel is a coordinate to a tenth of a pixel, for long paths.
func pixel(v float64) string { return num(math.Round(v*10) / 10) }
