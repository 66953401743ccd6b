package options_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"parley/dataset"
	"parley/method"
	"parley/methods/factors"
	"parley/methods/factors/options"
	"parley/study"
)

func setUp(t interface {
	Helper()
	Fatal(...any)
}) options.Setup {
	t.Helper()
	p, err := study.Parse("plan.yaml", []byte(`
parley: 1
name: small
sites: [a, b, c]
privacy: {protection: none}
subjects: [sex, age]
views: [{name: v, features: [x, y]}, {name: w, features: [z]}]
method: {name: factors, latent: 1, adjust: [age, {column: sex, levels: [f, m, o]}]}
`), method.Registry{factors.Method{}})
	if err != nil {
		t.Fatal(err)
	}
	set, err := options.SetUp(p)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// truth are the effects of age and of the levels m and o on x, y and z.
var truth = [][]float64{{0.5, 1, -1}, {0, 0, 0}, {-2, 3, 0.1}}

// site draws subjects of a site with means of its own. Cells are missing.
func site(r *rand.Rand, set options.Setup, n int) []dataset.Row {
	var rows []dataset.Row
	shift, away := r.NormFloat64(), 50+20*r.Float64()
	for i := range n {
		age, sex := away+10*r.NormFloat64(), r.IntN(3)
		y := make([]float64, 3)
		for j, b := range truth {
			y[j] = shift + b[0]*age + r.NormFloat64()
			if sex > 0 {
				y[j] += b[sex]
			}
			if j > 0 && r.Float64() < 0.2 {
				y[j] = math.NaN()
			}
		}
		row := dataset.Row{ID: fmt.Sprintf("s%04d", i), Views: [][]float64{y[:2], y[2:]},
			Subject: []string{set.Options.Adjust[1].Levels[sex], fmt.Sprint(age)}}
		if math.IsNaN(y[2]) {
			row.Views[1] = nil
		}
		rows = append(rows, row)
	}
	return rows
}

func table(t interface{ Fatal(...any) }, set options.Setup, rows []dataset.Row) *dataset.Table {
	out, err := dataset.NewTable(set.Plan.Schema(), rows)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func sumsOf(t interface{ Fatal(...any) }, set options.Setup, data dataset.Source) *options.Sums {
	s, err := set.SumUp(context.Background(), data)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Covariates that cannot be told apart, or that vary within no site, have no slope, and those
// beside them do; subjects without one are left out and counted; nobody left is an error.
func TestWhatCannotBeTold(t *testing.T) {
	set, r := setUp(t), rand.New(rand.NewPCG(3, 4))
	for name, c := range map[string]struct {
		change func(site, i int, row *dataset.Row)
		told   []bool
	}{
		"as drawn": {func(int, int, *dataset.Row) {}, []bool{true, true, true}},
		"one sex at each site": {func(s, _ int, row *dataset.Row) { row.Subject[0] = []string{"f", "m", "o"}[s] },
			[]bool{true, false, false}},
		"no third level": {func(_, i int, row *dataset.Row) {
			if row.Subject[0] == "o" {
				row.Subject[0] = "m"
			}
		}, []bool{true, true, false}},
		"age is sex": {func(_, i int, row *dataset.Row) {
			row.Subject[0] = []string{"f", "m"}[i%2]
			row.Subject[1] = []string{"30", "40"}[i%2]
		}, []bool{true, false, false}},
	} {
		var sums []*options.Sums
		for s := range 3 {
			rows := site(r, set, 30)
			for i := range rows {
				c.change(s, i, &rows[i])
			}
			rows[0].Subject[1] = "null"
			own := sumsOf(t, set, table(t, set, rows))
			if own.Lacking != 1 || own.Subjects != 29 {
				t.Errorf("%s: %v subjects and %v who lack one", name, own.Subjects, own.Lacking)
			}
			sums = append(sums, own)
		}
		e, err := options.Solve(set, sums)
		if err != nil {
			t.Fatal(err)
		}
		for k, want := range c.told {
			for j := range 3 {
				if b := e.Effects.Slopes.Data[j*3+k]; (b != 0) != want {
					t.Errorf("%s: term %d of feature %d has the slope %v", name, k, j, b)
				}
			}
		}
	}
	rows := site(r, set, 5)
	for i := range rows {
		rows[i].Subject[0] = ""
	}
	data := table(t, set, rows)
	if _, _, err := options.Regress(t.Context(), set, data); err == nil ||
		!strings.Contains(err.Error(), "no subject with any value") {
		t.Errorf("nobody left: %v", err)
	}
}
