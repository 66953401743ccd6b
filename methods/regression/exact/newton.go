package exact

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"parley/internal/wire"
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
)

// Sums are those over a site's rows under a posterior q, by which all of its weights move
// together. Every row counts by its weight, if rows have weights. With f = x·w of a row, under q normal with mean a and variance c, they are
//
//	value        Σ E ln p(y | f)
//	gradient     Σ E[∂/∂f ln p(y | f)] x
//	information  Σ E[−∂²/∂f² ln p(y | f)] x xᵀ   (its lower triangle by rows)
//	weight       Σ E[−∂²/∂f² ln p(y | f)]
//
// Of K classes there are K activations of a row, taken at the mean of q, where with the
// probabilities α the gradient is Σ ([y = k] − α_k) x for each class and the information
// Σ (diag α − ααᵀ) ⊗ x xᵀ. Steps then lead to the mode of the posterior and its inverse
// information, Laplace's approximation. The weight is Σ ½ (1 − Σ α_k²), that of the squared
// distances between activations in the information.
type Sums struct {
	Rows        int         `cbor:"rows"`
	Value       float64     `cbor:"value"`
	Weight      float64     `cbor:"weight"`
	Gradient    wire.Vector `cbor:"gradient"`
	Information wire.Vector `cbor:"information"`
	Classes     []float64   `cbor:"classes,omitempty"` // how many rows have each, where there are several activations
}

func newSums(weights int) *Sums {
	return &Sums{Gradient: make(wire.Vector, weights), Information: make(wire.Vector, glm.Triangle(weights))}
}

// gather makes the sums over the rows of a design. Of counts the first ones, under a q of which
// nothing is unsure, have the derivatives of other parabolas: see [beginning].
func gather(l glm.Likelihood, q glm.Normal, d *glm.Design) *Sums {
	if k := l.Activations(); k > 1 {
		return gatherClasses(l, k, q, d)
	}
	s := newSums(d.Columns())
	s.Rows = d.Rows()
	var begin *beginning
	if _, counts := l.(glm.Poisson); counts && certain(q) {
		begin = beginningOf(d)
	}
	var a, c [1]float64
	var first [2]float64
	for i := range d.Rows() {
		r := d.Row(i)
		a[0], c[0] = q.Activation(r, 0)
		s.Value += r.Weight * l.Expect(d.Outcome(i), a[:], c[:], first[:], nil)
		g, h := r.Weight*first[0], r.Weight*max(-2*first[1], 0) // ∂/∂c E = ½ E of the second derivative
		if begin != nil {
			g, h = begin.slopes(d.Outcome(i), r.Offset, a[0])
			g, h = r.Weight*g, r.Weight*h
		}
		s.Weight += h
		for k, j := range r.Index {
			x := r.Value[k]
			s.Gradient[j] += g * x
			row := s.Information[glm.Packed(int(j), 0):]
			for m := range k + 1 {
				row[r.Index[m]] += h * x * r.Value[m]
			}
		}
	}
	return s
}

// gatherClasses makes the sums over the rows of a design at the mean of q, where l expects the
// exact logarithm of a class's probability. The first ones, under a q of which nothing is unsure, have the
// derivatives of other parabolas: see [commonest].
func gatherClasses(l glm.Likelihood, classes int, q glm.Normal, d *glm.Design) *Sums {
	columns := d.Columns()
	s := newSums(classes * columns)
	s.Rows, s.Classes = d.Rows(), make([]float64, classes)
	var begin *commonest
	if certain(q) {
		begin = commonestOf(d, classes)
	}
	a, sure, first, alpha := make([]float64, classes), make([]float64, classes), make([]float64, 2*classes), make([]float64, classes)
	for i := range d.Rows() {
		r := d.Row(i)
		for k := range a {
			a[k], _ = r.Activation(q.Mean[k*columns:], q.Variance[k*columns:])
		}
		s.Value += r.Weight * l.Expect(d.Outcome(i), a, sure, first, nil)
		l.Predict(a, sure, alpha)
		s.Classes[int(d.Outcome(i))]++
		if begin != nil {
			begin.slopes(int(d.Outcome(i)), a, alpha, first)
		}
		for k, p := range alpha {
			own := 0.0 // α_k (1 − α_k), where α_k may be 1 but for rounding
			for o, other := range alpha {
				if o == k {
					continue
				}
				own += p * other
				if o < k {
					s.addBlock(r, k*columns, o*columns, -r.Weight*p*other)
				}
			}
			s.addBlock(r, k*columns, k*columns, r.Weight*own)
			s.Weight += r.Weight * own / 2
			for m, j := range r.Index {
				s.Gradient[k*columns+int(j)] += r.Weight * first[k] * r.Value[m]
			}
		}
	}
	return s
}

