// Package factors is multi-view probabilistic principal component analysis for data that
// stay where they are, which plans name mvppca. Register [Method]; a plan says the rest in
// its [options.Options]. What leaves a site is what the plan's requests list, and nothing of
// it depends on anything but the plan, the task and the site's rows.
//
// A subject's features, of all views together, follow t = W x + μ + noise with q factors
// x ~ N(0, I) and one noise variance per view or per feature. In the first exchange each site
// describes its subjects, those who have the same views together, and the coordinator fits one
// model to these descriptions. Exchanges after that, if wanted, estimate how sites differ.
// Under differential protection each site releases clipped and noised sums over its subjects
// once, and the coordinator makes the model of them.
package factors
