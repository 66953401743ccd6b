// Package mixture is a Bayesian Gaussian mixture from rows that stay at their sites. [Method] is all that a program
// needs. Each site releases once the sums over its rows of cosines and sines at public frequencies (sketch), noised if
// the plan is private; the noise is part of the likelihood. Model file and pages are those of package fitted. It grew
// out of GRAFFL (Hahn and Lee 2020).
//
// Everything here is a function of its arguments and seeds, to the last bit on one architecture, on any number of
// cores. What comes from elsewhere is checked and gives errors, never panics.
package mixture

import (
	"context"
	"fmt"

	"parley/dataset"
	"parley/internal/wire"
	"parley/judge/evaluate"
	"parley/method"
	"parley/methods/mixture/fitted"
	"parley/methods/mixture/gmm"
	"parley/privacy"
	"parley/privacy/masks"
	"parley/problem"
	"parley/study"
)

// Method is learning without gradients for the registry.
type Method struct{}

var (
	_ method.Centraliser = Method{}
	_ method.Evaluable   = Method{}
	_ method.Simplifier  = Method{}
	_ method.Refitter    = Method{}
)

// Name implements [method.Method].
func (Method) Name() string { return fitted.Name }

// Options implements [method.Method]: a pointer to [Options].
func (Method) Options() any { return &Options{} }

// Revision implements [method.Method].
func (Method) Revision() int { return 10 }

// Coordinator implements [method.Method].
func (Method) Coordinator(p *study.Plan) (method.Coordinator, error) {
	s, err := setupOf(p)
	if err != nil {
		return nil, err
	}
	return &coordinator{s}, nil
}

// Site implements [method.Method].
func (Method) Site(p *study.Plan, name string) (method.Site, error) {
	s, err := setupOf(p)
	if err != nil {
		return nil, err
	}
	return half{s, name}, nil
}

// Requests implements [method.Method]: one release.
func (Method) Requests(p *study.Plan, _ string) ([]privacy.Listed, error) {
	s, err := setupOf(p)
	if err != nil {
		return nil, err
	}
	return []privacy.Listed{{Kind: task, Times: 1, Request: s.request()}}, nil
}

// Paper implements [method.Citable].
func (Method) Paper(p *study.Plan) (out method.Paper) {
	return method.Paper{
		Text: fmt.Sprintf("A mixture of normal distributions of %d features described the subjects. Each site sent "+
			"sums over them of cosines and sines at frequencies that all sites share, to which the mixture was fitted.",
			fitted.Features(p)),
		References: []string{"Hahn S-J, Lee J. GRAFFL: gradient-free federated learning of a Bayesian generative " +
			"model. 2020. doi:10.48550/arXiv.2008.12925",
			"Keriven N, Bourrier A, Gribonval R, Perez P. Sketching for large-scale learning of mixture models. " +
				"Information and Inference 2018;7:447-508. doi:10.1093/imaiai/iax015"}}
}

// Describe implements [method.Describer].
func (Method) Describe(p *study.Plan) string {
	s, err := setupOf(p)
	if err != nil {
		return ""
	}
	noise := ""
	if s.Sum != nil {
		noise = ", with noise"
	}
	return fmt.Sprintf("%s Each site tells once %d sums over its rows, of public cosines and sines of their "+
		"features%s.", s.Describe(), s.Of.Len(), noise)
}

// CheckData implements [method.DataChecker].
func (Method) CheckData(ctx context.Context, p *study.Plan, rows dataset.Source) (notes problem.List, err error) {
	s, err := setupOf(p)
	if err != nil {
		return nil, err
	}
	return s.CheckData(ctx, rows)
}

// ModelFormats implements [method.Opener].
func (Method) ModelFormats() []string { return []string{fitted.ModelFormat} }

// OpenModel implements [method.Opener].
func (Method) OpenModel(data []byte) (method.Model, error) { return fitted.LoadModel(data) }

// Evaluator implements [method.Evaluable] by [fitted.Evaluator].
func (Method) Evaluator(p *study.Plan, files []method.File, _ bool) (evaluate.Model, error) {
	s, err := setupOf(p)
	if err != nil {
		return nil, err
	}
	return fitted.Evaluator(s.Setup, files)
}

// Simplest implements [method.Simplifier]: one normal distribution.
func (Method) Simplest(p *study.Plan) (*study.Plan, string) {
	o := p.Method.Options.(*Options)
	one, err := o.withComponents(p, 1)
	if err != nil || o.Components == 1 {
		return nil, ""
	}
	simplest := *p
	simplest.Method.Options = one
	return &simplest, "one component"
}

// Central implements [method.Centraliser]: the posterior given the same sums over all rows,
// without noise. It is no result of a study, since nothing passed a gate.
func (Method) Central(ctx context.Context, p *study.Plan, rows dataset.Source) (evaluate.Model, error) {
	s, err := setupOf(p)
	if err != nil {
		return nil, err
	}
	s.Sum = nil
	sums, err := half{s, ""}.sums(ctx, rows)
	if err != nil {
		return nil, err
	}
	all := counted{Rows: float64(sums.Rows)}
	o, err := s.observation(&released{Sums: sums.Sums, Sites: []releasedSite{{"", all}}})
	if err != nil {
		return nil, err
	}
	post, err := s.posterior(o)
	if err != nil {
		return nil, err
	}
	return fitted.NewPredictive(gmm.NewPredictive(post), s.Setup), nil
}

// Notes implements [method.Noter]: what plans give away that are not private, and how many rows a mixture takes.
func (Method) Notes(p *study.Plan) (notes problem.List) {
	o, ok := p.Method.Options.(*Options)
	if !ok {
		return nil
	}
	instead := "if there may be fewer, take fewer features or components"
	if p.Privacy.Differential() {
		instead += ", or a larger ε"
	} else {
		notes.Add(problem.Problem{Where: "privacy",
			What: fmt.Sprintf("without noise, sums at frequencies may give away every row of a site with up to %d of "+
				"them, and whoever joins or leaves between two studies", 2*o.Sketch.Frequencies/fitted.Features(p)),
			Hint: "protection: differential for data of persons; else sites with ten times as many rows, or more"})
	}
	if o.Components == 1 {
		return notes // it is mistaken for no other
	}
	if need, err := o.RowsNeeded(p); err == nil { // otherwise the plan says so already
		notes.Add(problem.Problem{Where: "method.components",
			What: fmt.Sprintf("%d components in %d dimensions, four standard deviations apart and the smallest half "+
				"as large as the largest, can be told from each other with about %s complete rows of all sites "+
				"together: with fewer, the report says so", o.Components, fitted.Features(p), RowsText(need)),
			Hint: instead})
	}
	return notes
}

var _ method.Additive = Method{}

// sumOfAll is the one total of a study with a secure sum.
const sumOfAll = "sums of cosines and sines at the plan's frequencies, number of subjects, and of those who lack a " +
	"feature"

// Summable implements [study.Summable]: all that sites release are sums.
func (o *Options) Summable(*study.Plan, study.Report) {}

// Sums implements [method.Additive].
func (Method) Sums(p *study.Plan, _ string) (method.Sums, error) {
	s, err := setupOf(p)
	if err != nil {
		return method.Sums{}, err
	}
	return method.Summed(sumOfAll, masks.Standardised, func() any {
		return &sumsAnswer{Sums: make(wire.Vector, s.Of.Len())}
	})
}
