package factors

import (
	"context"
	"math"
	"strings"
	"testing"

	"parley/dataset"
	"parley/internal/testkit"
	"parley/method"
	"parley/methods/factors/factorstest"
	"parley/study"
)

func simulatedPlan(t *testing.T, text string) *study.Plan {
	t.Helper()
	return testkit.Get(parse(text))(t)
}

var _ method.Simulator = Method{}

// subjects are the rows of a source, in memory.
func subjects(t *testing.T, src dataset.Source) (rows []dataset.Row) {
	t.Helper()
	table := gathered(t, src, nil)
	for i := range table.Len() {
		rows = append(rows, table.Row(i))
	}
	return rows
}

// With a fixed seed this is what that seed gives. Of 40 000 subjects a standard
// deviation is known to 0.4 % (one standard error).
func TestImaginedSubjectsFitThePlan(t *testing.T) {
	p := simulatedPlan(t, underTotal("  latent: 2\n"))
	drawn := testkit.Get(Method{}.Simulate(p, method.Simulation{Subjects: 40_000, Held: 10, Seed: 5, Noise: 0.3}))(t)
	rows := subjects(t, drawn.Sites["north"])
	if len(rows) != 40_000 || len(drawn.Sites) != len(p.Sites) {
		t.Fatalf("%d subjects at %d sites", len(rows), len(drawn.Sites))
	}
	outside := 0
	for k, v := range p.Views {
		for j, f := range v.Features {
			low, high := f.Range[0], f.Range[1]
			sum, squares := 0.0, 0.0
			for _, row := range rows {
				x := (row.Views[k][j] - low) / (high - low)
				if x < 0 || x > 1 {
					outside++
				}
				sum, squares = sum+x, squares+x*x
			}
			mean := sum / float64(len(rows))
			if sd := math.Sqrt(squares/float64(len(rows)) - mean*mean); math.Abs(sd-0.125) > 0.003 || math.Abs(mean-0.5) > 0.103 {
				t.Errorf("%s: mean %.3f and standard deviation %.4f of the range", f.Name, mean, sd)
			}
		}
	}
	if share := float64(outside) / 160_000; share > 0.002 {
		t.Errorf("%.4f of the values lie outside the public ranges", share)
	}
}

// What a model with as many factors leaves unexplained is the share of noise.
func TestImaginedNoiseIsTheShareAskedFor(t *testing.T) {
	p := simulatedPlan(t, underTotal("  latent: 1\n"))
	drawn := testkit.Get(Method{}.Simulate(p, method.Simulation{Subjects: 20_000, Held: 1, Seed: 2, Noise: 0.2}))(t)
	// Two features of one factor have a correlation of ±(1 − noise).
	n, sx, sy, sxx, syy, sxy := 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
	for _, row := range subjects(t, drawn.Sites["south"]) {
		x, y := row.Views[0][0], row.Views[1][1]
		n, sx, sy, sxx, syy, sxy = n+1, sx+x, sy+y, sxx+x*x, syy+y*y, sxy+x*y
	}
	r := (sxy - sx*sy/n) / math.Sqrt((sxx-sx*sx/n)*(syy-sy*sy/n))
	if math.Abs(math.Abs(r)-0.8) > 0.02 {
		t.Errorf("correlation %.3f, want 0.8 in size", r)
	}
}

func TestImaginedPopulationsAreOne(t *testing.T) {
	p := simulatedPlan(t, underTotal("  latent: 2\n"))
	few := testkit.Get(Method{}.Simulate(p, method.Simulation{Subjects: 3, Held: 4, Seed: 7, Noise: 0.3}))(t)
	many := testkit.Get(Method{}.Simulate(p, method.Simulation{Subjects: 300, Held: 4, Seed: 7, Noise: 0.3}))(t)
	same := func(a, b dataset.Source, n int) bool {
		x, y := subjects(t, a), subjects(t, b)
		for i := range n {
			if x[i].Views[0][0] != y[i].Views[0][0] || x[i].Views[1][1] != y[i].Views[1][1] {
				return false
			}
		}
		return true
	}
	if !same(few.Sites["north"], many.Sites["north"], 3) || !same(few.Held, many.Held, 4) {
		t.Error("more subjects are other subjects")
	}
	if same(few.Sites["north"], few.Sites["south"], 1) || same(few.Sites["north"], few.Held, 1) {
		t.Error("the same subjects are at two places")
	}
	other := testkit.Get(Method{}.Simulate(p, method.Simulation{Subjects: 3, Held: 4, Seed: 8, Noise: 0.3}))(t)
	if same(few.Held, other.Held, 1) {
		t.Error("another seed gives the same subjects")
	}
}

func TestImaginedSitesLackWhatThePlanSays(t *testing.T) {
	p := simulatedPlan(t, underTotal("  latent: 2\n  patterns: [{views: [clinic, mri]}, {site: south, views: [clinic]}]\n"))
	drawn := testkit.Get(Method{}.Simulate(p, method.Simulation{Subjects: 5, Held: 5, Seed: 1, Noise: 0.3}))(t)
	for where, src := range map[string]dataset.Source{"north": drawn.Sites["north"], "south": drawn.Sites["south"], "held out": drawn.Held} {
		for _, row := range subjects(t, src) {
			if has := len(row.Views[1]) > 0; has == (where == "south") {
				t.Errorf("%s: mri is there: %v", where, has)
			}
		}
	}
}

func TestImpossibleSimulationsAreRefused(t *testing.T) {
	p := simulatedPlan(t, underTotal("  latent: 2\n"))
	for _, c := range []method.Simulation{{Held: 1, Noise: 0.3}, {Subjects: 1, Noise: 0.3}, {Subjects: 1, Held: 1}, {Subjects: 1, Held: 1, Noise: 1}, {Subjects: 1, Held: 1, Noise: math.NaN()}} {
		if _, err := (Method{}).Simulate(p, c); err == nil || !strings.Contains(err.Error(), "cannot be drawn") {
			t.Errorf("%+v: got %v", c, err)
		}
	}
}

func gathered(t testing.TB, src dataset.Source, err error) *dataset.Table {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return factorstest.Must(dataset.Collect(context.Background(), src))(t)
}
