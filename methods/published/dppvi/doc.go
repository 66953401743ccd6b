// Package dppvi is partitioned variational inference and its differentially private form, as
// published (Sharma, Hutchinson, Swaroop, Honkela and Turner, 2019, arXiv:1911.10563, whose
// equations are cited), and Global VI, the baseline that they were compared with. It is there to
// repeat the paper's experiments: method pvi does better.
//
// [Method] is what a registry takes. The coordinator asks sites in the order of a schedule, and
// keeps a factor of each. A site answers with what steps of Adagrad along gradients over samples of
// its rows lead to, clipped and noised under privacy, with the exact optimum of its local free
// energy, or, of the baseline, with one step of stochastic gradients. Sampling, clipping that is relied on, and
// noise are those of a session of package privacy. What comes from the other end is checked, and
// gives errors, never panics.
package dppvi
