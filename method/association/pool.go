package association

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"
	"gonum.org/v1/gonum/stat/distuv"
)

// Level of the intervals of pool.
const confidence = 0.95

// pooled is a meta-analysis of one effect.
type pooled struct {
	// Common supposes that the effect is the same at all sites: the mean weighted by
	// 1/variance, with normal tests and intervals.
	Common estimate `json:"common_effect"`
	// Random lets the effect differ between sites with variance Tau2 (DerSimonian and
	// Laird 1986). Tests and intervals are those of Hartung and Knapp 2001 with sites − 1
	// degrees of freedom, and never narrower than with variances known (Röver, Knapp and
	// Friede 2015).
	Random estimate `json:"random_effects"`
	Tau2   float64  `json:"tau_squared"`
	// Q = Σ (estimate − common)²/variance is χ² with sites − 1 degrees of freedom where
	// the effect is the same everywhere, PQ its p value; I2 = max(0, 1 − df/Q), the
	// share of the estimates' variance that is between sites (Higgins and Thompson 2002).
	Q  float64 `json:"q"`
	PQ float64 `json:"q_p"`
	I2 float64 `json:"i_squared"`
}

// estimate is one number with a standard error, a 95 % interval and a p value.
type estimate struct {
	Estimate float64 `json:"estimate"`
	SE       float64 `json:"standard_error"`
	Low      float64 `json:"low"`
	High     float64 `json:"high"`
	P        float64 `json:"p"` // two-sided, of no effect
}

// pool combines two or more estimates, given their variances, which are above 0 and are
// taken as known: with few degrees of freedom at a site, its weight is uncertain.
func pool(estimates, variances []float64) (out pooled) {
	df := float64(len(estimates) - 1)
	mean, total := weighted(estimates, variances, 0)
	squares := 0.0 // of the weights
	for i, v := range variances {
		out.Q += (estimates[i] - mean) * (estimates[i] - mean) / v
		squares += 1 / v / v
	}
	se := 1 / math.Sqrt(total)
	half := mathext.NormalQuantile(0.5+confidence/2) * se
	out.Common = estimate{mean, se, mean - half, mean + half, math.Erfc(math.Abs(mean) / se / math.Sqrt2)}
	out.PQ = mathext.GammaIncRegComp(df/2, out.Q/2)
	if out.Q > df {
		out.I2 = 1 - df/out.Q
		out.Tau2 = (out.Q - df) / (total - squares/total)
	}
	mean, total = weighted(estimates, variances, out.Tau2)
	spread := 0.0
	for i, v := range variances {
		spread += (estimates[i] - mean) * (estimates[i] - mean) / (v + out.Tau2) / df
	}
	se = math.Sqrt(max(1, spread) / total)
	half = distuv.StudentsT{Mu: 0, Sigma: 1, Nu: df}.Quantile(0.5+confidence/2) * se
	out.Random = estimate{mean, se, mean - half, mean + half, studentP(mean/se, df)}
	return out
}

// weighted returns the mean with weights 1/(variance + tau²), and their sum.
func weighted(estimates, variances []float64, tau2 float64) (mean, total float64) {
	for i, v := range variances {
		mean += estimates[i] / (v + tau2)
		total += 1 / (v + tau2)
	}
	return mean / total, total
}

// studentP is the two-sided p value of t.
func studentP(t, df float64) float64 { return mathext.RegIncBeta(df/2, 0.5, df/(df+t*t)) }

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
