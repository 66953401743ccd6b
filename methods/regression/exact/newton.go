package exact

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"parley/internal/wire"
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
)

// Sums are those over a site's rows at weights w, by which all of them move
// together. Every row counts by its weight, if rows have weights. With f = x·w of a row they are
//
//	value        Σ ln p(y | f)
//	gradient     Σ ∂/∂f ln p(y | f) x
//	information  Σ −∂²/∂f² ln p(y | f) x xᵀ   (its lower triangle by rows)
//	weight       Σ −∂²/∂f² ln p(y | f)
//
// Of K classes there are K activations of a row, where with the
// probabilities α the gradient is Σ ([y = k] − α_k) x for each class and the information
// Σ (diag α − ααᵀ) ⊗ x xᵀ. The weight is Σ ½ (1 − Σ α_k²), that of the squared
// distances between activations in the information.
type Sums struct {
	Rows        int         `cbor:"rows"`
	Value       float64     `cbor:"value" sums:"signed"`
	Weight      float64     `cbor:"weight"`
	Gradient    wire.Vector `cbor:"gradient" sums:"signed"`
	Information wire.Vector `cbor:"information" sums:"signed"`
	Classes     []float64   `cbor:"classes,omitempty"` // how many rows have each, where there are several activations
}

func newSums(weights int) *Sums {
	return &Sums{Gradient: make(wire.Vector, weights), Information: make(wire.Vector, glm.Triangle(weights))}
}

// gather makes the sums over the rows of a design at the weights w. The first ones of counts and of classes
// have the derivatives of other parabolas: see [beginning] and [commonest].
func gather(l glm.Likelihood, w []float64, first bool, d *glm.Design) *Sums {
	if k := l.Activations(); k > 1 {
		return gatherClasses(l, k, w, first, d)
	}
	s := newSums(d.Columns())
	s.Rows = d.Rows()
	var begin *beginning
	if _, counts := l.(glm.Poisson); counts && first {
		begin = beginningOf(d)
	}
	var f, slope [1]float64
	for i := range d.Rows() {
		r := d.Row(i)
		f[0], _ = r.Activation(w, w)
		value, h := l.LogLik(d.Outcome(i), f[:], slope[:])
		g := slope[0]
		if begin != nil {
			g, h = begin.slopes(d.Outcome(i), r.Offset, f[0])
		}
		s.Value += r.Weight * value
		g, h = r.Weight*g, r.Weight*max(h, 0)
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

// gatherClasses makes the sums of several classes.
func gatherClasses(l glm.Likelihood, classes int, w []float64, beginning bool, d *glm.Design) *Sums {
	columns := d.Columns()
	s := newSums(classes * columns)
	s.Rows, s.Classes = d.Rows(), make([]float64, classes)
	var begin *commonest
	if beginning {
		begin = commonestOf(d, classes)
	}
	a, first, alpha := make([]float64, classes), make([]float64, classes), make([]float64, classes)
	for i := range d.Rows() {
		r, y := d.Row(i), int(d.Outcome(i))
		for k := range a {
			a[k], _ = r.Activation(w[k*columns:], w[k*columns:])
		}
		value, _ := l.LogLik(d.Outcome(i), a, first)
		s.Value += r.Weight * value
		for k, g := range first {
			alpha[k] = -g
		}
		alpha[y]++
		s.Classes[y]++
		if begin != nil {
			begin.slopes(y, a, alpha, first)
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

// step is Newton's step from q, for the mode of the posterior: with precision P = Λ₀ + information, the mean
// moves by P⁻¹(gradient − Λ₀(m − m₀)) and the covariance becomes P⁻¹, Laplace's approximation. Of several
// classes it is without what all of them have in common. Moved is how far, in standard deviations: of the weight whose mean
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

// inside says whether sites take a density, with means up to largest.
func inside(q glm.Normal, largest float64) bool {
	for j, v := range q.Variance {
		if !glm.Inside(q.Mean[j], -largest, largest) || !glm.Inside(v, 1/options.FactorLargest, options.FactorLargest) {
			return false
		}
	}
	return true
}
