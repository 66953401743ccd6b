package predict

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"parley/internal/testkit"
	"parley/method"
	"parley/methods/regression/glm"
)

// Residuals of a model that is right are doubted about once in a thousand times; of one that is
// wrong in a way that matters, always. 3 sites of 150 rows with two features, fitted by least
// squares; of 400 drawn sets with six tests at .001 more than 8 doubts come by chance once in
// 1000 runs.
func TestResidualsTellWhatIsWrong(t *testing.T) {
	sets := 400
	for name, c := range map[string]struct {
		mean  func(x, z, site float64) float64
		error func(r *rand.Rand, x, s float64) float64
		want  string // "" for no doubt
	}{
		"right": {func(x, z, _ float64) float64 { return 1 + x - z }, func(r *rand.Rand, _, _ float64) float64 {
			return r.NormFloat64()
		}, ""},
		"apart": {func(x, z, s float64) float64 { return x + s }, func(r *rand.Rand, _, _ float64) float64 {
			return r.NormFloat64()
		}, "apart"},
		"differing": {func(x, z, s float64) float64 {
			if s > 0 {
				return -x
			}
			return x
		}, func(r *rand.Rand, _, _ float64) float64 { return r.NormFloat64() }, "differing"},
		"bent": {func(x, z, _ float64) float64 { return x * x }, func(r *rand.Rand, _, _ float64) float64 {
			return r.NormFloat64()
		}, "bent"},
	} {
		said := map[string]int{}
		n := sets
		if c.want != "" {
			n = 40
		}
		for set := range n {
			r := rand.New(rand.NewPCG(uint64(set), 11))
			var sites []*Residuals
			designs, ys := fitted(r, c.mean, c.error)
			q, variance := leastSquares(t, designs, ys)
			for i, x := range designs {
				d := glm.NewDesign(3)
				for k, row := range x {
					testkit.Do(t, d.Append(glm.Dense(row), ys[i][k]))
				}
				sites = append(sites, Assess(glm.Linear{Variance: variance}, q, nil, d, false, true).Residuals)
				testkit.Do(t, method.CheckSums(newResiduals(3), sites[i], glm.MostRows*rowLargest))
			}
			all := pool(sites)
			if SiteScoreTest(sites, all, 1) != nil {
				said["apart"]++
			}
			if differs(sites, 0) || differs(sites, 1) {
				said["differing"]++
			}
			if all.NonlinearityScoreTest(0, 3) || all.NonlinearityScoreTest(1, 3) {
				said["bent"]++
			}
		}
		t.Log(name, said)
		if c.want == "" {
			total := 0
			for _, k := range said {
				total += k
			}
			if total > 8 {
				t.Errorf("%s: %v doubts of %d sets", name, said, n)
			}
		} else if said[c.want] < n*8/10 {
			t.Errorf("%s: %v of %d sets", name, said, n)
		}
	}
}

// fitted draws three sites' rows with a column of ones, and outcomes.
func fitted(r *rand.Rand, mean func(x, z, site float64) float64,
	e func(r *rand.Rand, x, site float64) float64) (designs [][][]float64, ys [][]float64) {
	for s := range 3 {
		var rows [][]float64
		var y []float64
		for range 150 {
			x, z := r.NormFloat64(), r.NormFloat64()
			rows = append(rows, []float64{x, z, 1})
			y = append(y, mean(x, z, float64(s-1))+e(r, x, float64(s-1)))
		}
		designs, ys = append(designs, rows), append(ys, y)
	}
	return designs, ys
}

