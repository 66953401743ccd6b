// Package pvi is partitioned variational inference, private if wanted: Bayesian
// regression on rows that stay where they are (Sharma, Hutchinson, Swaroop, Honkela
// and Turner, 2019, arXiv:1911.10563, whose equations are cited).
//
// The posterior over weights w is approximated by q = prior · Π t_m, all factors
// Gaussian with diagonal covariance and one factor t_m for each site. A site refines
// its own factor against the cavity q/t_m and sends the change; nobody else's factor
// moves.
//
// [Method] is what a registry takes, put together from the plan: a coordinator that asks
// sites in the order of a schedule and keeps the factors, and sites that refine them.
// Without privacy an update is the exact local optimum. With a total it is one noised sum
// over the site's rows, or, as published, steps of DP-Adagrad; [Method.Central] is what
// all of them are measured against.
//
// # Rooms
//
// Here are the contract and the choice of a variant (method.go), what people are told
// (describe.go), and what the method offers so that it can be judged (judged.go). Below
// are, from the plan to the report:
//
//   - options: what a plan says; setup: what both halves know from it, and how they read
//     rows; message: what passes between them, with its bounds
//   - halves: coordinator and site, as far as all variants have them in common
//   - partitioned: the default variant, without privacy and with it
//   - published: DP-PVI and its baseline as the paper has them, which nobody meets by default
//   - predict: how outcomes are predicted, and how well; pictures: what people see of a study
//   - use: what a study leaves, and what can be done with it
//   - simulate: subjects of whom a plan's model is true
//   - gvi: the arithmetic; verify: numbers from independent implementations
//
// All results are functions of the plan and the rows alone, to the last bit on one
// architecture. What comes from other sites is checked, and gives errors, never panics.
package pvi
