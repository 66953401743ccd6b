// Package glm is the arithmetic of regressions: rows, likelihoods, densities of weights, and random
// intercepts. It knows nothing of sites, tasks and studies.
//
// An [Encoding] turns declared columns into rows of a [Design], and weights back into
// the features' own units; a [Binding] reads them from data of a schema. [Gaussian] is a density or a factor
// with diagonal covariance, in natural parameters, and [Normal] one with any. [Logistic], [Cloglog], [Linear], [Poisson] and
// [Softmax] are likelihoods; another one is a few functions of a row's activation.
//
// Every site s may have an intercept b_s ~ N(0, τ²) of its own. [Marginal] is what a site can
// say of weights and τ without its intercept, [Search] finds the posterior of both from sums
// over sites, and [Marginal.Intercept] is what a site knows of its own, which stays there.
//
// All results are functions of their arguments alone, to the last bit on one
// architecture. Values that come from elsewhere are checked by methods named Check and
// give errors, never panics.
package glm
