// Package inversion is what attacks on simulated studies of mixtures have in common: an [Attacker]
// runs studies of the rows of its [Victims] and scores what it finds, by [LeastSquares] or by the
// [Difference] of two releases that one row sets apart. [MostAdvantage] is what (ε, δ) leaves to any attacker.
package inversion
