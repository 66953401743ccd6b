package mixture

import (
	"context"
	"math"

	"parley/dataset"
	"parley/judge/evaluate"
	"parley/method"
	"parley/methods/mixture/gmm"
	"parley/methods/mixture/landmark"
	"parley/methods/mixture/options"
	"parley/methods/mixture/report"
	"parley/problem"
	"parley/study"
)

var (
	_ method.Centraliser  = Method{}
	_ method.Evaluable    = Method{}
	_ method.Simplifier   = Method{}
	_ evaluate.Predictive = (*predictive)(nil)
)

// Evaluator implements [method.Evaluable]. To a mixture a new site is as any other.
func (Method) Evaluator(p *study.Plan, files []method.File, _ bool) (evaluate.Model, error) {
	s, err := describes(p)
	if err != nil {
		return nil, err
	}
	data, err := method.ModelJSON(files)
	if err != nil {
		return nil, err
	}
	m, err := report.LoadModel(data)
	if err != nil {
		return nil, err
	}
	of, err := m.Predictive()
	if err != nil {
		return nil, err
	}
	return newPredictive(of, s), nil
}

// Simplest implements [method.Simplifier]: one normal distribution.
func (Method) Simplest(p *study.Plan) (*study.Plan, string) {
	o := p.Method.Options.(*options.Options)
	if !o.Releases() || o.Components == 1 {
		return nil, ""
	}
	one, err := o.WithComponents(p, 1)
	if err != nil {
		return nil, ""
	}
	simplest := *p
	simplest.Method.Options = one
	return &simplest, "one component"
}

// Central implements [method.Centraliser]: the posterior given the same sums over all rows,
// without noise.
func (Method) Central(ctx context.Context, p *study.Plan, rows dataset.Source) (evaluate.Model, error) {
	s, err := describes(p)
	if err != nil {
		return nil, err
	}
	sample, err := landmark.Central(ctx, s, rows)
	if err != nil {
		return nil, err
	}
	of, err := gmm.NewPredictive(sample)
	if err != nil {
		return nil, err
	}
	return newPredictive(of, s), nil
}

// describes is what follows from a plan whose mixture is of the features of all rows.
func describes(p *study.Plan) (*options.Setup, error) {
	s, err := options.New(p)
	if err != nil {
		return nil, err
	}
	switch o := s.Options; {
	case o.Scarce != nil:
		return nil, problem.Problem{Where: "method.scarce", What: "the mixture is of one class, and says nothing of other rows", Hint: "a run of the plan says what synthetic rows are worth at every site, on rows that it held out"}
	case o.Encoder != nil:
		return nil, problem.Problem{Where: "method.encoder", What: "the mixture is of codes, and says nothing of features", Hint: "a plan without encoder"}
	}
	return s, nil
}

// predictive is a sample of mixtures as evaluation sees it.
type predictive struct {
	*gmm.Predictive
	widths      []int
	mean, noise []float64
}

func newPredictive(of *gmm.Predictive, s *options.Setup) *predictive {
	d := len(s.Names)
	return &predictive{of, s.Widths(), make([]float64, d), make([]float64, d)}
}

// Infer implements [evaluate.Model]. The latent variables are the probabilities of all components
// but the last, which the others tell.
func (m *predictive) Infer(row *dataset.Row, dst *evaluate.Posterior) error {
	return m.Predict(row, dst, nil)
}

// Predict implements [evaluate.Predictive].
func (m *predictive) Predict(row *dataset.Row, dst *evaluate.Posterior, sd [][]float64) error {
	x := options.Observed(row, m.widths)
	says, err := m.Of(x)
	if err != nil {
		return err
	}
	m.Expect(x, m.mean, m.noise)
	dst.Resize(m.Components()-1, m.widths)
	copy(dst.Latent, says.Probability)
	dst.LogLik = says.LogDensity
	j := 0
	for k, d := range m.widths {
		for i := range d {
			dst.Mean[k][i] = m.mean[j]
			if sd != nil && gmm.NotFinite(x[j:j+1]) == 0 {
				sd[k][i] = math.Sqrt(m.noise[j])
			}
			j++
		}
	}
	return nil
}
