// Package selection chooses the number of factors: [Select] by how likely models make subjects
// whom they were not fitted to, [SelectReleased] from what the sites of a private study have
// released, which costs no privacy.
package selection

import (
	"fmt"
	"slices"

	"parley/method"
	"parley/methods/factors/ppca"
	"parley/problem"
)

// elbowShare is how much of the range of the left-out log-likelihood over the
// candidates the elbow may lose.
const elbowShare = 0.02

// elbow returns the first candidate that loses at most 2 % of the range.
func elbow(mean []float64) int {
	top, bottom := slices.Max(mean), slices.Min(mean)
	return slices.IndexFunc(mean, func(m float64) bool { return top-m <= elbowShare*(top-bottom) })
}

// parameters is how many numbers a model has, rotations of its factors aside.
func parameters(l ppca.Layout, q int) float64 {
	d := l.Features()
	return float64(d*q - q*(q-1)/2 + d + l.Groups())
}

// recommend recommends the candidate that is the best, unless something is warned of: what
// is not to be trusted is not recommended either. At an end of the candidates the best may
// lie beyond them, and it is said which way; below one factor there is nothing.
func recommend(out *method.Selection, values []int, best int) {
	switch last := values[len(values)-1]; {
	case len(out.Warnings) > 0: // of what may have moved the best there
	case best == last:
		out.Warnings.Add(problem.Problem{Where: "latent",
			What: fmt.Sprintf("the largest candidate, %d, is the best: the score has not turned", last),
			Hint: fmt.Sprintf("try more factors, as with --latent %d..%d; where it never turns, look at what the "+
				"factors are made of", values[max(0, len(values)-2)], 2*last)})
	case best == values[0] && best > 1:
		out.Warnings.Add(problem.Problem{Where: "latent",
			What: fmt.Sprintf("the smallest candidate, %d, is the best", best),
			Hint: fmt.Sprintf("try fewer factors, as with --latent 1..%d", values[1])})
	}
	if len(out.Warnings) == 0 {
		out.Recommended = best
	}
}
