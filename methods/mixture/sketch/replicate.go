package sketch

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"parley/methods/mixture/gmm"
)

// Replicate is one repetition of simulation-based calibration of [Landmarks.Posterior]:
// θ from the prior, rows from θ, their noised landmark means, the posterior given
// them, and the rank of θ in it. Noise is drawn here from the seed, for this test alone;
// nothing of a site is touched.
type Replicate struct {
	Prior     gmm.Prior
	Landmarks Landmarks
	Rows      int     // n, all sites together
	Noise     float64 // standard deviation on each entry of the sum of φ
	RowsNoise float64 // standard deviation on n, where that is released with noise, too
	Sampling  Sampling
	// Assumed draws landmark means from the normal law that the posterior takes them to
	// have, in place of rows: an error is then the sampler's alone.
	Assumed bool
}

// quantities are what is ranked: functions of a parameter that do not depend on the
// order of its components.
func quantities(l Landmarks, m gmm.Mixture, o Observation) []float64 {
	d := m.Dim
	q := make([]float64, 0, 3*d+3)
	heaviest, top := 0, 0.0
	for k, w := range m.Weights {
		if w > top {
			heaviest, top = k, w
		}
	}
	for i := range d { // mean of the mixture
		s := 0.0
		for k, w := range m.Weights {
			s += w * m.Mean(k)[i]
		}
		q = append(q, s)
	}
	q = append(q, m.Mean(heaviest)...)
	for i := range d {
		q = append(q, math.Log(m.Cov(heaviest)[i*d+i]))
	}
	q = append(q, top)
	mean := make([]float64, l.Len())
	newMoments(l).mean(m, mean)
	return append(q, gmm.SquaredDistance(mean, o.Mean))
}

// quantityNames names what [Replicate.Ranks] ranks, in d dimensions.
func quantityNames(d int) (names []string) {
	for _, what := range []string{"all rows: mean ", "largest component: mean ", "largest component: ln variance "} {
		for i := range d {
			names = append(names, what+strconv.Itoa(i+1))
		}
	}
	return append(names, "largest component: weight", "landmark means: distance")
}

// Ranks runs replicate number i and returns the rank of each quantity.
func (c Replicate) Ranks(i int) ([]float64, error) {
	a := gmm.SplitMix(c.Sampling.Seed + uint64(i)*0x9e3779b97f4a7c15)
	r := rand.New(rand.NewPCG(a, gmm.SplitMix(a)))
	truth := gmm.NewMixture(c.Prior.Components(), c.Prior.Dim())
	c.Prior.Sampler().Draw(r, truth)
	observe := c.released
	if c.Assumed {
		observe = c.assumed
	}
	o, err := observe(r, truth)
	if err != nil {
		return nil, err
	}
	opt := c.Sampling
	opt.Seed = gmm.SplitMix(a + 1)
	post, err := c.Landmarks.Posterior(o, c.Prior, opt)
	if err != nil {
		return nil, err
	}
	want := quantities(c.Landmarks, truth, o)
	draws := make([][]float64, len(want))
	for _, m := range post.Draws {
		for j, v := range quantities(c.Landmarks, m, o) {
			draws[j] = append(draws[j], v)
		}
	}
	ranks := make([]float64, len(want))
	for j := range ranks {
		ranks[j] = gmm.Rank(draws[j], post.Weights, want[j])
	}
	return ranks, nil
}

// released draws rows, and what their sites release.
func (c Replicate) released(r *rand.Rand, truth gmm.Mixture) (Observation, error) {
	sum, err := c.Landmarks.simulated(r, truth, c.Rows)
	if err != nil {
		return Observation{}, err
	}
	for j := range sum {
		sum[j] += c.Noise * r.NormFloat64()
	}
	o := c.noised(r)
	for j := range sum {
		sum[j] /= o.Rows
	}
	o.Mean = sum
	return o, nil
}

// assumed draws from the law that [Landmarks.Posterior] takes as likelihood.
func (c Replicate) assumed(r *rand.Rand, truth gmm.Mixture) (Observation, error) {
	o := c.noised(r)
	mean, cov, err := c.Landmarks.Moments(truth)
	if err != nil {
		return o, err
	}
	spread(regularised(o), mean, cov)
	n := len(mean)
	if _, ok := gmm.NewBlocked(n).Cholesky(cov); !ok {
		return o, fmt.Errorf("the covariance of %d landmark means is singular", n)
	}
	z := make([]float64, n)
	for i := range z {
		z[i] = r.NormFloat64()
		for j, v := range z[:i+1] {
			mean[i] += cov[i*n+j] * v
		}
	}
	o.Mean = mean
	return o, nil
}

// noised is an observation that lacks its means.
func (c Replicate) noised(r *rand.Rand) Observation {
	rows := max(1, float64(c.Rows)+c.RowsNoise*r.NormFloat64())
	return Observation{Rows: rows, RowsVar: c.RowsNoise * c.RowsNoise, NoiseVar: c.Noise * c.Noise / (rows * rows)}
}

// simulated returns the sum of φ over rows from m. They are drawn a few at a time: there
// may be as many as all sites of a study have.
func (l Landmarks) simulated(r *rand.Rand, m gmm.Mixture, n int) (sum []float64, err error) {
	const some = 256
	rows := make([]float64, min(n, some)*m.Dim)
	sum, phi := make([]float64, l.Len()), make([]float64, l.Len())
	for ; n > 0; n -= some {
		part := rows[:min(n, some)*m.Dim]
		if err := m.Simulate(r, part); err != nil {
			return nil, err
		}
		for x := range slices.Chunk(part, m.Dim) {
			l.Features(phi, x)
			for j, v := range phi {
				sum[j] += v
			}
		}
	}
	return sum, nil
}

// Calibrate tests the ranks of many replicates, as [Replicate.Ranks] gives them, quantity
// by quantity.
func (c Replicate) Calibrate(ranks [][]float64) ([]gmm.Calibrated, error) {
	names := quantityNames(c.Prior.Dim())
	var out []gmm.Calibrated
	for j, name := range names {
		var own []float64
		for i, r := range ranks {
			if len(r) != len(names) {
				return nil, fmt.Errorf("replicate %d has %d ranks: want %d", i, len(r), len(names))
			}
			own = append(own, r[j])
		}
		one, err := gmm.Calibration(name, own)
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}
