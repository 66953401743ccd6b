package regression

import (
	"fmt"
	"strings"

	"parley/method"
	"parley/methods/regression/options"
	"parley/study"
)

// Describe implements [method.Describer].
func (Method) Describe(p *study.Plan) string {
	o, ok := p.Method.Options.(*options.Options)
	if !ok {
		return ""
	}
	how := "sums over its own subjects: of how each would change the weights, and of how surely"
	if o.Noised(p) {
		how = "noised sums over its own subjects: of their features once, of how each would change the weights in every round"
		if o.Scaling == options.ScaleStandard {
			how = strings.Replace(how, "once", "once, after two histograms of each number", 1)
		}
	}
	return o.Predicts(p) + fmt.Sprintf(" Whenever the coordinator asks, a site sends %s.", how)
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
	kind := map[string]string{options.LikelihoodLogistic: "logistic regression", options.LikelihoodLinear: "linear regression", options.LikelihoodPoisson: "Poisson regression",
		options.LikelihoodSoftmax: "multinomial logistic regression", options.LikelihoodHazard: "regression of discrete-time survival"}[o.Likelihood]
	if o.Likelihood == options.LikelihoodHazard {
		kind += fmt.Sprintf(" over %d periods with a logistic link", len(o.Outcome.Cuts))
		out.References = append(out.References, "Prentice RL, Gloeckler LA. Regression analysis of grouped survival data with application to breast cancer data. Biometrics 1978;34:57-67. doi:10.2307/2529588")
	}
	if o.Link == options.LinkCloglog {
		kind = strings.Replace(strings.Replace(kind, "a logistic", "a complementary log-log", 1), "logistic regression", "binary regression with a complementary log-log link", 1)
	}
	if o.Random() {
		with = " and random intercepts of the sites"
	}
	out.Text = fmt.Sprintf("%s was related to %d features by %s with an independent normal prior of each weight (variance %g for a standard deviation of a number, or a level)%s.", o.Outcome.Column, features, kind, o.PriorVariance, with)
	if o.Noised(p) {
		out.Text += " Sites sent noised histograms, products of features and gradients. The posterior is normal about its mode (Laplace's approximation) and counts the noise of every release."
		out.References = append(out.References, "Sharma M, Hutchinson M, Swaroop S, Honkela A, Turner RE. Differentially private federated variational inference. 2019. doi:10.48550/arXiv.1911.10563")
		return out
	}
	out.Text += " Sites sent sums over their rows of the log-likelihood's first and second derivatives, by which Newton's steps find the same mode as with all rows in one place. Standard errors are those of the inverse information there, p values of Wald's test."
	out.References = append(out.References, "Wu Y, Jiang X, Kim J, Ohno-Machado L. Grid binary logistic regression (GLORE): building shared models without sharing data. Journal of the American Medical Informatics Association 2012;19:758-764. doi:10.1136/amiajnl-2012-000862")
	if !o.Random() {
		out.Text += " Robust standard errors are from sums of products of persons' scores."
		out.References = append(out.References, "White H. A heteroskedasticity-consistent covariance matrix estimator and a direct test for heteroskedasticity. Econometrica 1980;48:817-838. doi:10.2307/1912934",
			"Liang K-Y, Zeger SL. Longitudinal data analysis using generalized linear models. Biometrika 1986;73:13-22. doi:10.1093/biomet/73.1.13")
	}
	return out
}
