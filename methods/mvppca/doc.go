// Package mvppca is multi-view probabilistic principal component analysis for
// data that stay where they are. Register [Method]; a plan says the rest in its
// [options.Options]. What leaves a site is what the plan's requests list, and nothing of it
// depends on anything but the plan, the task and the site's rows.
//
// A subject's features, of all views together, follow t = W x + μ + noise with q
// factors x ~ N(0, I) and one noise variance per view or per feature. Each site
// has such a model of its own, drawn from a common law (Balelli, Silva and
// Lorenzi, MELBA 2022:012).
//
// # The default method
//
// Round 1, the one shot: each site describes its subjects, those who have the same views
// together, and the coordinator fits one model to these descriptions. Nothing depends on
// how the sites' factors are rotated, missing views are missing blocks, and means that
// differ between sites enter as they should.
//
// Rounds after that, if wanted, estimate how sites differ. A site never sends a value
// that was drawn towards the prior, and variances between sites may be zero, so
// nothing freezes.
//
// # Noised statistics
//
// Under differential protection each site releases clipped and noised sums over its
// subjects once ([options.MechanismStatistics]), and the coordinator makes the model of them.
//
// # The published method
//
// The iteration of the paper, exactly ([options.PublishedVariant]), is kept for comparison: it
// shrinks its variances towards zero at every round. Under differential protection its
// rounds run as [options.MechanismDifference], which is Algorithm 2, or [options.MechanismJoint], its
// repaired form. Both hide a site as a whole in every message, at noise that buries
// what few sites have to say; what the former reports of the differences between sites
// is that noise.
//
// # Rooms
//
// Here [Method] speaks the contract and puts the rooms together. By the plan it takes one
// of the ways to fit, each a coordinator's and a site's part:
//
//   - federated: the default;
//   - statistics: noised statistics, by the numerics of moments;
//   - published: the iteration of the paper, with its private rounds in clipping.
//
// Package halves holds what the ways have in common, and knows none of them. The halves
// read subjects by package rows, say what package message holds, and draw their results by
// package pictures. The number of factors is chosen in selection, by heldout from rows and
// by released from what was released.
//
// Package options is what a plan says, ppca the numerics, use the fitted model and its
// uses, linalg small matrices, and verify the comparison with numbers from independent
// implementations.
package mvppca
