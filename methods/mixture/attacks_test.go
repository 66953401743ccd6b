package mixture

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/figure"
	"parley/internal/testkit"
	"parley/method"
	"parley/methods/mixture/gmm"
	"parley/methods/mixture/sketch"
	"parley/privacy/account"
	"parley/study"
)

// Whatever a plan says of sums, it is its features that are attacked, in
// studies that can be run.
func TestStudiesOfTheVictimsOfAnyPlan(t *testing.T) {
	for text, privacy := range map[string]string{
		"components: 2, sketch: {frequencies: 70, scale: 0.2}": "{protection: none}",
		"components: 2":                      "{protection: none}",
		"components: 2, prior: {freedom: 9}": "{protection: none}",
	} {
		p := parsePlan(t, fmt.Sprintf("parley: 1\nname: any\nsites: [a]\nviews: [{name: v, features: [{name: x, range: [-8, 8]}, {name: y, range: [0, 1]}, {name: z, range: [0, 1]}]}]\nsubjects: [sick]\nmethod: {name: graffl, %s}\nprivacy: %s\n", text, privacy))
		given := p.Method.Options.(*Options)
		var s study.Plan
		_, err := NewAttacker(t.Context(), Method{}, nil, method.Target{Plan: p}, func(*study.Plan) (*Options, error) { return given, nil }, func(v *Victims) error {
			own, err := victimsStudy(v, NoProtection)
			if err != nil || own.Prior.Dim() != 3 || own.Prior.Nu != given.Prior.Freedom || own.Of.Count() != given.Sketch.Frequencies {
				t.Errorf("%s: %+v, %v", text, own, err)
				return nil
			}
			s = *own.Plan
			return nil
		})
		if err == nil || err.Error() != "site a has no data" || s.Privacy.Differential() || len(s.Subjects) > 0 {
			t.Errorf("%s: %v, %+v", text, err, s)
		}
	}
}

// small is a study of 64 frequencies.
func small(privacy string) *setup {
	return known(text(2, "components: 3, draws: 64", privacy))
}

// noised is differential protection of subjects.
func noised(adjacency account.Adjacency, epsilon float64) string {
	return fmt.Sprintf("{protection: differential, unit: subject, adjacency: %s, total: {epsilon: %v, delta: 1e-5}}", adjacency, epsilon)
}

const noProtection = "{protection: none}"

func attacksOf(t *testing.T, section figure.Section) string {
	t.Helper()
	return testkit.Get(attacksText(section))(t)
}

func TestReportsSayWhatAnAttackerFinds(t *testing.T) {
	total := small(noProtection)
	total.Plan.Privacy.Sum = "secure"
	for name, c := range map[string]struct {
		got  figure.Section
		want []string
	}{
		"many":  {attackSection(small(noProtection), []float64{5000, 8000}), []string{"up to 64 rows are determined", "nothing that is known"}},
		"few":   {attackSection(small(noProtection), []float64{500, 5}), []string{"all rows of the smallest site, which has 5"}},
		"some":  {attackSection(small(noProtection), []float64{300}), []string{"perhaps some rows"}},
		"total": {attackSection(total, []float64{900}), []string{"128 sums over all sites", "nothing that is known: all sites together have 900 rows"}},
		"empty": {attackSection(small(noProtection), nil), []string{"ten times more"}},
		// (e + 1e-5)/(1 + e) is 73.1 %; σ of ε 1 at δ 1e-5 for a diameter of 1 is 3.73, and Φ(1/(2·3.73)) is 55.3 %.
		"private":  {attackSection(small(noised(account.AddRemove, 1)), []float64{300}), []string{"whether one person took part", "73.1", "55.3", "charged again"}},
		"exchange": {attackSection(small(noised(account.ReplaceOne, 1)), []float64{300}), []string{"which of two rows", "73.1"}},
	} {
		got := attacksOf(t, c.got)
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %q in\n%s", name, want, got)
			}
		}
	}
}

// No record moves a release by more than was charged, and the worst as much, whether it joins or is exchanged.
func TestTheWorstRecordIsWithinItsCharge(t *testing.T) {
	for _, c := range []struct {
		adjacency account.Adjacency
		diameter  float64 // that was charged, in bounds
		least     float64 // share of it that is seen
	}{{account.AddRemove, 1, 0.95}, {account.ReplaceOne, 2, 0.95}} {
		s := small(noised(c.adjacency, 2))
		if mu, most := visible(s), c.diameter/s.Sum.Mechanism.Noise; !(mu <= most && mu >= c.least*most) {
			t.Errorf("%s: %v standard deviations, of %v charged", c.adjacency, mu, most)
		}
	}
	if got := []float64{best(0), best(2), best(math.Inf(1))}; !slices.EqualFunc(got, []float64{0.5, 0.8413447460685429, 1}, func(a, b float64) bool { return math.Abs(a-b) < 1e-12 }) {
		t.Errorf("Φ(0), Φ(1), Φ(∞) are %v", got) // Φ(1), the standard normal distribution function
	}
}

