// Package dppvi is differentially private partitioned variational inference as it
// was published (Sharma and others, 2019), and the baseline that it was compared with.
// Nobody meets it by default: it is there to repeat the paper's experiments.
//
// [Update] is a site's private update: steps of DP-Adagrad from clipped, noised sums of
// gradients over samples of its rows. Package options has its settings. [Step] is the
// baseline's, global variational inference by stochastic gradients without privacy. [New]
// and [NewGlobal] are the variants of them.
//
// It draws no noise and protects nothing: sampling, clipping that is relied on, and
// noise belong to a session of package privacy, which hands in the sums.
package dppvi
