package fedmvppca

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"

	"parley/dataset"
	"parley/figure"
	"parley/judge/evaluate"
	"parley/papers/experiment"
	"parley/papers/melba"
)

// subspace is federated subspace iteration (Hartebrodt, Röttger and Blumenthal 2022): sites send
// sums and counts for the mean, and then in every round XᵀX G of their centred rows X, which the
// coordinator adds and makes orthonormal for the next G. Gaps hold the mean.
type subspace struct {
	dims       []int
	mean       []float64
	components *mat.Dense // d × q, orthonormal
}

// Infer implements [evaluate.Model].
func (m *subspace) Infer(row *dataset.Row, dst *evaluate.Posterior) error {
	x := centred(row, m.dims, m.mean)
	var latent, back mat.VecDense
	latent.MulVec(m.components.T(), mat.NewVecDense(len(x), x))
	back.MulVec(m.components, &latent)
	back.AddVec(&back, mat.NewVecDense(len(x), m.mean))
	dst.Latent, dst.Mean, dst.LogLik = latent.RawVector().Data, melba.Views(m.dims, back.RawVector().Data), math.NaN()
	return nil
}

// centred are a row's deviations from the mean, 0 in gaps.
func centred(row *dataset.Row, dims []int, mean []float64) []float64 {
	x, at := make([]float64, len(mean)), 0
	for k, v := range row.Views {
		for j, y := range v {
			if !math.IsNaN(y) {
				x[at+j] = y - mean[at+j]
			}
		}
		at += dims[k]
	}
	return x
}

// iterate fits it, until no round turns the subspace by more than a billionth, and returns after
// how many rounds it ended.
func iterate(ctx context.Context, q int, sites []dataset.Source, seed uint64) (*subspace, int, error) {
	d := 0
	var dims []int
	for _, v := range sites[0].Schema().Views {
		dims, d = append(dims, len(v.Columns)), d+len(v.Columns)
	}
	all := make([]*mat.Dense, len(sites))
	m, err := evaluate.FitMean(ctx, sites...) // from sums and counts
	if err != nil {
		return nil, 0, err
	}
	var post evaluate.Posterior
	if err := m.Infer(&dataset.Row{Views: make([][]float64, len(dims))}, &post); err != nil {
		return nil, 0, err
	}
	mean := slices.Concat(post.Mean...)
	for i, s := range sites {
		var rows []float64
		for row, err := range s.Rows(ctx) {
			if err != nil {
				return nil, 0, err
			}
			rows = append(rows, centred(row, dims, mean)...)
		}
		all[i] = mat.NewDense(len(rows)/d, d, rows)
	}
	rng := rand.New(rand.NewPCG(seed, 7))
	start := make([]float64, d*q)
	for i := range start {
		start[i] = rng.NormFloat64()
	}
	g := mat.NewDense(d, q, start)
	const most = 2000
	for round := 1; round <= most; round++ {
		h := mat.NewDense(d, q, nil)
		for _, x := range all { // at the sites
			var projected, back mat.Dense
			projected.Mul(x, g)
			back.Mul(x.T(), &projected)
			h.Add(h, &back)
		}
		var qr mat.QR
		qr.Factorize(h)
		var full mat.Dense
		qr.QTo(&full)
		next := mat.DenseCopyOf(full.Slice(0, d, 0, q))
		var inner, off mat.Dense // how far the next lies off this subspace
		inner.Mul(g.T(), next)
		off.Mul(g, &inner)
		off.Sub(next, &off)
		if g = next; round > 1 && mat.Norm(&off, 2) < 1e-9 {
			return &subspace{dims, mean, g}, round, nil
		}
	}
	return &subspace{dims, mean, g}, most, nil
}

// subspaces measures it beside components of the pooled rows and the default.
func (c condition) subspaces(ctx context.Context, d *division, seed uint64) (experiment.Values, error) {
	m, rounds, err := iterate(ctx, c.data.factors, d.sites, seed)
	if err != nil {
		return nil, err
	}
	pooled, err := evaluate.FitPCA(ctx, c.data.factors, d.sites...)
	if err != nil {
		return nil, err
	}
	fit, out, err := run(ctx, c, d, seed, byDefault)
	if err != nil {
		return nil, err
	}
	sent, up := 8*len(m.mean)*(2+c.data.factors*rounds), 0
	for _, r := range out.Rounds {
		up += r.Sites[0].Up
	}
	v := experiment.Values{"rounds " + iterated: {float64(rounds + 1)}, "kB " + iterated: {float64(sent) / 1e3},
		"rounds " + today.name: {float64(len(out.Rounds))}, "kB " + today.name: {float64(up) / 1e3}}
	for name, model := range map[string]evaluate.Model{iterated: m, components.name: pooled, today.name: fit} {
		scores := experiment.Values{}
		if err := score(ctx, model, d, scores); err != nil {
			return nil, err
		}
		for what, s := range scores {
			v[what+" "+name] = s
		}
	}
	return v, nil
}

const iterated = "subspace iteration"

// besidePCA sets it beside components of the pooled rows and the default.
func besidePCA() experiment.Experiment {
	var conditions []condition
	for _, data := range []source{adcsf, synthetic} {
		for _, sc := range []evaluate.Scenario{evaluate.IID, evaluate.G, evaluate.K} {
			conditions = append(conditions, condition{data: data, scenario: sc, sites: 3})
		}
	}
	id := func(c condition) string { return fmt.Sprintf("%s-%v", c.data.name, c.scenario) }
	return experiment.Experiment{Name: "fedmvppca-subspace", Data: adcsf.needs(),
		Cells: func(quick bool) (cells experiment.Cells) {
			for _, c := range conditions {
				if quick && c.data.name != synthetic.name {
					continue
				}
				c.repeated(&cells, id(c), repeats(quick), c.subspaces)
			}
			return cells
		},
		Conclude: func(o experiment.Outcomes) experiment.Conclusion {
			t := figure.Table{ID: "subspace", Title: "Components and factors", Caption: "Mean ± standard deviation " +
				"over repeats; rounds and kB are what one site answers and sends, the means included.",
				Columns: figure.TextColumns("data", "scenario", "method", "training error", "test error", "accuracy",
					"rounds", "kB of a site")}
			for _, c := range conditions {
				for _, method := range []string{iterated, components.name, today.name} {
					x := func(what string, digits int) string {
						return experiment.SpreadOf(of(o, id(c), what+" "+method)).Text(digits)
					}
					if x(testError, 4) != "" {
						t.Add(c.data.name, c.scenario.String(), method, x(trainError, 4), x(testError, 4),
							x(accuracy, 3), x("rounds", 0), x("kB", 1))
					}
				}
			}
			return experiment.Conclusion{Tables: []figure.Table{t}}
		},
	}
}
