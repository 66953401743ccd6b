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
// all of them, and its cost does not depend on the number of subjects. The
// coordinator's stand-ins for sites are blocks too, from [PseudoBlocks].
//
// # The one shot, and rounds after it
//
// Each site fits its own model with [Fit] and [LocalRank] factors, and the coordinator
// fits one model to the [PseudoBlocks] of all sites with the same routine.
//
// Rounds after that estimate how sites differ. From a [Weak] prior, each site takes a
// few steps of [Hierarchical] and sends what its likelihood alone says ([SiteMessage]);
// [Pool] combines this with the prior.
//
// # The published iteration
//
// [Published] and [PublishedMaster] are the iteration of the paper, exactly, and
// [ClipDifference] the deterministic part of its private variant.
package ppca
