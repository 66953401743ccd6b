package stats

import (
	"cmp"
	"math"
	"math/big"
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

// Parts are n m and n m², each as a number of 24 bits, the rest of a float64, and what that misses, so that sums over
// groups hold what is far smaller than they are: by how much means m of n numbers differ.
func Parts(n, m float64) (parts [6]float64) {
	split := func(to []float64, x, missing float64) {
		to[0] = float64(float32(x))
		to[1], to[2] = x-to[0], missing
	}
	sum, square := n*m, m*m
	split(parts[:3], sum, math.FMA(n, m, -sum))
	split(parts[3:], n*square, math.FMA(n, square, -n*square)+n*math.FMA(m, m, -square))
	return parts
}

// Together is the mean of n numbers in groups, and what the groups' means add to the sums of squares about them, of
// sums of [Parts].
func Together(n float64, parts [6]float64) (mean, between float64) {
	if n == 0 {
		return 0, 0
	}
	sum := func(of ...float64) *big.Float {
		z := new(big.Float).SetPrec(512)
		for _, x := range of {
			z.Add(z, big.NewFloat(x))
		}
		return z
	}
	all, s, squares := sum(n), sum(parts[:3]...), sum(parts[3:]...)
	mean, _ = new(big.Float).Quo(s, all).Float64()
	s.Quo(s.Mul(s, s), all)
	between, _ = s.Sub(squares, s).Float64()
	if between < 0x1p-98*parts[3] {
		between = 0 // which rounding leaves
	}
	return mean, between
}
