package graffl

import "parley/methods/mixture/gmmtest"

// The toy of section 4.2: one mode for each site.
var (
	toyMeans, toyThirds = gmmtest.Means, gmmtest.Thirds
	toyTruth, toyPrior  = gmmtest.Truth, gmmtest.Prior
	toySites, judged    = gmmtest.Sites, gmmtest.Judged
)
