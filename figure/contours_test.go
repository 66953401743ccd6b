package figure

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/internal/testkit"
)

func hill() Contours {
	k := Contours{X: Axis{Label: "age"}, Y: Axis{Label: "weight"}, XAt: steps(0, 10, 11), YAt: steps(0, 10, 11),
		Panels: []Panel{{Title: "observed", Legend: "mean kernel value"},
			{Title: "expected", Legend: "mean kernel value"}, {Title: "difference", Legend: "standard deviations"}},
		Groups: []Group{{Name: "component 1", Mean: Numbers{5, 5}, Cov: Numbers{4, 1, 2}}}}
	for n := range k.Panels {
		for _, y := range k.YAt {
			var row Numbers
			for _, x := range k.XAt {
				row = append(row, math.Exp(-math.Hypot(x-5, y-5)))
			}
			k.Panels[n].Values = append(k.Panels[n].Values, row)
		}
	}
	return k
}

func TestContoursOfOneLegendShareAScale(t *testing.T) {
	k := hill()
	k.Panels[1].Values[5][5] = 3
	if a, b := k.top(k.Panels[0]), k.top(k.Panels[1]); a != 3 || b != 3 {
		t.Errorf("scales to %v and %v, want 3", a, b)
	}
	got := string(svg(t, Figure{ID: "k", Chart: k}))
	if n := strings.Count(got, ">mean kernel value<"); n != 1 {
		t.Errorf("%d legends of one scale", n)
	}
	for _, want := range []string{">3.00<", ">standard deviations<", "component 1: holds 90 %",
		"component 1: mean 5, 5"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing", want)
		}
	}
}

func TestContoursOfSubjectsStay(t *testing.T) {
	if k := hill(); (Figure{Chart: k}).PerSubject() {
		t.Error("a density that may be known counts as single subjects")
	}
	if !(Figure{Chart: Pairs{Values: []Numbers{{1}}}}).PerSubject() || (Figure{Chart: Lines{}}).PerSubject() {
		t.Error("what tells of single subjects is not told apart")
	}
}

func TestContoursTable(t *testing.T) {
	var b bytes.Buffer
	testkit.Do(t, hill().Table().CSV(&b))
	lines := strings.Split(b.String(), "\n")
	if len(lines) != 1+1+3*121+1 {
		t.Fatalf("%d lines", len(lines))
	}
	for i, want := range []string{"mark,panel or group,age,weight,value,var x,cov xy,var y",
		"mean,component 1,5,5,,4,1,2", "value,observed,0,0,"} {
		if !strings.HasPrefix(lines[i], want) {
			t.Errorf("line %d: %q, want %q", i+1, lines[i], want)
		}
	}
}

// What is not available is hatched, and leaves the rest.
func TestContoursWithAGap(t *testing.T) {
	k := hill()
	k.Panels = k.Panels[:1]
	k.Panels[0].Values[0][0] = math.NaN()
	got := string(svg(t, Figure{ID: "k", Chart: k}))
	if !strings.Contains(got, "observed: not available in part") || strings.Count(got, "evenodd") < 5 {
		t.Error("the gap is not said, or took everything with it")
	}
}

