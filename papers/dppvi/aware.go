package dppvi

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"parley/dataset"
	"parley/engine/local"
	"parley/figure"
	"parley/method"
	"parley/methods/regression/fitted"
	"parley/methods/regression/glm"
	"parley/papers/deal"
	"parley/papers/experiment"
	"parley/privacy/account"
)

// The settings of noise-aware variational inference for these data, of its authors' code.
const (
	awareSteps   = 10000
	awareRate    = 0.1  // of Poisson sampling
	awareClip    = 11.0 // of a row's scaled gradient
	awareScale   = 50 * awareClip
	awareSamples = 10
	awareStart   = -6.0
	awareBurn    = 0.2 // of the trace
)

// aware is noise-aware variational inference (Alrawajfeh, Jälkö and Honkela 2025,
// arXiv:2410.19371) of independent weights with a standard normal prior, all rows in one place:
// DP-SGD on means and on what softplus makes standard deviations of, and then a posterior of the
// optimum φ* by the whole trace of points φ and perturbed gradients g, in which
//
//	g ~ N(q H (φ − φ*), V + s²)
//
// with a diagonal H, V the variance of the noise, and s that of sampling. The density of the
// weights counts both the optimum's variances and how uncertain its means are.
type aware struct {
	d     *glm.Design
	noise float64 // in units of the clip
	r     *rand.Rand
	at    []float64 // means, then what softplus makes deviations of
	trace []coordinate
}

// coordinate is what the trace after its burn-in says of a coordinate.
type coordinate struct{ n, x, xx, g, gg, xg float64 }

func newAware(d *glm.Design, total account.Budget, seed uint64) (*aware, error) {
	noise, err := deal.Noise(awareRate, 2, awareSteps, total)
	if err != nil {
		return nil, err
	}
	p := d.Columns()
	a := &aware{d: d, noise: noise, r: rand.New(rand.NewPCG(seed, 2410_19371)), at: make([]float64, 2*p),
		trace: make([]coordinate, 2*p)}
	for j := range p {
		a.at[p+j] = awareStart
	}
	return a, nil
}

func softplus(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }
func sigmoid(x float64) float64  { return 1 / (1 + math.Exp(-x)) }

// scale is by how much a coordinate's gradient is scaled before it is clipped.
func (a *aware) scale(j int) float64 {
	if j < a.d.Columns() {
		return 1
	}
	return awareScale
}

// step takes a step of DP-SGD; after the burn-in it counts it.
func (a *aware) step(count bool) {
	p, n := a.d.Columns(), float64(a.d.Rows())
	draws, theta := make([]float64, p*awareSamples), make([]float64, p*awareSamples)
	shared, slope := make([]float64, 2*p), make([]float64, p)
	for j := range p {
		sd := softplus(a.at[p+j])
		slope[j] = awareScale * sigmoid(a.at[p+j])
		var first, with float64 // means of the weight, and of its product with the draw
		for s := range awareSamples {
			e := a.r.NormFloat64()
			w := a.at[j] + sd*e
			draws[j*awareSamples+s], theta[j*awareSamples+s] = e, w
			first, with = first+w/awareSamples, with+w*e/awareSamples
		}
		shared[j] = first / n
		shared[p+j] = slope[j] * (with - 1/sd) / n
	}
	sum, owed, square := make([]float64, 2*p), 0.0, floats.Dot(shared, shared)
	var residual [awareSamples]float64
	var own []float64
	for i := range a.d.Rows() {
		if a.r.Float64() >= awareRate {
			continue
		}
		x, y := a.d.Row(i), a.d.Outcome(i)
		clear(residual[:])
		for k, j := range x.Index {
			for s, w := range theta[j*awareSamples:][:awareSamples] {
				residual[s] += x.Value[k] * w
			}
		}
		total := 0.0
		for s, f := range residual {
			residual[s] = -y * sigmoid(-y*f) / awareSamples
			total += residual[s]
		}
		own = own[:0]
		norm := square // ‖own + shared‖² = ‖shared‖² + Σ own (own + 2 shared)
		for k, j := range x.Index {
			with := 0.0
			for s, e := range draws[j*awareSamples:][:awareSamples] {
				with += residual[s] * e
			}
			m, v := x.Value[k]*total, x.Value[k]*with*slope[j]
			norm += m*(m+2*shared[j]) + v*(v+2*shared[p+int(j)])
			own = append(own, m, v)
		}
		f := 1 / max(1, math.Sqrt(max(norm, 0))/awareClip)
		owed += f
		for k, j := range x.Index {
			sum[j] += f * own[2*k]
			sum[p+int(j)] += f * own[2*k+1]
		}
	}
	for j := range sum {
		g := (sum[j] + owed*shared[j] + awareClip*a.noise*a.r.NormFloat64()) / a.scale(j)
		if count {
			c := &a.trace[j]
			c.n, c.x, c.xx, c.g, c.gg, c.xg = c.n+1, c.x+a.at[j], c.xx+a.at[j]*a.at[j], c.g+g, c.gg+g*g, c.xg+a.at[j]*g
		}
		a.at[j] -= g * a.scale(j) / (math.Sqrt(awareSteps) * a.noise * awareClip)
	}
}

