package moments

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"parley/methods/factors/factorstest"
	"parley/methods/factors/ppca"
	"parley/privacy"
)

// checkedModel is a model in parts of ranges, of views with a doubt.
func checkedModel(t testing.TB) (*Checker, factorstest.Truth) {
	t.Helper()
	r := rand.New(rand.NewPCG(31, 32))
	l := factorstest.Shape(t, ppca.NoisePerView, 3, 1, 2)
	tr := factorstest.NewTruth(r, l, 2, 0.2)
	return factorstest.Must(NewChecker(l, unit(l.Features()), centred(&tr.P), []float64{0, .001, 0, .002, 0, 0}))(t), tr
}

// centred brings a model's values to 0.5 ± about 0.1.
func centred(p *ppca.Params) *ppca.Params {
	out := p.Clone()
	for i := range out.W {
		out.W[i] *= 0.07
	}
	for j := range out.Mu {
		out.Mu[j] = 0.5
	}
	for k := range out.Noise {
		out.Noise[k] *= 0.0049
	}
	return &out
}

// No subject, whatever it holds, may weigh more than 1, or the session would
// shrink its count with it; and some subject weighs as much, or noise is wasted.
func TestDiagnosticsHaveNormOne(t *testing.T) {
	c, _ := checkedModel(t)
	rapid.Check(t, func(rt *rapid.T) {
		row := rapid.SliceOfN(rapid.OneOf(rapid.Float64(), rapid.Float64Range(0, 1),
			rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64})), 6, 6).Draw(rt, "row")
		views := factorstest.Split(c.layout, row)
		if rapid.Bool().Draw(rt, "lacks") {
			views[rapid.IntRange(0, 2).Draw(rt, "view")] = nil
		}
		v := make([]float64, 3*CheckEntries)
		at := c.Add(views, v)
		n := dot(v, v)
		if at < 0 && n != 0 || !(n <= 1+1e-12) {
			rt.Fatalf("block %d, squared norm %v", at, n)
		}
	})
	v := farthest(c)
	if n := dot(v, v); math.Abs(n-1) > 1e-12 {
		t.Errorf("the heaviest subject has the squared norm %v", n)
	}
}

// farthest is the heaviest vector of subjects at the ends of all ranges.
func farthest(c *Checker) (most []float64) {
	for set := range 64 {
		row := make([]float64, 6)
		for j := range row {
			row[j] = float64(set >> j & 1)
		}
		v := make([]float64, 3*CheckEntries)
		c.Add(factorstest.Split(c.layout, row), v)
		if dot(v, v) > dot(most, most) {
			most = v
		}
	}
	return most
}

func TestSubjectsWithOneViewSayNothing(t *testing.T) {
	c, _ := checkedModel(t)
	gone := math.NaN()
	for _, row := range [][][]float64{nil, {{0.5, 0.5, 0.5}, nil, nil}, {nil, {gone}, {0.5, gone}}, {{gone, gone, gone}, {gone}, {gone, gone}}, {{0.5}, {0.2, 0.2}, {1, 1}}} {
		v := make([]float64, 3*CheckEntries)
		if at := c.Add(row, v); at != -1 || dot(v, v) != 0 {
			t.Errorf("%v gave %v for block %d", row, v, at)
		}
	}
}

