package sketch

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"

	"parley/methods/mixture/gmm"
)

// penalty is minus a log prior density, up to a constant.
type penalty interface {
	value(t []float64) float64
	// add adds its gradient to g, and a matrix that is about its second derivatives to the
	// upper triangle of h, len × len.
	add(t, g, h []float64)
}

// searchPrior is the prior of a search, which keeps components within the cloud of all rows and near a common width:
// in many dimensions a tiny component far from everything can otherwise beat the right one by its density alone.
type searchPrior struct {
	model
	mean, sd        []float64 // of the means of components
	logSD, logWidth float64   // ln of a component's standard deviation: its mean, and its standard deviation
}

const pseudocounts = 1.5 // of every weight

// terms visits the squares that the prior of means and widths is made of.
func (p *searchPrior) terms(t []float64, visit func(i int, off, precision float64)) {
	for k := range p.k {
		at := p.k - 1 + k*p.d
		for i, x := range p.means(t, k) {
			visit(at+i, x-p.mean[i], 1/(p.sd[i]*p.sd[i]))
		}
		at = p.k - 1 + p.k*p.d + k*p.shape()
		c := p.covs(t, k)
		if p.spherical {
			visit(at, c[0]-p.logSD, 1/(p.logWidth*p.logWidth))
			continue
		}
		e := 0
		for i := range p.d {
			for b := range i + 1 {
				if b == i {
					visit(at+e, c[e]-p.logSD, 1/(p.logWidth*p.logWidth))
				} else {
					visit(at+e, c[e], math.Exp(-2*p.logSD))
				}
				e++
			}
		}
	}
}

func (p *searchPrior) value(t []float64) (s float64) {
	p.terms(t, func(_ int, off, precision float64) { s += precision * off * off / 2 })
	for _, w := range p.weights(t) {
		s -= pseudocounts * math.Log(w)
	}
	return s
}

func (p *searchPrior) add(t, g, h []float64) {
	n := p.len()
	p.terms(t, func(i int, off, precision float64) {
		g[i] += precision * off
		h[i*n+i] += precision
	})
	addWeights(p.weights(t), pseudocounts, g, h, n)
}

// addWeights adds the derivatives of −a Σ ln π_k.
func addWeights(pi []float64, a float64, g, h []float64, n int) {
	k := float64(len(pi))
	for i := range len(pi) - 1 {
		g[i] -= a * (1 - k*pi[i])
		h[i*n+i] += a * k * pi[i]
		for j := i; j < len(pi)-1; j++ {
			h[i*n+j] -= a * k * pi[i] * pi[j]
		}
	}
}

// modelPrior is the prior of the plan, in the coordinates of [gmm.Unconstrained].
type modelPrior struct {
	model
	prior *gmm.Unconstrained
	alpha float64
}

func (p *modelPrior) value(t []float64) float64 { return -p.prior.LogDensity(t) }

// add takes differences: every component's density is a function of its own numbers alone,
// and costs little beside E φ. Of second derivatives those on the diagonal are enough, and no less than 0, so that a
// normal approximation is never wider than without the prior.
func (p *modelPrior) add(t, g, h []float64) {
	const step = 1e-3
	n, means, shape := p.len(), p.k-1, p.shape()
	u := append([]float64(nil), t...)
	for i := means; i < n; i++ {
		k := (i - means) / p.d
		if k >= p.k {
			k = (i - means - p.k*p.d) / shape
		}
		at := -p.prior.LogComponent(u, k)
		u[i] = t[i] + step
		up := -p.prior.LogComponent(u, k)
		u[i] = t[i] - step
		down := -p.prior.LogComponent(u, k)
		u[i] = t[i]
		g[i] += (up - down) / (2 * step)
		h[i*n+i] += max((up-2*at+down)/(step*step), 0)
	}
	addWeights(p.weights(t), p.alpha, g, h, n)
}

// search limits of one step: in logits, in logarithms of widths.
const mostLogit, mostWidth = 1.5, 1.0

