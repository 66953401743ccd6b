package vae

import (
	"math"

	"parley/internal/linalg"
)

// answer is what a model says of one subject, in the network's units. Each channel of which
// something was observed has a normal law of the code; together they are a mixture of
// equal parts, with the moments given here. Without any channel it is the prior.
type answer struct {
	code, codeVar []float64
	mean          []float64 // of every feature: the decoded means of the laws of the code, averaged
	variance      []float64 // of every feature, its noise included: exact where the decoder is linear
}

// inferrer asks a model about subjects, one at a time. It is not safe for concurrent use.
type inferrer struct {
	*machine
	z []float64 // the mean code, and that with one entry a standard deviation larger, as thin rows
}

func (n *network) inferrer(packed []float64) *inferrer {
	return &inferrer{n.machine(n.unpack(packed), n.latent+1), make([]float64, (n.latent+1)*linalg.Stride(n.latent))}
}

// infer answers about a subject.
func (m *inferrer) infer(s *subject) *answer {
	q := m.latent
	d := m.features
	a := &answer{make([]float64, q), make([]float64, q), make([]float64, d), make([]float64, d)}
	n := 0.0
	for e := range m.channels {
		if s.observed(&m.channels[e]) {
			n++
			out := m.encode(e, []subject{*s})
			m.add(a, out[:q], out[q:2*q])
		}
	}
	if n == 0 {
		n = 1
		m.add(a, make([]float64, q), make([]float64, q))
	}
	for _, v := range []struct{ mean, square []float64 }{{a.code, a.codeVar}, {a.mean, a.variance}} {
		for i := range v.mean {
			v.mean[i] /= n
			v.square[i] = max(v.square[i]/n-v.mean[i]*v.mean[i], 0)
		}
	}
	for _, c := range m.channels {
		for j := range c.hi - c.lo {
			a.variance[c.lo+j] += math.Exp(m.theta[c.noise+j])
		}
	}
	return a
}

// add adds first and second moments of a code N(mean, diag e^lv), and of what it decodes to but for noise:
// of a decoder f the variance is Σ_a (f(mean + sd_a) − f(mean))².
func (m *inferrer) add(a *answer, mean, lv []float64) {
	q, ld := m.latent, linalg.Stride(m.latent)
	clear(m.z)
	for k := range q + 1 {
		copy(m.z[k*ld:], mean)
	}
	for i := range q {
		v := math.Exp(lv[i])
		m.z[(i+1)*ld+i] += math.Sqrt(v)
		a.code[i] += mean[i]
		a.codeVar[i] += v + mean[i]*mean[i]
	}
	for d, c := range m.channels {
		f, w := m.decode(d, m.z, q+1), linalg.Stride(c.hi-c.lo)
		for j := range c.hi - c.lo {
			x, v := f[j], 0.0
			for k := 1; k <= q; k++ {
				v += (f[k*w+j] - x) * (f[k*w+j] - x)
			}
			a.mean[c.lo+j] += x
			a.variance[c.lo+j] += v + x*x
		}
	}
}
