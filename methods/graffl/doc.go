// Package graffl is learning without gradients: a Bayesian Gaussian mixture from
// rows that stay at their sites, by simulating from the model and comparing (Hahn
// and Lee, GRAFFL, 2020, whose sections and algorithms are cited).
//
// # The model
//
// [mixture.Mixture] is a parameter θ = (π, μ, Σ), [mixture.Prior] its Dirichlet and
// normal-inverse-Wishart prior, [mixture.BoxPrior] one made of a public range alone.
// [mixture.Coordinates] is θ without constraints, in which posteriors are sampled.
//
// # Three ways to learn it
//
//   - The published one, Algorithm 2: one exact squared distance for each record and
//     proposal ([abc.SquaredDistances], [abc.Proposer], [abc.Acceptance], [abc.Published]). Its accepted parameters do
//     not contract to the posterior, and its distances give the rows away:
//     [inversion.Trilaterate] finds them.
//   - By sets: one parameter for each simulated set, the energy distance or MMD² to
//     the sites' rows ([mixture.Discrepancy]), sequential Monte Carlo ([abc.SMC]). Only
//     discrepancies that may be summed over unlike sites are offered.
//   - By landmarks, the default: each site releases once its mean kernel values at
//     public points ([landmark.Landmarks]), noised; the noise is part of the synthetic
//     likelihood ([landmark.Landmarks.LogLikelihood]), so that intervals stay honest
//     ([landmark.Landmarks.Posterior]). After that one release, nothing more is asked of
//     a site.
//
// [mixture.EffectiveSize], [mixture.Calibration], [mixture.Coverage] and [landmark.Landmarks.Misfit] tell whether a sample may be believed.
//
// # What it does not do
//
// This package protects nothing by itself: bounds that are relied on, and noise,
// belong to a session of package privacy. Everything here is a function of its
// arguments and seeds, to the last bit on one architecture, on any number of
// cores. What comes from elsewhere is checked by methods named Check and gives
// errors, never panics. [verify.Vectors] compares this package with numbers from
// independent implementations.
package graffl
