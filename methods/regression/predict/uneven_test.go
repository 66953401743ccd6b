package predict

import (
	"math"
	"math/rand/v2"
	"testing"

	"parley/internal/testkit"
	"parley/method"
	"parley/methods/regression/glm"
)

// weighted sums up three sites' rows by a least-squares fit, with the weights of rows.
func weighted(t *testing.T, q glm.Normal, variance float64, designs [][][]float64, ys, weights [][]float64,
	sampled bool) (sites []*Residuals) {
	t.Helper()
	for i, rows := range designs {
		d := glm.NewDesign(3)
		for k, x := range rows {
			row := glm.Row{Index: []int32{0, 1, 2}, Value: x, Weight: weights[i][k]}
			testkit.Do(t, d.Append(row, ys[i][k]))
		}
		sites = append(sites, Assess(glm.Linear{Variance: variance}, q, nil, d, sampled, true).Residuals)
	}
	return sites
}

// doubts counts what is said of sites whose model is right.
func doubts(sites []*Residuals) (n int) {
	all := pool(sites)
	for _, said := range []bool{SiteScoreTest(sites, all, 1) != nil, differs(sites, 0) || differs(sites, 1),
		all.NonlinearityScoreTest(0, 3)} {
		if said {
			n++
		}
	}
	return n
}

// A row that counts three people is the same as three rows.
func TestWeightsOfPeopleAreRows(t *testing.T) {
	r := rand.New(rand.NewPCG(41, 11))
	designs, ys := fitted(r, func(x, z, s float64) float64 { return x*x + s },
		func(r *rand.Rand, x, _ float64) float64 { return math.Exp(x/2) * r.NormFloat64() })
	var once, weights, ones [][]float64
	var repeated [][][]float64
	for i, rows := range designs {
		var w, y, one []float64
		var x [][]float64
		for k := range rows {
			w = append(w, float64(1+r.IntN(3)))
			for range int(w[k]) {
				x, y, one = append(x, rows[k]), append(y, ys[i][k]), append(one, 1)
			}
		}
		weights, once, repeated, ones = append(weights, w), append(once, y), append(repeated, x), append(ones, one)
	}
	q, variance := leastSquares(t, repeated, once)
	short, long := weighted(t, q, variance, designs, ys, weights, false),
		weighted(t, q, variance, repeated, once, ones, false)
	for i := range short {
		if short[i].Rows >= long[i].Rows {
			t.Errorf("site %d: %+v", i, short[i])
		}
		var sums [2][]float64
		for k, s := range []*Residuals{short[i], long[i]} { // without what is of rows, whatever their weights
			s.Rows, s.Total, s.Squares = 0, 0, 0
			sums[k] = testkit.Get(method.Flatten(s, s))(t)
		}
		for k, x := range sums[0] {
			if want := sums[1][k]; math.Abs(x-want) > 1e-9*(1+math.Abs(want)) {
				t.Errorf("site %d, number %d: %v, of repeated rows %v", i, k, x, want)
			}
		}
	}
}

// Whatever weights mean, a model that is right is hardly doubted: weights of a sample, of errors
// that have nothing to do with them; or how exact each outcome is, at one site less than at the
// others. Each of 200 sets has five tests at .001: more than five doubts come by chance once in
// 800 runs.
func TestWeightsGiveNoFalseAlarms(t *testing.T) {
	for name, exact := range map[string]bool{"a sample's": false, "of exactness": true} {
		total := 0
		for set := range uint64(200) {
			r := rand.New(rand.NewPCG(set, 42))
			designs, ys := fitted(r, func(x, z, _ float64) float64 { return 0 },
				func(*rand.Rand, float64, float64) float64 { return 0 })
			var weights [][]float64
			for i, rows := range designs {
				var w []float64
				for k, row := range rows {
					w = append(w, math.Exp(0.6*r.NormFloat64()))
					e := r.NormFloat64()
					if exact {
						w[k] *= math.Exp(row[0]/4 - float64(i)/2)
						e /= math.Sqrt(w[k])
					}
					ys[i][k] = row[0] - row[1] + e
				}
				weights = append(weights, w)
			}
			q, variance := weightedSquares(t, designs, ys, weights)
			total += doubts(weighted(t, q, variance, designs, ys, weights, true))
		}
		t.Log(name, total, "doubts")
		if total > 5 {
			t.Errorf("%s: %d doubts of 200 sets", name, total)
		}
	}
}

// weightedSquares is the fit to rows with weights, whose noise is Σ wr²/Σ w.
func weightedSquares(t *testing.T, designs [][][]float64, ys, weights [][]float64) (glm.Normal, float64) {
	t.Helper()
	scaled, outcomes := make([][][]float64, len(designs)), make([][]float64, len(designs))
	n, sum := 0.0, 0.0
	for i, rows := range designs {
		for k, row := range rows {
			root := math.Sqrt(weights[i][k])
			scaled[i] = append(scaled[i], []float64{root * row[0], root * row[1], root * row[2]})
			outcomes[i] = append(outcomes[i], root*ys[i][k])
			n, sum = n+1, sum+weights[i][k]
		}
	}
	q, variance := leastSquares(t, scaled, outcomes)
	factor := n / sum
	for j := range q.Covariance {
		q.Covariance[j] *= factor
	}
	for j := range q.Variance {
		q.Variance[j] *= factor
	}
	return q, variance * factor
}
