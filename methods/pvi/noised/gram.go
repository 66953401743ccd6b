package noised

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// gram is what noised sums say of Σ x xᵀ over the rows of all sites.
type gram struct {
	Columns *columns
	Matrix  *mat.SymDense
	Rows    float64    // how many there are
	Error   *mat.Dense // variance of each entry around the truth, given the sums
}

const (
	fewestRows = 10 // below which a noised count says nothing
	// doubt is the noise's variance as the shrinkage counts it, in true ones: an entry whose
	// error is believed too small does harm, one that is shrunk too far hardly any.
	doubt = 4
)

// newGram combines noised sums over rows of (x, ½ x² of numbers), with noise of variance
// v, and of x xᵀ, with noise of variance s on its diagonal and s/2 beside it.
//
// Entries that both sums know are averaged by the inverse of their variance. Those of two
// features are shrunk towards independence, n μ μᵀ, by the weight τ²u/(τ²u + doubt·s/2), u
// being n² times both variances and τ² by the method of moments; levels of one category
// never meet. Eigenvalues are at least 1, a row's worth.
func newGram(c *columns, totals []float64, v float64, products *mat.SymDense, s float64) *gram {
	d := c.width()
	one := d - 1
	sum, square := c.pooled(totals, v, products, s)
	rows := sum[one]
	mean, spread := make([]float64, d), make([]float64, d)
	for j := range mean {
		mean[j] = sum[j] / rows
		spread[j] = max(square[j]/rows-mean[j]*mean[j], 0)
	}
	g := &gram{Columns: c, Matrix: mat.NewSymDense(d, nil), Rows: rows, Error: mat.NewDense(d, d, nil)}
	excess, known := 0.0, 0.0
	for i := range one {
		g.Matrix.SetSym(i, i, square[i])
		g.Matrix.SetSym(i, one, sum[i])
		for j := range i {
			if c.Feature[i] == c.Feature[j] {
				continue
			}
			independent := rows * mean[i] * mean[j]
			g.Matrix.SetSym(i, j, independent)
			off := products.At(i, j) - independent
			excess += off*off - s/2
			known += rows * rows * spread[i] * spread[j]
		}
	}
	g.Matrix.SetSym(one, one, rows)
	tau := min(max(excess/max(known, 1e-9), 0), 1) // a mean square of correlations
	for i := range one {
		for j := range i {
			if c.Feature[i] == c.Feature[j] {
				continue
			}
			u, noise := tau*rows*rows*spread[i]*spread[j], doubt*s/2
			if u+noise > 0 {
				w := u / (u + noise)
				g.Matrix.SetSym(i, j, g.Matrix.At(i, j)+w*(products.At(i, j)-g.Matrix.At(i, j)))
				g.Error.Set(i, j, w*noise)
				g.Error.Set(j, i, w*noise)
			}
		}
	}
	g.Matrix = floored(g.Matrix, 1)
	return g
}

// pooled returns Σ x and Σ x² of every column as both sums say it, where the data allow:
// 0 ≤ Σ x = Σ x² ≤ n of levels, |Σ x| ≤ √(n Σ x²).
func (c *columns) pooled(totals []float64, v float64, products *mat.SymDense, s float64) (sum, square []float64) {
	d := c.width()
	one := d - 1
	sum, square = make([]float64, d), make([]float64, d)
	average := func(a, va, b, vb float64) float64 {
		if va+vb == 0 {
			return a
		}
		return (a*vb + b*va) / (va + vb)
	}
	rows := max(average(totals[one], v, products.At(one, one), s), fewestRows)
	number := 0
	for j := range one {
		with, own := products.At(j, one), products.At(j, j)
		if c.Category[j] { // both entries are its count, the second with twice the variance
			n := average(totals[j], v, (2*with+own)/3, s/3)
			sum[j] = min(max(n, 0), rows)
			square[j] = max(sum[j], 1)
			continue
		}
		square[j] = max(average(2*totals[d+number], 4*v, own, s), 1)
		most := math.Sqrt(square[j] * rows)
		sum[j] = min(max(average(totals[j], v, with, s/2), -most), most)
		number++
	}
	sum[one], square[one] = rows, rows
	return sum, square
}

// floored raises the eigenvalues of a matrix to smallest.
func floored(m *mat.SymDense, smallest float64) *mat.SymDense {
	values, vectors := eigen(m)
	for k := range values {
		values[k] = max(values[k], smallest)
	}
	return compose(vectors, values)
}

// eigen decomposes a symmetric matrix of finite numbers.
func eigen(m *mat.SymDense) ([]float64, *mat.Dense) {
	var e mat.EigenSym
	if !e.Factorize(m, true) {
		panic("noised: the eigenvalues of a symmetric matrix were not found")
	}
	var u mat.Dense
	e.VectorsTo(&u)
	return e.Values(nil), &u
}

// compose is U diag(values) Uᵀ.
func compose(u *mat.Dense, values []float64) *mat.SymDense {
	d := len(values)
	var scaled mat.Dense
	scaled.Apply(func(_, k int, x float64) float64 { return x * values[k] }, u)
	var full mat.Dense
	full.Mul(&scaled, u.T())
	out := mat.NewSymDense(d, nil)
	for i := range d {
		for j := range i + 1 {
			out.SetSym(i, j, (full.At(i, j)+full.At(j, i))/2)
		}
	}
	return out
}
