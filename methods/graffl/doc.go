// Package graffl is learning without gradients: a Bayesian Gaussian mixture from rows that
// stay at their sites, by simulating from the model and comparing (Hahn and Lee, GRAFFL,
// 2020, whose sections and algorithms are cited). [Method] is all that a program needs; a
// plan's [options.Options] choose what it does.
//
// # Rooms
//
// Here the method is put together from the plan (method.go), described (describe.go,
// notes.go), and what it leaves is opened again (model.go). Below are, from the plan to
// the report:
//
//   - options: what a plan says; setup: what follows from it for both halves
//   - landmark: the default variants. Each site releases once its mean kernel values at
//     public points (landmarks), or cosines and sines at public frequencies (sketch), noised;
//     the noise is part of the likelihood. After that one release nothing more is asked of a
//     site.
//   - published: Algorithm 2, for comparison: it does not contract to the posterior, and
//     gives the rows away
//   - set: one parameter for each simulated set
//   - stages: codes, classes and calibration around any of these variants, and what
//     synthetic rows of a scarce class are worth
//   - report: the sample as files, numbers, pictures and sections
//   - attacks: the attacks that this method knows of itself
//
// And without knowledge of sites:
//
//   - mixture: mixtures, priors, samples, matching, discrepancies, linear algebra
//   - kernelmean: kernel means at landmarks, their moments, the posterior given them, its
//     calibration
//   - sketch: the same with characteristic functions at random frequencies
//   - abc: the samplers of the published algorithm and of sets; abc/choices: what plans say
//     of them
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
