package factors

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"

	"parley/dataset"
	"parley/internal/testkit"
	"parley/method"
	"parley/methods/factors/fitted"
	"parley/study"
)

// viewsOf draws two views of d features in all, with so many factors that both have and two that each has alone; or
// one view of which these are halves, of even and odd features. A share of the cells of the study is missing.
func viewsOf(t *testing.T, seed uint64, d, sites, n, shared, latent int, one bool,
	missing float64) (s *small, others [][]float64) {
	t.Helper()
	rng, q, half := rand.New(rand.NewPCG(seed, 3)), shared+4, d/2
	w := make([]float64, d*q)
	for j := range d {
		for a := range q {
			if own := a - shared; own < 0 || (!one && j < half || one && j%2 == 0) == (own < 2) {
				w[j*q+a] = rng.NormFloat64() / 2
			}
		}
	}
	draw := func() []float64 {
		x, y := make([]float64, q), make([]float64, d)
		for a := range x {
			x[a] = rng.NormFloat64()
		}
		for j := range y {
			y[j] = 0.77 * rng.NormFloat64()
			for a := range x {
				y[j] += w[j*q+a] * x[a]
			}
		}
		return y
	}
	schema := dataset.Schema{Views: []dataset.View{{Name: "a"}, {Name: "b"}}}
	if one {
		half, schema.Views = d, schema.Views[:1]
	}
	for j := range d {
		v := &schema.Views[min(j/half, 1)]
		v.Columns = append(v.Columns, dataset.Column{Name: fmt.Sprint("f", j)})
	}
	rows := make([][]dataset.Row, sites)
	for i := range rows {
		for r := range n / sites {
			y := draw()
			for j := range y {
				if missing > 0 && rng.Float64() < missing {
					y[j] = math.NaN()
				}
			}
			views := [][]float64{y[:half], y[half:]}
			rows[i] = append(rows[i], dataset.Row{ID: fmt.Sprintf("%d-%04d", i, r), Views: views[:len(schema.Views)]})
		}
	}
	s = ofRows(t, fmt.Sprintf("seed: %d\n", seed), fmt.Sprintf("latent: %d", latent), schema, rows)
	for range 2000 {
		others = append(others, draw())
	}
	return s, others
}

// truthOf is what predictions of views of others are worth: the share of squared error that they take away, and
// of values in intervals of 90 %.
func truthOf(t *testing.T, m *fitted.Model, rows [][]float64) (gain, coverage []float64) {
	t.Helper()
	p, scale, err := m.PredictorFor(fitted.Population{})
	testkit.Do(t, err)
	l, md := p.Model()
	x, guess, variance := make([]float64, md.D), make([]float64, md.D), make([]float64, md.D)
	for part, k := range map[bool][]int{false: {0, 0}, true: {0, 1}}[l.Views() > 1] {
		lo, hi := l.View(k)
		var rest []int
		for j := range x {
			if j < lo || j >= hi || l.Views() == 1 && j%2 != part {
				rest = append(rest, j)
			}
		}
		given := testkit.Get(p.Given(rest))(t)
		failed, squares, held, cells := 0.0, 0.0, 0.0, float64(len(rows)*len(given.Missing))
		given.MissingVar(variance)
		for _, row := range rows {
			known := x[:0]
			for _, j := range rest {
				known = append(known, (row[j]-scale.Shift[j])*scale.Factor[j])
			}
			given.Impute(guess, known)
			for i, j := range given.Missing {
				y := (row[j] - scale.Shift[j]) * scale.Factor[j]
				off, about := y-guess[i], y-md.Mu[j]
				failed, squares = failed+off*off, squares+about*about
				if off*off < 1.645*1.645*variance[i] {
					held++
				}
			}
		}
		gain, coverage = append(gain, 1-failed/squares), append(coverage, held/cells)
	}
	return gain, coverage
}

