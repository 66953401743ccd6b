package moments

import (
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"parley/internal/linalg"
)

// total is an estimate of T = Σ (u, 1)(u, 1)ᵀ over the subjects of one pattern,
// u in parts of the ranges, with what is known of its noise:
// T = Z Y Zᵀ − K (…) where the entries of Y have independent noise.
type total struct {
	p    int
	t    []float64 // (p+1)²
	z    []float64 // (p+1)²
	sd   []float64 // (p+1)²: of Y beside the diagonal; on it √2 as much
	gain []float64 // (p+1)²: what one subject more in the count adds to T
	more float64   // standard deviation of the count that T was moved to

	countVar float64 // of the noise in the count in t

	sizes [2]sizes // of the coarse and the fine sum
}

// optics returns A of one sum, t tᵀ = A (u, 1)(u, 1)ᵀ Aᵀ, as far as clipping lets
// pass, and turns the moments m so that this holds of the means too.
func (n *Whitening) optics(axes []float64, squeeze []float64, pass passed, m []float64) []float64 {
	p := len(n.Scale)
	d := p + 1
	size := n.room() / n.Bound
	a := make([]float64, d*d)
	for j := range p {
		a[j*d+j] = size * pass.rest * n.Scale[j]
	}
	for i := range squeeze {
		v := axes[i*p:][:p]
		c := size * (squeeze[i]*pass.axes[i] - pass.rest)
		for r, x := range v {
			for j, y := range v {
				a[r*d+j] += c * x * y * n.Scale[j]
			}
		}
	}
	for r := range p {
		a[r*d+p] = -floats.Dot(a[r*d:][:p], n.Centre)
	}
	a[p*d+p] = n.Constant
	// Means are let pass otherwise than spreads.
	mean, turned := make([]float64, p), make([]float64, p)
	for j := range mean {
		mean[j] = m[j*d+p]
		turned[j] = mean[j] * pass.rest / pass.mean
	}
	for i := range squeeze {
		v := axes[i*p:][:p]
		c := floats.Dot(v, mean) * (pass.axes[i] - pass.rest) / pass.mean
		floats.AddScaled(turned, c, v)
	}
	for j, x := range turned {
		m[j*d+p], m[p*d+j] = x, x
	}
	return a
}

// combine makes the best linear estimate of T of both sums of a pattern and of
// the count of the overview. With A₁ = Q₁ Z⁻¹ and A₂ = Q₂ Λ^½ Z⁻¹, the sums are
// Q₁ᵀ M₁ Q₁ = Y + noise and Q₂ᵀ M₂ Q₂ = Λ^½ Y Λ^½ + noise, entry by entry, for
// symmetric noise of this kind looks alike in all orthonormal bases.
func (r *PatternSums) combine(pass [2]passed) (*total, error) {
	coarse, fine := &r.Coarse, &r.Fine
	p := len(fine.Scale)
	d := p + 1
	m1, err := coarse.matrix()
	if err != nil {
		return nil, err
	}
	m2, err := fine.matrix()
	if err != nil {
		return nil, err
	}
	coarse.complement(m1)
	if subjects, _, _ := r.countOf(m1[d*d-1], m2[d*d-1]); pass[1].lost != nil {
		floats.AddScaled(m2, subjects, pass[1].lost)
	} else if len(fine.Shrinkage) == 0 {
		fine.complement(m2)
	}
	a1 := coarse.optics(fine.Axes, unclipped(len(fine.Shrinkage)).axes, pass[0], m1)
	a2 := fine.optics(fine.Axes, fine.Shrinkage, pass[1], m2)
	// The whitenings' constants are never 0 and squeezes are positive: A₁ is invertible.
	inv, ok := inverse(a1, d)
	if !ok {
		return nil, fmt.Errorf("pattern %v: its coarse whitening cannot be inverted", fine.Views)
	}
	b := product(a2, inv, d) // A₂ A₁⁻¹
	g := product(transpose(b, d), b, d)
	linalg.Symmetrise(g, d, d)
	e := linalg.NewEigen(d)
	if !e.Factorise(g, d) {
		return nil, fmt.Errorf("pattern %v: the eigenvalues of its whitenings did not converge", fine.Views)
	}
	// Q₁ = e.vec; Z = A₁⁻¹ Q₁; B Q₁ = Q₂ Λ^½.
	out := &total{p: p, z: product(inv, e.Vectors, d), sd: make([]float64, d*d)}
	q2 := product(b, e.Vectors, d)
	w := make([]float64, d)
	for k := range d {
		w[k] = math.Sqrt(max(e.Values[k], 1e-300))
		for x := range d {
			q2[x*d+k] /= w[k]
		}
	}
	y1, y2 := congruent(transpose(e.Vectors, d), m1, d), congruent(transpose(q2, d), m2, d)
	v1, v2 := coarse.SD*coarse.SD/2, fine.SD*fine.SD/2
	for x := range d {
		for k := range d {
			f := w[x] * w[k]
			precision := 1/v1 + f*f/v2
			y1[x*d+k] = (y1[x*d+k]/v1 + f*y2[x*d+k]/v2) / precision
			out.sd[x*d+k] = 1 / math.Sqrt(precision)
		}
	}
	out.sizes = [2]sizes{coarse.sizes(pass[0]), fine.sizes(pass[1])}
	out.t = congruent(out.z, y1, d)
	// The overview counted too. Cov(Y, T_dd) = 2 sd² ∘ z zᵀ, z the last row of Z.
	cov := make([]float64, d*d)
	last := out.z[p*d:][:d]
	for x := range d {
		for k := range d {
			cov[x*d+k] = 2 * out.sd[x*d+k] * out.sd[x*d+k] * last[x] * last[k]
		}
	}
	out.gain = congruent(out.z, cov, d)
	n, variance, overview := r.countOf(m1[d*d-1], m2[d*d-1])
	// T₀ is the best linear estimate, so that of N = (1 − w) N' + w N₀, N₀ the
	// overview's count, the part N' has the covariance of T₀ itself with T₀.
	own := out.gain[d*d-1]
	floats.Scale(overview/own, out.gain)
	out.countVar = variance
	out.more = math.Sqrt(max(0, variance-(1-overview)*(1-overview)*own)) / overview
	now := out.t[d*d-1]
	out.correct(out.t, now+(n-now)/overview)
	return out, nil
}

