package sketch

import (
	"math"
	"math/rand/v2"

	"parley/methods/mixture/gmm"
)

// Where groups of rows overlap, one component may stand for two of them, and another be
// of no use: moves of one component do not leave that. A split gives the useless one up
// and divides the other in two; a merger makes one component of two, and draws the other
// anew. Both keep the weight, the mean and the covariance of the two together (Dellaportas and
// Papageorgiou 2006, here with a fixed number of components).
//
// With shares v and 1 − v of components k and j, mean m and covariance V = LLᵀ:
//
//	μ_k = m + √((1−v)/v) Lu,   μ_j = m − √(v/(1−v)) Lu,   |u| < 1,
//	vΣ_k = N B Nᵀ,   (1−v)Σ_j = N (I−B) Nᵀ,   NNᵀ = P = V − LuuᵀLᵀ,   0 < B < I.
//
// For given v the derivative with respect to (m, V, u, B) has the determinant
// (v(1−v))^(−d/2−d(d+1)/2) |P|^((d+1)/2) |V|^½. A split draws v from Beta(2, 2), u evenly
// from the ball, and B from the matrix beta distribution whose degrees of freedom follow v,
// so that Σ_k and Σ_j are alike on average.

// division is the workspace of a split or a merger.
type division struct {
	d               int
	whole, within   []float64 // V and P, then their factors
	one, two, sum   []float64 // factors of B and I − B
	mean, direction []float64 // m and Lu
}

func newDivision(d int) *division {
	square := func() []float64 { return make([]float64, d*d) }
	return &division{d, square(), square(), square(), square(), square(), make([]float64, d), make([]float64, d)}
}

// extraDegrees is how many degrees of freedom B has beyond the least: with more, Σ_k and Σ_j are
// more alike.
const extraDegrees = 12

func (x *division) degrees(v float64) (one, two float64) {
	return float64(x.d) + extraDegrees*v, float64(x.d) + extraDegrees*(1-v)
}

// logRatio returns the logarithm of that determinant over the density of (ln(v/(1−v)), u, B), given
// ln |Σ_k|, ln |Σ_j|, ln |P| and ln |V|.
func (x *division) logRatio(v, logK, logJ, logP, logV float64) float64 {
	d := float64(x.d)
	logs := math.Log(v) + math.Log1p(-v)
	determinant := -(d+d*(d+1))/2*logs + ((d+1)*logP+logV)/2
	ball, _ := math.Lgamma(d/2 + 1)
	ball -= d / 2 * math.Log(math.Pi)
	a, b := x.degrees(v)
	beta := (a-d-1)/2*(logK+d*math.Log(v)-logP) + (b-d-1)/2*(logJ+d*math.Log1p(-v)-logP) - d*(d-1)/4*math.Log(math.Pi)
	for i := range x.d {
		f := float64(i)
		whole, _ := math.Lgamma((a + b - f) / 2)
		one, _ := math.Lgamma((a - f) / 2)
		two, _ := math.Lgamma((b - f) / 2)
		beta += whole - one - two
	}
	return determinant - (math.Log(6) + 2*logs + ball + beta)
}

// logFresh is ln of the density with which a merger draws component k of u and its share v.
func (e *evaluator) logFresh(u []float64, k int, v float64) float64 {
	return e.prior.LogComponent(u, k) + e.initial.LogRatio(u, k) - e.prior.Jacobian(u, k) +
		math.Log(shareExponent) + shareExponent*math.Log(v) + math.Log1p(-v)
}

// pair draws two components, of which the first is the one that is given up, or drawn anew.
func (l *chain) pair(of int) (k, j int) {
	k = l.random.IntN(of)
	return k, l.another(k, of)
}

// evaluatePair evaluates a proposal that put components k and j and their weights in place.
func (e *evaluator) evaluatePair(l *chain, t target, k, j int) bool {
	l.touches, l.fresh, l.prior = gmm.All, false, math.Inf(-1)
	return e.prior.Logits(l.trial.u, l.trial.weights) && e.evaluateComponent(l, t, k, false) && e.evaluateComponent(l, t, j, false) && e.evaluateWeights(l)
}

// splitOrMerge proposes a split or a merger.
func (s *landmarkSampler) splitOrMerge(e *evaluator, l *chain, t target) {
	if l.fresh = false; l.random.IntN(2) == 0 {
		e.split(l, t)
	} else {
		e.merge(l, t)
	}
}

