package stats

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// BenjaminiHochberg adjusts p values so that the expected share of false findings among
// those below a bound is at most the bound (1995): the least of p_(j) m/j over all ranks
// j from the test's own on.
func BenjaminiHochberg(p []float64) []float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[a], p[b]) })
	out, least := make([]float64, len(p)), 1.0
	for rank := len(order); rank > 0; rank-- {
		i := order[rank-1]
		least = min(least, p[i]*float64(len(p))/float64(rank))
		out[i] = least
	}
	return out
}

// Score is a site's score by an effect that all may have in common: a sum with so much information and variance; of
// none, the site says nothing.
type Score struct{ Sum, Information, Variance float64 }

// CochranQ takes out of scores s of information h and variance v what all have in common, δ = Σ hs/v / Σ h²/v. It
// returns what that leaves of each, s − hδ, and q = Σ (s − hδ)²/v, which is χ² with so many degrees of freedom if it is
// all (Cochran 1954): one less than there are scores.
func CochranQ(scores []Score) (by []float64, q, free float64) {
	own, information := 0.0, 0.0
	free = -1
	for _, p := range scores {
		if p.Information > 0 {
			own += p.Sum * (p.Information / p.Variance)
			information += p.Information * (p.Information / p.Variance)
			free++
		}
	}
	by = make([]float64, len(scores))
	for i, p := range scores {
		if p.Information > 0 {
			by[i] = p.Sum - p.Information*(own/information)
			q += by[i] / p.Variance * by[i]
		}
	}
	return by, q, free
}

// ChiSquareTail is the probability of a χ² as large, with so many degrees of freedom.
func ChiSquareTail(x, free float64) float64 {
	switch {
	case free == 0 || !(x >= 0):
		return 1
	case x > 1e6*free: // beyond what can be calculated
		return 0
	}
	return distuv.ChiSquared{K: free}.Survival(x)
}

// ChiSquareQuantile is that of χ² where the standard normal distribution has z (Wilson and Hilferty 1931).
func ChiSquareQuantile(z, free float64) float64 {
	root := 1 - 2/(9*free) + z*math.Sqrt(2/(9*free))
	return free * root * root * root
}

// Median is the quantile of one half, which sorts the values.
func Median(values []float64) float64 { return Quantile(values, 0.5) }

// Quantile sorts the values, and interpolates between two of them.
func Quantile(values []float64, p float64) float64 {
	slices.Sort(values)
	at := p * float64(len(values)-1)
	i := int(at)
	low, high := values[i], values[min(i+1, len(values)-1)]
	return low + (at-float64(i))*(high-low)
}
