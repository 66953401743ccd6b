package graffl

import (
	"fmt"
	"math"
)

// moments evaluates the mean and the covariance of φ under a mixture, in closed
// form. It is not safe for concurrent use.
type moments struct {
	Landmarks
	l, e []float64
}

func newMoments(l Landmarks) *moments {
	return &moments{l, make([]float64, l.Dim*l.Dim), make([]float64, l.Dim)}
}

// prepare readies E exp(−½ (x−c)ᵀ D⁻¹ (x−c)) under a component, where
// D = diag(h²)·shrink: it is |D|^½ |D+Σ|^−½ exp(−½ (c−μ)ᵀ (D+Σ)⁻¹ (c−μ)). It leaves the
// factor of D + Σ in l, its diagonal inverted, and returns the logarithm of what
// stands before the exponential.
func (e *moments) prepare(cov []float64, shrink float64) (logScale float64, ok bool) {
	d := e.Dim
	copy(e.l, cov)
	for i, h := range e.Bandwidth {
		v := h * h * shrink
		e.l[i*d+i] += v
		logScale += math.Log(v)
	}
	logDet, ok := cholesky(e.l, d)
	for i := range d {
		e.l[i*d+i] = 1 / e.l[i*d+i]
	}
	return (logScale - logDet) / 2, ok
}

// square returns (c−μ)ᵀ (D+Σ)⁻¹ (c−μ).
func (e *moments) square(c, mu []float64) (s float64) {
	d := e.Dim
	if d == 2 { // the case of pictures, and of the inner loops' time
		a := (c[0] - mu[0]) * e.l[0]
		b := (c[1] - mu[1] - e.l[2]*a) * e.l[3]
		return a*a + b*b
	}
	for i := range d {
		t := c[i] - mu[i]
		for j, v := range e.l[i*d:][:i] {
			t -= v * e.e[j]
		}
		t *= e.l[i*d+i]
		e.e[i] = t
		s += t * t
	}
	return s
}

// component writes E φ under component k alone. It reports false where its
// covariance is useless.
func (e *moments) component(m Mixture, k int, dst []float64) bool {
	logScale, ok := e.prepare(m.Cov(k), 1)
	if !ok {
		return false
	}
	mu := m.Mean(k)
	for r := range dst {
		dst[r] = 0
		if q := e.square(e.Point(r), mu) - 2*logScale; q < negligible {
			dst[r] = math.Exp(-q / 2)
		}
	}
	return true
}

// mean writes E φ.
func (e *moments) mean(m Mixture, dst []float64) bool {
	clear(dst)
	part := make([]float64, len(dst))
	for k, w := range m.Weights {
		if !e.component(m, k, part) {
			return false
		}
		for r, v := range part {
			dst[r] += w * v
		}
	}
	return true
}

// covariance writes Cov φ, n × n with both triangles, given E φ. It rests on
// φ_r φ_s = exp(−|c_r−c_s|²_h/4) exp(−|x−c̄_rs|²_h), c̄ their midpoint.
func (e *moments) covariance(m Mixture, mean, dst []float64) bool {
	n, d := e.Len(), e.Dim
	clear(dst)
	middle := make([]float64, d)
	for k, w := range m.Weights {
		logScale, ok := e.prepare(m.Cov(k), 0.5)
		if !ok {
			return false
		}
		mu := m.Mean(k)
		for r := range n {
			a := e.Point(r)
			for s := range r + 1 {
				b := e.Point(s)
				q := -2 * logScale
				for i, h := range e.Bandwidth {
					middle[i] = (a[i] + b[i]) / 2
					t := (a[i] - b[i]) / h
					q += t * t / 2
				}
				if q > negligible {
					continue
				}
				if q += e.square(middle, mu); q < negligible {
					dst[r*n+s] += w * math.Exp(-q/2)
				}
			}
		}
	}
	for r := range n {
		for s := range r + 1 {
			v := dst[r*n+s] - mean[r]*mean[s]
			dst[r*n+s], dst[s*n+r] = v, v
		}
	}
	return true
}

// negligible is where exp(−q/2) is below 1e-17.
const negligible = 80

// Moments returns the mean and the covariance (by rows) of φ(x) for x drawn from m.
func (l Landmarks) Moments(m Mixture) (mean, cov []float64, err error) {
	if m.Dim != l.Dim {
		return nil, nil, fmt.Errorf("a mixture in %d dimensions and landmarks in %d", m.Dim, l.Dim)
	}
	n := l.Len()
	mean, cov = make([]float64, n), make([]float64, n*n)
	e := newMoments(l)
	if !e.mean(m, mean) || !e.covariance(m, mean, cov) {
		return nil, nil, fmt.Errorf("the mixture has a covariance that is not positive definite")
	}
	return mean, cov, nil
}

