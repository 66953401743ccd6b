package private

import (
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"parley/methods/regression/glm"
)

// over integrates f against N(mean, variance) by the trapezoid rule: f is given an activation a, how many standard
// deviations z it is from the mean, and the weight to count it with. Where activations spread widely, [clipped] is a
// narrow peak among them: so nodes are as close as the peak asks for, and only where it is not 0.
func over(mean, variance float64, f func(a, z, weight float64)) {
	const far, deviations = 30, 6
	if variance < tiny {
		f(mean, 0, 1)
		return
	}
	sd := math.Sqrt(variance)
	step := min(sd/2, 0.4)
	from, to := max(mean-deviations*sd, -far), min(mean+deviations*sd, far)
	for a := from; a <= to; a += step {
		z := (a - mean) / sd
		f(a, z, step/sd*math.Exp(-z*z/2)/math.Sqrt(2*math.Pi))
	}
}

// norms are those of rows in units of their root mean square, with their weights.
var norms = [...]struct{ size, weight float64 }{{0.72, 0.25}, {1, 0.5}, {1.28, 0.25}}

// curvature is what the model expects of clipped gradients at weights m.
type curvature struct {
	Hessian *mat.SymDense // −∂/∂m of the expected sum, averaged over where the truth may be
	Bias    []float64     // the expected sum where m is true: what clipping alone makes of it
	Shift   []float64     // by how much spread of the truth around m changes what the model makes of the sum
	Mean    float64       // of −∂/∂a of the clipped residual over rows
}

// between are nodes and weights of an integral from 0 to 1.
var between = [...]struct{ at, weight float64 }{{0.1127, 0.2778}, {0.5, 0.4444}, {0.8873, 0.2778}}

// expect returns the curvature of the sum over all rows of clip(r x, C), where r is the
// residual 1{y > 0} − p, p = 1/(1 + e^−a), a = xᵀm, by what the Gram matrix says of rows.
//
// Clipping shortens r to ±K, K = C/|x|, so that where m is true its mean is no longer 0 but
//
//	t(a) = p min(1−p, K) − (1−p) min(p, K)
//
// and changes, as the truth moves from m, by h(a) = p (1−p) (min(1−p, K) + min(p, K)).
func (g *gram) expect(m []float64, clip, spread float64) *curvature {
	// With activations a ~ N(μᵀm, v), b = Σm, v = mᵀb, μ and Σ the mean and covariance of rows,
	// and z = (a − μᵀm)/√v, Stein's identity E[x f(a)] = μ E f + b E f′ gives
	//
	//	Σ E[t x]    = n (E[t] μ + E[t z]/√v b)
	//	Σ E[h x xᵀ] = κ₀ G + n (κ₁ (μbᵀ + bμᵀ) + κ₂ b bᵀ),
	//	κ₀ = E h, κ₁ = E[h z]/√v, κ₂ = E[h (z² − 1)]/v
	//
	// (Stein, 1981, lemma 2; the second by applying it twice). |x| has three values about its root mean square √(tr
	// G/n) and is taken as independent of a. For slopes rows count by the square of a number, and are longer.
	if g.Dispersion > 0 {
		return g.expectNumber(m, clip, spread)
	}
	d := len(m)
	mean, b, a0, v := g.activations(m)
	size, own := g.sizes()
	share := g.Columns.share()
	var t0, t1 float64
	over(a0, v, func(a, z, weight float64) {
		_, t := clipped(a, clip/size, share)
		_, u := clipped(a, clip/own, share)
		t0, t1 = t0+weight*t, t1+weight*u*z
	})
	if t1 /= math.Sqrt(v); v < tiny { // a derivative, of order v where multiplied by b
		t1 = 0
	}
	h0, h1, h2 := derivatives(a0, v+spread, clip/own, share)
	i0, i1, i2 := derivatives(a0, v+spread, clip/size, share)
	at, risen := h0, 0.0
	if spread > 0 {
		// The truth is spread around m, so that activations at it vary by so much more than v. The residuals' sum
		// F(w), F′ = H, is then not that at m on average: with h averaged at variance u,
		//
		//	E F(w) − F(m) = n (½ ∫ κ₁ du μ + (κ₀(v + spread) − κ₀(v)) b)
		//
		// as ∂/∂u E s(a) = ½ E s″(a) for normal a of variance u, here with s′ = h.
		at, _, _ = derivatives(a0, v, clip/own, share)
		for _, q := range between {
			_, k1, _ := derivatives(a0, v+q.at*spread, clip/size, share)
			risen += q.weight * spread / 2 * k1
		}
	}
	out := &curvature{Hessian: mat.NewSymDense(d, nil), Bias: make([]float64, d), Shift: make([]float64, d), Mean: h0}
	for i := range d {
		out.Bias[i] = g.Rows * (t0*mean[i] + t1*b[i])
		out.Shift[i] = g.Rows * (risen*mean[i] + (h0-at)*b[i])
		if i == d-1 {
			h0, h1, h2 = i0, i1, i2
		}
		for j := range i + 1 {
			out.Hessian.SetSym(i, j, h0*g.Matrix.At(i, j)+g.Rows*(h1*(mean[i]*b[j]+b[i]*mean[j])+h2*b[i]*b[j]))
		}
	}
	return out
}

