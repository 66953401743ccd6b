package toy

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// rank returns the share of a sample's weight below a value, ties counted as half:
// uniform on [0, 1] over repetitions in which value and sample have one law.
func rank(values, weights []float64, value float64) float64 {
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

// coverage returns how often true values were inside the central intervals of a level,
// given their ranks in the posteriors.
func coverage(ranks []float64, level float64) float64 {
	in := 0
	for _, r := range ranks {
		if math.Abs(r-0.5) <= level/2 {
			in++
		}
	}
	return float64(in) / float64(max(len(ranks), 1))
}

// Levels returns the levels of intervals at which coverage is shown, from 10 to 95 %.
func Levels() []float64 { return []float64{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95} }

// chanceBand returns the shares between which that of n independent events of one probability lies
// with a probability of at least level, as much being cut off below as above: what
// coverage, or a bin of ranks, may show by chance.
func chanceBand(n int, probability, level float64) (low, high float64) {
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
