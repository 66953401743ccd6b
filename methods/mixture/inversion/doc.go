// Package inversion finds rows again in what was computed from them: [Trilaterate] from
// exact distances, [Locate] from sums at landmarks, [Difference] from two releases that one
// row sets apart. [MostAdvantage] is what (ε, δ) leaves to any attacker. The attacks that
// studies are put to use these; nothing here knows of sites or plans.
package inversion
