// Package ppca is the numerics of multi-view probabilistic principal component
// analysis over sites: no privacy, no plan, no messages. Use [Fit] on the blocks of an
// [Accumulator] for a model, a [Predictor] for what it says of single subjects, and
// [Canonical] before anybody looks at its factors.
//
// All results are functions of the arguments alone, to the last bit on one
// architecture. Values that come from other sites are checked where they enter (Check,
// Measured, [Finite], [Within], [Counts]) and give errors, never panics.
//
// A subject's features, of all views together, follow t = W x + μ + noise with q
// factors x ~ N(0, I) and one noise variance per view or per feature. Each site has
// such [Params] of its own, drawn from a common law, the [Prior] (Balelli, Silva and
// Lorenzi, MELBA 2022:012).
//
// # From rows to statistics
//
// An [Accumulator] reads subjects one by one and yields one [Block] of sufficient
// statistics per set of observed features. That one mechanism covers complete sites,
// sites and subjects that lack views, and single missing cells: the E step is exact for
// all of them, and its cost does not depend on the number of subjects. What the
// coordinator has of sites are blocks too: each site makes those that it may send by
// [Describe], set of views by set of views, and the coordinator fits one model to what all
// sites say, added up by [Merge], by [FitBest].
//
// # Other ways to fit
//
// Package between puts its iterations together from an [EStep] on each block of a [Model],
// [Sums] over the blocks, and [PXEM], which is both with the M step of [Fit]. [Varimax] and
// [Promax] turn factors towards simple structure.
package ppca