// Observation is what the sites' releases say together: the mean of φ over all
// rows, Σ_j sums_j / Σ_j n_j.
type Observation struct {
	Mean []float64 `json:"mean" cbor:"mean"`
	Rows float64   `json:"rows" cbor:"rows"` // n, all sites together
	// NoiseVar is the variance of the noise on each entry of Mean:
	// Σ_j sd_j²/n², sd_j on the sum of site j in units of φ; 0 without protection.
	NoiseVar float64 `json:"noise_variance" cbor:"noise_variance"`
	// RowsVar is the variance of the noise in n, where the number of rows was itself
	// released with noise; 0 where it is public.
	RowsVar float64 `json:"rows_variance" cbor:"rows_variance"`
}

// Check reports what is wrong with an observation at n landmarks.
func (o Observation) Check(landmarks int) error {
	switch {
	case len(o.Mean) != landmarks:
		return fmt.Errorf("%d means were observed at %d landmarks", len(o.Mean), landmarks)
	case notFinite(o.Mean) >= 0:
		return fmt.Errorf("the mean at landmark %d is not finite", notFinite(o.Mean))
	case !(o.Rows >= 1) || math.IsInf(o.Rows, 1):
		return fmt.Errorf("the observed means are of %v rows: want at least 1", o.Rows)
	case !(o.NoiseVar >= 0) || math.IsInf(o.NoiseVar, 1) || !(o.RowsVar >= 0) || math.IsInf(o.RowsVar, 1):
		return fmt.Errorf("noise variances %v and %v: want numbers that are not negative", o.NoiseVar, o.RowsVar)
	}
	return nil
}

// Pool adds sites up: sums of φ over their rows, noised or not, the number of rows
// of each, and the standard deviation of the noise on each entry of the sums.
func Pool(sums [][]float64, rows []int, sd []float64) (Observation, error) {
	var o Observation
	if len(sums) == 0 || len(rows) != len(sums) || len(sd) != len(sums) {
		return o, fmt.Errorf("sums of %d sites, numbers of rows of %d and noise of %d: want as many of each", len(sums), len(rows), len(sd))
	}
	o.Mean = make([]float64, len(sums[0]))
	for j, s := range sums {
		if len(s) != len(o.Mean) || rows[j] < 1 {
			return o, fmt.Errorf("site %d sums %d landmarks over %d rows: want %d landmarks, as site 0, and rows", j, len(s), rows[j], len(o.Mean))
		}
		o.Rows += float64(rows[j])
		o.NoiseVar += sd[j] * sd[j]
		for r, v := range s {
			o.Mean[r] += v
		}
	}
	for r := range o.Mean {
		o.Mean[r] /= o.Rows
	}
	o.NoiseVar /= o.Rows * o.Rows
	return o, o.Check(len(o.Mean))
}

// LogLikelihood returns the Gaussian synthetic log likelihood of θ,
// ln N(y | E φ, Cov φ/n + noise·I + rows·E φ E φᵀ/n²), with moments in closed form (Wood 2010; Price
// et al. 2018 with simulated ones). Noise widens it, so that it does not
// pretend to know what noise has hidden.
func (l Landmarks) LogLikelihood(o Observation, m Mixture) (float64, error) {
	if err := o.Check(l.Len()); err != nil {
		return 0, err
	}
	mean, cov, err := l.Moments(m)
	if err != nil {
		return 0, err
	}
	return gaussianLog(o, mean, cov)
}

// gaussianLog overwrites cov.
func gaussianLog(o Observation, mean, cov []float64) (float64, error) {
	n := len(mean)
	spread(o, mean, cov)
	logDet, ok := cholesky(cov, n)
	if !ok {
		return 0, fmt.Errorf("the covariance of %d landmark means is singular: without noise, landmarks must be further apart or fewer", n)
	}
	e := make([]float64, n)
	for r := range e {
		e[r] = o.Mean[r] - mean[r]
	}
	forward(cov, n, e)
	return -(float64(n)*math.Log(2*math.Pi) + logDet + squares(e)) / 2, nil
}

// spread turns the covariance of φ into that of the observed mean.
func spread(o Observation, mean, cov []float64) {
	n := len(mean)
	for r := range n {
		for s := range n {
			cov[r*n+s] = (cov[r*n+s] + o.RowsVar/o.Rows*mean[r]*mean[s]) / o.Rows
		}
		cov[r*n+r] += o.NoiseVar
	}
}
