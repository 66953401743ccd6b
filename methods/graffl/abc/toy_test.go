package abc

import "parley/methods/graffl/mixture/mixturetest"

// The toy of section 4.2: one mode for each site.
var (
	toyMeans, toyThirds = mixturetest.Means, mixturetest.Thirds
	toyTruth, toyPrior  = mixturetest.Truth, mixturetest.Prior
	toySites, judged    = mixturetest.Sites, mixturetest.Judged
)
