package ppca

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"parley/internal/linalg"
)

// sweeps bounds the passes over all pairs of factors; some tens are usual.
const sweeps = 1000

// Varimax maximises Σ_a (Σ_j b_ja⁴ − (Σ_j b_ja²)²/p) over orthogonal T, b = A T with
// rows divided by their length, so that a feature's own variance does not matter
// (Kaiser 1958). It turns one pair of factors after the other by the angle that is best
// for the pair, from T = I until no angle is above 1e-10; of several local maxima it
// finds the one that this leads to.
func Varimax(a []float64, q int) (t []float64, err error) {
	b, rows := make([]float64, 0, len(a)), 0.0
	for row := range slices.Chunk(a, q) {
		length := floats.Norm(row, 2)
		if length == 0 {
			continue // its direction is not known
		}
		rows++
		for _, x := range row {
			b = append(b, x/length)
		}
	}
	t = make([]float64, q*q)
	for i := range q {
		t[i*q+i] = 1
	}
	for range sweeps {
		turned := false
		for i := range q {
			for k := i + 1; k < q; k++ {
				if angle := best(b, q, i, k, rows); math.Abs(angle) > 1e-10 {
					turned = true
					turn(b, q, i, k, angle)
					turn(t, q, i, k, angle)
				}
			}
		}
		if !turned {
			return arrange(a, t, q), nil
		}
	}
	return nil, errors.New("the varimax rotation did not converge")
}

// best returns the angle, at most π/4 in size, at which the criterion of columns i and
// k is largest, in closed form.
func best(b []float64, q, i, k int, rows float64) float64 {
	var su, sv, uu, uv float64
	for j := 0; j < len(b); j += q {
		x, y := b[j+i], b[j+k]
		u, v := x*x-y*y, 2*x*y
		su, sv, uu, uv = su+u, sv+v, uu+u*u-v*v, uv+2*u*v
	}
	sine, cosine := uv-2*su*sv/rows, uu-(su*su-sv*sv)/rows
	if math.Hypot(sine, cosine) <= 1e-14*rows {
		return 0 // every angle is as good
	}
	return math.Atan2(sine, cosine) / 4
}

func turn(b []float64, q, i, k int, angle float64) {
	s, c := math.Sincos(angle)
	for j := 0; j < len(b); j += q {
		x, y := b[j+i], b[j+k]
		b[j+i], b[j+k] = c*x+s*y, c*y-s*x
	}
}

// arrange puts the factors of an orthogonal T in the order of the variance that they account for, and gives them
// their signs.
func arrange(a, t []float64, q int) []float64 {
	var pattern mat.Dense
	pattern.Mul(mat.NewDense(len(a)/q, q, a), mat.NewDense(q, q, t))
	order, variance, sign := make([]int, q), make([]float64, q), make([]float64, q)
	for c := range q {
		column := mat.Col(nil, c, &pattern)
		order[c], variance[c], sign[c] = c, floats.Dot(column, column), signOf(column)
	}
	slices.SortStableFunc(order, func(i, k int) int { return cmp.Compare(variance[k], variance[i]) })
	out := make([]float64, q*q)
	for to, from := range order {
		for r := range q {
			out[r*q+to] = sign[from] * t[r*q+from]
		}
	}
	return out
}

// signOf is the sign of the number largest in size; of those of equal size, rounding aside, of the first.
func signOf(x []float64) float64 {
	top := 0.0
	for _, v := range x {
		if math.Abs(v) > math.Abs(top)*(1+1e-9) {
			top = v
		}
	}
	return math.Copysign(1, top)
}

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
	for row := range slices.Chunk(a, q) {
		linalg.AddOuter(gram, row, row, 1)
	}
	e := linalg.NewEigen(q)
	if !e.Factorise(gram, q) {
		return nil, nil, nil, fmt.Errorf("the eigenvalues of the loadings did not converge")
	}
	rotation, eigenvalues = make([]float64, q*q), make([]float64, q)
	for c := range q {
		from := q - 1 - c
		eigenvalues[c] = max(0, e.Values[from])
		var column []float64
		for row := range slices.Chunk(a, q) {
			s := 0.0
			for i, x := range row {
				s += x * e.Vectors[i*q+from]
			}
			column = append(column, s)
		}
		sign := signOf(column)
		for i := range q {
			rotation[i*q+c] = sign * e.Vectors[i*q+from]
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

// PrincipalAngles returns the angles (degrees, rising, between 0 and 90)
// between the spaces that the columns span, as many as the smaller has dimensions
// (Björck and Golub 1973). They do not depend on rotation, order or sign.
func PrincipalAngles(a, b *mat.Dense) ([]float64, error) {
	if a.RawMatrix().Cols < b.RawMatrix().Cols {
		a, b = b, a
	}
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
		angles[i] *= 180 / math.Pi
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