// The minimum of Rosenbrock's function is 0 at (1, 1).
func TestLeastSquaresFindsTheMinimum(t *testing.T) {
	x := []float64{-1.2, 1}
	loss := LeastSquares(x, 2, func(r, jac, x []float64) {
		r[0], r[1] = 10*(x[1]-x[0]*x[0]), 1-x[0]
		if jac != nil {
			copy(jac, []float64{-20 * x[0], 10, -1, 0})
		}
	})
	if loss > 1e-20 || math.Abs(x[0]-1) > 1e-9 || math.Abs(x[1]-1) > 1e-9 {
		t.Errorf("got %v with %v", x, loss)
	}
}

func TestMostAdvantage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := rapid.Float64Range(0, 50).Draw(t, "ε")
		if a := mostAdvantage(e, 1e-5); a < 0.5 || a > 1 || a > mostAdvantage(e+0.1, 1e-5) {
			t.Fatalf("at ε = %v: %v", e, a)
		}
	})
	if got := mostAdvantage(0, 0); got != 0.5 {
		t.Errorf("ε = 0 allows %v, want a coin", got)
	}
}

func sumsAt(f sketch.Frequencies, rows []float64) []float64 {
	sum, phi := make([]float64, f.Len()), make([]float64, f.Len())
	for row := range slices.Chunk(rows, f.Dim) {
		f.Features(phi, row)
		for i, v := range phi {
			sum[i] += v
		}
	}
	return sum
}

// What two exact releases differ by is the row that sets them apart, in one feature and in eight; so are all
// rows of a small site. What is not determined is not given.
func TestRowsFollowFromExactSums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, n := rapid.SampledFrom([]int{1, 2, 8}).Draw(t, "features"), 1
		if d == 2 {
			n = rapid.IntRange(1, 3).Draw(t, "rows")
		}
		f := known(text(d, "components: 2", noProtection)).Of
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 3))
		var rows []float64
		for k := range n { // a few widths apart
			for range d {
				rows = append(rows, float64(5*k)-5+r.Float64())
			}
		}
		got := testkit.Get(locate(f, sumsAt(f, rows), n))(t)
		for row := range slices.Chunk(rows, d) {
			least := math.Inf(1)
			for g := range slices.Chunk(got, d) {
				least = min(least, math.Sqrt(gmm.SquaredDistance(row, g)))
			}
			if least > 1e-5 {
				t.Fatalf("rows %v were located at %v", rows, got)
			}
		}
	})
	f := known(text(2, "components: 2", noProtection)).Of
	for name, c := range map[string]struct {
		sums []float64
		rows int
	}{"too many": {make([]float64, f.Len()), f.Len()/2 + 1}, "none": {make([]float64, f.Len()), 0}, "other sums": {[]float64{1}, 1}} {
		if x, err := locate(f, c.sums, c.rows); err == nil {
			t.Errorf("%s: %v", name, x)
		}
	}
}

// Scores are in standard deviations within sites: guesses of a site's mean have an
// error of 1, rows themselves none.
func TestScoresAreInStandardDeviations(t *testing.T) {
	view := study.View{Features: []study.Feature{{Range: &[2]float64{-12, 12}}, {Range: &[2]float64{-12, 12}}}}
	v := &Victims{Plan: &study.Plan{Views: []study.View{view}}, Dim: 2, Seed: 3}
	v.example()
	v.measure()
	var means []float64
	for j, rows := range v.Sites {
		for range len(rows) / 2 {
			means = append(means, v.Means[j]...)
		}
	}
	if r := v.Score(v.All(), means, 0.1); math.Abs(r.RMSE-1) > 1e-12 || r.Rows != 300 || r.Found > 30 || math.Abs(r.SD-1) > 0.1 {
		t.Errorf("guessing means: %+v", r)
	}
	if r := v.Score(v.All(), v.All(), 0.1); r.RMSE != 0 || r.Found != 300 {
		t.Errorf("the rows themselves: %+v", r)
	}
}
