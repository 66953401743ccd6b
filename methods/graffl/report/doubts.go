package report

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"parley/methods/graffl/mixture"
)

// FewDraws is the effective sample size below which a report warns.
const FewDraws = 100

const (
	// unsureWeight is how many standard deviations a weight must be above 0, and unsurePlace what
	// share of the distance to the nearest other component the standard deviation of a
	// component's mean may be, in the direction where it is largest.
	unsureWeight, unsurePlace = 3, 0.2
	// nearlyAsWell is by how much the log evidence of another mixture may be below that of the best
	// for it to be doubted which is right.
	nearlyAsWell = 5
)

// Doubts says of which components a posterior is unsure: whose weight may be nothing, and whose
// place is not known well beside the distance to its neighbour. Both are what a search that
// has missed the right mixture looks like. It says, too, whether another mixture fits nearly as
// well. Distances are in standard deviations of the components' rows, feature by feature.
func Doubts(p *mixture.Posterior) (all []string) {
	if len(p.Rivals) > 0 && p.Rivals[0] < nearlyAsWell {
		all = append(all, fmt.Sprintf("another mixture, with components elsewhere, explains what the sites released nearly as well: its log evidence is %.1f lower", p.Rivals[0]))
	}
	m := p.Mean()
	d := m.Dim
	width := make([]float64, d)
	for i := range d {
		for k, w := range m.Weights {
			width[i] += w * m.Cov(k)[i*d+i]
		}
		width[i] = math.Sqrt(max(width[i], math.SmallestNonzeroFloat64))
	}
	for k, w := range m.Weights {
		if m.Components() == 1 {
			break // it has all the weight, and no neighbour
		}
		variance := 0.0
		cov := mat.NewSymDense(d, nil)
		for i, draw := range p.Draws {
			off := draw.Weights[k] - w
			variance += p.Weights[i] * off * off
			x := make([]float64, d)
			for j := range d {
				x[j] = (draw.Mean(k)[j] - m.Mean(k)[j]) / width[j]
			}
			cov.SymRankOne(cov, p.Weights[i], mat.NewVecDense(d, x))
		}
		if w < unsureWeight*math.Sqrt(variance) {
			all = append(all, fmt.Sprintf("component %d was not found: its weight may be nothing", k+1))
			continue
		}
		nearest := math.Inf(1)
		for j := range m.Weights {
			if j != k {
				s := 0.0
				for i := range d {
					t := (m.Mean(j)[i] - m.Mean(k)[i]) / width[i]
					s += t * t
				}
				nearest = min(nearest, math.Sqrt(s))
			}
		}
		var eigen mat.EigenSym
		if !eigen.Factorize(cov, false) || math.Sqrt(max(eigen.Values(nil)[d-1], 0)) > unsurePlace*nearest {
			all = append(all, fmt.Sprintf("component %d may lie elsewhere: its mean is not known well beside its distance to the nearest other", k+1))
		}
	}
	return all
}
