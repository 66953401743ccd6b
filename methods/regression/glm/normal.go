package glm

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"parley/internal/wire"
)

// Normal is a density over weights: N(Mean, Σ), where Σ has Variance on its diagonal. Covariance is its lower
// triangle by rows, d(d+1)/2 numbers for d weights; nil if the weights are independent.
type Normal struct {
	Mean, Variance []float64
	Covariance     []float64
}

// Normal returns the same density. The Gaussian is proper.
func (g Gaussian) Normal() Normal {
	mean, variance := g.Moments()
	return Normal{Mean: mean, Variance: variance}
}

// NewNormal is the density with a full covariance, given as its lower triangle by rows.
func NewNormal(mean, covariance []float64) (Normal, error) {
	n := Normal{mean, make([]float64, len(mean)), covariance}
	if len(covariance) != Triangle(len(mean)) {
		return n, fmt.Errorf("%d covariances of %d weights, want %d", len(covariance), len(mean), Triangle(len(mean)))
	}
	for i := range mean {
		n.Variance[i] = covariance[Packed(i, i)]
	}
	return n, CheckSquares(covariance, "covariance")
}

// CheckSquares refuses a lower triangle by rows that is none of a sum of squares and products: with a diagonal below 0,
// or entries beyond what that allows.
func CheckSquares(lower []float64, what string) error {
	for i := 0; Packed(i, i) < len(lower); i++ {
		for j := range i + 1 {
			x, one, other := lower[Packed(i, j)], lower[Packed(i, i)], lower[Packed(j, j)]
			if !(x*x <= one*other*1.000001) || i == j && x < 0 {
				return fmt.Errorf("a %s of %v of weights %d and %d, and %v and %v of each", what, x, j, i, other, one)
			}
		}
	}
	return nil
}

// Triangle is how many numbers the lower triangle of a d × d matrix has.
func Triangle(d int) int { return d * (d + 1) / 2 }

// Packed is the place of entry (i, j) in a lower triangle by rows, j ≤ i.
func Packed(i, j int) int { return i*(i+1)/2 + j }

// Entry is entry (i, j) of a symmetric matrix that is given as its lower triangle by rows.
func Entry(lower []float64, i, j int) float64 { return lower[Packed(max(i, j), min(i, j))] }

// Sym is the symmetric matrix with these entries (i, j), j ≤ i.
func Sym(n int, entry func(i, j int) float64) *mat.SymDense {
	m := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i + 1 {
			m.SetSym(i, j, entry(i, j))
		}
	}
	return m
}

// Symmetric unpacks the first d rows of a lower triangle.
func Symmetric(lower []float64, d int) *mat.SymDense {
	return Sym(d, func(i, j int) float64 { return lower[Packed(i, j)] })
}

// Eigen are the eigenvalues of a symmetric matrix and its eigenvectors, in columns; nil if they are not found.
func Eigen(m mat.Symmetric) (values []float64, vectors *mat.Dense) {
	var e mat.EigenSym
	if !e.Factorize(m, true) {
		return nil, nil
	}
	vectors = new(mat.Dense)
	e.VectorsTo(vectors)
	return e.Values(nil), vectors
}

// Spectral is U f(λ) Uᵀ for the eigenvalues λ and eigenvectors U of a symmetric matrix; nil if they are not found.
func Spectral(m mat.Symmetric, f func(x float64) float64) *mat.SymDense {
	values, vectors := Eigen(m)
	for k, x := range values {
		values[k] = f(x)
	}
	if values == nil {
		return nil
	}
	return Compose(vectors, values)
}

// Compose is U diag(values) Uᵀ.
func Compose(u *mat.Dense, values []float64) *mat.SymDense {
	var scaled, full mat.Dense
	scaled.Apply(func(_, k int, x float64) float64 { return x * values[k] }, u)
	full.Mul(&scaled, u.T())
	return Sym(len(values), func(i, j int) float64 { return (full.At(i, j) + full.At(j, i)) / 2 })
}

