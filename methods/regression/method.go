// Package regression is Bayesian regression on rows that stay where they are, private if
// wanted. It has come from partitioned variational inference (Sharma, Hutchinson, Swaroop,
// Honkela and Turner, 2019, arXiv:1911.10563), which plans name dp-pvi.
//
// [Method] is what a registry takes, put together from the plan. Without privacy the posterior of all weights is
// found from exact sums over the rows of every site (package exact), with a total from noised ones (package private).
// [Method.Central] is what all are measured against. All results are functions of the plan and the rows alone, to the
// last bit on one architecture. What comes from other sites is checked, and gives errors, never panics.
package regression

import (
	"context"
	"fmt"
	"strings"

	"parley/dataset"
	"parley/judge/evaluate"
	"parley/method"
	"parley/methods/regression/exact"
	"parley/methods/regression/fitted"
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
	"parley/methods/regression/private"
	"parley/privacy"
	"parley/privacy/masks"
	"parley/problem"
	"parley/study"
)

// Method is Bayesian regression for the registry.
type Method struct{}

// Name implements [method.Method].
func (Method) Name() string { return options.Name }

// Options implements [method.Method]: a pointer to [options.Options].
func (Method) Options() any { return options.Default() }

// Coordinator implements [method.Method].
func (Method) Coordinator(p *study.Plan) (method.Coordinator, error) {
	s, err := options.New(p)
	if err != nil {
		return nil, err
	}
	if p.Privacy.Differential() {
		return private.New(s)
	}
	return exact.New(s), nil
}

// Site implements [method.Method].
func (Method) Site(p *study.Plan, name string) (method.Site, error) {
	return siteOf(p, name)
}

// listing is a site's half, which says what it may be asked for.
type listing interface {
	method.Site
	Listed() []privacy.Listed
}

func siteOf(p *study.Plan, name string) (listing, error) {
	s, err := options.New(p)
	if err != nil {
		return nil, err
	}
	if p.Privacy.Differential() {
		return private.NewSite(s, name)
	}
	return exact.NewSite(s, name), nil
}

// Revision implements [method.Method].
func (Method) Revision() int { return 26 }

// Requests implements [method.Method].
func (Method) Requests(p *study.Plan, name string) ([]privacy.Listed, error) {
	h, err := siteOf(p, name)
	if err != nil {
		return nil, err
	}
	return h.Listed(), nil
}

// ModelFormats implements [method.Opener].
func (Method) ModelFormats() []string { return []string{fitted.ModelFormat} }

// OpenModel implements [method.Opener].
func (Method) OpenModel(data []byte) (method.Model, error) { return fitted.LoadModel(data) }

// Outcome implements [method.Supervised].
func (Method) Outcome(p *study.Plan) (evaluate.Outcome, error) {
	o, ok := p.Method.Options.(*options.Options)
	if !ok {
		return evaluate.Outcome{}, fmt.Errorf("the plan's options are of method %s, not of regression", p.Method.Name)
	}
	if o.Counts() {
		return evaluate.Outcome{}, problem.Problem{Where: "method.weights",
			What: "each row stands for several people, of whom an evaluation would hold out all or none",
			Hint: "give it data with one row for each person, and a plan without weights"}
	}
	return o.Outcome.Judged(), nil
}

// Evaluator implements [method.Evaluable]. The model knows nothing of how sites
// differ, so that a new site is to it as any other.
func (Method) Evaluator(p *study.Plan, files []method.File, newSite bool) (evaluate.Model, error) {
	return fitted.Evaluator(p, files)
}

// Central implements [method.Centraliser]: the same posterior fitted to all rows, which is the ceiling of
// everything private. Numbers are scaled as the plan says, by moments of all rows if it says standard.
func (Method) Central(ctx context.Context, p *study.Plan, rows dataset.Source) (evaluate.Model, error) {
	m, err := exact.Central(ctx, p, rows)
	if err != nil {
		return nil, err
	}
	return m.Forecaster(rows.Schema())
}

// Simulate implements [method.Simulator].
func (Method) Simulate(p *study.Plan, c method.Simulation) (*method.Simulated, error) {
	s, err := options.New(p)
	if err != nil {
		return nil, err
	}
	return s.Simulate(c)
}

// CheckData implements [method.DataChecker]. A private study counts rows that it cannot use
// as nothing, so that there is nothing to refuse.
func (Method) CheckData(ctx context.Context, p *study.Plan, rows dataset.Source) (problem.List, error) {
	s, err := options.New(p)
	if err != nil {
		return nil, err
	}
	if !p.Privacy.Differential() {
		if err := s.CheckRows(ctx, rows); err != nil {
			return nil, err
		}
	}
	return s.Notes(ctx, rows)
}