// addBlock adds h x xᵀ to the information of the weights from two offsets on, the second not
// beyond the first.
func (s *Sums) addBlock(r glm.Row, offset, other int, h float64) {
	for k, j := range r.Index {
		row, last := s.Information[glm.Packed(offset+int(j), other):], len(r.Index)
		if offset == other {
			last = k + 1
		}
		for m := range last {
			row[r.Index[m]] += h * r.Value[k] * r.Value[m]
		}
	}
}

// add adds the sums of other rows.
func (s *Sums) add(o *Sums) {
	s.Rows, s.Value, s.Weight = s.Rows+o.Rows, s.Value+o.Value, s.Weight+o.Weight
	for j, x := range o.Gradient {
		s.Gradient[j] += x
	}
	for j, x := range o.Information {
		s.Information[j] += x
	}
	if s.Classes == nil && len(o.Classes) > 0 {
		s.Classes = make([]float64, len(o.Classes))
	}
	for k, x := range o.Classes {
		s.Classes[k] += x
	}
}

// step is Newton's step from q, for the optimum of the evidence lower bound over all
// normal densities: with precision P = Λ₀ + information, the mean moves by
// P⁻¹(gradient − Λ₀(m − m₀)) and the covariance becomes P⁻¹ (Opper and Archambeau, 2009,
// equations 12 and 13). Of several classes it is Newton's step for the mode, without what all of them
// have in common. Moved is how far, in standard deviations: of the weight whose mean
// moves most, or the largest |ln| of a ratio of deviations, if that is more. Not ok is a P that cannot be
// inverted. Activations move by at most
// farthest, and a mean beyond largest is no step.
func step(prior glm.Gaussian, q glm.Normal, s *Sums, classes int, farthest, largest float64) (next glm.Normal, moved float64, ok bool) {
	d := len(q.Mean)
	p := append([]float64(nil), s.Information...)
	g := mat.NewVecDense(d, nil)
	for j, l := range prior.Lambda {
		p[glm.Packed(j, j)] += l
		g.SetVec(j, s.Gradient[j]-(l*q.Mean[j]-prior.Eta[j]))
	}
	glm.Pin(p, d, classes)
	var chol mat.Cholesky
	if !chol.Factorize(glm.Symmetric(p, d)) {
		return q, 0, false
	}
	var by mat.VecDense
	var inverse mat.SymDense
	if !glm.Usable(chol.SolveVecTo(&by, g)) || !glm.Usable(chol.InverseTo(&inverse)) {
		return q, 0, false
	}
	scale := 1.0
	if far := math.Sqrt(mat.Inner(&by, glm.Symmetric(s.Information, d), &by) / s.Weight); far > farthest {
		scale = farthest / far
	}
	mean := make([]float64, d)
	for j := range mean {
		mean[j] = q.Mean[j] + scale*by.AtVec(j)
	}
	lower := glm.Lower(&inverse)
	glm.Centre(mean, lower, classes)
	for i := range d { // beside a variance that a narrow prior makes tiny, rounding may go beyond it
		for j := range i {
			most := math.Sqrt(lower[glm.Packed(i, i)] * lower[glm.Packed(j, j)])
			lower[glm.Packed(i, j)] = min(max(lower[glm.Packed(i, j)], -most), most)
		}
	}
	next, err := glm.NewNormal(mean, lower)
	if err != nil {
		return q, 0, false
	}
	if !inside(next, largest) {
		return q, 0, false
	}
	for j, v := range next.Variance {
		moved = max(moved, math.Abs(mean[j]-q.Mean[j])/math.Sqrt(v))
		if q.Variance[j] > 0 { // where the fit begins nothing is unsure yet
			moved = max(moved, math.Abs(math.Log(v/q.Variance[j]))/2)
		}
	}
	return next, moved, true
}

