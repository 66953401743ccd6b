// Package moments makes a model of sums that sites release, clipped and noised
// ([Statistics]). [Project] adds up the releases of all sites; what is fitted to the [ProjectedMoments] moments, by any number of factors,
// costs no privacy.
//
// It draws no noise and protects nothing by itself: a site's contributions go through a
// session of package privacy, whose sums are declared here ([Statistics.Sums]).
// All results are functions of the releases and a seed.
package moments
