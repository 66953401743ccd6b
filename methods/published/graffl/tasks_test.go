package graffl

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/internal/testkit"
	"parley/internal/wire"
	"parley/method"
	"parley/methods/mixture/gmm"
)

// The tasks of a plan cover its rounds once, and stay few.
func TestTasksCoverTheRounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := &Options{Rounds: rapid.IntRange(1, 100_000).Draw(t, "rounds")}
		tasks, first := 0, 0
		for first < o.Rounds {
			if first%o.batch() != 0 {
				t.Fatalf("a task begins with round %d, and batches have %d", first, o.batch())
			}
			first += o.together(first)
			tasks++
		}
		if first != o.Rounds || tasks != o.tasks() || tasks > 256 || o.together(first) != 0 {
			t.Fatalf("%d tasks for %d rounds end at %d", tasks, o.Rounds, first)
		}
	})
}

// waiting is the coordinator of a small plan, and its state that waits for the first answers.
func waiting(t *testing.T, name string) (method.Coordinator, method.State) {
	t.Helper()
	p, _ := planned(t, small[name])
	c := testkit.Get(Method{}.Coordinator(p))(t)
	return c, testkit.Get(c.Next(testkit.Get(c.Init())(t)))(t).State
}

func packed(t *testing.T, v any) []byte {
	t.Helper()
	return testkit.Get(wire.Marshal(v))(t)
}

func ones(n int) wire.Vector { return slices.Repeat(wire.Vector{1}, n) }

// A site that answers another number of distances than it has rows and rounds, or
// twice, is refused.
func TestAnswersOfTheWrongLengthAreRefused(t *testing.T) {
	c, s := waiting(t, "rows")
	fold := func(site string, distances wire.Vector) error {
		_, err := c.Fold(s, method.Contribution{Site: site, Kind: taskDistances,
			Body: packed(t, distancesAnswer{Distances: distances})})
		return err
	}
	refused := func(err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	next := func() {
		t.Helper()
		if _, err := c.Next(s); err != nil {
			t.Fatal(err)
		}
	}
	refused(fold("a", ones(4*leastBatch+1)), "as many in each as the site has rows")
	testkit.Do(t, fold("a", ones(4*leastBatch)))
	refused(fold("a", ones(4*leastBatch)), "already answered")
	if err := fold("b", nil); err != nil { // a site may have no row with all features
		t.Fatal(err)
	}
	next()
	refused(fold("a", ones(5*leastBatch)), "5 rows from a site that had 4")
	refused(fold("a", nil), "0 rows from a site that had 4")
	testkit.Do(t, fold("a", ones(4*leastBatch)))
	next() // the last has three rounds
	refused(fold("a", ones(4*leastBatch)), "as many in each")
	testkit.Do(t, fold("a", ones(4*3)))
}

// The toy: its modes, a box around them, rows at each site, the mixture and its prior.
var (
	toyMeans  = []float64{-9, 3, 0, -9, 8, 3}
	toyLo     = []float64{-12, -12}
	toyHi     = []float64{12, 12}
	toyThirds = []int{300, 300, 300}
	toyTruth  = gmm.Mixture{Dim: 2, Weights: []float64{1. / 3, 1. / 3, 1. / 3}, Means: toyMeans,
		Covs: []float64{1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1}}
	toyPrior = func() gmm.Prior { p, _ := gmm.BoxPrior(toyLo, toyHi, 3); return p }()
)

// toySites draws the rows of three sites with one mode each.
func toySites(seed uint64, rows []int) (sites [][]float64) {
	r := rand.New(rand.NewPCG(seed, 1))
	for j, n := range rows {
		var s []float64
		for range n {
			s = append(s, toyMeans[2*j]+r.NormFloat64(), toyMeans[2*j+1]+r.NormFloat64())
		}
		sites = append(sites, s)
	}
	return sites
}

// judged compares a sample with a truth: RMSE of the means' means, their 90 %
// intervals that hold the truth, and the mean weights, largest component first.
func judged(post *gmm.Posterior, truth gmm.Mixture) (rmse float64, covered int, weights []float64) {
	n := len(truth.Means)
	draws := make([][]float64, n)
	mean := make([]float64, n)
	weights = make([]float64, truth.Components())
	for i, m := range post.Draws {
		m = m.Reorder(gmm.Match(truth, m, nil))
		for c, v := range m.Means {
			draws[c] = append(draws[c], v)
			mean[c] += post.Weights[i] * v
		}
		for k, w := range m.Weights {
			weights[k] += post.Weights[i] * w
		}
	}
	for c, v := range truth.Means {
		rmse += (mean[c] - v) * (mean[c] - v) / float64(n)
		if gmm.Quantile(draws[c], post.Weights, 0.05) <= v && v <= gmm.Quantile(draws[c], post.Weights, 0.95) {
			covered++
		}
	}
	return math.Sqrt(rmse), covered, weights
}

func TestTrilaterateRefuses(t *testing.T) {
	for _, c := range []struct{ points, squared []float64 }{
		{[]float64{0, 0, 1, 1}, []float64{1, 1}},
		{[]float64{0, 0, 1, 1, 2, 2}, []float64{1, 1, 1}}, // on one line
		{[]float64{0, 0, 1, 1, 2}, []float64{1, 1, 1}},
		{[]float64{0, 0, 1, 1, 2, math.NaN()}, []float64{1, 1, 1}},
	} {
		if x, err := trilaterate(c.points, c.squared, 2); err == nil {
			t.Errorf("points %v gave %v", c.points, x)
		}
	}
}

// Coordinates in another order are those of the mixture in that order.
func TestReorder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := gmm.Coordinates{K: rapid.IntRange(1, 4).Draw(t, "k"), Dim: rapid.IntRange(1, 3).Draw(t, "d")}
		u := rapid.SliceOfN(rapid.Float64Range(-2, 2), c.Len(), c.Len()).Draw(t, "u")
		order := rapid.Permutation([]int{0, 1, 2, 3}[:c.K]).Draw(t, "order")
		m, back := gmm.NewMixture(c.K, c.Dim), gmm.NewMixture(c.K, c.Dim)
		c.From(m, u)
		reorder(c, u, order)
		c.From(back, u)
		near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*(1+math.Abs(a)) }
		if want := m.Reorder(order); !slices.EqualFunc(want.Means, back.Means, near) ||
			!slices.EqualFunc(want.Weights, back.Weights, near) || !slices.EqualFunc(want.Covs, back.Covs, near) {
			t.Fatalf("order %v made %v of %v", order, back, m)
		}
	})
}
