package mvppca

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"parley/dataset"
	"parley/internal/wire"
	"parley/method"
	"parley/methods/mvppca/linalg"
	"parley/methods/mvppca/options"
	"parley/methods/mvppca/ppca"
	"parley/methods/mvppca/use"
)

// assessTask asks how well the finished model describes a site.
type assessTask struct {
	Scale scaleMessage  `cbor:"scale"`
	Model paramsMessage `cbor:"model"`
	Doubt wire.Vector   `cbor:"doubt,omitempty"` // of each feature's predictions, if privacy noise adds any
}

// assessment is what a site says of the finished model. All sums run over the
// site's subjects, in scaled units.
type assessment struct {
	Patterns []patternCount `cbor:"patterns"`
	LogLik   float64        `cbor:"log_lik"`   // summed over subjects
	Cells    wire.Vector    `cbor:"cells"`     // observed values, per view
	Total    wire.Vector    `cbor:"total"`     // sums of squares about the site's means, per view
	Residual wire.Matrix    `cbor:"residual"`  // what is left of them, views × (q+1): each factor alone, then all
	AbsError wire.Vector    `cbor:"abs_error"` // of reconstructed values, per view
	Mean     wire.Vector    `cbor:"mean"`      // of the subjects' factors: q
	Cov      wire.Vector    `cbor:"cov"`       // and their covariance: q × q by rows
	// Sums of squares of each feature, as Total and the last column of Residual.
	FeatureTotal    wire.Vector       `cbor:"feature_total"`
	FeatureResidual wire.Vector       `cbor:"feature_residual"`
	LeftOut         *ppca.LeftOutSums `cbor:"left_out"`
}

func (a *assessment) check(l ppca.Layout, q int) error {
	if a.Residual.Rows != l.Views() || a.Residual.Cols != q+1 || len(a.AbsError) != l.Views() || slices.Min(a.AbsError) < 0 {
		return fmt.Errorf("%d × %d residuals and %d absolute errors for %d views and %d factors",
			a.Residual.Rows, a.Residual.Cols, len(a.AbsError), l.Views(), q)
	}
	if err := ppca.Finite("log-likelihood", []float64{a.LogLik}); err != nil {
		return err
	}
	if err := ppca.Finite("absolute errors", a.AbsError); err != nil {
		return err
	}
	if _, err := unpackPatterns(a.Patterns, l); err != nil {
		return err
	}
	if err := a.explained().Check(l); err != nil {
		return err
	}
	if a.LeftOut == nil {
		return fmt.Errorf("no sums of views left out")
	}
	if err := a.LeftOut.Check(l.Views()); err != nil {
		return err
	}
	if err := ppca.Counts("values", a.Cells, ppca.MaxFeatures*ppca.LargestCount); err != nil {
		return err
	}
	for k, n := range a.Cells {
		if n == 0 && (a.Total[k] != 0 || a.AbsError[k] != 0) {
			return fmt.Errorf("sums of squares and errors of view %d, of which there are no values", k)
		}
	}
	if floats.Sum(a.Cells) < 1 {
		return fmt.Errorf("subjects without a single value")
	}
	return ppca.CheckFactors(q, a.Mean, a.Cov)
}

// pooledOf holds sums behind the variance explained, and nothing else.
func pooledOf(x *ppca.Explained) *assessment {
	return &assessment{Cells: x.Cells, Total: x.Total, Residual: wire.Matrix{Rows: x.Views, Cols: x.Rank + 1, Data: x.Residual},
		FeatureTotal: x.FeatureTotal, FeatureResidual: x.FeatureResidual}
}

// explained returns the sums behind the variance explained, sharing memory.
func (a *assessment) explained() *ppca.Explained {
	return &ppca.Explained{Views: a.Residual.Rows, Rank: a.Residual.Cols - 1, Cells: a.Cells, Total: a.Total, Residual: a.Residual.Data,
		FeatureTotal: a.FeatureTotal, FeatureResidual: a.FeatureResidual}
}

func (a *assessment) subjects() (n int) {
	for _, p := range a.Patterns {
		n += p.Subjects
	}
	return n
}

// together adds up what sites say, but for the factors.
func together(sites []*assessment) *assessment {
	sum := &assessment{}
	for i, a := range sites {
		if i == 0 {
			sum.Cells, sum.Total, sum.AbsError = slices.Clone(a.Cells), slices.Clone(a.Total), slices.Clone(a.AbsError)
			sum.Residual = wire.Matrix{Rows: a.Residual.Rows, Cols: a.Residual.Cols, Data: slices.Clone(a.Residual.Data)}
			sum.FeatureTotal, sum.FeatureResidual = slices.Clone(a.FeatureTotal), slices.Clone(a.FeatureResidual)
		} else {
			for _, x := range [][2][]float64{{sum.Cells, a.Cells}, {sum.Total, a.Total}, {sum.AbsError, a.AbsError}, {sum.Residual.Data, a.Residual.Data},
				{sum.FeatureTotal, a.FeatureTotal}, {sum.FeatureResidual, a.FeatureResidual}} {
				floats.Add(x[0], x[1])
			}
		}
		sum.Patterns = append(sum.Patterns, a.Patterns...)
		sum.LogLik += a.LogLik
	}
	return sum
}

