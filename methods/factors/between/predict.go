package between

import (
	"fmt"

	"parley/methods/factors/ppca"
)

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
