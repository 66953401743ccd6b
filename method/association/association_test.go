package association

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"

	"parley/internal/testkit"
)

// TestPoolAgreesWithMatrices has the thirteen trials of the BCG vaccine (Colditz et al. 1994:
// tuberculosis and none among the vaccinated, and among the others) by log relative risk, and
// the general form of the moment estimate (DerSimonian and Kacker 2007): with X a column of
// ones, W the weights and P = W − WX(XᵀWX)⁻¹XᵀW, Q = yᵀPy has mean tr PV + τ² tr P.
func TestPoolAgreesWithMatrices(t *testing.T) {
	trials := [][4]float64{{4, 119, 11, 128}, {6, 300, 29, 274}, {3, 228, 11, 209}, {62, 13536, 248, 12619}, {33, 5036, 47, 5761}, {180, 1361, 372, 1079}, {8, 2537, 10, 619},
		{505, 87886, 499, 87892}, {29, 7470, 45, 7232}, {17, 1699, 65, 1600}, {186, 50448, 141, 27197}, {5, 2493, 3, 2338}, {27, 16886, 29, 17825}}
	var y, v []float64
	for _, x := range trials {
		n, m := x[0]+x[1], x[2]+x[3]
		y, v = append(y, math.Log(x[0]/n/(x[2]/m))), append(v, 1/x[0]-1/n+1/x[2]-1/m)
	}
	got, k := pool(y, v), len(y)
	ones, values := mat.NewDense(k, 1, slices.Repeat([]float64{1}, k)), mat.NewVecDense(k, y)
	// fit returns P, the weighted mean and its variance for variances v + more.
	fit := func(more float64) (p *mat.Dense, mean, variance float64) {
		w := mat.NewDiagDense(k, nil)
		for i, x := range v {
			w.SetDiag(i, 1/(x+more))
		}
		var wx, xwx, hat mat.Dense
		wx.Mul(w, ones)
		xwx.Mul(ones.T(), &wx)
		variance = 1 / xwx.At(0, 0)
		hat.Mul(&wx, wx.T())
		hat.Scale(-variance, &hat)
		p = new(mat.Dense)
		p.Add(w, &hat)
		return p, variance * mat.Dot(wx.ColView(0), values), variance
	}
	p, mean, variance := fit(0)
	var pv mat.Dense
	pv.Mul(p, mat.NewDiagDense(k, v))
	q := mat.Inner(values, p, values)
	tau2 := (q - mat.Trace(&pv)) / mat.Trace(p)
	_, random, _ := fit(tau2)
	half := 1.959963984540054 * math.Sqrt(variance)
	for name, x := range map[string][2]float64{
		"common": {got.Common.Estimate, mean}, "common se": {got.Common.SE, math.Sqrt(variance)}, "common low": {got.Common.Low, mean - half}, "common high": {got.Common.High, mean + half},
		"random": {got.Random.Estimate, random}, "τ²": {got.Tau2, tau2}, "Q": {got.Q, q}, "I²": {got.I2, (q - 12) / q},
	} {
		if math.Abs(x[0]-x[1]) > 1e-9*math.Abs(x[1]) {
			t.Errorf("%s: %v, want %v", name, x[0], x[1])
		}
	}
	if !(tau2 > 0.1 && q > 100) {
		t.Errorf("the trials differ by τ² %v, Q %v", tau2, q)
	}
	// Hartung and Knapp written out, with distributions of another kind.
	sum, spread := 0.0, 0.0
	for i := range y {
		w := 1 / (v[i] + got.Tau2)
		sum += w
		spread += w * (y[i] - got.Random.Estimate) * (y[i] - got.Random.Estimate) / 12
	}
	se := math.Sqrt(max(1, spread) / sum)
	law := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: 12}
	if p := 2 * law.CDF(got.Random.Estimate/se); math.Abs(got.Random.SE-se) > 1e-12 || math.Abs(got.Random.P-p) > 1e-10 ||
		math.Abs(got.Random.High-got.Random.Estimate-2.178813*se) > 1e-6 { // t table, 12 degrees of freedom, .975
		t.Errorf("%+v, want se %v, p %v", got.Random, se, p)
	}
	if p := (distuv.ChiSquared{K: 12}).Survival(got.Q); math.Abs(got.PQ-p) > 1e-12 {
		t.Errorf("p of Q %v, want %v", got.PQ, p)
	}
}

