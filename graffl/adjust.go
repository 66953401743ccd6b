package graffl

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
)

// Adjust moves accepted parameters to where they would have been accepted had their
// statistics been the observed ones, by weighted linear regression (Beaumont, Zhang and
// Balding 2002): u* = u + B (s_obs − s). Parameters and statistics are by draw;
// parameters in [Coordinates]. Weights are those of importance, prior over
// proposal; the regression multiplies them by Epanechnikov's kernel of the distance of
// standardised statistics, whose width is the largest distance, and returns the
// product, of sum 1.
//
// A shift is cut at two standard deviations of its coordinate: from a cloud that is
// still wide, a straight line points anywhere. Where the cut bites, sample again nearer by,
// then adjust again; never report from a first, wide cloud.
//
// An error means too few draws of positive weight: at least twice as many as there are
// statistics, and 10.
func Adjust(parameters, statistics [][]float64, weights, observed []float64) (adjusted [][]float64, kernel []float64, err error) {
	n, p := len(parameters), len(observed)
	if len(statistics) != n || len(weights) != n || n < 10 || n < 2*p || p < 1 {
		return nil, nil, fmt.Errorf("%d parameters, statistics of %d and %d weights, and %d observed statistics: want as many of each, at least 10 and twice the statistics", n, len(statistics), len(weights), p)
	}
	d := len(parameters[0])
	for i := range n {
		if len(parameters[i]) != d || len(statistics[i]) != p || notFinite(parameters[i]) >= 0 || notFinite(statistics[i]) >= 0 || !(weights[i] >= 0) || math.IsInf(weights[i], 1) {
			return nil, nil, fmt.Errorf("draw %d has %d parameters, %d statistics and the weight %v: want %d, %d, all finite, and a weight that is not negative", i, len(parameters[i]), len(statistics[i]), weights[i], d, p)
		}
	}
	if notFinite(observed) >= 0 {
		return nil, nil, fmt.Errorf("observed statistic %d is not finite", notFinite(observed))
	}
	_, scale := spreadOf(statistics, weights)
	centred := make([][]float64, n) // s − s_obs in standard deviations
	distance, far := make([]float64, n), 0.0
	for i, s := range statistics {
		centred[i] = make([]float64, p)
		for j := range s {
			if scale[j] > 0 {
				centred[i][j] = (s[j] - observed[j]) / scale[j]
			}
		}
		distance[i] = squares(centred[i])
		if weights[i] > 0 {
			far = max(far, distance[i])
		}
	}
	kernel = make([]float64, n)
	total, used := 0.0, 0
	for i, w := range weights {
		if far == 0 {
			kernel[i] = w
		} else {
			kernel[i] = w * max(0, 1-distance[i]/far)
		}
		total += kernel[i]
		if kernel[i] > 0 {
			used++
		}
	}
	if used < 2*p || used < 5 {
		return nil, nil, fmt.Errorf("%d draws have weight: too few to regress on %d statistics", used, p)
	}
	gram, right := mat.NewSymDense(p+1, nil), mat.NewDense(p+1, d, nil)
	x := make([]float64, p+1)
	x[0] = 1
	for i := range n {
		kernel[i] /= total
		copy(x[1:], centred[i])
		gram.SymRankOne(gram, kernel[i], mat.NewVecDense(p+1, x))
		for a, v := range x {
			for c, u := range parameters[i] {
				right.Set(a, c, right.At(a, c)+kernel[i]*v*u)
			}
		}
	}
	for a := 1; a <= p; a++ { // statistics that are combinations of others
		gram.SetSym(a, a, gram.At(a, a)+1e-9)
	}
	var factor mat.Cholesky
	var slope mat.Dense
	if !factor.Factorize(gram) {
		return nil, nil, fmt.Errorf("the statistics of %d draws do not allow a regression", used)
	}
	if err := factor.SolveTo(&slope, right); err != nil {
		return nil, nil, fmt.Errorf("regressing on %d statistics: %w", p, err)
	}
	_, sd := spreadOf(parameters, weights)
	for i, u := range parameters {
		moved := make([]float64, d)
		for c, v := range u {
			shift := 0.0
			for j, s := range centred[i] {
				shift -= slope.At(j+1, c) * s
			}
			moved[c] = v + min(max(shift, -2*sd[c]), 2*sd[c])
		}
		adjusted = append(adjusted, moved)
	}
	return adjusted, kernel, nil
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
