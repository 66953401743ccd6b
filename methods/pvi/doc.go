// Package pvi is partitioned variational inference, private if wanted: Bayesian
// regression on rows that stay where they are (Sharma, Hutchinson, Swaroop, Honkela
// and Turner, 2019, arXiv:1911.10563, whose equations are cited).
//
// The posterior over weights w is approximated by q = prior · Π t_m, all factors
// Gaussian with diagonal covariance ([Gaussian], in natural parameters) and one
// factor t_m for each site. A site refines its own factor against the cavity q/t_m
// and sends the change; nobody else's factor moves.
//
// # Local problem
//
// [Local] is the free energy of a [Likelihood] on a [Design]. [Local.Optimum] solves
// it exactly; with all rows and the prior as cavity it is central variational
// inference. [Logistic], [Linear] and [Softmax] are likelihoods; another one is a
// few functions of the mean and variance of a row's activation.
//
// For private optimisers, [Gradient] is the gradient of a single row and [Adagrad]
// the published step. Their arithmetic draws nothing and protects nothing: sampling,
// clipping that is relied on, and noise belong to a session of package privacy.
//
// # Rounds
//
// [State] holds q and the factors; [State.Sequential] and [State.Synchronous] apply
// one round of an [Updater]. [Refine] is the single step on which they rest: change,
// damping, and the projection of negative precisions. globalStep is the paper's
// baseline. Its way to make sites unequal is [parley/evaluate.Scheme].
//
// # Method
//
// [Method] makes a method of it: a coordinator that asks sites in the order of a
// schedule and keeps the factors, and sites that refine them. Without privacy an
// update is the exact local optimum. With a total it is one noised sum over the
// site's rows, or, as published, steps of DP-Adagrad; [Central] is what all of them
// are measured against.
//
// # In and out
//
// An [Encoding] turns declared columns into rows, and weights back into the features'
// own units. [PredictBinary] says how well new rows are predicted.
//
// All results are functions of their arguments alone, to the last bit on one
// architecture. Values that come from other sites are checked by methods named
// Check and give errors, never panics. [VerifyVectors] compares this package with
// numbers from independent implementations.
package pvi
