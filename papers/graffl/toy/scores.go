package toy

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/floats"

	"parley/figure"
	"parley/method"
	"parley/methods/mixture/gmm"
	"parley/methods/published/graffl"
)

// Level is that of the intervals whose widths are compared.
const Level = 0.9

// Tally compares samples of single numbers with the truth, one entry for each number.
type Tally struct {
	Errors []float64 // of posterior means
	Widths []float64 // of central 90 % intervals
	Ranks  []float64 // of the truth in the sample, from 0 to 1
}

func (t *Tally) add(values, weights []float64, truth float64) {
	mean := 0.0
	for i, v := range values {
		mean += weights[i] * v
	}
	t.Errors = append(t.Errors, mean-truth)
	t.Widths = append(t.Widths, gmm.Quantile(values, weights, (1+Level)/2)-gmm.Quantile(values, weights, (1-Level)/2))
	t.Ranks = append(t.Ranks, rank(values, weights, truth))
}

// RMSE is the root mean squared error.
func (t *Tally) RMSE() float64 { return floats.Norm(t.Errors, 2) / math.Sqrt(float64(len(t.Errors))) }

// Coverage is the share of true values in the central intervals of a level.
func (t *Tally) Coverage(level float64) float64 { return coverage(t.Ranks, level) }

// Scores are those of means, weights and covariances (lower triangles).
type Scores struct{ Means, Weights, Covs Tally }

// Add compares a sample with a truth whose components it is matched to.
func (s *Scores) Add(p *gmm.Posterior, truth gmm.Mixture) {
	matched := make([]gmm.Mixture, len(p.Draws))
	for i, m := range p.Draws {
		matched[i] = m.Reorder(gmm.Match(truth, m, nil))
	}
	values := make([]float64, len(matched))
	compare := func(t *Tally, number func(gmm.Mixture) float64) {
		for i, m := range matched {
			values[i] = number(m)
		}
		t.add(values, p.Weights, number(truth))
	}
	for k := range truth.Weights {
		compare(&s.Weights, func(m gmm.Mixture) float64 { return m.Weights[k] })
		for i := range truth.Dim {
			compare(&s.Means, func(m gmm.Mixture) float64 { return m.Mean(k)[i] })
			for j := range i + 1 {
				compare(&s.Covs, func(m gmm.Mixture) float64 { return m.Cov(k)[i*truth.Dim+j] })
			}
		}
	}
}

// Sample reads the sample of k components in d dimensions from the files of a result.
func Sample(files []method.File, k, d int) (*gmm.Posterior, error) {
	at := slices.IndexFunc(files, func(f method.File) bool { return f.Name == "model/posterior.csv" })
	if at < 0 {
		return nil, fmt.Errorf("the result has no sample")
	}
	lines, err := csv.NewReader(bytes.NewReader(files[at].Data)).ReadAll()
	if err != nil {
		return nil, err
	}
	const before = 2 // columns: the draw's number, its weight
	p := &gmm.Posterior{}
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
		m := gmm.NewMixture(k, d)
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
	p.Size = gmm.EffectiveSize(p.Weights)
	return p, nil
}

// Conjugate samples the exact posterior of rows whose components are known, which at
// fourteen standard deviations from each other they are: a Dirichlet and, for each
// component, a normal-inverse-Wishart distribution.
func Conjugate(prior gmm.Prior, sites [][]float64, draws int, r *rand.Rand) *gmm.Posterior {
	d := prior.Dim()
	p := &gmm.Posterior{Size: float64(draws)}
	parts := make([]gmm.Prior, len(sites))
	weights := gmm.Prior{Mean: prior.Mean, Kappa: prior.Kappa, Nu: prior.Nu, Psi: prior.Psi}
	for k, rows := range sites {
		n := float64(len(rows) / d)
		weights.Alpha = append(weights.Alpha, prior.Alpha[k]+n)
		q := gmm.Prior{Alpha: []float64{1}, Kappa: prior.Kappa + n, Nu: prior.Nu + n,
			Psi: append([]float64(nil), prior.Psi...)}
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
	shares, one := graffl.NewSampler(weights), gmm.NewMixture(1, d)
	for range draws {
		m := gmm.NewMixture(len(sites), d)
		shares.Draw(r, m) // its weights are kept
		for k, q := range parts {
			graffl.NewSampler(q).Draw(r, one)
			copy(m.Mean(k), one.Means)
			copy(m.Cov(k), one.Covs)
		}
		p.Draws = append(p.Draws, m)
		p.Weights = append(p.Weights, 1/float64(draws))
	}
	return p
}

// bandLevel is that of the band of what single shares may show by chance.
const bandLevel = 0.98

// Curve is the share of true values in the central intervals of [Levels].
type Curve struct {
	Name   string
	Shares []float64
}

// CoverageLines draws curves beside what they should be, with the band of chance of
// n independent intervals.
func CoverageLines(curves []Curve, n int) figure.Lines {
	l := figure.Lines{X: figure.Axis{Label: "nominal level"}, Y: figure.Axis{Label: "share that holds the truth"}}
	ideal := figure.Line{Name: "nominal", Reference: true}
	for _, level := range Levels() {
		low, high := chanceBand(n, level, bandLevel)
		ideal.X, ideal.Y = append(ideal.X, level), append(ideal.Y, level)
		ideal.Low, ideal.High = append(ideal.Low, low), append(ideal.High, high)
	}
	l.Series = append(l.Series, ideal)
	for _, c := range curves {
		l.Series = append(l.Series, figure.Line{Name: c.Name, X: ideal.X, Y: c.Shares})
	}
	return l
}
