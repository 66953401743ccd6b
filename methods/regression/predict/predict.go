// Package predict is how outcomes are predicted from a posterior, and how well: a
// [Predictor] works row by row, an [Assessment] is sums over rows that add up over
// sites, with privacy noise or without. No row, however wild, makes it panic or
// leaves a sum that is not finite.
package predict

import (
	"math"

	"parley/judge/evaluate"
	"parley/methods/regression/glm"
)

// Predictor predicts rows of a design matrix.
type Predictor struct {
	Likelihood glm.Likelihood
	posterior  glm.Normal
	site       SiteEffect
	columns    int
	lacking    []lacking // of the next rows, for each activation
	classes    *average  // of several activations with covariances; else nil
	covariance []float64 // of these, its lower triangle by rows
	A, C, P    []float64 // of the last row: mean and variance of activations, and what Predict sets
}

// lacking is what cells that a row lacks add to the mean and the variance of an activation.
type lacking struct{ shift, variance float64 }

// New predicts by the posterior q, of rows of so many columns.
func New(l glm.Likelihood, q glm.Normal, columns int) *Predictor {
	k := l.Activations()
	m := &Predictor{Likelihood: l, posterior: q, columns: columns, A: make([]float64, k), C: make([]float64, k), P: make([]float64, k)}
	if k > 1 && q.Covariance != nil {
		m.classes, m.covariance = newAverage(k), make([]float64, glm.Triangle(k))
	}
	return m
}

// At makes the predictor one of subjects of a site. For a site that took no part, the effect
// has mean 0 and the variance between sites.
func (m *Predictor) At(b SiteEffect) { m.site = b }

// Row sets A, C and P.
func (m *Predictor) Row(r glm.Row) {
	for k := range m.A {
		m.A[k], m.C[k] = m.activation(r, k*m.columns)
	}
	if m.classes == nil {
		m.Likelihood.Predict(m.A, m.C, m.P)
		return
	}
	for k := range m.A {
		for l := range k {
			m.covariance[glm.Packed(k, l)] = m.posterior.Across(r, k*m.columns, l*m.columns)
		}
		m.covariance[glm.Packed(k, k)] = m.C[k]
	}
	m.classes.predict(m.A, m.covariance, m.P)
}

// activation is that of a row at the site, and of all that the row may lack.
func (m *Predictor) activation(r glm.Row, offset int) (a, c float64) {
	a, c = m.observed(r, offset)
	l := m.unseen(offset / m.columns)
	return a + l.shift, c + l.variance
}

// observed is the activation of a row that lacks nothing, with variance
// Variance + (x + Slope)ᵀ S (x + Slope) for weights with covariance S.
func (m *Predictor) observed(r glm.Row, offset int) (a, c float64) {
	if m.site.Slope == nil {
		a, c = m.posterior.Activation(r, offset)
		return a + m.site.Mean, c + m.site.Variance
	}
	a, _ = m.posterior.Activation(r, offset)
	x := append([]float64(nil), m.site.Slope...)
	for i, j := range r.Index {
		x[j] += r.Value[i]
	}
	_, c = m.posterior.Activation(dense(x), offset)
	return a + m.site.Mean, c + m.site.Variance
}

// judge says of the last row how its class was predicted: a probability p and
// whether what it was given to happened, whether the most probable class was right,
// and the log-likelihood. Of two classes p is that of the second, of more that of
// the most probable one. Of numbers only the log-likelihood means something.
// Whatever the row and the model, the log-likelihood is within ±rowLargest.
func (m *Predictor) judge(y float64) (p float64, happened, correct bool, logLik float64) {
	switch l := m.Likelihood.(type) {
	case glm.Linear:
		v, e := l.Variance+m.C[0], y-m.A[0]
		return 0, false, false, measured(-(math.Log(2*math.Pi*v) + e*e/v) / 2)
	case glm.Poisson:
		return 0, false, false, measured(glm.LogExpectPoisson(y, m.A[0], m.C[0]))
	case glm.Softmax:
		best := Surest(m.P)
		right := best == int(y)
		return m.P[best], right, right, math.Log(max(m.P[int(y)], math.SmallestNonzeroFloat64))
	}
	p, happened = m.P[0], y > 0
	return p, happened, (p > 0.5) == happened, measured(m.Likelihood.(glm.Binary).LogExpect(y, m.A[0], m.C[0]))
}

// measured keeps a log-likelihood within bounds; what cannot be calculated is as bad
// as can be.
func measured(logLik float64) float64 {
	if math.IsNaN(logLik) {
		return -rowLargest
	}
	return glm.Clamp(logLik, rowLargest)
}

// Surest returns the first place of the largest probability.
func Surest(p []float64) (best int) {
	for k, x := range p {
		if x > p[best] {
			best = k
		}
	}
	return best
}

// Score adds how well the last row's outcome was predicted.
func (m *Predictor) Score(y float64, to *Assessment) {
	p, happened, correct, logLik := m.judge(y)
	to.Rows++
	to.LogLik += logLik
	if _, count := m.Likelihood.(glm.Poisson); count {
		if to.Counts == nil {
			to.Counts = new(dispersion)
		}
		to.Counts.count(y, m.P[0])
	}
	switch m.Likelihood.(type) {
	case glm.Linear, glm.Poisson:
		if e := (y - m.P[0]) * (y - m.P[0]); e <= rowLargest {
			to.Squares += e
		} else { // NaN too
			to.Squares += rowLargest
		}
		return
	}
	if _, two := m.Likelihood.(glm.Binary); two {
		if to.Ranking == nil {
			to.Ranking = newRanking()
		}
		to.Ranking.count(p, happened)
	}
	to.bin(p, happened)
	if correct {
		to.Correct++
	}
}

// Forecast says what is expected of the last row's outcome.
func (m *Predictor) Forecast(dst *evaluate.Prediction) {
	dst.LogP = dst.LogP[:0]
	switch l := m.Likelihood.(type) {
	case glm.Linear:
		dst.Mean, dst.SD = m.A[0], math.Sqrt(l.Variance+m.C[0])
	case glm.Poisson:
		dst.Mean, dst.SD = m.P[0], glm.CountSpread(m.A[0], m.C[0])
	case glm.Softmax:
		for _, p := range m.P {
			dst.LogP = append(dst.LogP, math.Log(max(p, math.SmallestNonzeroFloat64)))
		}
	default:
		b := m.Likelihood.(glm.Binary)
		dst.LogP = append(dst.LogP, measured(b.LogExpect(-1, m.A[0], m.C[0])), measured(b.LogExpect(1, m.A[0], m.C[0])))
	}
}

// SiteEffect is what is known of the random intercept of a site: normal given the weights,
// with a mean that has a slope in them. The zero value is none.
type SiteEffect struct {
	Mean     float64   `json:"mean"`
	Variance float64   `json:"variance"`
	Slope    []float64 `json:"slope"` // of Mean by each weight; nil if it does not depend on them
}

// SD is the standard deviation of the intercept, of what is not known of weights too.
func (b SiteEffect) SD(q glm.Normal) float64 {
	_, v := q.Activation(dense(b.Slope), 0)
	return math.Sqrt(b.Variance + v)
}

// dense is a row with an entry for every weight.
func dense(x []float64) glm.Row {
	r := glm.Row{Value: x}
	for j := range x {
		r.Index = append(r.Index, int32(j))
	}
	return r
}