// kernelDensity is a lattice by the area of a cell.
func kernelDensity(px, py, x, y Numbers) []Numbers {
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

// The grid's estimate is the sum of kernels at the points, up to the step of the grid.
func TestKernelDensityIsASumOfKernels(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var px, py Numbers
	for range 133 {
		px, py = append(px, rng.NormFloat64()*2), append(py, 1+rng.NormFloat64()/2)
	}
	x, y := steps(-10, 10, 201), steps(-2, 4, 201)
	rows := kernelDensity(append(px, math.NaN()), append(py, 1), x, y) // one that takes no part
	total := 0.0
	for _, row := range rows {
		for _, v := range row {
			total += v * 0.1 * 0.03
		}
	}
	if math.Abs(total-1) > 1e-6 {
		t.Errorf("the density integrates to %v", total)
	}
	width := func(v []float64) float64 { // Silverman's rule, with quantiles that are values
		mean, variance, n := 0.0, 0.0, float64(len(v))
		for _, x := range v {
			mean += x / n
		}
		for _, x := range v {
			variance += (x - mean) * (x - mean) / n
		}
		sorted := slices.Sorted(slices.Values(v))
		iqr := sorted[int(math.Ceil(0.75*n))-1] - sorted[int(math.Ceil(0.25*n))-1]
		return min(math.Sqrt(variance), iqr/1.34) * math.Pow(n, -1./6)
	}
	hx, hy := width(px), width(py)
	peak := 0.0
	for j := 20; j < 201; j += 40 {
		for i := 20; i < 201; i += 40 {
			want := 0.0
			for k := range px {
				a, b := (x[i]-px[k])/hx, (y[j]-py[k])/hy
				want += math.Exp(-(a*a+b*b)/2) / float64(len(px)) / (2 * math.Pi * hx * hy)
			}
			peak = max(peak, want)
			if got := rows[j][i]; math.Abs(got-want) > 0.004*0.2 {
				t.Errorf("at (%v, %v): %v, want %v", x[i], y[j], got, want)
			}
		}
	}
	if peak < 0.1 {
		t.Errorf("the places compared have at most a density of %v", peak)
	}
}

func TestKernelDensityOfNothing(t *testing.T) {
	at := Numbers{0, 1, 2}
	for name, rows := range map[string][]Numbers{
		"no points":     kernelDensity(nil, nil, at, at),
		"beyond":        kernelDensity(Numbers{5}, Numbers{1}, at, at),
		"not available": kernelDensity(Numbers{1}, Numbers{math.NaN()}, at, at),
		"no grid":       kernelDensity(Numbers{1}, Numbers{1}, at, Numbers{1}),
		"falling grid":  kernelDensity(Numbers{1}, Numbers{1}, at, Numbers{2, 1, 0}),
	} {
		if rows != nil {
			t.Errorf("%s: %v", name, rows)
		}
	}
	if rows := kernelDensity(Numbers{1}, Numbers{1}, at, at); !(rows[1][1] > rows[0][1] && rows[0][1] > 0) {
		t.Errorf("one point: %v", rows)
	}
}

func TestBandsAndReferences(t *testing.T) {
	l := Lines{X: Axis{Label: "epsilon", Log: true}, Y: Axis{Label: "error"}, Series: []Line{
		{Name: "best", X: Numbers{1, 10}, Y: Numbers{0.1, 0.1}, Reference: true},
		{Name: "private", X: Numbers{1, 3, 10}, Y: Numbers{0.4, 0.3, 0.2}, Low: Numbers{0.3, 0.2, 0.15},
			High: Numbers{0.6, 0.4, 0.25}},
		{Name: "worst", X: Numbers{1, 10}, Y: Numbers{0.5, 0.5}, Reference: true},
	}}
	styles := l.styles()
	if styles[1] != styleOf(0) {
		t.Error("a reference took a colour from the others")
	}
	if styles[0].dash == styles[2].dash || styles[0].colour != muted {
		t.Error("references look alike")
	}
	var svg strings.Builder
	testkit.Do(t, (Figure{ID: "x", Chart: l}).SVG(&svg))
	if n := strings.Count(svg.String(), `fill-opacity="0.15"`); n != 1 {
		t.Errorf("%d bands", n)
	}
	table := l.Table()
	if len(table.Columns) != 5 || table.Columns[4].Numbers[2] != 0.6 || !math.IsNaN(table.Columns[3].Numbers[0]) {
		t.Errorf("got %+v", table.Columns)
	}
	// A band is broken where the line is, and one point has none.
	l.Series[1].Y[1] = math.NaN()
	svg.Reset()
	if err := (Figure{ID: "x", Chart: l}).SVG(&svg); err != nil || strings.Contains(svg.String(), "fill-opacity") {
		t.Errorf("%v: a band across a gap", err)
	}
}

func TestHistogramsAndPointsAmongLines(t *testing.T) {
	l := Lines{Series: []Line{
		{Name: "rows", X: Numbers{0, 1, 2}, Y: Numbers{4, 8, 0}, Steps: true},
		{Name: "curve", X: Numbers{0, 1, 2}, Y: Numbers{5, 7, 6}},
		{Name: "observed", X: Numbers{0, 1, 2}, Y: Numbers{5, 6, 7}, Points: true}}}
	got := string(svg(t, Figure{ID: "l", Chart: l}))
	if n := strings.Count(got, `fill-opacity="0.22"`); n != 2 {
		t.Errorf("%d grey areas, want the histogram's and its key's", n)
	}
	if n := strings.Count(got, `stroke-linejoin="round"`); n != 1 {
		t.Errorf("%d lines, want that of the curve alone", n)
	}
	if !strings.Contains(got, ">0<") {
		t.Error("the axis of a histogram does not begin at zero")
	}
}

func twoNormals() Pairs {
	return Pairs{Features: []string{"a", "b", "c"}, Groups: []Normal{
		{Name: "component 1", Share: 0.995, Mean: Numbers{0, 1, 2}, Cov: Numbers{1, 0.5, 0, 0.5, 2, 0, 0, 0, 3}},
		{Name: "component 2", Share: 0.005, Mean: Numbers{900, 900, 900}, Cov: Numbers{1, 0, 0, 0, 1, 0, 0, 0, 1}}}}
}

// Every pair has both ellipses of a group, and a group that hardly anybody belongs to
// does not stretch the axes until nothing else is seen.
func TestPairsDrawsEveryPair(t *testing.T) {
	k := twoNormals()
	text := string(svg(t, Figure{ID: "p", Title: "p", Chart: k}))
	if n := strings.Count(text, "component 1: holds 90 % of its subjects"); n != 3 {
		t.Errorf("%d outer ellipses of three pairs", n)
	}
	if strings.Contains(text, "component 2: mean") || strings.Contains(text, ">900<") {
		t.Error("a group without subjects stretched the axes")
	}
	if e := k.extent(0); e.lo > -2.1 || e.hi > 3 {
		t.Errorf("feature a is drawn from %v to %v; nine tenths of component 1 lie in ±2.15", e.lo, e.hi)
	}
	if (Figure{Chart: k}).PerSubject() {
		t.Error("ellipses show no subject")
	}
	k.Values = []Numbers{{0, 1}, {2, 3}, {4, 5}}
	if !(Figure{Chart: k}).PerSubject() {
		t.Error("rows are subjects'")
	}
	if table := k.Table(); table.Len() != 2*(1+3)+2 || len(table.Columns) != 3+3 {
		t.Errorf("%d rows and %d columns; want a mean and three rows of a covariance of each group, two subjects",
			table.Len(), len(table.Columns))
	}
}

func TestPairsSaysWhatItLeavesOut(t *testing.T) {
	var k Pairs
	for i := range maxPairs + 2 {
		k.Features = append(k.Features, fmt.Sprintf("f%d", i+1))
	}
	k.Groups = []Normal{{Name: "g", Share: 1}}
	if text := string(svg(t, Figure{ID: "p", Title: "p", Chart: k})); !strings.Contains(text,
		fmt.Sprintf("The first %d of %d features.", maxPairs, maxPairs+2)) {
		t.Error("features were left out without a word")
	}
}

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
		nx, ny, n := rapid.IntRange(2, 6).Draw(t, "nx"), rapid.IntRange(2, 6).Draw(t, "ny"),
			rapid.IntRange(2, 5).Draw(t, "n")
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