// optimum is mean and variance of a coordinate of φ* by its trace: by its normal density for each
// pair of H and s, summed over a grid of both. Priors are those of the authors' code, which are
// themselves of the trace.
func (a *aware) optimum(j int) (mean, variance float64) {
	c := a.trace[j]
	m := c.x / c.n
	spread, slope := c.xx-c.n*m*m, c.xg-m*c.g
	noise := awareClip * a.noise / a.scale(j)
	prior, deviation := math.Abs(slope/spread)/awareRate, noise/math.Sqrt(spread)/awareRate
	const points = 41
	var logs, means, variances []float64
	for i := range points {
		z := 4 * (2*float64(i)/(points-1) - 1)
		h := awareRate * softplus(prior+z*deviation)
		for k := range points {
			s := 4 * float64(k) / (points - 1)
			v := noise*noise + s*s
			// −Σ(g − h(x − φ))²/2v as a + bφ − cφ²/2, and the prior N(m, 1) of φ.
			a0 := -(c.gg - 2*h*c.xg + h*h*c.xx) / (2 * v)
			b, precision := -h*(c.g-h*c.x)/v+m, c.n*h*h/v+1
			a0 += -m*m/2 - c.n/2*math.Log(v) - z*z/2 - s*s/2
			logs = append(logs, a0+b*b/(2*precision)-math.Log(precision)/2)
			means, variances = append(means, b/precision), append(variances, 1/precision)
		}
	}
	all := floats.LogSumExp(logs)
	for i, l := range logs {
		w := math.Exp(l - all)
		mean += w * means[i]
		variance += w * (variances[i] + means[i]*means[i])
	}
	return mean, max(variance-mean*mean, 0)
}

// fit runs it, and returns the noise-aware density and the last point's.
func (a *aware) fit(ctx context.Context) (noiseAware, last glm.Normal, err error) {
	for t := range awareSteps {
		if err := ctx.Err(); err != nil {
			return noiseAware, last, err
		}
		a.step(float64(t) >= awareBurn*awareSteps)
	}
	p := a.d.Columns()
	for j := range p {
		mean, variance := a.optimum(j)
		deviation, _ := a.optimum(p + j)
		noiseAware.Mean = append(noiseAware.Mean, mean)
		noiseAware.Variance = append(noiseAware.Variance, variance+math.Pow(softplus(deviation), 2))
		last.Mean = append(last.Mean, a.at[j])
		last.Variance = append(last.Variance, math.Pow(softplus(a.at[p+j]), 2))
	}
	return noiseAware, last, nil
}

// The names of values of intervals.
const (
	covered = "covered" // per cent of the estimates without privacy that intervals of 90 % hold
	wide    = "wide"    // mean width of an interval, in those of exact PVI
)

// compare holds a density of the weights against that without privacy, and against test rows.
func compare(v experiment.Values, name string, q, without glm.Normal, test *glm.Design) {
	held, ratio := 0.0, 0.0
	for j, m := range without.Mean {
		if math.Abs(q.Mean[j]-m) <= 1.6449*math.Sqrt(q.Variance[j]) {
			held++
		}
		ratio += math.Sqrt(q.Variance[j]/without.Variance[j]) / float64(len(without.Mean))
	}
	right, sum := 0.0, 0.0
	for i := range test.Rows() {
		y := test.Outcome(i)
		f, c := test.Row(i).Activation(q.Mean, q.Variance)
		if y*f > 0 {
			right++
		}
		sum += glm.LogExpectSigmoid(y*f, c)
	}
	n := float64(test.Rows())
	for value, x := range map[string]float64{covered: 100 * held / float64(len(without.Mean)), wide: ratio,
		accuracy: 100 * right / n, logLik: sum / n} {
		v[name+" "+value] = append(v[name+" "+value], x)
	}
}

