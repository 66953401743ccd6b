package predict

import (
	"math"

	"parley/methods/regression/glm"
)

// ResidualsOf sums up the rows of a design under a posterior, of a site whose own effect is b;
// nil if sites have none. The outcome has one activation.
func ResidualsOf(l glm.Likelihood, q glm.Normal, b *SiteEffect, d *glm.Design, sampled bool) *Residuals {
	m, s := New(l, q, d.Columns()), newResiduals(d.Columns())
	if b != nil {
		m.At(*b)
	}
	s.Sampled = sampled
	usual := ofMeans(d)
	var first [1]float64
	for i := range d.Rows() {
		row, y := d.Row(i), d.Outcome(i)
		m.Row(row)
		expected, moved := m.P[0], usual(q.Mean, row.Lacks)
		switch l := l.(type) {
		case glm.Linear:
			s.count(row, y, expected, l.Variance, moved)
		case glm.Poisson:
			s.count(row, y, expected, expected, expected*moved)
		case glm.Cloglog:
			l.LogLik(-1, m.A, first[:])
			u := -first[0] // whose probability of an event is 1 − e⁻ᵘ
			v := u / math.Expm1(u) * u
			s.count(row, ((y+1)/2+math.Expm1(-u))*u/-math.Expm1(-u), 0, v, v*moved)
		default:
			s.count(row, (y+1)/2, expected, expected*(1-expected), expected*(1-expected)*moved)
		}
	}
	s.forgetFew()
	s.neighbours()
	return s
}

// ClassResiduals sums up the rows of a design by class: what is left of [y = k] by the probability α_k
// at the mean of a posterior of each class's weights, and its variance α_k (1 − α_k).
func ClassResiduals(l glm.Likelihood, q glm.Normal, d *glm.Design, sampled bool) (classes []*Residuals) {
	k, columns := l.Activations(), d.Columns()
	for range k {
		s := newResiduals(columns)
		s.Sampled = sampled
		classes = append(classes, s)
	}
	a, sure, alpha, moved, usual := make([]float64, k), make([]float64, k), make([]float64, k), make([]float64, k), ofMeans(d)
	for i := range d.Rows() {
		row := d.Row(i)
		for c := range a {
			a[c], _ = q.Activation(row, c*columns)
		}
		l.Predict(a, sure, alpha)
		ofAll := 0.0
		for c, p := range alpha {
			moved[c] = usual(q.Mean[c*columns:], row.Lacks)
			ofAll += p * moved[c]
		}
		for c, p := range alpha {
			y := 0.0
			if c == int(d.Outcome(i)) {
				y = 1
			}
			classes[c].count(row, y, p, p*(1-p), p*(moved[c]-ofAll))
		}
	}
	for _, s := range classes {
		s.forgetFew()
		s.neighbours()
	}
	return classes
}
