package between

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"parley/methods/factors/ppca"
)

const (
	// groupsLeftOut is how many groups of sites are left out in turn, at most.
	groupsLeftOut = 10
	// leftOutCycles bound the estimates of the variances of the others, which begin with those of all.
	leftOutCycles = 2
	// fewestOthers is how many sites there must be beside those that are left out.
	fewestOthers = 4
	// Directions are found from the sites' offsets in so many steps, so many times.
	directionSteps, directionCycles = 30, 3
	// sureOfDirections is the level at which left-out sites must have gained, by Student's t over sites.
	sureOfDirections = 0.99
	// unknown is the variance, in that of the noise, of a mean of which the others say nothing.
	unknown = 1e6
)

// Together finds directions along which the means of many features shift together from site to site, as a device may
// shift them: δ ~ N(0, AAᵀ + diag v), by expectation maximisation. They share out the variance that the means of a site
// have that took no part, [Offsets].NewSite, and touch nothing else. Of 1, 2, 4 and so on, as long as more are better,
// it takes as many as make the means of sites left out, one after the other or one of ten groups, likeliest; and none
// unless their log-likelihood gains on none beyond chance, by how sites differ. The model is p.
func (o *Offsets) Together(l ppca.Layout, sites [][]ppca.Block, p *ppca.Params) error {
	fewest := len(sites) - (len(sites)+groupsLeftOut-1)/groupsLeftOut
	if fewest < fewestOthers {
		return nil
	}
	all, err := without(l, sites, p, -1, nil, cycles)
	if err != nil {
		return err
	}
	rank, best, others := 0, 0.0, make([]*means, min(groupsLeftOut, len(sites)))
	none, gains := make([]float64, len(sites)), make([]float64, len(sites))
	for r := 0; r <= max(fewest-fewestOthers, 1); r = max(1, 2*r) {
		for g := range others {
			if r == 0 {
				if others[g], err = without(l, sites, p, g, all.v, leftOutCycles); err != nil {
					return err
				}
			}
			law, err := others[g].together(l, r)
			for i := g; i < len(sites) && err == nil; i += groupsLeftOut {
				s := all.sites[i]
				s.offset.Factor.Rows = 0
				gains[i], err = law.posterior(&s)
			}
			if err != nil {
				return err
			}
		}
		if r == 0 {
			copy(none, gains)
			continue
		}
		floats.Sub(gains, none)
		mean, sd := stat.MeanStdDev(gains, nil)
		if mean <= best {
			break
		}
		least := distuv.StudentsT{Sigma: 1, Nu: float64(len(sites) - 1)}.Quantile(sureOfDirections)
		if best = mean; mean > least*stat.StdErr(sd, float64(len(sites))) {
			rank = r
		}
	}
	law, err := all.together(l, rank)
	if err != nil {
		return err
	}
	for a := range rank {
		for j := range law.v {
			o.Along = append(o.Along, law.along[j*rank+a])
		}
	}
	return ppca.Finite("directions of means", o.Along)
}

// without is what all sites but those of a group say, from variances to begin with if there are any.
func without(l ppca.Layout, sites [][]ppca.Block, p *ppca.Params, group int, v []float64,
	cycles int) (m *means, err error) {
	var others [][]ppca.Block
	for i, blocks := range sites {
		if i%groupsLeftOut != group {
			others = append(others, blocks)
		}
	}
	if m, err = newMeans(l, others); err == nil {
		copy(m.v, v)
		_, err = m.estimate(l, p, cycles)
	}
	return m, err
}

// together is the law of the means of a site that took no part, with so many directions.
func (m *means) together(l ppca.Layout, rank int) (*means, error) {
	law, d, features := *m, len(m.v), []int(nil)
	law.v, law.along, law.sites = slices.Clone(m.unseen), make([]float64, rank*d), slices.Clone(m.sites)
	for j, has := range m.has {
		if has {
			features = append(features, j)
		} else {
			law.v[j] = unknown * m.noise[j]
		}
	}
	for i := range law.sites {
		law.sites[i].offset = SiteOffset{Mean: make([]float64, d), Diag: make([]float64, d)}
	}
	l.Noise = ppca.NoisePerFeature
	var start *ppca.Params
	for cycle := 0; cycle < directionCycles && rank > 0; cycle++ {
		if _, err := law.posteriors(); err != nil {
			return nil, err
		}
		b := ppca.Block{Features: features, N: float64(len(m.sites) - 1), Mean: make([]float64, len(features)),
			Diag: make([]float64, len(features))}
		for i := range law.sites {
			offset := &law.sites[i].offset
			for a, j := range features {
				b.Factor, b.Diag[a] = append(b.Factor, offset.Mean[j]), b.Diag[a]+offset.variance(j)
			}
		}
		fit, err := ppca.Fit(l, []ppca.Block{b}, rank, start, ppca.FitOptions{MaxIter: directionSteps})
		if err != nil {
			return nil, fmt.Errorf("directions along which means of sites shift: %w", err)
		}
		start, law.along = &fit.Params, slices.Clone(fit.W)
		for _, j := range features {
			a := law.along[j*rank:][:rank]
			times := m.unseen[j] / (fit.Noise[j] + floats.Dot(a, a))
			law.v[j] = times * fit.Noise[j]
			floats.Scale(math.Sqrt(times), a)
		}
	}
	return &law, nil
}
