package figure

import (
	"math"
	"strings"
)

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
	next := make([]int, 2*w*h)
	for e := range next {
		next[e] = -1
	}
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
