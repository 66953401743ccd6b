// Package intercepts measures what intervals of regressions with random intercepts hold.
package intercepts

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"parley/figure"
	"parley/method"
	"parley/methods/regression/fitted"
	"parley/methods/regression/glm"
	"parley/methods/regression/predict"
	"parley/papers/experiment"
)

// kind is a likelihood that takes random intercepts, with draws of its outcomes.
type kind struct {
	name string
	l    glm.Likelihood
	draw func(r *rand.Rand, a float64) float64
}

var kinds = []kind{
	{"logistic", glm.Logistic{}, func(r *rand.Rand, a float64) float64 {
		if r.Float64() < 1/(1+math.Exp(-a)) {
			return 1
		}
		return -1
	}},
	{"poisson", glm.Poisson{}, func(r *rand.Rand, a float64) (k float64) {
		for left := math.Exp(a) - r.ExpFloat64(); left > 0; left -= r.ExpFloat64() {
			k++
		}
		return k
	}},
	{"linear", glm.Linear{Variance: 1}, func(r *rand.Rand, a float64) float64 { return a + r.NormFloat64() }},
}

var (
	sizes = [][2]int{{3, 60}, {10, 40}, {34, 20}} // sites, and rows of each
	taus  = []float64{0.3, 1, 0}                  // 0 for a draw from its prior
)

const studies = 200 // of each line

// The names of a line's values: shares of intervals of 90 % that hold the truth, and the mean
// number of exchanges.
const (
	ofWeights   = "weights"
	ofIntercept = "intercept"
	ofTau       = "τ"
	ofSites     = "seen sites"
	exchanges   = "exchanges"
)

// Experiments are those of this package.
func Experiments() experiment.List { return experiment.List{intercepts()} }

func (k kind) id(size [2]int, tau float64) string {
	return experiment.Slug(fmt.Sprintf("%s %d %v", k.name, size[0], tau))
}

// intercepts tells how often intervals hold the truth of simulated studies with a random
// intercept for each site: two features and an intercept, as many rows in every site. Of seen
// sites it is the intercept that their own subjects are predicted with: that of all, and the
// site's.
func intercepts() experiment.Experiment {
	return experiment.Experiment{Name: "parley-intercepts",
		Cells: func(quick bool) (cells experiment.Cells) {
			for i, k := range kinds {
				for _, size := range sizes {
					for j, tau := range taus {
						n := studies
						if quick {
							if n = 1; i+j > 0 || size != sizes[0] {
								continue
							}
						}
						cells.Add(k.id(size, tau), func(ctx context.Context,
							_ experiment.Data) (experiment.Values, error) {
							return cover(ctx, rand.New(rand.NewPCG(uint64(3*i+j), uint64(size[0]))), k, size[0],
								size[1], tau, n)
						})
					}
				}
			}
			return cells
		},
		Conclude: func(o experiment.Outcomes) experiment.Conclusion {
			t := figure.Table{ID: "held", Title: "Shares of 90 % intervals that hold the truth",
				Caption: fmt.Sprintf("%d studies in each line.", studies),
				Columns: figure.TextColumns("likelihood", "sites × rows", "true τ", ofWeights, ofIntercept, ofTau,
					ofSites, exchanges)}
			for _, k := range kinds {
				for _, size := range sizes {
					for _, tau := range taus {
						v := o[k.id(size, tau)]
						if v == nil {
							continue
						}
						name := fmt.Sprint(tau)
						if tau == 0 {
							name = "from its prior"
						}
						row := []any{k.name, fmt.Sprintf("%d × %d", size[0], size[1]), name}
						for _, of := range []string{ofWeights, ofIntercept, ofTau, ofSites} {
							row = append(row, fmt.Sprintf("%.3f", v[of][0]))
						}
						t.Add(append(row, fmt.Sprintf("%.1f", v[exchanges][0]))...)
					}
				}
			}
			return experiment.Conclusion{Tables: []figure.Table{t}}
		},
	}
}

