package between

import (
	"fmt"
	"math"
	"slices"

	"parley/internal/linalg"
	"parley/methods/factors/ppca"
)

// leastFreedom is the least number of degrees of freedom that a variance counts as having:
// with fewer, a normal distribution stands for none with so heavy tails.
const leastFreedom = 3

// widen adds what is not known of μ and v to the posteriors of the offsets, and returns the
// variance of a feature's mean at a site that took no part, and how many parameters the
// variances are. See [SiteOffset] and [Offsets].
func (m *mixed) widen() (unseen []float64, parameters float64) {
	d, views := len(m.v), m.layout.Views()
	sum, view := make([]float64, d), make([]float64, views) // Σ g, and over the features of a view
	rows := make([]float64, d)
	for j, sites := range m.having {
		for _, i := range sites {
			rows[j] += m.sites[i].n[m.sites[i].class[j]]
			if m.has[j] {
				g := m.sites[i].known(j, m.v[j])
				sum[j] += g
				view[m.view[j]] += g
			}
		}
	}
	for _, g := range view {
		if g > 0 {
			parameters++
		}
	}
	unseen = make([]float64, d)
	// What the mean of all subjects' factors does to μ goes along the loadings: a subject's
	// own factors absorb it, and what is predicted of one view by others is no less sure.
	q := m.f.Model.Q
	common := make([]float64, q*d)
	add := make([][]float64, len(m.sites))
	for i := range add {
		add[i] = make([]float64, d)
	}
	for j, sites := range m.having {
		if !m.has[j] || !(sum[j] > 0) {
			continue
		}
		v, freedom := m.v[j], max(min(sum[j]+priorSites, view[m.view[j]])-1, leastFreedom)
		parameters += sum[j] / (sum[j] + priorSites)
		mu, factors := v/sum[j], 0.0
		for a, w := range m.f.Model.W[j*m.f.Model.LD:][:q] {
			common[a*d+j] = w / math.Sqrt(rows[j])
			factors += w * w / rows[j]
		}
		unseen[j] = (v+mu)*freedom/(freedom-2) + factors
		for i := range add {
			add[i][j] = unseen[j] - factors - v // for a site that lacks it
		}
		for _, i := range sites {
			g := m.sites[i].known(j, v)
			add[i][j] = (1 - g) * (1 - g) * (mu + 4*g*v/freedom)
		}
	}
	for i := range add {
		for j, x := range add[i] {
			m.sites[i].diag[j] += x
		}
		m.sites[i].factor = append(m.sites[i].factor, common...)
	}
	return unseen, parameters
}

// known is g = 1 − (Λ⁻¹)_jj/v, the share of the variance v that the site's subjects determine.
func (s *site) known(j int, v float64) float64 { return max(1-s.variance(j)/v, 0) }

// strongest leaves at most q rows of the factor, those directions in which it is largest
// relative to the noise ψ and the diagonal, and adds what it drops to the diagonal: so every
// variance stays as it is.
func (s *site) strongest(q int, psi []float64) bool {
	d := len(s.mean)
	r := len(s.factor) / d
	if r <= q {
		return true
	}
	gram := make([]float64, r*r)
	for i := range r {
		for k := range i + 1 {
			x := 0.0
			for j := range d {
				if s.class[j] >= 0 {
					x += s.factor[i*d+j] * s.factor[k*d+j] / (psi[j] + s.diag[j])
				}
			}
			gram[i*r+k], gram[k*r+i] = x, x
		}
	}
	e := linalg.NewEigen(r)
	if !e.Factorise(gram, r) {
		return false
	}
	factor := make([]float64, q*d)
	for a := range q {
		for i := range r {
			x := e.Vectors[i*r+r-1-a]
			for j := range d {
				factor[a*d+j] += x * s.factor[i*d+j]
			}
		}
	}
	for j := range d {
		before := s.variance(j)
		after := s.diag[j]
		for a := range q {
			after += factor[a*d+j] * factor[a*d+j]
		}
		s.diag[j] += max(before-after, 0)
	}
	s.factor = slices.Clip(factor)
	return true
}

// AtSite returns a predictor for further subjects of a site that took part: mean μ + δ
// and covariance W Wᵀ + Ψ + diag(Diag) + FactorᵀFactor. The factors are those of the model:
// how a subject differs from others of its site. A site that took no part has the Mean 0 and
// the Diag [Offsets].NewSite.
func AtSite(l ppca.Layout, p *ppca.Params, s *SiteOffset) (*ppca.Predictor, error) {
	if err := l.Check(); err != nil {
		return nil, err
	}
	d := l.Features()
	if len(s.Mean) != d || len(s.Diag) != d || len(s.Factor)%d != 0 {
		return nil, fmt.Errorf("offset of a site: %d means, %d variances and a factor of %d numbers for %d features",
			len(s.Mean), len(s.Diag), len(s.Factor), d)
	}
	for _, x := range [][]float64{s.Mean, s.Diag, s.Factor} {
		if err := ppca.Finite("offset of a site", x); err != nil {
			return nil, err
		}
	}
	if err := p.Check(l); err != nil {
		return nil, err
	}
	r := len(s.Factor) / d
	md := ppca.NewModel(l, p.Rank+r)
	md.LoadNoise(p.Noise)
	for _, j := range p.Features {
		if s.Diag[j] < 0 {
			return nil, fmt.Errorf("offset of a site: variance %v of feature %d", s.Diag[j], j)
		}
		w := md.W[j*md.LD:]
		copy(w, p.W[j*p.Rank:][:p.Rank])
		for i := range r {
			w[p.Rank+i] = s.Factor[i*d+j]
		}
		md.Mu[j] = p.Mu[j] + s.Mean[j]
		md.Psi[j] += s.Diag[j]
	}
	return ppca.PredictorOf(l, md, p.Rank, p.Features), nil
}
