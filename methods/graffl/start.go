package graffl

import (
	"math"
	"math/rand/v2"
)

// start is the density from which particles come: weights from the prior, and each
// component for itself from one of three: the prior; its mean near the observed
// density and its covariance from the prior; near it, and narrow. The first keeps
// it wider than any posterior; the others save most of the way there.
type start struct {
	prior   *unconstrained
	narrow  wishart
	samples [2]*Sampler // prior, narrow
	near    Mixture     // components of one and the same diagonal covariance
	inverse []float64   // of its square root
	logNear float64     // constant of a component of near
	normal  float64     // constant of the prior's normal density
}

var (
	startShares = []float64{0.2, 0.4, 0.4}
	startLogs   = [3]float64{math.Log(startShares[0]), math.Log(startShares[1]), math.Log(startShares[2])}
)

// elsewhere is where a component of near, exp(−q/2), no longer counts beside the prior.
const elsewhere = 40

func newStart(p *unconstrained, near Mixture) *start {
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
	s := &start{prior: p, near: near, inverse: make([]float64, d), logNear: -float64(d) / 2 * math.Log(2*math.Pi)}
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
func (s *start) Draw(r *rand.Rand, m Mixture) {
	s.samples[0].weights(r, m.Weights)
	for k := range m.Weights {
		s.component(r, m.Mean(k), m.Cov(k))
	}
}

// component draws one component.
func (s *start) component(r *rand.Rand, mu, cov []float64) {
	which := pick(r, startShares)
	from := s.samples[max(0, which-1)]
	from.component(r, mu)
	gram(cov, from.rt, len(mu))
	if which > 0 {
		c := s.near.Mean(pick(r, s.near.Weights))
		for i := range mu {
			mu[i] = c[i] + r.NormFloat64()/s.inverse[i]
		}
	}
}

// over returns ln of the start's density over the prior's, of component k of u, whose
// prior density was evaluated last.
func (s *start) over(u []float64, k int) float64 {
	p, d := s.prior, s.prior.Dim
	l, logDet := p.triangles[k*d*d:], p.logDet[k]
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
		if q < elsewhere {
			there += w * math.Exp(-q/2)
		}
	}
	if there == 0 {
		return startLogs[0]
	}
	relative := math.Log(there) + s.logNear - own
	return logAdd(startLogs[0], relative+logAdd(startLogs[1], startLogs[2]+narrow-wide))
}
