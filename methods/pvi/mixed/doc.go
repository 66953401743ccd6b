// Package mixed is the arithmetic of random intercepts: a regression in which every site s
// has an intercept b_s ~ N(0, τ²) of its own. [Marginal] is what a site can say of weights
// and τ without its intercept, [Search] finds the posterior of both from sums over sites,
// and [Marginal.Intercept] is what a site knows of its own intercept, which stays there.
//
// It knows nothing of tasks and studies. All results are functions of their arguments
// alone, to the last bit on one architecture.
package mixed
