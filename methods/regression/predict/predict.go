// Package predict is how outcomes are predicted from a posterior, and how well: a [Predictor] works row by row, an
// [Assessment] is sums over rows that add up over sites, with privacy noise or without. No row, however wild, makes
// it panic or leaves a sum that is not finite.
package predict

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"parley/judge/evaluate"
	"parley/methods/regression/glm"
)

// Predictor predicts rows of a design matrix.
type Predictor struct {
	Likelihood glm.Likelihood
	posterior  glm.Normal
	site       glm.Intercept
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
	m := &Predictor{Likelihood: l, posterior: q, columns: columns, A: make([]float64, k), C: make([]float64, k),
		P: make([]float64, k), lacking: make([]lacking, k)}
	if k > 1 && q.Covariance != nil {
		m.classes, m.covariance = newAverage(k), make([]float64, glm.Triangle(k))
	}
	return m
}

// At makes the predictor one of subjects of a site. For a site that took no part, the effect
// has mean 0 and the variance between sites.
func (m *Predictor) At(b glm.Intercept) { m.site = b }

// Row sets A, C and P, of a row at the site and of all that the row may lack.
func (m *Predictor) Row(r glm.Row) {
	for k, lacks := range m.lacking {
		a, c := m.observed(r, k*m.columns)
		m.A[k], m.C[k] = a+lacks.shift, c+lacks.variance
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

// observed is the activation of a row that lacks nothing, with variance
// Variance + (x + Slope)ᵀ S (x + Slope) for weights with covariance S.
func (m *Predictor) observed(r glm.Row, offset int) (a, c float64) {
	a, c = m.posterior.Activation(r, offset)
	if m.site.Slope != nil {
		_, c = m.posterior.Activation(m.sloped(r, 1), offset)
	}
	return a + m.site.Mean, c + m.site.Variance
}

// sloped is a row with what the mean of the site's intercept adds so many times, where that depends on weights.
func (m *Predictor) sloped(r glm.Row, times float64) glm.Row {
	if m.site.Slope == nil {
		return r
	}
	x := floats.ScaleTo(make([]float64, len(m.site.Slope)), times, m.site.Slope)
	for i, j := range r.Index {
		x[j] += r.Value[i]
	}
	return glm.Dense(x)
}

// judge says of the last row how its class was predicted: a probability p and whether what it was given to happened,
// whether the most probable class was right, and the log-likelihood. Of two classes p is that of the second, of more
// that of the most probable one. Of numbers only the log-likelihood means something. Whatever the row and the model,
// the log-likelihood is within ±rowLargest.
func (m *Predictor) judge(y float64) (p float64, happened, correct bool, logLik float64) {
	switch l := m.Likelihood.(type) {
	case glm.Linear:
		v, e := l.Variance+m.C[0], y-m.A[0]
		return 0, false, false, measured(-(math.Log(2*math.Pi*v) + e*e/v) / 2)
	case glm.Poisson:
		return 0, false, false, measured(glm.LogExpectPoisson(y, m.A[0], m.C[0]))
	case glm.Softmax:
		best := floats.MaxIdx(m.P)
		right := best == int(y)
		return m.P[best], right, right, math.Log(max(m.P[int(y)], math.SmallestNonzeroFloat64))
	}
	p, happened = m.P[0], y > 0
	return p, happened, (p > 0.5) == happened, measured(m.Likelihood.(glm.Binary).LogExpect(y, m.A[0], m.C[0]))
}

// measured keeps a log-likelihood within bounds; what cannot be calculated is as bad as can be.
func measured(logLik float64) float64 {
	if math.IsNaN(logLik) {
		return -rowLargest
	}
	return glm.Clamp(logLik, rowLargest)
}

// Score adds how well the last row's outcome was predicted, so many times (see [Alike]) as leave no site more rows than
// it can have.
func (m *Predictor) Score(y float64, times int, to *Assessment) {
	p, happened, correct, logLik := m.judge(y)
	times = min(times, glm.MostRows-to.Rows)
	n := float64(times)
	to.Rows += times
	to.LogLik += n * logLik
	switch m.Likelihood.(type) {
	case glm.Linear, glm.Poisson:
		if e := (y - m.P[0]) * (y - m.P[0]); e <= rowLargest {
			to.Squares += n * e
		} else { // NaN too
			to.Squares += n * rowLargest
		}
		return
	}
	if _, two := m.Likelihood.(glm.Binary); two {
		if to.Ranking == nil {
			to.Ranking = newRanking()
		}
		to.Ranking.count(p, happened, n)
	}
	to.bin(p, happened, n)
	if correct {
		to.Correct += times
	}
}

// Contribution returns what a row contributes to the sum of the quality of q. It is for one goroutine.
func Contribution(l glm.Likelihood, q glm.Normal, columns int) func(x glm.Row, y float64, v []float64) {
	m := New(l, q, columns)
	return func(x glm.Row, y float64, v []float64) {
		m.Row(x)
		p, happened, correct, logLik := m.judge(y)
		i := binOf(p)
		v[i], v[tenths+i] = 1, (p-middle(i))*float64(tenths)
		if happened {
			v[2*tenths+i] = 1
		}
		if correct {
			v[3*tenths] = 1
		} else {
			v[3*tenths+1] = 1
		}
		v[3*tenths+2] = -max(logLik, -Worst) / unit
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

// Complete makes the next rows ones that lack nothing.
func (m *Predictor) Complete() { clear(m.lacking) }

// Lacks makes the next rows ones of a subject who lacks a feature: its row x, where the feature has no effect, is one
// of these others with these probabilities. Of several features each is taken by itself. The activation is taken for
// normal. It keeps its mean where centred: what the feature is on average is then not known.
func (m *Predictor) Lacks(x glm.Row, others []glm.Row, shares []float64, centred bool) {
	// Classes are predicted as if their activations were independent, though these add up to 0. Their distances have
	// the right variance on average.
	scale := 1.0
	if k := float64(len(m.A)); k > 1 {
		scale = k / (k - 1)
	}
	for j := range m.lacking {
		here, unsure := m.observed(x, j*m.columns)
		mean, square := 0.0, 0.0
		for i, r := range others {
			a, c := m.observed(r, j*m.columns)
			mean += shares[i] * (a - here)
			square += shares[i] * ((a-here)*(a-here) + c/scale)
		}
		if !centred {
			m.lacking[j].shift += mean
		}
		m.lacking[j].variance += max(scale*(square-mean*mean)-unsure, 0)
	}
}

// average is the expectation of a [glm.Softmax] over activations that are normal with any covariance, by quasi-Monte
// Carlo: over the same points of a standard normal density for all rows, which lie evenly, in pairs about 0.
type average struct {
	points              [][]float64 // in as many dimensions as there are classes
	low, f, p, at, sure []float64
}

// averagePairs of points: after 60 rows probabilities of 2 to 5 classes are within 0.015 of the
// integral, and of ten within 0.04, where [glm.Softmax.Predict] is off by up to 0.12.
const averagePairs = 128

// newAverage makes the points for so many classes: the additive recurrence with the powers of 1/φ for the root φ of
// φ^(K+1) = φ + 1 (Roberts 2018), by the normal quantile function, with variance 1 in every dimension.
func newAverage(classes int) *average {
	phi := 2.0
	for range 60 {
		phi = math.Pow(1+phi, 1/float64(classes+1))
	}
	m := &average{low: make([]float64, glm.Triangle(classes))}
	for _, v := range []*[]float64{&m.f, &m.p, &m.at, &m.sure} {
		*v = make([]float64, classes)
	}
	for range averagePairs {
		m.points = append(m.points, make([]float64, classes))
	}
	for k := range classes {
		squares, step := 0.0, math.Pow(phi, -float64(k+1))
		for n, z := range m.points {
			_, u := math.Modf(0.5 + float64(n+1)*step)
			z[k] = math.Sqrt2 * math.Erfinv(2*u-1)
			squares += z[k] * z[k] / averagePairs
		}
		for _, z := range m.points {
			z[k] /= math.Sqrt(squares)
		}
	}
	return m
}

// predict sets the expected probabilities for activations with mean a and a covariance, given as its
// lower triangle by rows, that may be singular.
func (m *average) predict(a, covariance, dst []float64) {
	m.factorise(covariance)
	clear(dst)
	for _, z := range m.points {
		for k := range m.f {
			m.f[k] = 0
			for j := range k + 1 {
				m.f[k] += m.low[glm.Packed(k, j)] * z[j]
			}
		}
		for _, sign := range []float64{1, -1} {
			for k := range m.at {
				m.at[k] = a[k] + sign*m.f[k]
			}
			glm.Softmax{Classes: len(a)}.Predict(m.at, m.sure, m.p)
			for k, p := range m.p {
				dst[k] += p / (2 * averagePairs)
			}
		}
	}
}

// singular is a share of a variance that rounding leaves.
const singular = 1e-12

// factorise sets low to Cholesky's factor of a covariance. A direction without variance has none in the factor.
func (m *average) factorise(covariance []float64) {
	for i := range m.f {
		for j := range i + 1 {
			s := covariance[glm.Packed(i, j)]
			for l := range j {
				s -= m.low[glm.Packed(i, l)] * m.low[glm.Packed(j, l)]
			}
			pivot := m.low[glm.Packed(j, j)]
			switch {
			case i == j && s > singular*covariance[glm.Packed(i, i)]:
				s = math.Sqrt(s)
			case i == j || pivot == 0:
				s = 0
			default:
				s /= pivot
			}
			m.low[glm.Packed(i, j)] = s
		}
	}
}

// Survival is the probability of no event until the end of a period, averaged over the
// posterior, with the interval that what is not known of the weights leaves it.
type Survival struct{ Mean, Low, High float64 }

var twenty = glm.GaussHermite(20)

// Survival sets dst, one for each period, from a row without the columns of periods, which are the design's last. The
// logarithm of survival of no event in any period until then is taken as normal, with the variance of its linear form
// in the weights (the delta method); the interval of ± z standard deviations is made on the scale of ln(−ln S), where
// it stays within 0 and 1 (Kalbfleisch and Prentice, The Statistical Analysis of Failure Time Data, section 1.4). The
// mean is that of the same normal distribution, so that it too is a probability, however little is known.
func (m *Predictor) Survival(x glm.Row, z float64, dst []Survival) {
	first := m.columns - len(dst)
	log, slopes := 0.0, 0.0
	linear := glm.Row{Index: slices.Clone(x.Index), Value: make([]float64, len(x.Value))}
	for k := range dst {
		at := glm.Row{Index: append(slices.Clip(x.Index), int32(first+k)), Value: append(slices.Clip(x.Value), 1),
			Offset: x.Offset}
		a, c := m.observed(at, 0) // without what the row lacks, which is no small part: below alone
		a += m.lacking[0].shift
		value, slope := m.Likelihood.(glm.Binary).ExpectNone(a, c)
		log += value
		slopes += slope
		linear.Index, linear.Value = append(linear.Index, int32(first+k)), append(linear.Value, slope)
		for i, v := range x.Value {
			linear.Value[i] = slopes * v
		}
		variance := m.spread(linear, slopes)
		sd := math.Sqrt(variance) / max(-log, math.SmallestNonzeroFloat64) // of ln(−ln S)
		dst[k].Mean = 0
		for i, node := range twenty.Nodes {
			dst[k].Mean += twenty.Weights[i] * math.Exp(log*math.Exp(sd*node))
		}
		wide := z * sd
		dst[k].Low, dst[k].High = math.Exp(log*math.Exp(wide)), math.Exp(log*math.Exp(-wide))
	}
}

// spread is the variance of Σ x w + times b for the site's intercept b.
func (m *Predictor) spread(x glm.Row, times float64) float64 {
	_, variance := m.posterior.Activation(m.sloped(x, times), 0)
	return variance + times*times*(m.site.Variance+m.lacking[0].variance)
}

// Assess is how well a posterior predicts the rows of a design, of a site whose own effect is b; nil if sites have
// none. Weights of rows are those of a sample, or count rows. Where residuals are wanted the outcome has one
// activation.
func Assess(l glm.Likelihood, q glm.Normal, b *glm.Intercept, d *glm.Design, sampled, residuals bool) *Assessment {
	m, a := New(l, q, d.Columns()), NewAssessment()
	if b != nil {
		m.At(*b)
	}
	if residuals {
		a.Residuals = newResiduals(d.Columns())
		a.Residuals.Sampled = sampled
	}
	for i := range d.Rows() {
		row, y := d.Row(i), d.Outcome(i)
		m.Row(row)
		if m.Score(y, Alike(row, sampled), a); residuals {
			m.residual(row, y, a.Residuals)
		}
	}
	return a
}

// residual counts what is left of the last row's outcome.
func (m *Predictor) residual(row glm.Row, y float64, s *Residuals) {
	expected := m.P[0]
	switch l := m.Likelihood.(type) {
	case glm.Linear:
		s.count(row, y-row.Offset, expected-row.Offset, l.Variance) // features say nothing of the offset
	case glm.Poisson:
		s.count(row, y, expected, expected)
	case glm.Cloglog:
		var first [1]float64
		l.LogLik(-1, m.A, first[:])
		u := -first[0] // whose probability of an event is 1 − e⁻ᵘ
		v := u / math.Expm1(u) * u
		s.count(row, ((y+1)/2+math.Expm1(-u))*u/-math.Expm1(-u), 0, v)
	default:
		s.count(row, (y+1)/2, expected, expected*(1-expected))
	}
}