// Describe implements [method.Describer].
func (Method) Describe(p *study.Plan) string {
	o, ok := p.Method.Options.(*options.Options)
	if !ok {
		return ""
	}
	how := "sums over its own subjects: of how each would change the weights, and of how surely"
	if p.Privacy.Differential() {
		how = "noised sums over its own subjects: of their features once, of how each would change the weights in " +
			"every round"
		if o.Scaling == glm.ScaleStandard {
			how = strings.Replace(how, "once", "once, after two histograms of each number", 1)
		}
	}
	return fmt.Sprintf("%s Whenever the coordinator asks, a site sends %s.",
		glm.Predicts(p, &o.Outcome, o.Likelihood), how)
}

var _ method.Additive = Method{}

// Sums implements [method.Additive].
func (Method) Sums(p *study.Plan, kind string) (method.Sums, error) {
	s, err := options.New(p)
	if err != nil {
		return method.Sums{}, err
	}
	grid := masks.Standardised
	if kind == options.TaskScale || s.Options.Numeric() { // sums in the data's units
		grid = masks.Raw
	}
	for _, l := range exact.NewSite(s, "").Listed() {
		if l.Kind == kind {
			return method.Summed(l.Request.Contents[0].What, grid, func() any { return exact.Form(s, kind) })
		}
	}
	return method.Sums{}, fmt.Errorf("no sums answer task %q", kind)
}

// Paper implements [method.Citable].
func (Method) Paper(p *study.Plan) (out method.Paper) {
	o, ok := p.Method.Options.(*options.Options)
	if !ok {
		return out
	}
	features, with := 0, ""
	for _, v := range p.Views {
		features += len(v.Features)
	}
	kind := map[string]string{glm.LikelihoodLogistic: "logistic regression",
		glm.LikelihoodLinear: "linear regression", glm.LikelihoodPoisson: "Poisson regression",
		glm.LikelihoodSoftmax: "multinomial logistic regression",
		glm.LikelihoodHazard:  "regression of discrete-time survival"}[o.Likelihood]
	if o.Likelihood == glm.LikelihoodHazard {
		kind += fmt.Sprintf(" over %d periods with a logistic link", len(o.Outcome.Cuts))
		out.References = append(out.References, "Prentice RL, Gloeckler LA. Regression analysis of grouped survival "+
			"data with application to breast cancer data. Biometrics 1978;34:57-67. doi:10.2307/2529588")
	}
	if o.Link == options.LinkCloglog {
		kind = strings.Replace(strings.Replace(kind, "a logistic", "a complementary log-log", 1), "logistic regression",
			"binary regression with a complementary log-log link", 1)
	}
	if o.Random() {
		with = " and random intercepts of the sites"
	}
	out.Text = fmt.Sprintf("%s was related to %d features by %s with an independent normal prior of each weight "+
		"(variance %g for a standard deviation of a number, or a level)%s.", o.Outcome.Column, features, kind,
		o.PriorVariance, with)
	if p.Privacy.Differential() {
		units := ""
		if o.Scaling == glm.ScaleStandard {
			units = "histograms of numbers, "
		}
		out.Text += " Sites sent noised " + units + "sums and products of features, and gradients. The posterior is " +
			"normal about its mode (Laplace's approximation) and counts the noise of every release."
		out.References = append(out.References, "Sharma M, Hutchinson M, Swaroop S, Honkela A, Turner RE. "+
			"Differentially private federated variational inference. 2019. doi:10.48550/arXiv.1911.10563")
		if o.Likelihood == glm.LikelihoodLinear {
			out.Text += " Residuals were clipped, and their variance was found, as by Huber's proposal 2."
			out.References = append(out.References, "Huber PJ. Robust estimation of a location parameter. Annals of "+
				"Mathematical Statistics 1964;35:73-101. doi:10.1214/aoms/1177703732")
		}
		return out
	}
	out.Text += " Sites sent sums over their rows of the log-likelihood's first and second derivatives, by which " +
		"Newton's steps find the same mode as with all rows in one place. Standard errors are those of the inverse " +
		"information there, p values of Wald's test."
	out.References = append(out.References, "Wu Y, Jiang X, Kim J, Ohno-Machado L. Grid binary logistic regression "+
		"(GLORE): building shared models without sharing data. Journal of the American Medical Informatics "+
		"Association 2012;19:758-764. doi:10.1136/amiajnl-2012-000862")
	if !o.Random() {
		out.Text += " Robust standard errors are from sums of products of persons' scores."
		out.References = append(out.References, "White H. A heteroskedasticity-consistent covariance matrix estimator "+
			"and a direct test for heteroskedasticity. Econometrica 1980;48:817-838. doi:10.2307/1912934",
			"Liang K-Y, Zeger SL. Longitudinal data analysis using generalized linear models. Biometrika "+
				"1986;73:13-22. doi:10.1093/biomet/73.1.13")
	}
	return out
}