// What a report says of subjects who took no part is true of such: its mean over draws lies near the share that
// predictions take away of the error of others, and near the coverage of intervals, and is not too good.
func TestHowSureIsTrueOfOthers(t *testing.T) {
	type drawn struct {
		d, sites, n, shared, latent int
		one                         bool
		missing                     float64
	}
	some := []drawn{{40, 3, 600, 0, 4, false, 0}, {100, 3, 300, 0, 4, false, 0}, {40, 5, 300, 2, 6, false, 0},
		{100, 1, 300, 0, 4, false, 0}, {100, 2, 300, 2, 6, false, 0}, {200, 5, 180, 2, 6, false, 0},
		{40, 3, 150, 0, 4, true, 0}, {60, 3, 200, 1, 5, true, 0}}
	much := []drawn{{200, 3, 900, 0, 4, false, 0}, {200, 3, 300, 0, 4, false, 0}, {200, 15, 300, 0, 4, false, 0},
		{1000, 3, 150, 0, 4, false, 0}, {1000, 3, 150, 2, 6, false, 0},
		{1000, 1, 150, 2, 6, false, 0}, {2000, 3, 60, 0, 4, false, 0}}
	all := testkit.Sized(some, append(some, much...))
	for _, c := range some {
		if c.missing = 0.3; c.d < 200 {
			all = append(all, c)
		}
	}
	for _, c := range all {
		said, truth, covered, held, n := 0.0, 0.0, 0.0, 0.0, 0.0
		draws := testkit.Sized[uint64](3, 10)
		if c.missing > 0 { // what is missing differs, too
			draws = 10
		}
		for seed := range draws {
			s, others := viewsOf(t, seed+1, c.d, c.sites, c.n, c.shared, c.latent, c.one, c.missing)
			r := testkit.Get(newPlay(t, s).run())(t)
			m := testkit.Get(fitted.LoadModel(fileOf(t, r, "model/model.json")))(t)
			gain, coverage := truthOf(t, m, others)
			for k := range gain {
				h := m.Views[min(k, len(m.Views)-1)].HeldOut
				said, truth, n = said+h.Gain, truth+gain[k], n+1
				held, covered = held+coverage[k], covered+0.9+h.Shift
			}
		}
		t.Logf("%+v: said %.3f, true %.3f; coverage said %.3f, true %.3f", c, said/n, truth/n, covered/n, held/n)
		if off := (said - truth) / n; off > 0.02 || off < -0.05 || math.Abs(covered-held)/n > 0.03 {
			t.Errorf("%+v: said %.3f of a gain of %.3f, and %.3f of a coverage of %.3f", c, said/n, truth/n,
				covered/n, held/n)
		}
	}
}

func simulatedPlan(t *testing.T, text string) *study.Plan {
	t.Helper()
	return testkit.Get(parse(text))(t)
}

var _ method.Simulator = Method{}

// subjects are the rows of a source, in memory.
func subjects(t *testing.T, src dataset.Source) (rows []dataset.Row) {
	t.Helper()
	table := testkit.Get(dataset.Collect(t.Context(), src))(t)
	for i := range table.Len() {
		rows = append(rows, table.Row(i))
	}
	return rows
}

// With a fixed seed this is what that seed gives. Of 40 000 subjects a standard
// deviation is known to 0.4 % (one standard error).
// What a model with as many factors leaves unexplained is the share of noise.
func TestImaginedSubjectsFitThePlan(t *testing.T) {
	p := simulatedPlan(t, underTotal("  latent: 1\n"))
	drawn := testkit.Get(Method{}.Simulate(p, method.Simulation{Subjects: 40_000, Held: 10, Seed: 5, Noise: 0.3}))(t)
	rows := subjects(t, drawn.Sites["north"])
	if len(rows) != 40_000 || len(drawn.Sites) != len(p.Sites) {
		t.Fatalf("%d subjects at %d sites", len(rows), len(drawn.Sites))
	}
	outside := 0
	var first, last []float64
	for _, row := range rows {
		first, last = append(first, row.Views[0][0]), append(last, row.Views[1][1])
	}
	if c := stat.Correlation(first, last, nil); math.Abs(math.Abs(c)-0.7) > 0.02 {
		t.Errorf("two features of one factor have a correlation of %.3f, want 1 − noise, .7, in size", c)
	}
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
			if sd := math.Sqrt(squares/float64(len(rows)) - mean*mean); math.Abs(sd-0.125) > 0.003 ||
				math.Abs(mean-0.5) > 0.103 {
				t.Errorf("%s: mean %.3f and standard deviation %.4f of the range", f.Name, mean, sd)
			}
		}
	}
	if share := float64(outside) / 160_000; share > 0.002 {
		t.Errorf("%.4f of the values lie outside the public ranges", share)
	}
}

func TestImaginedSitesLackWhatThePlanSays(t *testing.T) {
	p := simulatedPlan(t, underTotal("  latent: 2\n  patterns: [{views: [clinic, mri]}, {site: south, views: "+
		"[clinic]}]\n"))
	drawn := testkit.Get(Method{}.Simulate(p, method.Simulation{Subjects: 5, Held: 5, Seed: 1, Noise: 0.3}))(t)
	for where, src := range map[string]dataset.Source{"north": drawn.Sites["north"], "south": drawn.Sites["south"],
		"held out": drawn.Held} {
		for _, row := range subjects(t, src) {
			if has := len(row.Views[1]) > 0; has == (where == "south") {
				t.Errorf("%s: mri is there: %v", where, has)
			}
		}
	}
}

func TestImpossibleSimulationsAreRefused(t *testing.T) {
	p := simulatedPlan(t, underTotal("  latent: 2\n"))
	for _, c := range []method.Simulation{{Held: 1, Noise: 0.3}, {Subjects: 1, Noise: 0.3}, {Subjects: 1, Held: 1},
		{Subjects: 1, Held: 1, Noise: 1}, {Subjects: 1, Held: 1, Noise: math.NaN()}} {
		if _, err := (Method{}).Simulate(p, c); err == nil || !strings.Contains(err.Error(), "cannot be drawn") {
			t.Errorf("%+v: got %v", c, err)
		}
	}
}
