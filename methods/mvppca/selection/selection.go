// Package selection is the choice of the number of factors: what its two ways have in
// common. Room heldout chooses from rows at every site, by rows that were not fitted, and
// room released from what the sites of a private study have released. Room waic is a
// criterion that the former compares with.
package selection

import (
	"fmt"
	"slices"

	"parley/method/judged"
	"parley/methods/mvppca/ppca"
	"parley/problem"
)

// Rules that both ways have.
const (
	RuleSE    = "smallest within one standard error of it"
	RuleElbow = "elbow: smallest that loses at most 2 % of the range"
)

// Names of a candidate's scores that both ways have.
const (
	ScoreBehind   = "behind_best" // mean per subject of the best candidate's log-likelihood − this one's, nats
	ScoreBehindSE = "behind_best_standard_error"
	ScoreBIC      = "bic"
)

// elbowShare is how much of the range of the held-out log-likelihood over the
// candidates the elbow may lose.
const elbowShare = 0.02

// Elbow returns the first candidate that loses at most 2 % of the range.
func Elbow(mean []float64) int {
	top, bottom := slices.Max(mean), slices.Min(mean)
	return slices.IndexFunc(mean, func(m float64) bool { return top-m <= elbowShare*(top-bottom) })
}

// CheckValues refuses candidates that are not ascending numbers of factors.
func CheckValues(values []int) error {
	if len(values) == 0 || values[0] < 1 || !slices.IsSorted(values) || len(slices.Compact(slices.Clone(values))) != len(values) {
		return fmt.Errorf("the candidates %v are not ascending numbers from 1", values)
	}
	return nil
}

// Parameters is how many numbers a model has, rotations of its factors aside.
func Parameters(l ppca.Layout, q int) float64 {
	d := l.Features()
	return float64(d*q - q*(q-1)/2 + d + l.Groups())
}

// WarnOfEnds warns where the best candidate is the largest or the smallest.
func WarnOfEnds(out *judged.Selection, values []int) {
	switch last := values[len(values)-1]; {
	case len(values) > 1 && out.Recommended == last:
		out.Warnings.Add(problem.Problem{Where: "latent", What: fmt.Sprintf("the largest candidate, %d, is the best: the held-out log-likelihood has not turned", last),
			Hint: "try more factors with --latent; where it never turns, take the elbow and look at what the factors are made of"})
	case len(values) > 1 && out.Recommended == values[0] && values[0] > 1:
		out.Warnings.Add(problem.Problem{Where: "latent", What: fmt.Sprintf("the smallest candidate, %d, is the best", values[0]), Hint: "try fewer factors with --latent"})
	}
}