// nearby is how far a step may move, in standard deviations, for it to be carried on. Where the
// noise of a number is estimated none is: deviations wait for that, and not for means.
const nearby = 3

// farthestOn is by how much of the difference between two steps the second is carried on: means
// and deviations by themselves come nearer by a quarter in each step, but there are others.
const farthestOn = 0.3

// reached are the moments of each weight after a step.
type reached struct {
	Mean     wire.Vector `cbor:"mean"`
	Variance wire.Vector `cbor:"variance"`
}

// carriedOn carries a step from q to next on to where it and the one before, from last to
// before, say that there would be none: for each weight by itself, whose mean and logarithm of
// deviation wait for each other and come nearer by the same ratio in every step (Anderson
// 1965, with one step kept). Correlations are those of next. A mean beyond largest is not gone to,
// and neither is a density farther from next, whose precision is given, than so many moves of all
// weights: of weights of which nearly a combination alone is known, as those of a spline, each by itself
// would leave what is known behind.
func carriedOn(q, next, last glm.Normal, before reached, largest, moved float64, precision []float64) glm.Normal {
	d := len(q.Mean)
	mean, widen := make([]float64, d), make([]float64, d)
	for j, v := range next.Variance {
		sd := math.Sqrt(v)
		to, then := [2]float64{next.Mean[j] / sd, math.Log(v) / 2}, [2]float64{before.Mean[j] / sd, math.Log(before.Variance[j]) / 2}
		from, earlier := [2]float64{q.Mean[j] / sd, math.Log(q.Variance[j]) / 2}, [2]float64{last.Mean[j] / sd, math.Log(last.Variance[j]) / 2}
		along, square := 0.0, 0.0
		for i := range to {
			off := to[i] - from[i]
			change := off - (then[i] - earlier[i])
			along, square = along+off*change, square+change*change
		}
		by := min(max(along/square, -farthestOn), farthestOn)
		if !glm.Finite(by) { // nothing has changed, or nothing was unsure yet
			by = 0
		}
		mean[j] = next.Mean[j] + by*(before.Mean[j]-next.Mean[j])
		widen[j] = math.Exp(by * (then[1] - to[1]))
	}
	covariance := append([]float64(nil), next.Covariance...)
	for i := range d {
		for j := range i + 1 {
			covariance[glm.Packed(i, j)] *= widen[i] * widen[j]
		}
	}
	apart := -float64(d) // twice the divergence of the two
	for i := range d {
		apart -= 2 * math.Log(widen[i])
		for j := range d {
			at := glm.Packed(max(i, j), min(i, j))
			apart += precision[at] * (covariance[at] + (mean[i]-next.Mean[i])*(mean[j]-next.Mean[j]))
		}
	}
	on, err := glm.NewNormal(mean, covariance)
	if err != nil || !inside(on, largest) || !(apart < float64(d)*moved*moved) {
		return next
	}
	return on
}

// inside says whether sites take a density, with means up to largest.
func inside(q glm.Normal, largest float64) bool {
	for j, v := range q.Variance {
		if !glm.Inside(q.Mean[j], -largest, largest) || !glm.Inside(v, 1/options.FactorLargest, options.FactorLargest) {
			return false
		}
	}
	return true
}

// between is the density half way in mean and covariance.
func between(a, b glm.Normal) glm.Normal {
	half := func(x, y []float64) []float64 {
		out := make([]float64, len(x))
		for j := range x {
			out[j] = (x[j] + y[j]) / 2
		}
		return out
	}
	return glm.Normal{Mean: half(a.Mean, b.Mean), Variance: half(a.Variance, b.Variance), Covariance: half(a.Covariance, b.Covariance)}
}