// Read from sums without noise, the diagnostics are what predicting each view
// by hand gives.
func TestDiagnosticsWithoutNoiseAreExact(t *testing.T) {
	c, tr := checkedModel(t)
	r := rand.New(rand.NewPCG(33, 34))
	l := c.layout
	p := centred(&tr.P)
	predictor := factorstest.Must(ppca.NewPredictor(l, p))(t)
	if err := predictor.Widen(c.doubt); err != nil {
		t.Fatal(err)
	}
	sum, n := make([]float64, 3*CheckEntries), 0.0
	var abs, square, spread [3]float64
	var held [3][4]float64
	for _, row := range factorstest.Hole(r, tr.Subjects(r, 400), 0.1) {
		for j := range row {
			row[j] = max(0, min(1, 0.5+0.07*(row[j]-tr.P.Mu[j])))
		}
		v := make([]float64, len(sum))
		c.Add(factorstest.Split(l, row), v)
		for i, x := range v {
			sum[i] += x
		}
		n++
		for k := range 3 {
			lo, hi := l.View(k)
			var observed []int
			var values []float64
			there := 0.0
			for j, x := range row {
				switch {
				case math.IsNaN(x):
				case j >= lo && j < hi:
					there++
				default:
					observed, values = append(observed, j), append(values, x)
				}
			}
			if there == 0 || len(observed) == 0 {
				continue
			}
			post := factorstest.Must(predictor.Given(observed))(t)
			mean, variance := make([]float64, len(post.Missing)), make([]float64, len(post.Missing))
			post.Impute(mean, values)
			post.MissingVar(variance)
			var a, s, d float64
			for i, j := range post.Missing {
				if j < lo || j >= hi || math.IsNaN(row[j]) {
					continue
				}
				e := math.Abs(row[j] - mean[i])
				a, s, d = a+e/there, s+e*e/there, d+(row[j]-0.5)*(row[j]-0.5)/there
				for q, z := range []float64{0.674490, 1.281552, 1.644854, 1.959964} {
					if e <= z*math.Sqrt(variance[i]) {
						held[k][q] += 1 / there
					}
				}
			}
			abs[k] += min(a, math.Sqrt(c.limit[k]))
			square[k] += min(s, c.limit[k])
			spread[k] += min(d, c.spread[k])
		}
	}
	for k := range 3 {
		got := c.Read(k, sum, 1e-12)
		for q := range Nominal {
			if math.Abs(got.Coverage[q]-held[k][q]/got.Subjects) > 1e-9 {
				t.Errorf("view %d: %v of the values are in the interval of %v, want %v", k, got.Coverage[q], Nominal[q], held[k][q]/got.Subjects)
			}
		}
		if math.Abs(got.Subjects-n) > 0.2*n || math.Abs(got.Subjects-math.Round(got.Subjects)) > 1e-9 {
			t.Errorf("view %d: %v subjects of %v", k, got.Subjects, n)
		}
		if math.Abs(got.Error-abs[k]/got.Subjects) > 1e-9 || math.Abs(got.Gain-1+square[k]/spread[k]) > 1e-9 || got.Cut {
			t.Errorf("view %d: error %v, R² %v, cut %v; want %v and %v", k, got.Error, got.Gain, got.Cut, abs[k]/got.Subjects, 1-square[k]/spread[k])
		}
	}
}

// The standard deviations that the report gives are those of repeated noise:
// of 1000 draws the ratio is off by more than 12 % at fewer than one seed of
// 10⁴ (standard error 2.2 %; the first-order error of ratios is below 2 %).
func TestNoiseOfDiagnosticsIsKnown(t *testing.T) {
	c, tr := checkedModel(t)
	r := rand.New(rand.NewPCG(35, 36))
	sum := make([]float64, 3*CheckEntries)
	for _, row := range tr.Subjects(r, 600) {
		for j := range row {
			row[j] = 0.5 + 0.07*(row[j]-tr.P.Mu[j])
		}
		v := make([]float64, len(sum))
		c.Add(factorstest.Split(c.layout, row), v)
		for i, x := range v {
			sum[i] += x
		}
	}
	const sd, draws = 2, 1000
	pick := func(n ViewCheck) []float64 {
		return append([]float64{n.Subjects, n.Error, n.Gain}, n.Coverage...)
	}
	said := func(n ViewCheck) []float64 {
		return append([]float64{n.SubjectsSD, n.ErrorSD, n.GainSD}, n.CoverageSD...)
	}
	for k := range 3 {
		truth, want := pick(c.Read(k, sum, 1e-9)), said(c.Read(k, sum, sd))
		seen := make([]float64, len(truth))
		for range draws {
			noised := make([]float64, len(sum))
			for i, x := range sum {
				noised[i] = x + sd*r.NormFloat64()
			}
			for i, x := range pick(c.Read(k, noised, sd)) {
				seen[i] += (x - truth[i]) * (x - truth[i]) / draws
			}
		}
		for i, x := range seen {
			ratio := math.Sqrt(x) / want[i]
			if i > 2 && truth[i]+2*want[i] > 1 && ratio < 1 {
				continue // a share that does not go beyond 1 has less
			}
			if !(math.Abs(ratio-1) < 0.12) {
				t.Errorf("view %d, number %d: repeated noise has %.3f of the standard deviation that is given", k, i, ratio)
			}
		}
	}
}

func TestModelsForDiagnosticsAreChecked(t *testing.T) {
	c, tr := checkedModel(t)
	partial := centred(&tr.P)
	partial.Features = partial.Features[:4]
	for name, f := range map[string]func() error{
		"a part of the features": func() error { _, err := NewChecker(c.layout, c.scale, partial, nil); return err },
		"doubt of too few":       func() error { _, err := NewChecker(c.layout, c.scale, centred(&tr.P), []float64{1}); return err },
		"negative doubt": func() error {
			_, err := NewChecker(c.layout, c.scale, centred(&tr.P), []float64{0, 0, -1, 0, 0, 0})
			return err
		},
	} {
		if f() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if s := DiagnosticsSum(c.layout); s.Form != privacy.Vectors || s.Mechanism.Check() != nil {
		t.Errorf("the sum is declared as %+v", s)
	}
}

// unit leaves values as they are.
func unit(d int) *ppca.Scale {
	return &ppca.Scale{Shift: make([]float64, d), Factor: slices.Repeat([]float64{1}, d)}
}