// split proposes to give one component up and to divide another.
func (e *evaluator) split(l *chain, t target) {
	l.touches, l.prior = gmm.All, math.Inf(-1)
	x, p, r, d := e.division, &l.trial, l.random, e.prior.Dim
	k, j := l.pair(e.prior.K)
	both := p.weights[k] + p.weights[j]
	old := p.weights[k] / both
	if !(old > 0 && old < 1) {
		return
	}
	// What is left behind: components in their own coordinates, beside those of u.
	l.logHastings = e.logFresh(p.u, k, old) + e.prior.Jacobian(p.u, k) + e.prior.Jacobian(p.u, j)
	e.prior.LogComponent(p.u, j)
	logV := e.prior.LogDet[j]
	copy(x.whole, e.prior.Factors[j*d*d:][:d*d])
	copy(x.mean, e.prior.Means(p.u)[j*d:])

	v := median(r.Float64(), r.Float64(), r.Float64()) // of Beta(2, 2)
	for i := range x.direction {
		x.direction[i] = r.NormFloat64()
	}
	scale := math.Pow(r.Float64(), 1/float64(d)) / math.Sqrt(gmm.Squares(x.direction))
	for i := d - 1; i >= 0; i-- {
		s := 0.0
		for c, u := range x.direction[:i+1] {
			s += x.whole[i*d+c] * u
		}
		x.direction[i] = s * scale
	}
	for i, a := range x.direction {
		for c, b := range x.direction {
			s := -a * b
			for q := range min(i, c) + 1 {
				s += x.whole[i*d+q] * x.whole[c*d+q]
			}
			x.within[i*d+c] = s
		}
	}
	logP, ok := gmm.Cholesky(x.within, d)
	if !ok {
		return
	}
	a, b := x.degrees(v)
	bartlett(r, x.one, a, d)
	bartlett(r, x.two, b, d)
	for i := range d {
		for c := range i + 1 {
			s := 0.0
			for q := range c + 1 {
				s += x.one[i*d+q]*x.one[c*d+q] + x.two[i*d+q]*x.two[c*d+q]
			}
			x.sum[i*d+c] = s
		}
	}
	if _, ok := gmm.Cholesky(x.sum, d); !ok {
		return
	}
	for _, side := range []struct {
		k        int
		share, s float64
		factor   []float64
	}{{k, v, math.Sqrt((1 - v) / v), x.one}, {j, 1 - v, -math.Sqrt(v / (1 - v)), x.two}} {
		mean := e.m.Mean(side.k)
		for i := range mean {
			mean[i] = x.mean[i] + side.s*x.direction[i]
		}
		x.shape(side.factor, math.Sqrt(side.share))
		e.prior.Put(p.u, side.k, mean, side.factor)
		p.weights[side.k] = both * side.share
	}
	if e.evaluatePair(l, t, k, j) {
		l.logHastings += x.logRatio(v, e.prior.LogDet[k], e.prior.LogDet[j], logP, logV) - e.prior.Jacobian(p.u, k) - e.prior.Jacobian(p.u, j)
	}
}

// shape turns a factor of a Wishart matrix, that of the sum of both at hand, into a
// factor of N B Nᵀ over a share, given its root.
func (x *division) shape(a []float64, root float64) {
	d := x.d
	for c := range d { // columns of sum⁻¹a, which are lower ones
		for i := c; i < d; i++ {
			s := a[i*d+c]
			for q := c; q < i; q++ {
				s -= x.sum[i*d+q] * a[q*d+c]
			}
			a[i*d+c] = s / x.sum[i*d+i]
		}
	}
	for i := d - 1; i >= 0; i-- {
		for c := range i + 1 {
			s := 0.0
			for q := c; q <= i; q++ {
				s += x.within[i*d+q] * a[q*d+c]
			}
			a[i*d+c] = s / root
		}
	}
}

// merge proposes to make one component of two, and to draw the other anew: what undoes
// a split.
func (e *evaluator) merge(l *chain, t target) {
	l.touches, l.prior = gmm.All, math.Inf(-1)
	x, p, r, d := e.division, &l.trial, l.random, e.prior.Dim
	k, j := l.pair(e.prior.K)
	both := p.weights[k] + p.weights[j]
	v := p.weights[k] / both
	if !(v > 0 && v < 1) {
		return
	}
	l.logHastings = e.prior.Jacobian(p.u, k) + e.prior.Jacobian(p.u, j)
	e.prior.LogComponent(p.u, k)
	e.prior.LogComponent(p.u, j)
	logK, logJ := e.prior.LogDet[k], e.prior.LogDet[j]
	e.prior.Component(e.m, p.u, k)
	e.prior.Component(e.m, p.u, j)
	one, two := e.m.Mean(k), e.m.Mean(j)
	for i := range x.mean {
		x.mean[i] = v*one[i] + (1-v)*two[i]
		x.direction[i] = math.Sqrt(v*(1-v)) * (one[i] - two[i])
	}
	for i, a := range x.direction {
		for c, b := range x.direction {
			s := v*e.m.Cov(k)[i*d+c] + (1-v)*e.m.Cov(j)[i*d+c]
			x.within[i*d+c], x.whole[i*d+c] = s, s+a*b
		}
	}
	logP, ok := gmm.Cholesky(x.within, d)
	logV, also := gmm.Cholesky(x.whole, d)
	if !ok || !also {
		return
	}
	e.prior.Put(p.u, j, x.mean, x.whole)
	e.initial.Component(r, one, e.m.Cov(k))
	if _, ok := gmm.Cholesky(e.m.Cov(k), d); !ok {
		return
	}
	e.prior.Put(p.u, k, one, e.m.Cov(k))
	share := math.Pow(r.Float64(), 1/shareExponent)
	p.weights[k], p.weights[j] = both*share, both*(1-share)
	if share < 1 && e.evaluatePair(l, t, k, j) {
		l.logHastings -= x.logRatio(v, logK, logJ, logP, logV) + e.logFresh(p.u, k, share) + e.prior.Jacobian(p.u, k) + e.prior.Jacobian(p.u, j)
	}
}

// median returns the second of three numbers in order.
func median(a, b, c float64) float64 { return max(min(a, b), min(max(a, b), c)) }

// bartlett draws the lower Cholesky factor of a Wishart matrix of the identity.
func bartlett(r *rand.Rand, a []float64, degrees float64, d int) {
	for i := range d {
		for j := range i {
			a[i*d+j] = r.NormFloat64()
		}
		a[i*d+i] = math.Sqrt(2 * gmm.Gamma(r, (degrees-float64(i))/2))
	}
}