// assess puts the model into its canonical form and asks every site about it.
func (c *coordinator) assess(s *state) ([]method.Task, method.Info, error) {
	model, err := s.Model.prior(c.layout)
	if err != nil {
		return nil, nil, err
	}
	if err := c.canonical(s, model); err != nil {
		return nil, nil, err
	}
	return c.ask(s, options.TaskAssess, func(string) (any, error) {
		return assessTask{Scale: *s.Scale, Model: s.Model.Params}, nil
	})
}

// canonical turns the model to the axes on which fits of the same data agree.
func (c *coordinator) canonical(s *state, model *ppca.Prior) error {
	turned, strengths, _, err := ppca.Canonical(c.layout, &model.Params)
	if err != nil {
		return err
	}
	model.Params = *turned
	s.Model, s.Strengths = packPrior(c.layout, model), strengths
	clear(s.Sites) // what they start a round from is on other axes, and there is no further round
	return nil
}

// assessed keeps what the sites said; then the study is done.
func (c *coordinator) assessed(s *state) ([]method.Task, method.Info, error) {
	sites, all, err := answers(c, s, func(_ string, a *assessment) error { return a.check(c.layout, c.opts.Latent) })
	if err != nil {
		return nil, nil, err
	}
	for i, site := range sites {
		s.site(site).Report = all[i]
	}
	s.Phase = phaseDone
	if len(all) == 0 {
		return nil, nil, nil
	}
	sum := together(all)
	s.LogLik = sum.LogLik / float64(sum.subjects())
	return nil, method.Info{"log-likelihood per subject": s.LogLik}, nil
}

// assess reads the rows once more: absolute errors are no function of the
// sufficient statistics.
func (h *site) assess(ctx context.Context, t *assessTask, sums *rowSums, data dataset.Source) (*assessment, error) {
	blocks, scale, err := h.scaled(sums, &t.Scale)
	if err != nil {
		return nil, err
	}
	model, err := t.Model.params(h.layout)
	if err != nil {
		return nil, err
	}
	if err := h.checkRank(model.Rank); err != nil {
		return nil, err
	}
	x, err := ppca.NewExplained(h.layout, model, blocks)
	if err != nil {
		return nil, err
	}
	logLik, subjects, err := ppca.LogLik(h.layout, model, blocks)
	if err != nil {
		return nil, err
	}
	q := model.Rank
	a := &assessment{
		Patterns: packPatterns(sums.patterns), LogLik: logLik, Cells: x.Cells, Total: x.Total,
		Residual: wire.Matrix{Rows: x.Views, Cols: q + 1, Data: x.Residual},
		AbsError: make(wire.Vector, x.Views), Mean: make(wire.Vector, q), Cov: make(wire.Vector, q*q),
		FeatureTotal: x.FeatureTotal, FeatureResidual: x.FeatureResidual, LeftOut: ppca.NewLeftOutSums(x.Views),
	}
	others := ppca.NewLeaveOut(h.layout, model)
	rng := draws(h.plan.Seed, h.name, 0)
	predictor, err := ppca.NewPredictor(h.layout, model)
	if err != nil {
		return nil, err
	}
	view, expected, z := h.layout.ViewOf(), make([]float64, h.layout.Features()), make([]float64, q)
	err = use.EachSubject(ctx, predictor, scale, data, func(_ *dataset.Row, post *ppca.Posterior, values []float64) error {
		if len(values) == 0 {
			return nil
		}
		post.Describe(expected, values)
		for i, j := range post.Observed {
			a.AbsError[view[j]] += math.Abs(values[i] - expected[i])
		}
		post.Latent(z, values)
		for i, u := range z {
			a.Mean[i] += u / subjects
			for j, v := range z {
				a.Cov[i*q+j] += (post.Cov[i*q+j] + u*v) / subjects
			}
		}
		return others.Add(a.LeftOut, post.Observed, values, rng)
	})
	if err != nil {
		return nil, err
	}
	for i, u := range a.Mean {
		for j, v := range a.Mean {
			a.Cov[i*q+j] -= u * v
		}
	}
	linalg.Symmetrise(a.Cov, q, q)
	return a, nil
}
