package figure

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// encloses tells by the even-odd rule whether loops hold a place.
func encloses(loops [][]point, at point) bool {
	in := false
	for _, loop := range loops {
		for i, p := range loop {
			q := loop[(i+1)%len(loop)]
			if (p.y > at.y) != (q.y > at.y) && at.x < p.x+(at.y-p.y)/(q.y-p.y)*(q.x-p.x) {
				in = !in
			}
		}
	}
	return in
}

// signedArea is that within loops whose holes turn the other way.
func signedArea(loops [][]point) (s float64) {
	for _, loop := range loops {
		for i, p := range loop {
			q := loop[(i+1)%len(loop)]
			s += (p.x*q.y - q.x*p.y) / 2
		}
	}
	return s
}

func TestOutlinesHoldWhatIsAbove(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nx, ny := rapid.IntRange(2, 7).Draw(t, "nx"), rapid.IntRange(2, 7).Draw(t, "ny")
		l := lattice{x: steps(0, 1, nx), y: steps(0, 2, ny)}
		value := rapid.OneOf(rapid.Float64Range(-1, 1), rapid.SampledFrom([]float64{math.NaN(), -1, 0, 1}))
		for range nx * ny {
			l.values = append(l.values, value.Draw(t, "value"))
		}
		level := rapid.Float64Range(-0.9, 0.9).Draw(t, "level")
		loops := l.outlines(level)
		// Crossings at the edge of the grid, or of what is known, lie on the loops.
		border := func(i, j int) bool {
			sum := 0.0
			for _, near := range []int{-nx - 1, -nx, -nx + 1, -1, 0, 1, nx - 1, nx, nx + 1} {
				sum += l.values[j*nx+i+near]
			}
			return math.IsNaN(sum)
		}
		for j := 1; j < ny-1; j++ {
			for i := 1; i < nx-1; i++ {
				v := l.values[j*nx+i]
				if math.Abs(v-level) < 1e-6 || border(i, j) {
					continue
				}
				if got, want := encloses(loops, point{l.x[i], l.y[j]}), v >= level; got != want {
					t.Fatalf("(%d, %d) with %v at level %v: held is %v", i, j, v, level, got)
				}
			}
		}
		for _, loop := range loops {
			for _, p := range loop {
				if !(p.x >= 0 && p.x <= 1 && p.y >= 0 && p.y <= 2) {
					t.Fatalf("the point %v lies beyond the grid", p)
				}
			}
		}
	})
}

func TestOutlineOfACone(t *testing.T) {
	l := lattice{x: steps(-1, 1, 81), y: steps(-1, 1, 81)}
	for _, y := range l.y {
		for _, x := range l.x {
			l.values = append(l.values, -math.Hypot(x, y))
		}
	}
	// Discs of radius 0.8 and 0.4, and all of the square.
	for level, want := range map[float64]float64{-0.8: math.Pi * 0.64, -0.4: math.Pi * 0.16, -2: 4} {
		if got := signedArea(l.outlines(level)); math.Abs(got-want) > 0.003*want {
			t.Errorf("level %v: area %v, want %v", level, got, want)
		}
	}
	if loops := l.outlines(1); len(loops) != 0 {
		t.Errorf("%d outlines above everything", len(loops))
	}
	// A ring: its hole takes its area away.
	for i := range l.values {
		l.values[i] = -math.Abs(l.values[i] + 0.6)
	}
	if got, want := signedArea(l.outlines(-0.2)), math.Pi*(0.64-0.16); math.Abs(got-want) > 0.003*want {
		t.Errorf("ring: area %v, want %v", got, want)
	}
}

func TestFinerPassesThroughWhatIsKnown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nx, ny, n := rapid.IntRange(2, 6).Draw(t, "nx"), rapid.IntRange(2, 6).Draw(t, "ny"), rapid.IntRange(2, 5).Draw(t, "n")
		l := lattice{x: steps(0, 1, nx), y: steps(-3, 1, ny)}
		plane := rapid.Bool().Draw(t, "plane")
		for _, y := range l.y {
			for _, x := range l.x {
				v := 2*x - y
				if !plane {
					v = rapid.Float64Range(-1, 1).Draw(t, "value")
				}
				l.values = append(l.values, v)
			}
		}
		f := l.finer(n)
		if len(f.values) != len(f.x)*len(f.y) || len(f.x) != (nx-1)*n+1 || len(f.y) != (ny-1)*n+1 {
			t.Fatalf("%d × %d places and %d values", len(f.x), len(f.y), len(f.values))
		}
		for j := range ny {
			for i := range nx {
				if got := f.values[j*n*len(f.x)+i*n]; got != l.values[j*nx+i] {
					t.Fatalf("(%d, %d): %v, want %v", i, j, got, l.values[j*nx+i])
				}
			}
		}
		for j, y := range f.y {
			for i, x := range f.x {
				if got := f.values[j*len(f.x)+i]; plane && math.Abs(got-(2*x-y)) > 1e-12 {
					t.Fatalf("at (%v, %v) of a plane: %v, want %v", x, y, got, 2*x-y)
				}
			}
		}
	})
}

func TestLinesAreCutAtTheBox(t *testing.T) {
	b := box{left: 0, top: 0, right: 10, bottom: 10}
	for _, c := range []struct {
		line []point
		want string
	}{
		{[]point{{-5, 5}, {15, 5}}, "M0 5L10 5"},
		{[]point{{5, 5}, {15, 15}}, "M5 5L10 10"},
		{[]point{{-5, -1}, {15, -1}}, ""},
		{[]point{{2, 2}, {4, 2}, {4, 20}, {6, 20}, {6, 5}}, "M2 2L4 2L4 10M6 10L6 5"},
	} {
		if got := within(c.line, b); got != c.want {
			t.Errorf("%v: %q, want %q", c.line, got, c.want)
		}
	}
}