// What may be wrong with the model's clip bias is taken for so much of the bias of rows that are as long
// as the Gram matrix says and of rows so many times as long: they may be long in few directions.
const mistrust, stretched = 0.4, 2

// wrong is what may be wrong with the clip bias that was expected at weights m, by column.
func (g *gram) wrong(at *curvature, m []float64, clip float64) *mat.VecDense {
	if g.Dispersion > 0 {
		cut, rise := g.clipped(m, clip)
		floats.Add(floats.ScaleTo(cut, g.asymmetry.Open, cut), rise)
		return mat.NewVecDense(len(m), cut)
	}
	wrong := mat.NewVecDense(len(m), nil)
	for j, longer := range g.expect(m, clip/stretched, 0).Bias {
		wrong.SetVec(j, mistrust*(at.Bias[j]+longer)/2)
	}
	return wrong
}

// sizes are root mean squared norms of rows: of all alike, and if each counts by the square of one of its numbers.
func (g *gram) sizes() (size, own float64) {
	size = math.Sqrt(max(mat.Trace(g.Matrix)/g.Rows, 1))
	return size, math.Sqrt(size*size + g.longer())
}

// longer is by how much the mean squared norm of rows is more if each counts by the square of one of its
// numbers: by twice the number's variance, if that is normal.
func (g *gram) longer() (more float64) {
	for _, j := range g.Columns.numbers {
		mean := g.Matrix.At(j, g.Columns.width()-1) / g.Rows
		more += 2 * max(g.Matrix.At(j, j)/g.Rows-mean*mean, 0) / float64(g.Columns.features)
	}
	return more
}

// activations are the mean and variance of rows' activations at weights m, the mean of rows, and
// their covariance with the activations.
func (g *gram) activations(m []float64) (mean, b []float64, a0, v float64) {
	d := len(m)
	mean, b = make([]float64, d), make([]float64, d)
	for j := range mean {
		mean[j] = g.Matrix.At(j, d-1) / g.Rows
		a0 += mean[j] * m[j]
	}
	for j := range b {
		for k := range m {
			b[j] += g.Matrix.At(j, k) * m[k]
		}
		b[j] = b[j]/g.Rows - mean[j]*a0
		v += m[j] * b[j]
	}
	return mean, b, a0, max(v, 0)
}

// cases is the share of rows that weights m expect to be of the second class.
func (g *gram) cases(m []float64) float64 {
	_, _, a0, v := g.activations(m)
	return math.Exp(glm.LogExpectSigmoid(a0, v))
}

// tiny is a variance of activations below which they are taken as all the same.
const tiny = 1e-4

// derivatives are κ₀, κ₁ and κ₂ of activations with this mean and variance.
func derivatives(mean, variance, k, share float64) (h0, h1, h2 float64) {
	over(mean, variance, func(a, z, weight float64) {
		h, _ := clipped(a, k, share)
		h0, h1, h2 = h0+weight*h, h1+weight*h*z, h2+weight*h*(z*z-1)
	})
	if variance < tiny {
		return h0, 0, 0
	}
	return h0, h1 / math.Sqrt(variance), h2 / variance
}

// clipped returns h(a) and t(a), averaged over norms of rows; k is the clip in units of
// their root mean square, of which rows of the first class have a share.
func clipped(a, k, share float64) (h, t float64) {
	p := 1 / (1 + math.Exp(-a))
	q := 1 / (1 + math.Exp(a))
	for _, n := range norms {
		yes, no := min(q, k/n.size), min(p, share*k/n.size)
		h += n.weight * p * q * (yes + no)
		t += n.weight * (p*yes - q*no)
	}
	return h, t
}
