// Package glm is Gaussian variational inference for regressions: densities over weights
// with diagonal covariance, likelihoods, and the optimum that is sought between them.
// It is the arithmetic of partitioned variational inference (Sharma, Hutchinson,
// Swaroop, Honkela and Turner, 2019, arXiv:1911.10563, whose equations are cited), and
// knows nothing of sites, tasks and studies.
//
// # Rows
//
// An [Encoding] turns declared columns into rows of a [Design], and weights back into
// the features' own units; a [Binding] reads them from data of a schema.
//
// # Local problem
//
// [Gaussian] is a density or a factor, in natural parameters. [Local] is the free energy
// of a [Likelihood] on a [Design]; [Local.Optimum] solves it exactly. With all rows, and
// the prior as cavity, it is central variational inference. [Logistic], [Linear] and
// [Softmax] are likelihoods; another one is a few functions of the mean and variance of
// a row's activation. [Refine] makes a factor of what an optimum says: change, damping,
// and the projection of negative precisions.
//
// # Published updates
//
// [Gradient] and [Adagrad] are the published step. Their arithmetic draws nothing and
// protects nothing: sampling, clipping that is relied on, and noise belong to a session
// of package privacy.
//
// # Random intercepts
//
// Every site s may have an intercept b_s ~ N(0, τ²) of its own. [Marginal] is what a site can
// say of weights and τ without its intercept, [Search] finds the posterior of both from sums
// over sites, and [Marginal.Intercept] is what a site knows of its own, which stays there.
//
// All results are functions of their arguments alone, to the last bit on one
// architecture. Values that come from elsewhere are checked by methods named Check and
// give errors, never panics.
package glm
