package graffl

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distmv"

	"parley/internal/testkit"
	"parley/papers/experiment"
	"parley/papers/graffl/scarce"
	"parley/papers/graffl/toy"
)

// The data sets are those of the repository.
func TestDataSetsAreRead(t *testing.T) {
	at := experiment.Data{Clone: "../.."}
	for s, want := range map[source][3]int{heart: {920, 13, 509}, intensive: {4000, 40, 554}} {
		all := testkit.Get(s.open(t.Context(), at))(t)
		class, _ := all.Count()
		if got := [3]int{len(all.Rows), len(all.Rows[0]), class}; got != want {
			t.Errorf("%s has rows, features and rows of the class %v, want %v", s.name, got, want)
		}
	}
}

// simulated is rows of six features, of which half have the label true; its classes
// lie apart along all of them.
func simulated(n int, r *rand.Rand) (t scarce.Labelled) {
	for i := range n {
		row := make([]float64, 6)
		for j := range row {
			row[j] = 50 + 10*r.NormFloat64()
			if i%2 == 0 {
				row[j] += 7
			}
		}
		add(&t, row, i%2 == 0)
	}
	return t
}

func TestRowsAreDealt(t *testing.T) {
	all := simulated(1000, rand.New(rand.NewPCG(1, 0)))
	d := testkit.Get(setting{among: 4, aside: 0.3, targets: 1, share: 0.05}.split(all, rand.New(rand.NewPCG(2, 0))))(t)
	seen := map[*float64]int{}
	for _, part := range append([]scarce.Labelled{d.held}, d.sites...) {
		for _, row := range part.Rows {
			seen[&row[0]]++
		}
	}
	for _, n := range seen {
		if n != 1 {
			t.Fatal("a row was dealt twice")
		}
	}
	if class, other := d.held.Count(); class != 150 || other != 150 {
		t.Errorf("%d + %d rows are held", class, other)
	}
	if len(d.all.Rows) != 700 {
		t.Errorf("%d rows of 700 were not held", len(d.all.Rows))
	}
	for k, site := range d.sites {
		class, other := site.Count()
		want := 5 // of 88, 5 %
		if k == 0 {
			want = 88
		}
		if other < 87 || other > 88 || class != want {
			t.Errorf("site %d has %d + %d rows", k, class, other)
		}
	}

	even := setting{among: 3, rows: 100, aside: 0.25}
	d = testkit.Get(even.split(all, rand.New(rand.NewPCG(2, 0))))(t)
	for k, site := range d.sites {
		if class, other := site.Count(); class != 50 || other != 50 {
			t.Errorf("site %d has %d + %d rows", k, class, other)
		}
	}
	even.rows = 300
	if _, err := even.split(all, rand.New(rand.NewPCG(2, 0))); err == nil {
		t.Error("more rows were dealt than there are")
	}
}

func TestYouden(t *testing.T) {
	for name, c := range map[string]struct {
		p       []float64
		labels  []bool
		cut, f1 float64
	}{
		"apart":           {[]float64{0.1, 0.8, 0.3, 0.9}, []bool{false, true, false, true}, 0.8, 1},
		"one false alarm": {[]float64{0.9, 0.7, 0.5, 0.1, 0.2}, []bool{true, false, true, false, false}, 0.5, 0.8},
		"one constant":    {[]float64{0.2, 0.2, 0.2}, []bool{false, true, false}, 0.2, 0.5},
		"equal ones":      {[]float64{0.6, 0.6, 0.4, 0.4}, []bool{true, false, true, false}, 0.6, 0.5},
	} {
		if cut, f1 := youden(c.p, c.labels); cut != c.cut || math.Abs(f1-c.f1) > 1e-12 {
			t.Errorf("%s: cut-off %v with F1 %v, want %v and %v", name, cut, f1, c.cut, c.f1)
		}
	}
}

// Regression ABC of 300 rows comes near the exact posterior, whose intervals are about .35 wide, and
// dividing the proposal out of normal draws leaves the likelihood.
func TestRegressionComesNearTheExactPosterior(t *testing.T) {
	rows := []int{100, 100, 100}
	p := testkit.Get(toy.Prior(1))(t)
	sample, up, err := byRegression(p, toy.Data(rows, 1), rounds, rand.New(rand.NewPCG(1, 6)))
	if err != nil {
		t.Fatal(err)
	}
	var scores toy.Scores
	scores.Add(sample, toy.Truth(rows))
	if scores.Means.RMSE() > 0.2 || slices.Max(scores.Means.Widths) > 0.6 || slices.Min(scores.Means.Widths) < 0.1 ||
		up != 3*8*33 {
		t.Errorf("RMSE %.2f, widths %.2f, %d bytes", scores.Means.RMSE(), scores.Means.Widths, up)
	}
	// A proposal N(1, 4) and a likelihood N(0, 1) have the product N(.2, .8).
	r := rand.New(rand.NewPCG(1, 8))
	draws := mat.NewDense(20_000, 1, nil)
	for i := range 20_000 {
		draws.Set(i, 0, 0.2+math.Sqrt(0.8)*r.NormFloat64())
	}
	law, _ := distmv.NewNormal([]float64{1}, mat.NewSymDense(1, []float64{4}), r)
	testkit.Do(t, divide(draws, law))
	if mean, variance := stat.MeanVariance(mat.Col(nil, 0, draws), nil); math.Abs(mean) > 0.05 ||
		math.Abs(variance-1) > 0.05 {
		t.Errorf("what is left is N(%.3f, %.3f), want N(0, 1)", mean, variance)
	}
}