// fit minimises ½ |W (y − E φ)|² and a penalty by the method of Levenberg and Marquardt, from
// t, and returns where it came to and the value there.
func (m model) fit(y []float64, w *white, p penalty, t []float64, steps int, tolerance float64) ([]float64, float64) {
	n, q := 2*m.m, m.len()
	r, jac := make([]float64, n), make([]float64, n*q)
	g, h, trial, step, next := make([]float64, q), make([]float64, q*q), make([]float64, q*q), make([]float64, q),
		make([]float64, q)
	cost := func(t []float64) float64 {
		m.mean(t, r, nil)
		for i, v := range y {
			r[i] = v - r[i]
		}
		w.apply(r, 1)
		c := gmm.Squares(r)/2 + p.value(t)
		if math.IsNaN(c) {
			return math.Inf(1)
		}
		return c
	}
	t = append([]float64(nil), t...)
	value, damping := cost(t), 1e-2
	for range steps {
		m.normal(y, w, t, r, jac, g, h)
		p.add(t, g, h)
		moved := false
		for range 10 {
			copy(trial, h)
			for i := range q {
				trial[i*q+i] += damping*h[i*q+i] + 1e-9
				step[i] = -g[i]
			}
			u, ok := lapack64.Potrf(blas64.Symmetric{N: q, Stride: q, Data: trial, Uplo: blas.Upper})
			if ok {
				lapack64.Potrs(u, blas64.General{Rows: q, Cols: 1, Stride: 1, Data: step})
				m.shorten(step)
				for i, v := range step {
					next[i] = t[i] + v
				}
				if c := cost(next); c < value {
					fell := value - c
					copy(t, next)
					value, damping, moved = c, max(damping/3, 1e-7), true
					if fell < tolerance*max(1, math.Abs(value)/100) {
						return t, value
					}
					break
				}
			}
			damping *= 4
		}
		if !moved {
			break
		}
	}
	return t, value
}

// normal writes the gradient and the upper triangle of the Gauss–Newton matrix of ½ |W (y − E φ)|².
func (m model) normal(y []float64, w *white, t, r, jac, g, h []float64) {
	n, q := 2*m.m, m.len()
	m.mean(t, r, jac)
	for i, v := range y {
		r[i] = v - r[i]
	}
	w.apply(r, 1)
	w.apply(jac, q)
	a := blas64.General{Rows: n, Cols: q, Stride: q, Data: jac}
	blas64.Gemv(blas.Trans, -1, a, blas64.Vector{N: n, Data: r, Inc: 1}, 0, blas64.Vector{N: q, Data: g, Inc: 1})
	blas64.Gemm(blas.Trans, blas.NoTrans, 1, a, a, 0, blas64.General{Rows: q, Cols: q, Stride: q, Data: h})
}

// shorten keeps a step where derivatives still mean something.
func (m model) shorten(step []float64) {
	for i := range m.k - 1 {
		step[i] = min(max(step[i], -mostLogit), mostLogit)
	}
	longest := 0.0
	for _, v := range step[m.k-1:][:m.k*m.d] {
		longest = max(longest, math.Abs(v))
	}
	if most := 0.3 * m.f.half; longest > most {
		for i := range m.k * m.d {
			step[m.k-1+i] *= most / longest
		}
	}
	for i, v := range step[m.k-1+m.k*m.d:] {
		step[m.k-1+m.k*m.d+i] = min(max(v, -mostWidth), mostWidth)
	}
}

// evidence is ½ ln |H| of a minimum, H the matrix of second derivatives: of two minima that
// are as deep, the wider holds more of the posterior (Laplace).
func (m model) evidence(y []float64, w *white, p penalty, t []float64) float64 {
	q := m.len()
	g, h := make([]float64, q), make([]float64, q*q)
	m.normal(y, w, t, make([]float64, 2*m.m), make([]float64, 2*m.m*q), g, h)
	p.add(t, g, h)
	if _, ok := lapack64.Potrf(blas64.Symmetric{N: q, Stride: q, Data: h, Uplo: blas.Upper}); !ok {
		return math.Inf(1)
	}
	s := 0.0
	for i := range q {
		s += math.Log(h[i*q+i])
	}
	return s
}
