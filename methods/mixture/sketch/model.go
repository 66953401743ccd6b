// Package sketch learns a Gaussian mixture from one release: means over rows of cosines and sines at public random
// frequencies, which are values of the rows' empirical characteristic function (Keriven, Bourrier, Gribonval and Pérez,
// "Sketching for large-scale learning of mixture models", 2018; Chatalic and others, "Compressive learning with
// privacy guarantees", 2021). Their expectation and covariance under a mixture are closed forms in any dimension. A
// site adds up Features of its rows, whose norm NormBound bounds; [Observation] is what the sites' noised sums come
// to, Posterior a sample of the posterior, noise included, and Fit holds it against what was observed.
// [Frequencies.RowsNeeded] says from a plan alone how many rows it takes.
//
// Nothing here protects rows. Everything is a function of its arguments and seeds, to the last bit on one
// architecture, on any number of cores. Wrong arguments are errors, never panics.
package sketch

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"

	"parley/methods/mixture/gmm"
)

// model is a mixture seen through frequencies, in units of their scale. A parameter is as in [gmm.Coordinates]: K − 1
// logits, K means, K lower Cholesky factors with logarithms on the diagonal. Spherical components have one number in
// place of a factor: the logarithm of their standard deviation.
type model struct {
	f         *Frequencies
	k, d, m   int
	spherical bool
}

func (f *Frequencies) model(k int, spherical bool) model {
	return model{f, k, f.Dim, f.Count(), spherical}
}

// shape is how many numbers of a parameter describe a component's covariance.
func (m model) shape() int {
	if m.spherical {
		return 1
	}
	return m.d * (m.d + 1) / 2
}

func (m model) len() int { return m.k - 1 + m.k*(m.d+m.shape()) }

func (m model) means(t []float64, k int) []float64 { return t[m.k-1+k*m.d:][:m.d] }

func (m model) covs(t []float64, k int) []float64 {
	return t[m.k-1+m.k*m.d+k*m.shape():][:m.shape()]
}

// weights are π of a parameter.
func (m model) weights(t []float64) []float64 {
	pi := make([]float64, m.k)
	gmm.Coordinates{K: m.k, Dim: m.d}.Weights(pi, t)
	return pi
}

// factor writes the lower Cholesky factor of a component's covariance, d × d.
func (m model) factor(t []float64, k int, l []float64) {
	clear(l)
	c, at := m.covs(t, k), 0
	for i := range m.d {
		if m.spherical {
			l[i*m.d+i] = math.Exp(c[0])
			continue
		}
		at += copy(l[i*m.d:], c[at:][:i])
		l[i*m.d+i] = math.Exp(c[at])
		at++
	}
}

// seen writes Lᵀω of a covariance's factor and frequency j, which it returns.
func (m model) seen(j int, l, v []float64) []float64 {
	om := m.f.Omega[j*m.d:][:m.d]
	for b := range v {
		v[b] = 0
		for a := b; a < m.d; a++ {
			v[b] += om[a] * l[a*m.d+b]
		}
	}
	return om
}

// lift is the parameter of the same mixture among those with full covariances.
func (m model) lift(t []float64) (model, []float64) {
	full := m
	full.spherical = false
	out := make([]float64, full.len())
	copy(out, t[:m.k-1+m.k*m.d])
	for k := range m.k {
		c, at := full.covs(out, k), -1
		for i := range m.d {
			at += i + 1
			c[at] = m.covs(t, k)[0]
		}
	}
	return full, out
}

