package predict

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"parley/methods/regression/glm"
)

// Unpaired says whether residuals are of so many columns that their products were not looked at.
func (a *Assessment) Unpaired() bool {
	all := a.Classes
	if a.Residuals != nil {
		all = []*Residuals{a.Residuals}
	}
	return slices.ContainsFunc(all, func(s *Residuals) bool { return len(s.PairNet) == 0 && len(s.Score) > MostPaired })
}

// InteractionScoreTest is how much outcomes go with the product of columns j < k of features, in one of so many
// tests: the square of a standard normal deviate by the number of rows, or 0 if that may be chance, is
// too little to matter, or was not looked at. It is a score test of the product, with a constant and
// both columns estimated, as [Residuals.NonlinearityScoreTest] is of a step.
func (s *Residuals) InteractionScoreTest(j, k, tests int) float64 {
	at := pair(j, k)
	if at >= len(s.PairNet) {
		return 0
	}
	xs := func(j int) (sum float64) {
		for _, x := range s.BinXs[bins*j : bins*(j+1)] {
			sum += x
		}
		return sum
	}
	both, own := s.PairVariance[at], s.PairBread[at]
	information := mat.NewSymDense(3, []float64{s.Variance, xs(j), xs(k), 0, s.Bread[j], both, 0, 0, s.Bread[k]})
	in := mat.NewVecDense(3, []float64{both, s.PairSecond[at], s.PairFirst[at]})
	var chol mat.Cholesky
	var by mat.VecDense
	if !chol.Factorize(information) || !glm.Usable(chol.SolveVecTo(&by, in)) {
		return 0
	}
	variance := own - mat.Dot(in, &by)
	if !(variance > leastPart*(own-both/s.Variance*both)) {
		return 0
	}
	d := s.PairNet[at] - mat.Dot(mat.NewVecDense(3, []float64{s.Net, s.Score[j], s.Score[k]}), &by)
	z2 := d / variance * d / max(s.PairSquares[at]/own, s.dispersion())
	share := (z2 - 1) / s.Count()
	if math.IsInf(share, 0) || !(share > substantial) || !(z2 > quantile(tests, 2)) {
		return 0
	}
	return share
}