// cover computes one line; τ of 0 is drawn from its prior.
func cover(ctx context.Context, r *rand.Rand, k kind, sites, rows int, tau float64,
	sets int) (experiment.Values, error) {
	truth := []float64{0.5, -1, 0.3} // the last of the intercept
	variance := 0.0
	if l, ok := k.l.(glm.Linear); ok {
		variance = l.Variance
	}
	p := glm.Prior{Weights: glm.Isotropic(len(truth), 0, 4), Tau: glm.TauScale(variance)}
	var held [3]int
	heldTau, heldSites, asked := 0, 0, 0
	for range sets {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		spread := tau
		if tau == 0 {
			spread = p.Tau * math.Abs(r.NormFloat64())
		}
		var all []*glm.Marginal
		var own []float64 // the truth of each site
		for range sites {
			own = append(own, spread*r.NormFloat64())
			m, err := glm.New(k.l, drawSite(r, k, rows, truth, own[len(own)-1]))
			if err != nil {
				return nil, err
			}
			all = append(all, m)
		}
		q, n, err := search(p, all)
		if err != nil {
			return nil, err
		}
		asked += n
		at := 0
		for j, w := range truth {
			if math.Abs(q.Mean[j]-w) < fitted.Z90*math.Sqrt(q.Covariance[at]) {
				held[j]++
			}
			at += j + 2
		}
		weights, err := glm.NewNormal(q.Mean, q.Covariance)
		if err != nil {
			return nil, err
		}
		for i, m := range all {
			if b := seen(k.l, m, q, weights); math.Abs(b.A[0]-truth[2]-own[i]) < fitted.Z90*math.Sqrt(b.C[0]) {
				heldSites++
			}
		}
		if spread > q.Tau.Low && spread < q.Tau.High {
			heldTau++
		}
	}
	n := float64(sets)
	return experiment.Values{ofWeights: {float64(held[0]+held[1]) / (2 * n)}, ofIntercept: {float64(held[2]) / n},
		ofTau:   {float64(heldTau) / n},
		ofSites: {float64(heldSites) / (n * float64(sites))}, exchanges: {float64(asked) / n}}, nil
}

// seen predicts a subject of a site that took part, whose features are all 0.
func seen(l glm.Likelihood, m *glm.Marginal, q *glm.Posterior, weights glm.Normal) *predict.Predictor {
	b := m.InterceptOver(q.Mean, q.Tau)
	p := predict.New(l, weights, len(q.Mean))
	p.At(b)
	p.Row(glm.Row{Index: []int32{int32(len(q.Mean) - 1)}, Value: []float64{1}, Weight: 1})
	return p
}

func drawSite(r *rand.Rand, k kind, rows int, weights []float64, intercept float64) *glm.Design {
	d := glm.NewDesign(len(weights))
	for range rows {
		x := []float64{r.NormFloat64(), r.NormFloat64(), 1}
		a := intercept
		for j, w := range weights {
			a += w * x[j]
		}
		if err := d.Append(glm.Dense(x), k.draw(r, a)); err != nil {
			panic(err) // finite numbers in as many columns
		}
	}
	return d
}

// search finds the posterior from sums over sites, and counts exchanges.
func search(p glm.Prior, sites []*glm.Marginal) (*glm.Posterior, int, error) {
	s := glm.NewSearch(p)
	for exchange := 1; ; exchange++ {
		points := s.Ask()
		sums := make([]*glm.Derivatives, len(points))
		for i, x := range points {
			sums[i] = glm.NewDerivatives(len(x.Weights) + 1)
			for _, m := range sites {
				d, err := m.At(x)
				if err != nil {
					return nil, 0, err
				}
				method.AddSums(sums[i], d)
			}
		}
		if q, err := s.Tell(p, sums, 40); q != nil || err != nil {
			return q, exchange, err
		}
	}
}
