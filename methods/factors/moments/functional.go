package moments

import (
	"fmt"
	"slices"

	"parley/methods/factors/ppca"
)

// NoisyMoments is T = Σ (u, 1)(u, 1)ᵀ of the subjects of one pattern at one site, as
// they were released: with noise whose law is known, and not repaired. T itself
// need not be moments that any data have, but it has no bias from the noise, and
// so has nothing that is linear in it.
type NoisyMoments struct {
	features []int
	total    *total
	fit      *repaired // what the whole study says of the subjects of the pattern
}

// LogLik returns the log-likelihood that a model of values in parts of the ranges, from 0 to 1, gives the subjects: it
// is linear in T, so without bias from the noise.
func (u *NoisyMoments) LogLik(l ppca.Layout, m *ppca.Params) (float64, error) {
	t, p := u.total.t, len(u.features)
	d := p + 1
	about := ppca.Block{Features: u.features, N: t[d*d-1], Mean: make([]float64, p), Scatter: make([]float64, p*p)}
	for i, j := range u.features {
		about.Mean[i] = m.Mu[j]
		for k, o := range u.features {
			a, b := m.Mu[j]-0.5, m.Mu[o]-0.5
			about.Scatter[i*p+k] = t[i*d+k] - a*t[k*d+p] - b*t[i*d+p] + a*b*t[d*d-1]
		}
	}
	md, e := ppca.NewModel(l, m.Rank), ppca.NewEStep(m.Rank, []ppca.Block{about})
	md.Load(m)
	if err := e.Run(md, &about); err != nil {
		return 0, err
	}
	return e.LogDensity(md, &about), nil
}

// count is the noised number of subjects, not below 0.
func (u *NoisyMoments) count() float64 { return max(0, u.total.t[len(u.total.t)-1]) }

// Unrepaired estimates T of every pattern that a site released. What clipping
// took is made up for by what it takes from subjects like those of the whole
// study; that is the same for all candidates.
func (o *ProjectedMoments) Unrepaired(site Released) ([]NoisyMoments, error) {
	var out []NoisyMoments
	for i := range site {
		x := &site[i]
		at := slices.IndexFunc(o.pooled, func(q *pooled) bool { return slices.Equal(q.views, x.Fine.Views) })
		if at < 0 {
			return nil, fmt.Errorf("pattern %v is not one of the study's", x.Fine.Views)
		}
		t, err := x.combine(o.pooled[at].pass)
		if err != nil {
			return nil, err
		}
		out = append(out, NoisyMoments{o.pooled[at].features, t, o.pooled[at].fit})
	}
	return out, nil
}