// TestEqualEstimatesHaveNoHeterogeneity is by hand: two sites of variance 1 that say 3.
func TestEqualEstimatesHaveNoHeterogeneity(t *testing.T) {
	got := pool([]float64{3, 3}, []float64{1, 1})
	se := math.Sqrt(0.5)
	// With one degree of freedom t is a Cauchy variable.
	p := 1 - 2/math.Pi*math.Atan(3/se)
	if got.Q != 0 || got.PQ != 1 || got.I2 != 0 || got.Tau2 != 0 || math.Abs(got.Random.SE-se) > 1e-15 || math.Abs(got.Random.P-p) > 1e-12 ||
		math.Abs(got.Common.P-2*distuv.UnitNormal.Survival(3/se)) > 1e-15 || math.Abs(got.Random.High-3-12.70620*se) > 1e-4 {
		t.Errorf("%+v", got)
	}
}

// TestRandomIntervalsHold draws sites that differ: 95 % intervals should hold the mean
// effect, with four sites, which is few. Of 2 000 draws 1 900 are expected, ± 10; a right
// rule fails once in 10⁶ below 1 852 (its own coverage is near .95, not exactly).
func TestRandomIntervalsHold(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 1))
	random, common := 0, 0
	for range 2000 {
		y, v := make([]float64, 4), make([]float64, 4)
		for i := range y {
			v[i] = 0.02 + 0.04*r.Float64()
			y[i] = 1 + 0.4*r.NormFloat64() + math.Sqrt(v[i])*r.NormFloat64()
		}
		got := pool(y, v)
		if got.Random.Low <= 1 && 1 <= got.Random.High {
			random++
		}
		if got.Common.Low <= 1 && 1 <= got.Common.High {
			common++
		}
	}
	t.Logf("of 2000 intervals with the mean effect: %d by random effects, %d by a common effect", random, common)
	if random < 1852 || random > 1980 || common > 1500 {
		t.Errorf("random-effects intervals hold %d of 2000, common-effect ones %d", random, common)
	}
}

// TestAdjustedPValues has the example of Benjamini and Hochberg 1995, section
// 3.2: of these fifteen, the four smallest are below .05 when adjusted.
func TestAdjustedPValues(t *testing.T) {
	p := []float64{0.6528, 0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.7590, 1}
	adjusted, below := BenjaminiHochberg(p), 0
	for i, x := range adjusted {
		if x < p[i] || x > 1 {
			t.Errorf("%v adjusted to %v", p[i], x)
		}
		if x <= 0.05 {
			below++
		}
	}
	// The sixth, 0.0278·15/6, cannot be more than the seventh, 0.0298·15/7.
	seventh := 0.0298 * 15 / 7
	if below != 4 || math.Abs(adjusted[1]-0.0015) > 1e-15 || math.Abs(adjusted[6]-seventh) > 1e-15 || math.Abs(adjusted[7]-seventh) > 1e-15 {
		t.Errorf("%d below: %v", below, adjusted)
	}
}

func level(name string, n int) *Level { return &Level{name, n} }

func table(tests ...Test) *Table {
	return &Table{Format: Format, Model: "m", Adjusted: []string{"age"}, Reliability: []float64{0.8}, Tests: tests}
}

