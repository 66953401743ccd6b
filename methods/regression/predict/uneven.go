package predict

import (
	"math"

	"parley/methods/regression/glm"
)

// ResidualsOf sums up the rows of a design under a posterior, of a site whose own effect is b;
// nil if sites have none. The outcome has one activation.
func ResidualsOf(l glm.Likelihood, q glm.Normal, b *SiteEffect, d *glm.Design) *Residuals {
	m, s := New(l, q, d.Columns()), newResiduals(d.Columns())
	if b != nil {
		m.At(*b)
	}
	s.Sampled = sampled(d)
	moves, usual := m.moves(), ofMeans(d)
	for i := range d.Rows() {
		row, y := d.Row(i), d.Outcome(i)
		m.Row(row)
		expected, moved := m.P[0], usual(q.Mean, row.Lacks)
		switch l := l.(type) {
		case glm.Linear:
			s.count(row, y, expected, l.Variance, moved, moves(row, 1/l.Variance))
		case glm.Poisson:
			s.count(row, y, expected, expected, expected*moved, moves(row, 1))
		default:
			s.count(row, (y+1)/2, expected, expected*(1-expected), expected*(1-expected)*moved, moves(row, 1))
		}
	}
	if l, number := l.(glm.Linear); number && !s.Sampled {
		s.beyond(m, l.Variance, d)
	}
	s.forgetFew()
	s.neighbours()
	return s
}

// ClassResiduals sums up the rows of a design by class: what is left of [y = k] by the probability α_k
// at the mean of a posterior of each class's weights, and its variance α_k (1 − α_k). What moves
// weights is not summed up, as that is made of all classes' residuals.
func ClassResiduals(l glm.Likelihood, q glm.Normal, d *glm.Design) (classes []*Residuals) {
	k, columns, sample := l.Activations(), d.Columns(), sampled(d)
	for range k {
		s := newResiduals(columns)
		s.Sampled = sample
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
			classes[c].count(row, y, p, p*(1-p), p*(moved[c]-ofAll), nil)
		}
	}
	for _, s := range classes {
		s.forgetFew()
		s.neighbours()
	}
	return classes
}

// sampled says whether weights of rows are no numbers of people.
func sampled(d *glm.Design) bool {
	var people glm.People
	for i := range d.Rows() {
		people.Count(d.Row(i).Weight)
	}
	return !people.Possible()
}

// moves returns what a row's outcome moves each weight by, for one more of it: S (x + Slope) times
// the derivative of the activation's score, for weights with covariance S. The result is valid until
// the next call.
func (m *Predictor) moves() func(row glm.Row, derivative float64) []float64 {
	d := m.columns
	add := func(to []float64, j int, x float64) {
		for i := range d {
			to[i] += x * m.posterior.Covariance[glm.Packed(max(i, j), min(i, j))]
		}
	}
	common, c := make([]float64, d), make([]float64, d) // of all rows of the site
	for j, x := range m.site.Slope {
		add(common, j, x)
	}
	return func(row glm.Row, derivative float64) []float64 {
		copy(c, common)
		for i, j := range row.Index {
			add(c, int(j), row.Value[i])
		}
		for i := range c {
			c[i] *= derivative
		}
		return c
	}
}

// SandwichRatio is by how many times the standard error of each weight is too small, because residuals
// are larger in rows that it goes by: the root of its variance with Σ (rc)² in the place of what
// the model expects of that, Σ vc² (White 1980), beyond what [Residuals.dispersion] says of all rows.
// It is 1 if that is less than a fifth, or may be chance, in one of so many weights. So it does not
// matter how a category is coded: who stands apart is what moves a weight. variance is that of
// each weight. normal says that residuals have one law but for their scale: then a slope of their
// absolute values in any column says that they differ (Glejser 1969), which a few large ones do
// not decide.
func (s *Residuals) SandwichRatio(variance []float64, normal bool) []float64 {
	enough, uneven := quantile(2*len(variance), 2), false
	for j := range variance {
		uneven = uneven || normal && !s.Sampled && s.slope(j) > enough
	}
	times := make([]float64, len(variance))
	for j, v := range variance {
		times[j] = 1
		excess := s.Meat[j]/s.dispersion() - s.Spread[j]
		ratio := 1 + excess/v
		chance := s.MeatSquares[j] / s.dispersion() / s.dispersion()
		if ratio > muchLarger && glm.Finite(ratio) && (uneven || excess/chance*excess > enough) {
			times[j] = math.Sqrt(ratio)
		}
	}
	return times
}

// slope is the square of the standard normal deviate of the slope of |r|/√v in a column, where v
// is one number.
func (s *Residuals) slope(j int) float64 {
	n := s.Weight
	mean := s.Absolute / n
	spread := s.Second/n - mean*mean
	x2 := s.Bread[j]/(s.Variance/n) - s.Xs[j]/n*s.Xs[j]
	d := s.Tilt[j] - mean*s.Xs[j]
	if !(spread > 0) || !(x2 > 0) {
		return 0
	}
	return d / spread * d / x2
}

// DesignEffect is by how many times standard errors are too small, or too large if below 1, because rows
// have weights that are no numbers of people: the root of what residuals vary by with such weights, by
// what the model expects. That holds of a sample's weights and of those that say how exact outcomes
// are. It is 1 if standard errors are less than a fifth off, or it may be chance, in one of so many tests.
func (s *Residuals) DesignEffect(tests int) float64 {
	ratio := s.Second / s.Weight
	log, variance := math.Log(ratio), max(s.Fourth/s.Weight-1, 2)/float64(s.Rows)
	if !s.Sampled || !(math.Abs(log) > math.Log(muchLarger)) || !(log*log > quantile(tests, 2)*variance) || math.IsInf(log, 0) {
		return 1
	}
	return math.Sqrt(ratio)
}
