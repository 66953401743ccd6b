// Package regression is Bayesian regression on rows that stay where they are, private if
// wanted, which plans name pvi after partitioned variational inference (Sharma, Hutchinson,
// Swaroop, Honkela and Turner, 2019, arXiv:1911.10563), from which it has come.
//
// [Method] is what a registry takes, put together from the plan. Without privacy the
// posterior of all weights is found from exact sums over the rows of every site (package
// exact), with a total from noised ones (package private). [Method.Central] is what all are measured
// against. All results are functions of the plan and the rows alone, to the last bit
// on one architecture. What comes from other sites is checked, and gives errors, never panics.
package regression
