package graffl

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// Adjust moves parameters, each with statistics of a set simulated from it, to where
// they would have been had their statistics been the observed ones, by weighted linear
// regression (Beaumont, Zhang and Balding 2002): u* = u + B (s_obs − s). Parameters and
// statistics are by draw; parameters in [Coordinates]. The nearest share of the draws,
// by Mahalanobis distance of the statistics, takes part, with Epanechnikov's kernel
// of that distance as weight; the others have the weight 0. Kernel weights sum to 1.
//
// Whatever density q the parameters came from, adjusted draws stand for q(u | s_obs) ∝
// q(u) p(s_obs | u). To put a prior in q's place, multiply the kernel weight by
// p(u*)/q(u*), of the adjusted parameter. Beaumont et al. 2009 weight before
// adjustment; the limit is the same, but 1/q there varies with all the spread that
// adjustment takes away: in 17 coordinates, a thousand draws were worth ten.
//
// A shift is cut at two standard deviations of its coordinate: far away, a straight
// line points anywhere. The result is as good as the regression is straight over the
// draws that take part.
//
// It is a building block; no variant's posterior is made with it. On the landmark means
// of three components (tools/measure graffl adjust measures it), from proposals as good as the
// likelihood's posterior of 0.4 of the rows, errors were a fifth to two fifths larger than
// those of [Landmarks.Posterior] where modes are apart and there is noise, intervals as wide
// or a fifth wider, in more than twice the time; without noise, or where components overlap,
// single draws took all the weight.
//
// An error means a share outside (0, 1], or too few draws: at least twice as many as
// statistics, and 10, take part.
func Adjust(parameters, statistics [][]float64, observed []float64, share float64) (adjusted [][]float64, kernel []float64, err error) {
	n, p := len(parameters), len(observed)
	near := int(share * float64(n))
	if !(share > 0 && share <= 1) || len(statistics) != n || p < 1 || near < 10 || near < 2*p {
		return nil, nil, fmt.Errorf("a share of %v of %d parameters with statistics of %d, and %d observed statistics: want as many statistics as parameters, and a share of at least 10 and of twice the observed ones", share, n, len(statistics), p)
	}
	d := len(parameters[0])
	for i := range n {
		if len(parameters[i]) != d || len(statistics[i]) != p || notFinite(parameters[i]) >= 0 || notFinite(statistics[i]) >= 0 {
			return nil, nil, fmt.Errorf("draw %d has %d parameters and %d statistics: want %d and %d, all finite", i, len(parameters[i]), len(statistics[i]), d, p)
		}
	}
	if i := notFinite(observed); i >= 0 {
		return nil, nil, fmt.Errorf("observed statistic %d is not finite", i)
	}
	white, err := whitenedFrom(statistics, observed)
	if err != nil {
		return nil, nil, err
	}
	kernel = epanechnikov(white, near)
	gram, right := mat.NewSymDense(p+1, nil), mat.NewDense(p+1, d, nil)
	x := make([]float64, p+1)
	x[0] = 1
	for i, k := range kernel {
		if k == 0 {
			continue
		}
		copy(x[1:], white[i])
		gram.SymRankOne(gram, k, mat.NewVecDense(p+1, x))
		for a, v := range x {
			for c, u := range parameters[i] {
				right.Set(a, c, right.At(a, c)+k*v*u)
			}
		}
	}
	for a := 1; a <= p; a++ { // statistics that are combinations of others
		gram.SetSym(a, a, gram.At(a, a)+1e-9)
	}
	var factor mat.Cholesky
	var slope mat.Dense
	if !factor.Factorize(gram) {
		return nil, nil, fmt.Errorf("the statistics of %d draws do not allow a regression", near)
	}
	if err := factor.SolveTo(&slope, right); err != nil {
		return nil, nil, fmt.Errorf("regressing on %d statistics: %w", p, err)
	}
	_, sd := spreadOf(parameters, kernel)
	for i, u := range parameters {
		moved := make([]float64, d)
		for c, v := range u {
			shift := 0.0
			for j, s := range white[i] {
				shift -= slope.At(j+1, c) * s
			}
			moved[c] = v + min(max(shift, -2*sd[c]), 2*sd[c])
		}
		adjusted = append(adjusted, moved)
	}
	return adjusted, kernel, nil
}

// whitenedFrom returns L⁻¹(s − s_obs) for every draw, LLᵀ the covariance of the
// statistics; one that does not vary is 0.
func whitenedFrom(statistics [][]float64, observed []float64) ([][]float64, error) {
	n, p := len(statistics), len(observed)
	equal := make([]float64, n)
	for i := range equal {
		equal[i] = 1
	}
	mean, sd := spreadOf(statistics, equal)
	white, l, z := make([][]float64, n), make([]float64, p*p), make([]float64, p)
	for i, s := range statistics {
		white[i] = make([]float64, p)
		for j, v := range s {
			if z[j] = 0; sd[j] > 0 {
				z[j] = (v - mean[j]) / sd[j]
				white[i][j] = (v - observed[j]) / sd[j]
			}
			for k := range j + 1 {
				l[j*p+k] += z[j] * z[k] / float64(n)
			}
		}
	}
	for j := range p {
		l[j*p+j] += 1e-6
	}
	if _, ok := cholesky(l, p); !ok {
		return nil, fmt.Errorf("the covariance of %d statistics is singular", p)
	}
	for _, w := range white {
		forward(l, p, w)
	}
	return white, nil
}

// epanechnikov returns weights 1 − |z|²/h² of sum 1 on the near nearest draws, h the
// distance of the last of them; equal ones where h is 0.
func epanechnikov(white [][]float64, near int) []float64 {
	order := make([]int, len(white))
	distance := make([]float64, len(white))
	for i, z := range white {
		order[i], distance[i] = i, squares(z)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(distance[a], distance[b]) })
	far := distance[order[near-1]] * (1 + 1e-9)
	kernel, total := make([]float64, len(white)), 0.0
	for _, i := range order[:near] {
		kernel[i] = 1
		if far > 0 {
			kernel[i] = 1 - distance[i]/far
		}
		total += kernel[i]
	}
	for i := range kernel {
		kernel[i] /= total
	}
	return kernel
}

// spreadOf returns weighted means and standard deviations by column.
func spreadOf(x [][]float64, weights []float64) (mean, sd []float64) {
	mean, sd = make([]float64, len(x[0])), make([]float64, len(x[0]))
	total := 0.0
	for i, row := range x {
		total += weights[i]
		for j, v := range row {
			mean[j] += weights[i] * v
		}
	}
	for j := range mean {
		mean[j] /= total
	}
	for i, row := range x {
		for j, v := range row {
			sd[j] += weights[i] * (v - mean[j]) * (v - mean[j])
		}
	}
	for j := range sd {
		sd[j] = math.Sqrt(sd[j] / total)
	}
	return mean, sd
}
