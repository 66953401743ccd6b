// Package sketch learns a Gaussian mixture from one release: means over rows of cosines and sines at public random
// frequencies, which are values of the rows' empirical characteristic function (Keriven, Bourrier, Gribonval and Pérez,
// "Sketching for large-scale learning of mixture models", 2018; Chatalic and others, "Compressive learning with
// privacy guarantees", 2021). Their expectation and covariance under a mixture are closed forms in any dimension. A
// site adds up Features of its rows, whose norm NormBound bounds; [Observation] is what the sites' noised sums come
// to, Posterior a sample of the posterior, noise included, and Fit holds it against what was observed.
// [Frequencies.RowsNeeded] says from a plan alone how many rows it takes.
//
// Nothing here protects rows: noise and bounds that are relied on belong to a session of
// package privacy. Everything is a function of its arguments and seeds, to the last bit on
// one architecture, on any number of cores. Wrong arguments are errors, never panics.
package sketch
