package predict

import "math"

const (
	// runs is in how many ways bins that follow each other part a column's rows in two.
	runs = bins * (bins - 1) / 2
	// leastPart is the least share of a column's variance that either part has, and of the variance of the
	// part's sum that a constant and the column leave.
	leastPart = 0.1
)

// binSums are sums over bins: of what is left, of its variance alone and times the column, and of squares.
type binSums struct{ net, variance, xs, squares float64 }

// NonlinearityScoreTest says whether outcomes in some run of bins of a column, one of so many that are tested, lie off
// the model's expectation, by more than chance and by enough to matter: what a bent effect leaves if it
// was taken for straight. It is a score test of a step in each run. With a constant and the effect of the
// column estimated, Σ r over the run, less what it has in common with these, has the variance a −
// aᵀM⁻¹a, for sums a of v(1, x) over the run and M of v(1, x)(1, x)ᵀ over all; other estimated
// coefficients only take from it. Where squares are larger than v in a part, they are its variance.
func (s *Residuals) NonlinearityScoreTest(j, columns int) bool {
	var each [bins]binSums
	var all binSums
	for k := range each {
		at := bins*j + k
		each[k] = binSums{s.BinNet[at], s.BinVariance[at], s.BinXs[at], s.BinSquares[at]}
		all.add(each[k])
	}
	second, score := s.Bread[j], s.Score[j]
	det := all.variance*second - all.xs*all.xs
	if !(det > 1e-9*all.variance*second) { // below, rounding makes it
		return false
	}
	limit := quantile(columns*runs, 2)
	for first := range each {
		var in binSums
		for _, b := range each[first:] {
			in.add(b)
			rest := all.variance - in.variance
			if !(min(in.variance, rest) > leastPart*all.variance) {
				continue
			}
			one, x := (in.variance*second-in.xs*all.xs)/det, (in.xs*all.variance-in.variance*all.xs)/det
			variance := in.variance - one*in.variance - x*in.xs
			alone := in.variance * (rest / all.variance) // with a constant only
			if !(variance > leastPart*alone) {
				continue
			}
			spread := (rest*(in.squares/in.variance) + in.variance*((all.squares-in.squares)/rest)) / all.variance
			d := in.net - one*all.net - x*score
			z2 := d / variance * d / max(spread, s.Dispersion())
			if !math.IsInf(z2, 0) && (z2-1)/s.Weight > substantial && z2 > limit {
				return true
			}
		}
	}
	return false
}

func (b *binSums) add(c binSums) {
	b.net, b.variance, b.xs, b.squares = b.net+c.net, b.variance+c.variance, b.xs+c.xs, b.squares+c.squares
}
