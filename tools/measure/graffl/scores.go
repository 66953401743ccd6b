package graffl

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"

	"parley/methods/graffl/mixture"
)

// tally compares posteriors of single numbers with the truth.
type tally struct {
	n       int
	ranks   []float64
	squares float64 // of errors of posterior means
	widths  float64 // sum, of 90 % intervals
	largest float64 // error
}

// add takes one number's sample.
func (t *tally) add(values, weights []float64, truth float64) {
	mean := 0.0
	for i, v := range values {
		mean += weights[i] * v
	}
	t.n++
	t.ranks = append(t.ranks, mixture.Rank(values, weights, truth))
	t.squares += (mean - truth) * (mean - truth)
	t.widths += mixture.Quantile(values, weights, (1+level)/2) - mixture.Quantile(values, weights, (1-level)/2)
	t.largest = max(t.largest, math.Abs(mean-truth))
}

func (t *tally) rmse() float64  { return math.Sqrt(t.squares / float64(t.n)) }
func (t *tally) width() float64 { return t.widths / float64(t.n) }

// covers is the share of true values in the central intervals of a level; coverage that of 90 %.
func (t *tally) coverage() float64            { return t.covers(level) }
func (t *tally) covers(level float64) float64 { return mixture.Coverage(t.ranks, level) }

// scores are those of means, weights and covariances (lower triangles).
type scores struct{ means, weights, covs tally }

// add compares a posterior with a truth whose components it is matched to.
func (s *scores) add(p *mixture.Posterior, truth mixture.Mixture) {
	matched := make([]mixture.Mixture, len(p.Draws))
	for i, m := range p.Draws {
		matched[i] = m.Reorder(mixture.Match(truth, m, nil))
	}
	values := make([]float64, len(matched))
	compare := func(t *tally, number func(mixture.Mixture) float64) {
		for i, m := range matched {
			values[i] = number(m)
		}
		t.add(values, p.Weights, number(truth))
	}
	for k := range truth.Weights {
		compare(&s.weights, func(m mixture.Mixture) float64 { return m.Weights[k] })
		for i := range truth.Dim {
			compare(&s.means, func(m mixture.Mixture) float64 { return m.Mean(k)[i] })
			for j := range i + 1 {
				compare(&s.covs, func(m mixture.Mixture) float64 { return m.Cov(k)[i*truth.Dim+j] })
			}
		}
	}
}

// readPosterior reads model/posterior.csv.
func readPosterior(data []byte, k, d int) (*mixture.Posterior, error) {
	lines, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
	if err != nil {
		return nil, err
	}
	const before = 2 // columns: the draw's number, its weight
	p := &mixture.Posterior{}
	for _, line := range lines[1:] {
		if want := before + k + k*d + k*d*(d+1)/2; len(line) != want {
			return nil, fmt.Errorf("a line of the sample has %d numbers, want %d", len(line), want)
		}
		var x []float64
		for _, cell := range line[before-1:] {
			v, err := strconv.ParseFloat(cell, 64)
			if err != nil {
				return nil, err
			}
			x = append(x, v)
		}
		p.Weights = append(p.Weights, x[0])
		m := mixture.NewMixture(k, d)
		x = x[1+copy(m.Weights, x[1:]):]
		x = x[copy(m.Means, x):]
		for c := range k {
			cov := m.Cov(c)
			for i := range d {
				for j := range i + 1 {
					cov[i*d+j], cov[j*d+i] = x[0], x[0]
					x = x[1:]
				}
			}
		}
		p.Draws = append(p.Draws, m)
	}
	p.Size = mixture.EffectiveSize(p.Weights)
	return p, nil
}

// conjugate samples the exact posterior of rows whose components are known, which at
// fourteen standard deviations from each other they are: a Dirichlet and, for each
// component, a normal-inverse-Wishart distribution.
func conjugate(prior mixture.Prior, sites [][]float64, draws int, r *rand.Rand) *mixture.Posterior {
	d := prior.Dim()
	p := &mixture.Posterior{Size: float64(draws)}
	parts := make([]mixture.Prior, len(sites))
	weights := mixture.Prior{Mean: prior.Mean, Kappa: prior.Kappa, Nu: prior.Nu, Psi: prior.Psi}
	for k, rows := range sites {
		n := float64(len(rows) / d)
		weights.Alpha = append(weights.Alpha, prior.Alpha[k]+n)
		q := mixture.Prior{Alpha: []float64{1}, Kappa: prior.Kappa + n, Nu: prior.Nu + n, Psi: append([]float64(nil), prior.Psi...)}
		mean := make([]float64, d)
		for i, x := range rows {
			mean[i%d] += x / n
		}
		for i := range d {
			q.Mean = append(q.Mean, (prior.Kappa*prior.Mean[i]+n*mean[i])/q.Kappa)
			for j := range d {
				for at := 0; at < len(rows); at += d {
					q.Psi[i*d+j] += (rows[at+i] - mean[i]) * (rows[at+j] - mean[j])
				}
				q.Psi[i*d+j] += prior.Kappa * n / q.Kappa * (mean[i] - prior.Mean[i]) * (mean[j] - prior.Mean[j])
			}
		}
		parts[k] = q
	}
	shares, one := weights.Sampler(), mixture.NewMixture(1, d)
	for range draws {
		m := mixture.NewMixture(len(sites), d)
		shares.Draw(r, m) // its weights are kept
		for k, q := range parts {
			q.Sampler().Draw(r, one)
			copy(m.Mean(k), one.Means)
			copy(m.Cov(k), one.Covs)
		}
		p.Draws = append(p.Draws, m)
		p.Weights = append(p.Weights, 1/float64(draws))
	}
	return p
}
