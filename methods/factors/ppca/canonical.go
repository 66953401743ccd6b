package ppca

import (
	"fmt"
	"math"

	"parley/internal/linalg"

	"gonum.org/v1/gonum/mat"
)

// Canonical rotates the factors to the axes of WᵀΨ⁻¹W and orders them by its
// eigenvalues, falling: by how much each factor stands out of the noise. The
// sign of each is such that its weighted loading w/√ψ largest in size is
// positive. The likelihood does not change. It returns the rotated parameters,
// the eigenvalues, and the rotation (q × q by rows, W Q is the new W), which must
// be applied to all parameters that belong together: see [Params.Rotate].
//
// Columns are comparable between fits only where neighbouring eigenvalues
// differ by a factor of about 1.8 or more; Compare of a model of package use turns one fit to the other.
func Canonical(l Layout, p *Params) (out *Params, eigenvalues, rotation []float64, err error) {
	if err := p.Check(l); err != nil {
		return nil, nil, nil, err
	}
	q := p.Rank
	a := weighted(l, p)
	gram := make([]float64, q*q)
	for j := 0; j < len(a); j += q {
		for i, x := range a[j:][:q] {
			for k, y := range a[j:][:q] {
				gram[i*q+k] += x * y
			}
		}
	}
	e := linalg.NewEigen(q)
	if !e.Factorise(gram, q) {
		return nil, nil, nil, fmt.Errorf("the eigenvalues of the loadings did not converge")
	}
	rotation, eigenvalues = make([]float64, q*q), make([]float64, q)
	for c := range q {
		from := q - 1 - c
		eigenvalues[c] = max(0, e.Values[from])
		top := 0.0
		for j := 0; j < len(a); j += q {
			s := 0.0
			for i, x := range a[j:][:q] {
				s += x * e.Vectors[i*q+from]
			}
			// Entries of equal size, rounding aside, must not decide by rounding.
			if math.Abs(s) > math.Abs(top)*(1+1e-9) {
				top = s
			}
		}
		for i := range q {
			rotation[i*q+c] = math.Copysign(1, top) * e.Vectors[i*q+from]
		}
	}
	out, err = p.Rotate(rotation)
	return out, eigenvalues, rotation, err
}

// weighted returns Ψ^-½ W for the described features, by rows.
func weighted(l Layout, p *Params) []float64 {
	group := l.GroupOf()
	a := make([]float64, 0, len(p.Features)*p.Rank)
	for _, j := range p.Features {
		s := 1 / math.Sqrt(p.Noise[group[j]])
		for _, w := range p.W[j*p.Rank:][:p.Rank] {
			a = append(a, w*s)
		}
	}
	return a
}

// Rotate returns the parameters with W Q in place of W.
func (p *Params) Rotate(rotation []float64) (*Params, error) {
	q := p.Rank
	if len(rotation) != q*q || len(p.W)%q != 0 {
		return nil, fmt.Errorf("rotation has %d entries for %d factors", len(rotation), q)
	}
	out := p.Clone()
	for j := 0; j < len(p.W); j += q {
		for c := range q {
			s := 0.0
			for i, w := range p.W[j:][:q] {
				s += w * rotation[i*q+c]
			}
			out.W[j+c] = s
		}
	}
	return &out, nil
}

// PrincipalAngles returns the angles (radians, rising, between 0 and π/2)
// between the spaces that the columns span, b having no more of them than a
// (Björck and Golub 1973). They do not depend on rotation, order or sign.
func PrincipalAngles(a, b *mat.Dense) ([]float64, error) {
	qa, qb := basis(a), basis(b)
	var cross, rest mat.Dense
	cross.Mul(qa.T(), qb)
	rest.Mul(qa, &cross)
	rest.Sub(qb, &rest)
	cos, sin := singularValues(&cross), singularValues(&rest)
	if cos == nil || sin == nil {
		return nil, fmt.Errorf("the singular values of the loadings did not converge")
	}
	angles := make([]float64, len(cos))
	for i := range angles {
		// The sine is the accurate one for small angles, and rises as the cosine falls.
		s, c := min(1, sin[len(sin)-1-i]), min(1, cos[i])
		if angles[i] = math.Asin(s); s > math.Sqrt(0.5) {
			angles[i] = math.Acos(c)
		}
	}
	return angles, nil
}

// basis returns an orthonormal basis of the columns of a.
func basis(a *mat.Dense) *mat.Dense {
	r, c := a.Dims()
	var qr mat.QR
	qr.Factorize(a)
	var full mat.Dense
	qr.QTo(&full)
	return mat.DenseCopyOf(full.Slice(0, r, 0, c))
}

// singularValues returns the singular values, falling, or nil.
func singularValues(a *mat.Dense) []float64 {
	var svd mat.SVD
	if !svd.Factorize(a, mat.SVDNone) {
		return nil
	}
	return svd.Values(nil)
}