// leastSquares fits three weights to all rows.
func leastSquares(t *testing.T, designs [][][]float64, ys [][]float64) (glm.Normal, float64) {
	t.Helper()
	var flat, outcomes []float64
	for i, rows := range designs {
		for k, row := range rows {
			flat, outcomes = append(flat, row...), append(outcomes, ys[i][k])
		}
	}
	n := len(outcomes)
	x, y := mat.NewDense(n, 3, flat), mat.NewVecDense(n, outcomes)
	var gram mat.SymDense
	var right, w, left mat.VecDense
	gram.SymOuterK(1, x.T())
	right.MulVec(x.T(), y)
	var chol mat.Cholesky
	var inverse mat.SymDense
	if !chol.Factorize(&gram) || chol.SolveVecTo(&w, &right) != nil || chol.InverseTo(&inverse) != nil {
		t.Fatal("no least squares")
	}
	left.MulVec(x, &w)
	left.SubVec(y, &left)
	variance := mat.Dot(&left, &left) / float64(n-3)
	inverse.ScaleSym(variance, &inverse)
	q := testkit.Get(glm.NewNormal(w.RawVector().Data, glm.Lower(&inverse)))(t)
	return q, variance
}

// Whatever sites' numbers are, residuals are finite.
func TestResidualsTakeAnyNumber(t *testing.T) {
	q := testkit.Get(glm.NewNormal([]float64{1e150, -3}, []float64{1e100, 0, 1}))(t)
	d := glm.NewDesign(2)
	for _, x := range [][]float64{{1e300, 1}, {-1e-300, 1}, {0, 1}, {1e200, 1e200}} {
		for _, y := range []float64{-1e308, 0, 1, 1e308} {
			testkit.Do(t, d.Append(glm.Dense(x), y))
		}
	}
	for _, l := range []glm.Likelihood{glm.Linear{Variance: 1e-300}, glm.Linear{Variance: 1e300}, glm.Poisson{},
		glm.Logistic{}, glm.Cloglog{}} {
		s := Assess(l, q, nil, d, false, true).Residuals
		if err := method.CheckSums(newResiduals(2), s, glm.MostRows*rowLargest); err != nil {
			t.Errorf("%T: %v", l, err)
		}
		sites := []*Residuals{s, nil, s}
		SiteScoreTest(sites, pool(sites), 1)
		other := newResiduals(2)
		other.Rows, other.Weight, other.Variance, other.Second, other.Fourth = 9, 9, 1e-200, 1e200, 1e200
		for j := range 2 {
			EffectsDiffer(sites, pool(sites), j, 2, true)
			other.Score[j], other.Bread[j], other.BinXs[j*bins], other.BinVariance[j*bins] = 1e200, 1e200,
				1e-200, 1e-200
			EffectsDiffer([]*Residuals{s, other, s}, pool([]*Residuals{s, other, s}), j, 2, true)
		}
		all := pool([]*Residuals{s, s})
		all.NonlinearityScoreTest(0, 2)
		scatter := ScatterOf(l, q, d, false)
		if err := scatter.check(); err != nil {
			t.Errorf("%T: %v", l, err)
		}
	}
}

// differs says whether one of three columns' effect does between sites.
func differs(sites []*Residuals, j int) bool {
	by, _ := EffectsDiffer(sites, pool(sites), j, 3, false)
	return by != nil
}

// That errors grow with a feature does not make its effect differ between sites: of 500 sets with
// two tests at .001 in all more than four alarms come by chance once in 5000 runs.
func TestUnevenErrorsAreNoEffectsOfSites(t *testing.T) {
	said, sets := 0, uint64(500)
	for set := range sets {
		r := rand.New(rand.NewPCG(set, 44))
		designs, ys := fitted(r, func(x, z, _ float64) float64 { return x - z },
			func(r *rand.Rand, x, _ float64) float64 { return math.Exp(0.7*x) * r.NormFloat64() })
		q, variance := leastSquares(t, designs, ys)
		var ones [][]float64
		for i := range designs {
			ones = append(ones, slices.Repeat([]float64{1}, len(ys[i])))
		}
		if sites := weighted(t, q, variance, designs, ys, ones, false); differs(sites, 0) || differs(sites, 1) {
			said++
		}
	}
	t.Logf("said of %d of %d", said, sets)
	if said > 4 {
		t.Errorf("said of %d of %d", said, sets)
	}
}

// pool adds up what sites gave; nil if none gave any.
func pool(sites []*Residuals) (all *Residuals) {
	for _, one := range sites {
		if one != nil {
			if all == nil {
				all = new(Residuals)
			}
			method.AddSums(all, one)
		}
	}
	return all
}