// mean writes E φ, 2m numbers, and if jac is not nil its derivatives, 2m × len by rows:
// E cos ω·z + i E sin ω·z = Σ π_k exp(iω·μ_k − ½ ωᵀΣ_kω).
func (m model) mean(t, dst, jac []float64) {
	d, p := m.d, m.len()
	pi := m.weights(t)
	clear(dst)
	l, v := make([]float64, d*d), make([]float64, d)
	parts := make([]float64, 2*m.m*m.k) // of each component, cosine and sine
	clear(jac)
	for k, w := range pi {
		m.factor(t, k, l)
		mu := m.means(t, k)
		for j := range m.m {
			om := m.seen(j, l, v)
			q := gmm.Squares(v)
			sin, cos := math.Sincos(dot(om, mu))
			a := math.Exp(-q / 2)
			cos, sin = a*cos, a*sin
			parts[(k*m.m+j)*2], parts[(k*m.m+j)*2+1] = cos, sin
			dst[j] += w * cos
			dst[m.m+j] += w * sin
			if jac == nil {
				continue
			}
			jc, js := jac[j*p:][:p], jac[(m.m+j)*p:][:p]
			at := m.k - 1 + k*d
			for i, x := range om {
				jc[at+i], js[at+i] = -w*sin*x, w*cos*x
			}
			at = m.k - 1 + m.k*d + k*m.shape()
			if m.spherical {
				jc[at], js[at] = -w*cos*q, -w*sin*q
				continue
			}
			for i := range d {
				for b := range i + 1 {
					x := om[i] * v[b]
					if b == i {
						x *= l[i*d+i]
					}
					jc[at], js[at] = -w*cos*x, -w*sin*x
					at++
				}
			}
		}
	}
	if jac == nil {
		return
	}
	for k := range m.k - 1 {
		for j := range m.m {
			at := (k*m.m + j) * 2
			jac[j*p+k] = pi[k] * (parts[at] - dst[j])
			jac[(m.m+j)*p+k] = pi[k] * (parts[at+1] - dst[m.m+j])
		}
	}
}

// covariance writes the upper triangle of Cov φ of one row, 2m × 2m by rows, given E φ. With
// A± = Σ π_k exp(i(ω_r ± ω_s)·μ_k − ½ (ω_r ± ω_s)ᵀΣ_k(ω_r ± ω_s)), E cos cos = ½ Re(A₋ + A₊),
// E sin sin = ½ Re(A₋ − A₊), E cos_r sin_s = ½ Im(A₊ − A₋).
func (m model) covariance(t, mean, dst []float64) {
	n, d := 2*m.m, m.d
	pi := m.weights(t)
	clear(dst)
	l := make([]float64, d*d)
	v, q, sin, cos := make([]float64, m.m*d), make([]float64, m.m), make([]float64, m.m), make([]float64, m.m)
	for k, w := range pi {
		m.factor(t, k, l)
		for j := range m.m {
			om := m.seen(j, l, v[j*d:][:d])
			q[j] = gmm.Squares(v[j*d:][:d])
			sin[j], cos[j] = math.Sincos(dot(om, m.means(t, k)))
		}
		for r := range m.m {
			vr := v[r*d:][:d]
			for s := r; s < m.m; s++ {
				g, h := dot(vr, v[s*d:][:d]), -(q[r]+q[s])/2
				plus, minus := 0.0, 0.0
				if h-g > -30 {
					plus = w / 2 * math.Exp(h-g)
				}
				if h+g > -30 {
					minus = w / 2 * math.Exp(h+g)
				}
				cc, ss := cos[r]*cos[s], sin[r]*sin[s]
				sc, cs := sin[r]*cos[s], cos[r]*sin[s]
				dst[r*n+s] += minus*(cc+ss) + plus*(cc-ss)
				dst[(m.m+r)*n+m.m+s] += minus*(cc+ss) - plus*(cc-ss)
				dst[r*n+m.m+s] += plus*(sc+cs) - minus*(sc-cs) // cos_r sin_s
				if s > r {
					dst[s*n+m.m+r] += plus*(sc+cs) + minus*(sc-cs)
				}
			}
		}
	}
	for r, a := range mean {
		row := dst[r*n:][:n]
		for s := r; s < n; s++ {
			row[s] -= a * mean[s]
		}
	}
}

// white is a metric of differences of observed and expected means: |W r|², W diagonal or the
// inverse of a covariance's factor.
type white struct {
	root   []float64 // W's diagonal, where it is one
	upper  blas64.Triangular
	logDet float64 // ½ ln |C|
}

// factorised is the metric of a covariance by its upper triangle, which it overwrites.
func factorised(cov []float64, n int) (*white, bool) {
	u, ok := lapack64.Potrf(blas64.Symmetric{N: n, Stride: n, Data: cov, Uplo: blas.Upper})
	if !ok {
		return nil, false
	}
	w := &white{upper: u}
	for i := range n {
		w.logDet += math.Log(cov[i*n+i])
	}
	return w, true
}

// apply whitens the columns of an n × p matrix by rows, in place.
func (w *white) apply(a []float64, p int) {
	if w.root != nil {
		for r, s := range w.root {
			for i := range a[r*p:][:p] {
				a[r*p+i] *= s
			}
		}
		return
	}
	blas64.Trsm(blas.Left, blas.Trans, 1, w.upper, blas64.General{Rows: len(a) / p, Cols: p, Stride: p, Data: a})
}
