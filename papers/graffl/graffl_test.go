package graffl

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"gonum.org/v1/gonum/stat"

	"parley/internal/testkit"
	"parley/methods/mixture/augment"
	"parley/papers/experiment"
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
func simulated(n int, r *rand.Rand) (t augment.Labelled) {
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
	for _, part := range append([]augment.Labelled{d.held}, d.sites...) {
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

// Every arm is measured, and what must be true of any data of this kind is: landmarks
// without noise find what the pooled codes would, and that is better than the few rows of a
// site. AUC of 600 held rows has a standard error of 0.015; the seeds are fixed.
func TestEveryArmIsMeasured(t *testing.T) {
	s := setting{name: "simulated", codes: 3, among: 4, aside: 0.5, targets: 2, share: 0.05}
	all, outcomes := simulated(1200, rand.New(rand.NewPCG(1, 0))), experiment.Outcomes{}
	for split := range 2 {
		x := &trial{setting: s, proposals: 20_000, sets: 2, seed: uint64(split + 1), values: experiment.Values{}}
		var err error
		if x.deal, err = s.split(all, rand.New(rand.NewPCG(x.seed, 0))); err != nil {
			t.Fatal(err)
		}
		testkit.Do(t, x.run(t.Context()))
		outcomes[s.id(split)] = x.values
	}
	of := func(arm string) float64 {
		x := outcomes.Gather(arm+", "+auc, s.id(0), s.id(1))
		if want := 4; len(x) != want && arm != allCodes {
			t.Errorf("%s has %d scores, want those of two sites in two splits", arm, len(x))
		}
		return stat.Mean(x, nil)
	}
	for _, arm := range arms() {
		if v := of(arm); !(v > 0 && v <= 1) {
			t.Errorf("%s: AUC %v", arm, v)
		}
	}
	if a, b := of(one+landmark), of(one+ceiling); math.Abs(a-b) > 0.02 || a < of(one+raw) {
		t.Errorf("AUC %v by landmarks, %v by pooled codes, %v raw", a, b, of(one+raw))
	}
	for _, arm := range []string{RidgeAllRows, allCodes} {
		if a, b := of(arm), of(one+landmark); a < b-0.02 {
			t.Errorf("AUC %v of %s, %v of synthetic rows", a, arm, b)
		}
	}
	if got := allArms(outcomes, []setting{s}); len(got.Columns) != 2 || got.Columns[1].Text[0] == "" || len(got.Columns[1].Text) != len(arms())+1 {
		t.Errorf("the table is %v", got)
	}
	// Own encoders have three rivals, one encoder has four for each of two generators.
	if got := contest(outcomes, []setting{s}); len(got.Columns[0].Text) != 11 {
		t.Errorf("the contest is %v", got)
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

// Without privacy all follows from seeds. Modes of 900 000 proposals lie within half of the
// rows' (root mean square), though what is accepted is no posterior; the default's means are
// about as good as the exact ones.
func TestFigure3ShowsModesAndWidths(t *testing.T) {
	o := experiment.Outcomes{}
	for _, s := range samplers() {
		if s.is(exact, hundreds) || s.is(today, hundreds) && s.epsilon == 0 || s.is(asPublished, thousands) {
			v := testkit.Get(s.run(t.Context(), 1))(t)
			o[s.id(0)] = v
		}
	}
	c := conclude3(o)
	if len(c.Rows) != 6 || len(c.Figures) != 2 {
		t.Fatalf("%d coordinates of modes and %d pictures, want 6 and 2", len(c.Rows), len(c.Figures))
	}
	var off toy.Tally
	for _, r := range c.Rows {
		off.Errors = append(off.Errors, r.Ours.Mean-r.Published.Mean)
	}
	if off.RMSE() > 0.5 {
		t.Errorf("modes are off by %v", off.RMSE())
	}
	var widths []float64
	for _, s := range c.Tables[0].Columns[5].Text {
		w := testkit.Get(strconv.ParseFloat(s, 64))(t)
		widths = append(widths, w)
	}
	// In the order of the table: Algorithm 2, exact, default.
	if len(widths) != 3 || widths[0] < 100*widths[1] || math.Abs(widths[2]/widths[1]-1) > 0.2 {
		t.Errorf("90 %% intervals of means are %v wide: want those of Algorithm 2 far too wide, and the default's like the exact ones", widths)
	}
}
