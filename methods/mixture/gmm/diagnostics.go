package gmm

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// EffectiveSize returns Kish's (Σw)²/Σw²: how many independent draws estimate a mean as
// well as this weighted sample does. It speaks of the weights alone: draws that are
// copies of each other, or that all miss a mode, are not noticed; [Calibration] notices. As
// a rule, below 100 do not report tails; below 20 report nothing.
func EffectiveSize(weights []float64) float64 {
	s, q := 0.0, 0.0
	for _, w := range weights {
		s += w
		q += w * w
	}
	if q == 0 {
		return 0
	}
	return s * s / q
}

// Quantile returns the smallest value at which a share q of the weight is reached.
// There must be values.
func Quantile(values, weights []float64, q float64) float64 {
	order := make([]int, len(values))
	total := 0.0
	for i := range order {
		order[i] = i
		total += weights[i]
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(values[a], values[b]) })
	s := 0.0
	for _, i := range order {
		if s += weights[i]; s >= q*total {
			return values[i]
		}
	}
	return values[order[len(order)-1]]
}

// Rank returns the share of a sample's weight below a value, ties counted as half:
// uniform on [0, 1] over repetitions in which value and sample have one law.
func Rank(values, weights []float64, value float64) float64 {
	below, total := 0.0, 0.0
	for i, v := range values {
		total += weights[i]
		switch {
		case v < value:
			below += weights[i]
		case v == value:
			below += weights[i] / 2
		}
	}
	return below / total
}

// Coverage returns how often true values were inside the central intervals of a level,
// given their ranks in the posteriors.
func Coverage(ranks []float64, level float64) float64 {
	in := 0
	for _, r := range ranks {
		if math.Abs(r-0.5) <= level/2 {
			in++
		}
	}
	return float64(in) / float64(max(len(ranks), 1))
}

// Calibrated is simulation-based calibration of one quantity (Talts et al. 2018):
// parameters drawn from the prior, data from them, their ranks in the posteriors.
type Calibrated struct {
	Name   string  `json:"name" cbor:"name"`
	Counts []int   `json:"counts" cbor:"counts"` // ranks by equal bins of [0, 1]
	ChiSq  float64 `json:"chi_sq" cbor:"chi_sq"` // χ² of the counts against uniform
	P      float64 `json:"p" cbor:"p"`           // probability of so much or more by chance
	Within float64 `json:"within" cbor:"within"` // coverage of central 90 % intervals
	// Curve is the coverage of central intervals of [Levels].
	Curve []float64 `json:"curve" cbor:"curve"`
}

// Levels returns the levels of intervals at which coverage is shown, from 10 to 95 %.
func Levels() []float64 { return []float64{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95} }

// ChanceBand returns the shares between which that of n independent events of one probability lies
// with a probability of at least level, as much being cut off below as above: what
// coverage, or a bin of ranks, may show by chance.
func ChanceBand(n int, probability, level float64) (low, high float64) {
	if n < 1 {
		return 0, 1
	}
	law := distuv.Binomial{N: float64(n), P: probability}
	a, b := 0, n
	for a < b && law.CDF(float64(a)) <= (1-level)/2 {
		a++
	}
	for b > a && 1-law.CDF(float64(b-1)) <= (1-level)/2 {
		b--
	}
	return float64(a) / float64(n), float64(b) / float64(n)
}

// Calibration tests ranks of one quantity for uniformity, in bins of at least 5
// expected ranks each, up to 20. Ranks outside [0, 1] and fewer than 20 ranks are
// errors.
func Calibration(name string, ranks []float64) (Calibrated, error) {
	n := len(ranks)
	if n < 20 {
		return Calibrated{}, fmt.Errorf("%d ranks of %s: calibration takes at least 20", n, name)
	}
	c := Calibrated{Name: name, Counts: make([]int, min(n/5, 20)), Within: Coverage(ranks, 0.9)}
	bins := float64(len(c.Counts))
	for _, r := range ranks {
		if !(r >= 0 && r <= 1) {
			return c, fmt.Errorf("a rank of %v of %s: want a share", r, name)
		}
		c.Counts[min(int(r*bins), len(c.Counts)-1)]++
	}
	expected := float64(n) / bins
	for _, k := range c.Counts {
		e := float64(k) - expected
		c.ChiSq += e * e / expected
	}
	c.P = distuv.ChiSquared{K: bins - 1}.Survival(c.ChiSq)
	for _, level := range Levels() {
		c.Curve = append(c.Curve, Coverage(ranks, level))
	}
	return c, nil
}

// Pass says whether several calibrations together pass at a level: the smallest P is
// above level divided by their number (Bonferroni), so that a calibrated method fails
// at most so often.
func Pass(all []Calibrated, level float64) bool {
	for _, c := range all {
		if !(c.P >= level/float64(len(all))) {
			return false
		}
	}
	return len(all) > 0
}