// Floored raises the eigenvalues of a symmetric matrix to smallest; nil if they are not found.
func Floored(m mat.Symmetric, smallest float64) *mat.SymDense {
	return Spectral(m, func(x float64) float64 { return max(x, smallest) })
}

// Activation returns mean and variance of Offset + Σ x w over the weights from an offset on.
func (n Normal) Activation(r Row, offset int) (a, c float64) {
	if n.Covariance == nil {
		return r.Activation(n.Mean[offset:], n.Variance[offset:])
	}
	a = r.Offset
	for i, j := range r.Index {
		x, at := r.Value[i], offset+int(j)
		a += x * n.Mean[at]
		c += x * x * n.Variance[at]
		row := n.Covariance[Packed(at, 0):]
		for k := range i {
			c += 2 * x * r.Value[k] * row[offset+int(r.Index[k])]
		}
	}
	return a, max(c, 0) // rounding
}

// Across returns the covariance of Σ x w over the weights from an offset on and from an earlier one.
func (n Normal) Across(r Row, offset, earlier int) (c float64) {
	for i, j := range r.Index {
		row := n.Covariance[Packed(offset+int(j), earlier):]
		for k, m := range r.Index {
			c += r.Value[i] * r.Value[k] * row[m]
		}
	}
	return c
}

// Cov is the covariance of two weights.
func (n Normal) Cov(i, j int) float64 {
	switch {
	case n.Covariance != nil:
		return Entry(n.Covariance, i, j)
	case i == j:
		return n.Variance[i]
	}
	return 0
}

// Between returns the covariance of Σ a w and Σ b w.
func (n Normal) Between(a, b Row) (c float64) {
	for i, j := range a.Index {
		for k, m := range b.Index {
			c += a.Value[i] * b.Value[k] * n.Cov(int(j), int(m))
		}
	}
	return c
}

// PseudoInverse inverts a symmetric matrix that is positive but for directions of which it says nothing, and returns
// its rank: directions count as none that are a share of 1e-9 of the correlations, or less.
func PseudoInverse(m *mat.SymDense) (inverse *mat.SymDense, rank int) {
	n := m.SymmetricDim()
	scale := make([]float64, n)
	for i := range n {
		scale[i] = 1 / math.Sqrt(m.At(i, i))
		if !(scale[i] < math.MaxFloat64) { // nothing, or NaN
			scale[i] = 0
		}
	}
	values, v := Eigen(Sym(n, func(i, j int) float64 { return m.At(i, j) * scale[i] * scale[j] }))
	inverse = mat.NewSymDense(n, nil)
	for k, x := range values {
		if x < 1e-9 {
			continue
		}
		rank++
		for i := range n {
			for j := range i + 1 {
				inverse.SetSym(i, j, inverse.At(i, j)+v.At(i, k)*scale[i]/x*v.At(j, k)*scale[j])
			}
		}
	}
	return inverse, rank
}

// Lower packs a symmetric matrix.
func Lower(m mat.Symmetric) []float64 {
	d := m.SymmetricDim()
	lower := make([]float64, 0, Triangle(d))
	for i := range d {
		for j := range i + 1 {
			lower = append(lower, m.At(i, j))
		}
	}
	return lower
}

// Centre takes out of a mean and a covariance, given as its lower triangle by rows, what all of K
// classes have in common, of which a softmax likelihood says nothing: for weights class by class the
// mean becomes C m and the covariance C S C with C = (I − 11ᵀ/K) ⊗ I, which is singular. What is
// left are effects on a class's log-odds against the geometric mean of all classes,
// f_k − Σ f_l / K = ln p_k − Σ ln p_l / K. Of one class nothing is taken out.
func Centre(mean, lower []float64, classes int) {
	if classes < 2 {
		return
	}
	n := len(mean)
	centre := func(v []float64) {
		for j := range n / classes {
			common := 0.0
			for at := j; at < n; at += n / classes {
				common += v[at] / float64(classes)
			}
			for at := j; at < n; at += n / classes {
				v[at] -= common
			}
		}
	}
	centre(mean)
	full := mat.DenseCopyOf(Symmetric(lower, n))
	for range 2 { // by rows, then by columns
		for i := range n {
			centre(full.RawRowView(i))
		}
		full = mat.DenseCopyOf(full.T())
	}
	for i := range n {
		copy(lower[Packed(i, 0):], full.RawRowView(i)[:i+1])
		lower[Packed(i, i)] = max(lower[Packed(i, i)], 0) // rounding
	}
}