// countOf is the best estimate of the number of subjects that only counts
// make: the overview's, which has the weight that is returned too, and the constants
// of both sums. Where a sum lay about the noised mean of the sum before, the two
// means would say something of the count too, but not without bias, as both have the
// same noise.
func (r *PatternSums) countOf(coarse, fine float64) (n, variance, overview float64) {
	b1, b2 := r.Coarse.Constant*r.Coarse.Constant, r.Fine.Constant*r.Fine.Constant
	p0, p1, p2 := 1/r.CountVar, b1*b1/(r.Coarse.SD*r.Coarse.SD), b2*b2/(r.Fine.SD*r.Fine.SD)
	variance = 1 / (p0 + p1 + p2)
	return variance * (p0*r.Count + p1*coarse/b1 + p2*fine/b2), variance, p0 * variance
}

// count is the number of subjects, noised.
func (t *total) count() float64 { return t.t[len(t.t)-1] }

// correct moves T to what another count says.
func (t *total) correct(x []float64, count float64) {
	c := count - x[len(x)-1]
	floats.AddScaled(x, c, t.gain)
}

// noise draws noise like that of T.
func (t *total) noise(r *rand.Rand) []float64 {
	d := t.p + 1
	y := make([]float64, d*d)
	for i := range d {
		for j := range i {
			v := t.sd[i*d+j] * r.NormFloat64()
			y[i*d+j], y[j*d+i] = v, v
		}
		y[i*d+i] = math.Sqrt2 * t.sd[i*d+i] * r.NormFloat64()
	}
	x := congruent(t.z, y, d)
	t.correct(x, t.more*r.NormFloat64())
	return x
}

// product returns a b for n × n matrices.
func product(a, b []float64, n int) []float64 {
	var out mat.Dense
	out.Mul(mat.NewDense(n, n, a), mat.NewDense(n, n, b))
	return out.RawMatrix().Data
}

// transpose returns aᵀ.
func transpose(a []float64, n int) []float64 {
	return mat.DenseCopyOf(mat.NewDense(n, n, a).T()).RawMatrix().Data
}

// congruent returns z x zᵀ.
func congruent(z, x []float64, n int) []float64 {
	out := product(product(z, x, n), transpose(z, n), n)
	linalg.Symmetrise(out, n, n)
	return out
}

// inverse returns a⁻¹.
func inverse(a []float64, n int) ([]float64, bool) {
	var out mat.Dense
	if err := out.Inverse(mat.NewDense(n, n, a)); err != nil {
		if c, ill := err.(mat.Condition); !ill || math.IsInf(float64(c), 0) {
			return nil, false
		}
	}
	return out.RawMatrix().Data, true
}