// model is what a study of all rows at one site finds.
func (c *census) model(ctx context.Context, r rival, seed uint64, rows *dataset.Table) (*fitted.Model, error) {
	p, err := c.study(r, map[string]*dataset.Table{"all": rows}, seed)
	if err != nil {
		return nil, err
	}
	out, err := local.Run(ctx, local.Config{Plan: p, Methods: methods, Data: map[string]dataset.Source{"all": rows}})
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(out.Result.Files, func(f method.File) bool { return f.Name == "model/model.json" })
	return fitted.LoadModel(out.Result.Files[i].Data)
}

// noiseAware compares the private default with noise-aware variational inference.
func noiseAware() experiment.Experiment {
	const delta = 1e-5
	epsilons := []float64{0.5, 1}
	arms := []string{"noise-aware VI", "its DP-SGD alone", "default", "DP-PVI"}
	at := func(e float64) string { return fmt.Sprintf("epsilon-%v", e) }
	return experiment.Experiment{Name: "dppvi-noise-aware", Data: data,
		Cells: func(quick bool) (cells experiment.Cells) {
			for _, e := range epsilons {
				if quick {
					continue // a run takes half a minute
				}
				cells.Add(at(e), func(ctx context.Context, from experiment.Data) (experiment.Values, error) {
					c, err := open(ctx, from)
					if err != nil {
						return nil, err
					}
					return c.noiseAware(ctx, account.Budget{Epsilon: e, Delta: delta}, arms, 3)
				})
			}
			return cells
		},
		Conclude: func(o experiment.Outcomes) experiment.Conclusion {
			t := figure.Table{ID: "noise-aware", Title: "Predictions and intervals",
				Caption: "Mean ± standard deviation over three runs. Intervals of 90 % should hold nine of ten " +
					"estimates without privacy, if not more; their width is in those without privacy.",
				Columns: figure.TextColumns("ε", "method", "accuracy, %", "log-likelihood",
					"estimates held, %", "width")}
			for _, e := range epsilons {
				for _, arm := range arms {
					if v := o[at(e)]; len(v[arm+" "+accuracy]) > 0 {
						of := func(value string, digits int) string {
							return experiment.Minus(experiment.SpreadOf(v[arm+" "+value]).Text(digits))
						}
						t.Add(fmt.Sprint(e), arm, of(accuracy, 2), of(logLik, 4), of(covered, 1),
							fmt.Sprintf("%.1f", stat.Mean(v[arm+" "+wide], nil)))
					}
				}
			}
			return experiment.Conclusion{Tables: []figure.Table{t}}
		},
	}
}

func (c *census) noiseAware(ctx context.Context, total account.Budget, arms []string,
	runs int) (experiment.Values, error) {
	train := c.where("split")["train"]
	m, err := c.model(ctx, exact.with("rounds", 1), 1, train)
	if err != nil {
		return nil, err
	}
	d, err := deal.Design(ctx, &m.Encoding, &c.says.Outcome, train)
	if err != nil {
		return nil, err
	}
	test, err := deal.Design(ctx, &m.Encoding, &c.says.Outcome, c.test)
	if err != nil {
		return nil, err
	}
	v, without := experiment.Values{}, m.Weights()
	for run := range uint64(runs) {
		a, err := newAware(d, total, run+1)
		if err != nil {
			return nil, err
		}
		q, last, err := a.fit(ctx)
		if err != nil {
			return nil, err
		}
		compare(v, arms[0], q, without, test)
		compare(v, arms[1], last, without, test)
		for i, r := range []rival{today(1), dpPVI(1)} {
			r.total = total
			ours, err := c.model(ctx, r, run+1, train)
			if err != nil {
				return nil, err
			}
			estimates, rows := without, test
			if i == 0 { // of other columns, with references and an intercept
				r.total = account.Budget{}
				plain, err := c.model(ctx, r, 1, train)
				if err != nil {
					return nil, err
				}
				estimates = plain.Weights()
				if rows, err = deal.Design(ctx, &ours.Encoding, &c.says.Outcome, c.test); err != nil {
					return nil, err
				}
			}
			if len(estimates.Mean) != len(ours.Weights().Mean) {
				return nil, fmt.Errorf("%s: %d weights, and %d without privacy", arms[2+i], len(ours.Weights().Mean),
					len(estimates.Mean))
			}
			compare(v, arms[2+i], ours.Weights(), estimates, rows)
		}
	}
	return v, nil
}