// Pin makes a covariance or a precision, given as its lower triangle by rows, one that can be inverted where only
// what all classes have in common is in the way: it adds that direction of every column, as large as the column's
// diagonal is on average. Nothing that [Centre] leaves is changed, if all classes have one prior.
func Pin(lower []float64, weights, classes int) {
	if classes < 2 {
		return
	}
	d := weights / classes
	for j := range d {
		size := 0.0
		for a := range classes {
			size += lower[Packed(a*d+j, a*d+j)] / float64(classes)
		}
		for a := range classes {
			for b := range a + 1 {
				lower[Packed(a*d+j, b*d+j)] += size / float64(classes)
			}
		}
	}
}

// Gaussian is exp(η·w − ½ Σ λⱼ wⱼ²), up to a constant, over weights w: a density with diagonal covariance, or a
// factor of one. The density N(m, diag v) has η = m/v and λ = 1/v. A factor may have precisions λ that are zero or
// negative; a density may not.
type Gaussian struct {
	Eta    wire.Vector `cbor:"eta" json:"eta"`       // precision × mean
	Lambda wire.Vector `cbor:"lambda" json:"lambda"` // precision
}

// Isotropic returns the density N(mean, variance) for each of d weights. The variance is positive.
func Isotropic(d int, mean, variance float64) Gaussian {
	return Gaussian{slices.Repeat([]float64{mean / variance}, d), slices.Repeat([]float64{1 / variance}, d)}
}

// FromMoments returns the density with the given means and variances.
func FromMoments(mean, variance []float64) (Gaussian, error) {
	if len(mean) != len(variance) {
		return Gaussian{}, fmt.Errorf("%d means and %d variances", len(mean), len(variance))
	}
	g := Gaussian{make(wire.Vector, len(mean)), make(wire.Vector, len(mean))}
	for j, v := range variance {
		g.Eta[j], g.Lambda[j] = mean[j]/v, 1/v
	}
	return g, g.CheckProper(len(mean))
}

// Check reports a Gaussian that is not one over d weights, or has an entry that
// is not finite. Whatever comes from elsewhere is checked so before it is used.
func (g Gaussian) Check(d int) error {
	if len(g.Eta) != d || len(g.Lambda) != d {
		return fmt.Errorf("natural parameters of %d and %d entries, want %d of each", len(g.Eta), len(g.Lambda), d)
	}
	for j := range d {
		if !Finite(g.Eta[j]) || !Finite(g.Lambda[j]) {
			return fmt.Errorf("natural parameters of weight %d are not finite (%v, %v)", j, g.Eta[j], g.Lambda[j])
		}
	}
	return nil
}

// CheckProper reports in addition to [Gaussian.Check] what is no density: a precision that is not positive.
func (g Gaussian) CheckProper(d int) error {
	if err := g.Check(d); err != nil {
		return err
	}
	for j, l := range g.Lambda {
		if l <= 0 {
			return fmt.Errorf("precision %v of weight %d is not positive, so that this is no density", l, j)
		}
	}
	return nil
}

// Moments returns means and variances. Where the precision is not positive they are not those of a density.
func (g Gaussian) Moments() (mean, variance []float64) {
	mean, variance = make([]float64, len(g.Eta)), make([]float64, len(g.Eta))
	for j, l := range g.Lambda {
		mean[j], variance[j] = g.Eta[j]/l, 1/l
	}
	return mean, variance
}
