package gmm

import (
	"math"
	"math/rand/v2"
)

// Initial is the density from which particles come: weights from the prior, and each
// component for itself from one of three: the prior; its mean near the observed
// density and its covariance from the prior; near it, and narrow. The first keeps
// it wider than any posterior; the others save most of the way there.
type Initial struct {
	prior   *Unconstrained
	narrow  wishart
	samples [2]*Sampler // prior, narrow
	near    Mixture     // components of one and the same diagonal covariance
	inverse []float64   // of its square root
	logNear float64     // constant of a component of near
	normal  float64     // constant of the prior's normal density
}

var (
	initialShares = []float64{0.2, 0.4, 0.4}
	initialLogs   = [3]float64{math.Log(initialShares[0]), math.Log(initialShares[1]), math.Log(initialShares[2])}
)

// negligible is where a component of near, exp(−q/2), no longer counts beside the prior.
const negligible = 40

// NewInitial returns the density for a prior and a mixture near the observed rows, whose
// components have one and the same diagonal covariance.
func NewInitial(p *Unconstrained, near Mixture) *Initial {
	d := p.Dim
	near = near.Clone()
	sum := 0.0
	for j, w := range near.Weights { // small modes count for more than their share
		near.Weights[j] = math.Sqrt(w)
		sum += near.Weights[j]
	}
	for j := range near.Weights {
		near.Weights[j] /= sum
	}
	narrow := Prior{p.prior.Alpha, p.prior.Mean, p.prior.Kappa, float64(d) + 3, make([]float64, d*d)}
	s := &Initial{prior: p, near: near, inverse: make([]float64, d), logNear: -float64(d) / 2 * math.Log(2*math.Pi)}
	for i := range d {
		v := near.Cov(0)[i*d+i]
		s.inverse[i] = 1 / math.Sqrt(v)
		s.logNear -= math.Log(v) / 2
		narrow.Psi[i*d+i] = 2 * v
	}
	s.narrow, _ = newWishart(narrow.Nu, narrow.Psi, d) // diagonal and positive
	s.samples = [2]*Sampler{p.prior.Sampler(), narrow.Sampler()}
	s.normal = -float64(d) / 2 * (math.Log(2*math.Pi) - math.Log(p.prior.Kappa))
	return s
}

// Draw draws a parameter.
func (s *Initial) Draw(r *rand.Rand, m Mixture) {
	s.samples[0].Weights(r, m.Weights)
	for k := range m.Weights {
		s.Component(r, m.Mean(k), m.Cov(k))
	}
}

// Component draws one component.
func (s *Initial) Component(r *rand.Rand, mu, cov []float64) {
	which := Pick(r, initialShares)
	from := s.samples[max(0, which-1)]
	from.Component(r, mu)
	from.Covariance(cov)
	if which > 0 {
		c := s.near.Mean(Pick(r, s.near.Weights))
		for i := range mu {
			mu[i] = c[i] + r.NormFloat64()/s.inverse[i]
		}
	}
}

// LogRatio returns ln of the start's density over the prior's, of component k of u, whose
// prior density was evaluated last.
func (s *Initial) LogRatio(u []float64, k int) float64 {
	p, d := s.prior, s.prior.Dim
	l, logDet := p.Factors[k*d*d:], p.LogDet[k]
	mu := p.Means(u)[k*d:][:d]
	wide, narrow := p.spread.log(l, logDet), s.narrow.log(l, logDet)
	own := s.normal + p.around(k, mu)
	there := 0.0
	for j, w := range s.near.Weights {
		q := 0.0
		for i, c := range s.near.Mean(j) {
			t := (mu[i] - c) * s.inverse[i]
			q += t * t
		}
		if q < negligible {
			there += w * math.Exp(-q/2)
		}
	}
	if there == 0 {
		return initialLogs[0]
	}
	relative := math.Log(there) + s.logNear - own
	return logAdd(initialLogs[0], relative+logAdd(initialLogs[1], initialLogs[2]+narrow-wide))
}
