// Package mvppca is multi-view probabilistic principal component analysis for
// data that stay where they are.
//
// A subject's features, of all views together, follow t = W x + μ + noise with q
// factors x ~ N(0, I) and one noise variance per view or per feature. Each site
// has such a model of its own, drawn from a common law (Balelli, Silva and
// Lorenzi, MELBA 2022:012).
//
// # From rows to statistics
//
// An [Accumulator] reads subjects one by one and yields one [Block] of
// sufficient statistics per set of observed features. That one mechanism
// covers complete sites, sites and subjects that lack views, and single
// missing cells: the E step is exact for all of them, and its cost does not
// depend on the number of subjects. The coordinator's stand-ins for sites are
// blocks too, from [PseudoBlocks].
//
// # The default method
//
// Round 1, the one shot: each site fits its own model with [Fit] and
// [LocalRank] factors, and the coordinator fits one model to the [PseudoBlocks]
// of all sites with the same routine. Nothing depends on how the sites' factors
// are rotated, missing views are missing blocks, and means that differ between
// sites enter as they should.
//
// Rounds after that, if wanted, estimate how sites differ. From a [Weak] prior,
// each site takes a few steps of [Hierarchical] and sends what its likelihood
// alone says ([SiteMessage]); [Pool] combines this with the prior. A site never
// sends a value that was drawn towards the prior, and variances between sites
// may be zero, so nothing freezes.
//
// # The published method
//
// [Published] and [PublishedMaster] are the iteration of the paper, exactly, and
// [ClipDifference] the deterministic part of its private variant. It is kept for
// comparison: it shrinks its variances towards zero at every round.
//
// Under differential protection its rounds run as [MechanismDifference], which
// is Algorithm 2, or [MechanismJoint], its repaired form. Both hide a site as a
// whole in every message, at noise that buries what few sites have to say;
// what the former reports of the differences between sites is that noise.
//
// # What comes out
//
// [Canonical] fixes the order and signs of factors, [Predictor] answers for
// single subjects whatever they lack, [Explained] says how much of each view
// each factor explains, from sums that sites can send.
//
// All results are functions of their arguments alone, to the last bit on one
// architecture. Values that come from other sites are checked where they enter
// and give errors, never panics. [VerifyVectors] compares this package with
// numbers from independent implementations.
package mvppca
