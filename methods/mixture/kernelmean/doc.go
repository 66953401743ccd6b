// Package kernelmean learns a mixture from one release: mean kernel values at public points,
// which are values of the rows' kernel mean embedding.
// [Landmarks] are the points ([Grid], [Scatter], [ScatterNormal]); a site adds up
// [Landmarks.Features] of its rows, whose bound is [Landmarks.NormBound]; [Observation] is
// what the sites' noised sums come to, [Landmarks.LogLikelihood] its synthetic likelihood,
// noise included, and [Landmarks.Posterior] a sample of the posterior. [Landmarks.Misfit]
// and [Landmarks.Fit] check it against what was observed, [Replicate] by simulation-based
// calibration.
//
// Nothing here protects rows: noise and bounds that are relied on belong to a session of
// package privacy. Everything is a function of its arguments and seeds, to the last bit on
// one architecture, on any number of cores. Wrong arguments are errors, never panics.
package kernelmean
