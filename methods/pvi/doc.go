// Package pvi is partitioned variational inference, private if wanted: Bayesian
// regression on rows that stay where they are (Sharma, Hutchinson, Swaroop, Honkela
// and Turner, 2019, arXiv:1911.10563, whose equations are cited).
//
// The posterior over weights w is approximated by q = prior · Π t_m, all factors
// Gaussian with diagonal covariance and one factor t_m for each site. A site refines
// its own factor against the cavity q/t_m and sends the change; nobody else's factor
// moves.
//
// [Method] is what a registry takes: a coordinator that asks sites in the order of a
// schedule and keeps the factors, and sites that refine them. Without privacy an
// update is the exact local optimum. With a total it is one noised sum over the
// site's rows, or, as published, steps of DP-Adagrad; [Method.Central] is what all of them
// are measured against. [Model] is what a study leaves: it predicts, and is compared
// with others.
//
// # Where things are
//
//   - method, setup: what a registry takes, and what both halves know of a plan;
//   - variant, and a file for each of them: partitioned, natural, global, published;
//   - coordinator, schedule, messages, bounds: the coordinator, and what passes;
//   - site, protect, quality, assess: the site, without and with privacy;
//   - result, pictures: what a study leaves;
//   - model, use, compare, judged, simulate: what is done with it.
//
// Package options is what a plan says, gvi the arithmetic, published the paper's own
// updates and its baseline, which nobody meets by default, and verify the comparison
// with numbers from independent implementations.
//
// All results are functions of the plan and the rows alone, to the last bit on one
// architecture. What comes from other sites is checked, and gives errors, never panics.
package pvi
