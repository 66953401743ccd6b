package pvi

import (
	"parley/dataset"
	"parley/privacy"
)

// noisedSum is one use of the noised sum that a private update was granted: what
// every row of the site contributes, clipped, summed and noised by whoever gave the
// function, such as a [privacy.Session]. The contribution writes to v, which is
// zero, and returns the block, or −1 for a row without any; see
// [privacy.Session.Sum]. What comes back may be shown to anybody.
type noisedSum func(contribution func(row *dataset.Row, v []float64) (block int)) ([]float64, error)

// privateUpdate is one private local optimisation of a site. All that it learns of
// rows is what sums of its declared kind tell, so its result is post-processing.
type privateUpdate interface {
	// sums declares what one update is granted: a sum of the site's subjects, used
	// as often as its mechanism counts.
	sums() []privacy.Sum
	// run moves from q towards the local optimum given the cavity q/factor, and
	// returns where it came to. Carried is what it returned the last time, nil at
	// first: nothing in it may be a function of rows but through noised sums.
	run(q, factor Gaussian, carried []byte, sum noisedSum) (target Gaussian, carry []byte, err error)
}
