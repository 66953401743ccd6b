package predict

import (
	"math"

	"parley/methods/regression/glm"
)

// fewestLacking is how many subjects of a site must lack a cell, and have it, for the site to say what is left
// of their outcomes: of a few it would be those of single subjects.
const fewestLacking = 5

// forgetFew leaves out what few subjects lack or have. It must come before the series is summed up.
func (s *Residuals) forgetFew() {
	for j, n := range s.without {
		if n < fewestLacking || len(s.series)-n < fewestLacking {
			s.LackNet[j], s.LackMoved[j], s.LackVariance[j], s.LackSquares[j] = 0, 0, 0, 0
		}
	}
}

// ofMeans returns by how much the activation of a row that lacks some columns would be higher with the means
// of the design's other rows there, under weights of these means.
func ofMeans(d *glm.Design) func(weights []float64, lacks []int32) float64 {
	sums, rows := make([]float64, d.Columns()), make([]float64, d.Columns())
	for i := range d.Rows() {
		row := d.Row(i)
		for k, j := range row.Index {
			sums[j] += row.Value[k]
		}
		for _, j := range row.Lacks {
			rows[j]--
		}
	}
	return func(weights []float64, lacks []int32) (moved float64) {
		for _, j := range lacks {
			moved += weights[j] * sums[j] / max(rows[j]+float64(d.Rows()), 1)
		}
		return moved
	}
}

// Lacking says whether outcomes of rows that lack column j are higher or lower than if its cells were
// missing by chance, in one of so many tests: by the score test of an indicator of the lack beside an
// intercept of each site. What cells that are missing by chance leave may have been taken up in part by other
// features that the lack goes with, so that anything between that and nothing is taken for chance. It is by
// how many standard errors the rest moves an effect where what counts in the place of a missing cell is a
// standard deviation off: Σ wr/√(Σ wv). It is 0 if that may be chance.
func Lacking(sites []*Residuals, all *Residuals, j, tests int) float64 {
	if all == nil {
		return 0
	}
	over := all.Dispersion()
	more, usual, variance := 0.0, 0.0, 0.0
	for _, s := range sites {
		if s == nil || !(s.LackVariance[j] > 0) {
			continue
		}
		rest := max(1-s.LackVariance[j]/s.Variance, 0)
		more += s.LackNet[j] - (1-rest)*s.Net
		usual += rest * s.LackMoved[j]
		variance += rest * max(s.LackSquares[j], s.LackVariance[j]*over)
	}
	more -= min(max(more, min(usual, 0)), max(usual, 0))
	shift := more / math.Sqrt(all.Variance*over)
	if !(more*more > quantile(tests, 2)*variance) || math.IsInf(shift, 0) {
		return 0
	}
	return shift
}
