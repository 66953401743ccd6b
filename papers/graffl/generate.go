package graffl

import (
	"cmp"
	"errors"
	"math"
	"math/rand/v2"
	"slices"

	"parley/methods/mixture/gmm"
	"parley/methods/mixture/sketch"
	"parley/methods/published/graffl"
	"parley/papers/graffl/toy"
	"parley/privacy/account"
)

// The public choices for codes, which an encoder's training pulls towards N(0, I).
const (
	codeBox        = 4.0   // ± of every number
	codeSpread     = 0.005 // E Σ of a component as a share of the box's width, squared
	frequencies    = 96
	publishedParts = 3 // components of the published algorithm's mixture
	draws          = 256
)

// codePrior is the prior of k components over codes of d numbers.
func codePrior(d, k int) (gmm.Prior, error) {
	lo, hi := make([]float64, d), make([]float64, d)
	for i := range d {
		lo[i], hi[i] = -codeBox, codeBox
	}
	p, err := gmm.BoxPrior(lo, hi, k)
	for i := range p.Psi {
		p.Psi[i] *= codeSpread / 0.02 // of BoxPrior
	}
	return p, err
}

// codeFrequencies are the frequencies over codes of d numbers.
func codeFrequencies(d int) (sketch.Frequencies, error) {
	lo, hi, scale := make([]float64, d), make([]float64, d), make([]float64, d)
	for i := range d {
		lo[i], hi[i], scale[i] = -codeBox, codeBox, codeBox/8
	}
	return sketch.New(lo, hi, scale, frequencies, 1)
}

// fromAll samples the exact posterior of one Gaussian given all codes of the scarce
// class in one place: no generator of this kind can know more.
func fromAll(sites [][]float64, d int, seed uint64) (*gmm.Posterior, error) {
	prior, err := codePrior(d, 1)
	if err != nil {
		return nil, err
	}
	var all []float64
	for _, rows := range sites {
		all = append(all, rows...)
	}
	return toy.Conjugate(prior, [][]float64{all}, draws, rand.New(rand.NewPCG(seed, 1))), nil
}

// fromSums samples the posterior of one Gaussian given sums at frequencies, as method mixture does. With ε above 0
// sums and numbers of rows carry the noise that each site's one release would: that
// of one record in the ball of φ/B beside ¼ for the count, added or removed. It is drawn
// from the seed, because this is a measurement on public data and no release.
func fromSums(sites [][]float64, d int, epsilon float64, seed uint64) (*gmm.Posterior, error) {
	prior, err := codePrior(d, 1)
	if err != nil {
		return nil, err
	}
	f, err := codeFrequencies(d)
	if err != nil {
		return nil, err
	}
	const count = 0.25
	unit := 0.0
	if epsilon > 0 {
		factor, err := account.AnalyticGaussian(epsilon, toy.Delta)
		if err != nil {
			return nil, err
		}
		unit = factor * math.Sqrt(1+count*count)
	}
	bound := f.NormBound()
	r := rand.New(rand.NewPCG(seed, 2))
	o, phi := sketch.Observation{Mean: make([]float64, f.Len())}, make([]float64, f.Len())
	for _, rows := range sites {
		for at := 0; at < len(rows); at += d {
			f.Features(phi, rows[at:])
			for i, v := range phi {
				o.Mean[i] += v
			}
			o.Rows++
		}
		for i := range o.Mean {
			o.Mean[i] += unit * bound * r.NormFloat64()
		}
		o.Rows += unit / count * r.NormFloat64()
		o.NoiseVar += unit * unit * bound * bound
		o.RowsVar += unit * unit / count / count
	}
	o.Rows = max(o.Rows, 1)
	for i := range o.Mean {
		o.Mean[i] /= o.Rows
	}
	o.NoiseVar /= o.Rows * o.Rows
	return f.Posterior(o, prior, sketch.DefaultParticles, seed)
}

// fromAlgorithm2 returns what the published algorithm accepts of so many proposals: as many for each row, in whole
// rounds, those whose row came closest to its partner.
func fromAlgorithm2(sites [][]float64, d, proposals int, seed uint64) (*gmm.Posterior, error) {
	prior, err := codePrior(d, publishedParts)
	if err != nil {
		return nil, err
	}
	rows := slices.Concat(sites...)
	if len(rows) == 0 {
		return nil, errors.New("the sites have no rows")
	}
	type proposal struct {
		number   int
		distance float64
	}
	n := len(rows) / d
	all, x := make([]proposal, proposals/n*n), make([]float64, d)
	proposer := graffl.NewProposer(prior, seed)
	for i := range all {
		proposer.Row(i, x)
		all[i] = proposal{i, gmm.SquaredDistance(x, rows[i%n*d:][:d])}
	}
	slices.SortFunc(all, func(a, b proposal) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.number, b.number))
	})
	all = all[:min(draws, len(all))]
	p := new(gmm.Posterior)
	for _, a := range all {
		m := gmm.NewMixture(publishedParts, d)
		proposer.Parameter(a.number, m)
		p.Draws, p.Weights = append(p.Draws, m), append(p.Weights, 1/float64(len(all)))
	}
	return p, nil
}

// predictive draws rows, each from another draw of the posterior.
func predictive(p *gmm.Posterior, n int, seed uint64) ([][]float64, error) {
	r := rand.New(rand.NewPCG(seed, 3))
	rows := make([][]float64, n)
	for i := range rows {
		u, k := r.Float64(), 0
		for ; k < len(p.Weights)-1 && u >= p.Weights[k]; k++ {
			u -= p.Weights[k]
		}
		rows[i] = make([]float64, p.Draws[k].Dim)
		if err := p.Draws[k].Simulate(r, rows[i]); err != nil {
			return nil, err
		}
	}
	return rows, nil
}
