// Package graffl is learning without gradients: a Bayesian Gaussian mixture from rows that
// stay at their sites, by simulating from the model and comparing (Hahn and Lee, GRAFFL,
// 2020, whose sections and algorithms are cited). [Method] is all that a program needs; a
// plan's [Options] choose what it does.
//
// # Where to look
//
// The method's halves are here, each variant with its own, chosen once (variant.go):
//
//   - landmark, the default: coordinator.go and site_landmark.go. Each site releases once
//     its mean kernel values at public points, noised; the noise is part of the likelihood.
//     After that one release nothing more is asked of a site.
//   - published: coordinator_published.go and site_published.go. Algorithm 2, for
//     comparison: it does not contract to the posterior, and gives the rows away.
//   - set: coordinator_set.go and site_set.go. One parameter for each simulated set.
//
// stages*.go put codes, classes and calibration around any of them; worth*.go and
// classifier.go are what synthetic rows of a scarce class are worth; pictures*.go and
// report_*.go are the report; attack_*.go mount the attacks. Below this package, each
// without knowledge of sites and plans:
//
//   - mixture: mixtures, priors, samples, matching, discrepancies, linear algebra
//   - landmark: landmarks, their moments, the posterior given them, its calibration
//   - abc: the samplers of the published algorithm and of sets
//   - inversion: how rows are found again in what was computed from them
//   - suffiae, augment: the encoder of rows, and what helps a scarce class
//   - verify: test vectors from independent implementations
//
// # What it does not do
//
// This package protects nothing by itself: bounds that are relied on, and noise, belong to
// a session of package privacy. Everything here is a function of its arguments and seeds,
// to the last bit on one architecture, on any number of cores. What comes from elsewhere
// is checked and gives errors, never panics.
package graffl
