// Package abc is approximate Bayesian computation of mixtures: the samplers that compare
// simulated rows with real ones. [Proposer], [SquaredDistances] and [Acceptance] are the
// published Algorithm 2 (Hahn and Lee, GRAFFL, 2020), [Published] runs it over rows in one
// place, and [Modes] finds the peaks of what it accepts. [SMC] is sequential Monte Carlo on
// one discrepancy for each simulated set.
//
// Proposals are functions of a seed and their number, so that they are drawn again and not
// kept. What Algorithm 2 accepts does not contract to the posterior, and exact distances
// give rows away (package inversion); nothing here protects them. Wrong arguments are
// errors, never panics.
package abc
