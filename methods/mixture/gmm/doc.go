// Package gmm is Gaussian mixtures as a Bayesian sees them. [Mixture] is a parameter
// θ = (π, μ, Σ), [Prior] its Dirichlet and normal-inverse-Wishart prior ([BoxPrior] makes
// one of a public range), [Posterior] a weighted sample of θ. Use [Prior.Sampler] and
// [Mixture.Simulate] to draw, [Coordinates] and [Unconstrained] to sample θ as a vector
// without constraints, [Match] to number components alike, [Discrepancy] to compare sets
// of rows, and [EffectiveSize] to tell whether a sample may be believed.
//
// Matrices are square, by rows, in one slice; of factors only the lower triangle counts.
// Everything is a function of its arguments and of the random numbers that it is handed,
// to the last bit on one architecture. What comes from elsewhere is checked by methods
// named Check, which give errors and never panic; all else expects shapes that agree.
package gmm
