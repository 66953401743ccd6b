package private

import "gonum.org/v1/gonum/mat"

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
