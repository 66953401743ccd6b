package private

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// prior is that of the plan: N(mean, 1/precision) of each weight.
type prior struct {
	mean, precision []float64
	kind            []int   // by which Narrow counts
	widest          float64 // precision, in that of the plan
}

// about is the prior with the intercept about the log-odds of noised counts of two classes, drawn to even odds by as
// much as noise leaves them open, for log-odds that deviate by [usualOdds].
func (p *prior) about(counts []float64, variance float64) *prior {
	least := max(math.Sqrt(variance), 1)
	first, second := max(counts[0], least), max(counts[1], least)
	open := variance/(first*first) + variance/(second*second)
	out := *p
	out.mean = slices.Clone(p.mean)
	out.mean[len(out.mean)-1] = math.Log(second/first) * usualOdds * usualOdds / (usualOdds*usualOdds + open)
	return &out
}

// usualOdds is two deviations of log-odds from .02 to .98.
const usualOdds = 2

// Kinds of weights whose prior is learned: effects of rare levels are larger than those of numbers.
const (
	ownPrior  = -1 // of the intercept, that of the plan
	ofNumbers = 0
	ofLevels  = 1
)

// times is what the precision of weight j is, in that of the plan.
func (p *prior) times(narrow []float64, j int) float64 {
	if p.kind[j] == ownPrior {
		return 1
	}
	return narrow[p.kind[j]]
}

// certain is a variance of activations: one standard deviation from 0, odds are 1 to 88.
const certain = 20

// widestOf is how wide the prior may become, by the variance of the plan for the weights of so many
// features. It must leave activations where outcomes are not certain: beyond, gradients hardly tell
// of weights, and noise would make them large.
func widestOf(features int, variance float64) float64 {
	return min(max(float64(features)*variance/certain, 0.5), 1)
}

// narrow is how much more precise the prior is than the plan says, one factor for numbers and one for levels, by
// weights that are from the prior's mean, a step more, with a covariance: the variational mean of a Gamma variable of
// shape and rate 1, but at least the prior's widest (Bishop, 2006, section 10.3). So weights that are small for the
// plan's variance are not left to the noise, and large ones are held back less.
func (p *prior) narrow(from []float64, step *mat.VecDense, covariance *mat.SymDense) []float64 {
	shape, rate := []float64{1, 1}, []float64{1, 1}
	for j, k := range p.kind {
		if k != ownPrior {
			w := from[j] + step.AtVec(j)
			shape[k], rate[k] = shape[k]+0.5, rate[k]+p.precision[j]*(w*w+covariance.At(j, j))/2
		}
	}
	for k := range shape {
		shape[k] = max(shape[k]/rate[k], p.widest)
	}
	return shape
}