// TestLevelsAreComparedWithOneReference has sites that took different references, and one
// that lacks a level. The means of a, b, c are 0, 1, 3, with variances .1, .2, .3 and no
// covariance before one is taken off the others.
func TestLevelsAreComparedWithOneReference(t *testing.T) {
	one := table(Test{Column: "group", Factor: 1, Subjects: 60, DF: 57, Reference: level("a", 30), Levels: []Level{{"b", 20}, {"c", 10}},
		Estimates: []float64{1, 3}, Covariance: [][]float64{{.3, .1}, {.1, .4}}})
	two := table(Test{Column: "group", Factor: 1, Subjects: 60, DF: 57, Reference: level("b", 30), Levels: []Level{{"a", 20}, {"c", 10}},
		Estimates: []float64{-1, 2}, Covariance: [][]float64{{.3, .2}, {.2, .5}}})
	three := table(Test{Column: "group", Factor: 1, Subjects: 30, DF: 28, Reference: level("a", 15), Levels: []Level{{"b", 15}},
		Estimates: []float64{1}, Covariance: [][]float64{{.3}}}, Test{Column: "age", Factor: 1, Subjects: 30, DF: 28, Estimates: []float64{1}, Covariance: [][]float64{{1}}})
	list, notes, err := Combine([]string{"1", "2", "3"}, []*Table{one, two, three})
	if err != nil || len(list) != 2 || !strings.Contains(notes.Error(), "column age: the slope was left out") {
		t.Fatalf("%+v, %v, %v", list, notes, err)
	}
	// 65 have a and 65 have b, at three sites each: the first by name is the reference.
	b, c := list[0], list[1]
	if b.Level != "b" || b.Reference != "a" || b.Sites != 3 || b.Subjects != 130 || math.Abs(b.Common.Estimate-1) > 1e-15 || math.Abs(b.Common.SE-math.Sqrt(.1)) > 1e-15 {
		t.Errorf("b against a: %+v", b)
	}
	if c.Level != "c" || c.Sites != 2 || c.Subjects != 70 || math.Abs(c.Common.Estimate-3) > 1e-15 || math.Abs(c.Common.SE-math.Sqrt(.2)) > 1e-15 {
		t.Errorf("c against a: %+v", c)
	}
	if want := BenjaminiHochberg([]float64{b.Common.P, c.Common.P}); b.CommonAdjusted != want[0] || c.CommonAdjusted != want[1] {
		t.Errorf("adjusted %v, %v, want %v", b.CommonAdjusted, c.CommonAdjusted, want)
	}
}

func TestTablesThatDoNotGoTogetherAreRefused(t *testing.T) {
	slope := Test{Column: "x", Factor: 1, Subjects: 30, DF: 28, Estimates: []float64{1}, Covariance: [][]float64{{1}}}
	category := Test{Column: "x", Factor: 1, Subjects: 30, DF: 28, Reference: level("a", 15), Levels: []Level{{"b", 15}}, Estimates: []float64{1}, Covariance: [][]float64{{1}}}
	for want, change := range map[string]func(x *Table){
		"of another model":          func(x *Table) { x.Model = "n" },
		"adjusted for [sex]":        func(x *Table) { x.Adjusted = []string{"sex"} },
		"a category at others":      func(x *Table) { x.Tests[0] = category },
		"reliabilities from 0.10":   func(x *Table) { x.Reliability = []float64{0.1} },
		"fewer than two sites tell": func(x *Table) { x.Tests = nil },
		"do not fit together":       func(x *Table) { x.Tests[0].Factor = 2 },
		"a covariance is not one":   func(x *Table) { x.Tests[0].Covariance = [][]float64{{0}} },
		"is not positive definite": func(x *Table) {
			x.Tests[0] = Test{Column: "x", Factor: 1, Subjects: 30, DF: 27, Reference: level("a", 10), Levels: []Level{{"b", 10}, {"c", 10}}, Estimates: []float64{1, 2}, Covariance: [][]float64{{1, 2}, {2, 1}}}
		},
		"tested twice":                func(x *Table) { x.Tests = append(x.Tests, x.Tests[0]) },
		"an estimate is 1e+200":       func(x *Table) { x.Tests[0].Estimates = []float64{1e200} },
		"not a table of associations": func(x *Table) { x.Format = "parley/associations/9" },
	} {
		other := table(slope)
		other.Tests = slices.Clone(other.Tests)
		change(other)
		data := testkit.Get(other.Encode())(t)
		read, err := Read(data)
		said := ""
		if err == nil {
			var notes interface{ Error() string }
			_, notes, err = Combine([]string{"a.json", "b.json"}, []*Table{table(slope), read})
			said = notes.Error()
		}
		if err != nil {
			said = err.Error()
		}
		if !strings.Contains(said, want) {
			t.Errorf("got %q, want %q", said, want)
		}
	}
	if _, _, err := Combine([]string{"a"}, []*Table{table(slope)}); err == nil {
		t.Error("one table was combined")
	}
}

func FuzzTable(f *testing.F) {
	data := testkit.Get(table(Test{Column: "x", Factor: 1, Subjects: 30, DF: 28, Estimates: []float64{1}, Covariance: [][]float64{{1}}}).Encode())(f)
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		x, err := Read(data)
		if err != nil {
			return
		}
		if list, _, err := Combine([]string{"a", "b"}, []*Table{x, x}); err == nil {
			if _, err := json.Marshal(list); err != nil {
				t.Errorf("%v: %s", err, data)
			}
		}
	})
}
