package dppvi

import (
	"math"

	"parley/methods/regression/glm"
)

// slopes are what a step of stochastic gradients needs of a likelihood: how many activations it has, and
// the derivatives of E ln p(y | f) for independent f_k ~ N(a_k, c_k) by (a₁ … a_K, c₁ … c_K).
type slopes interface {
	Activations() int
	Slopes(y float64, a, c, first []float64)
}

// likelihood has in addition the expectation itself, with first derivatives and, unless second is nil,
// the lower triangle of the second ones by rows, K(2K+1) numbers.
type likelihood interface {
	slopes
	Check(y float64) error
	Expect(y float64, a, c, first, second []float64) float64
}

// expectationsOf is a likelihood with its expectations.
func expectationsOf(l glm.Likelihood) likelihood {
	switch l := l.(type) {
	case glm.Softmax:
		return softmax{l}
	case glm.Linear:
		return linear{l}
	}
	return logistic{}
}

// logistic has exact expectations, to about 1e-12.
type logistic struct{ glm.Logistic }

// Expect uses ∂/∂a E g = E g′ and ∂/∂c E g = ½ E g″.
func (logistic) Expect(y float64, a, c, first, second []float64) float64 {
	value, d := glm.ExpectLogSigmoid(y*a[0], c[0])
	first[0], first[1] = y*d[0], d[1]/2
	if second != nil {
		second[0], second[1], second[2] = d[1], y*d[2]/2, d[3]/4
	}
	return value
}

// Slopes is Expect without its value.
func (l logistic) Slopes(y float64, a, c, first []float64) { l.Expect(y, a, c, first, nil) }

// sampled is the logistic likelihood averaged over draws of a standard normal number, with the derivatives
// of that average: the reparametrised stochastic gradients that DP-PVI was published with. A minibatch
// shares its draws.
type sampled struct {
	glm.Logistic
	draws []float64
}

// Slopes differentiates by c through the deviation √c; at c = 0 that derivative is set to 0.
func (l sampled) Slopes(y float64, a, c, first []float64) {
	s := math.Sqrt(c[0])
	first[0], first[1] = 0, 0
	w := 1 / float64(len(l.draws))
	for _, z := range l.draws {
		g := y * w / (1 + math.Exp(y*(a[0]+s*z)))
		first[0] += g
		first[1] += g * z
	}
	if s > 0 {
		first[1] /= 2 * s
	} else {
		first[1] = 0
	}
}

// linear has closed forms.
type linear struct{ glm.Linear }

// Expect returns −½ ln(2π Variance) − ((y − a)² + c)/(2 Variance).
func (l linear) Expect(y float64, a, c, first, second []float64) float64 {
	l.Slopes(y, a, c, first)
	if second != nil {
		second[0], second[1], second[2] = -1/l.Variance, 0, 0
	}
	r := y - a[0]
	return -(math.Log(2*math.Pi*l.Variance) + (r*r+c[0])/l.Variance) / 2
}

// Slopes sets (y − a)/Variance and −½/Variance.
func (l linear) Slopes(y float64, a, _, first []float64) {
	first[0], first[1] = (y-a[0])/l.Variance, -0.5/l.Variance
}

// softmax has no closed form of E ln Σ exp(f_k); in its place
// stands the tilted upper bound of Knowles and Minka (Non-conjugate variational message passing, NIPS 2011),
//
//	½ Σ α_k² c_k + ln Σ exp(a_k + (1 − 2α_k) c_k/2),
//
// at its least over α, where α is the softmax of the exponents. It is tight as
// c → 0, and for two classes as for two hundred needs no samples. The free
// energy remains a lower bound on the evidence, concave in means and standard
// deviations together.
type softmax struct{ glm.Softmax }

// Expect returns a_y less the bound. By the envelope theorem the derivatives are
// those at fixed α.
func (l softmax) Expect(y float64, a, c, first, second []float64) float64 {
	var alpha [glm.MaxClasses]float64
	bound, _ := tilt(a, c, alpha[:l.Classes])
	l.slopes(y, alpha[:l.Classes], first)
	if second != nil {
		curveSoftmax(c, alpha[:l.Classes], second)
	}
	return a[int(y)] - bound
}

// Slopes sets [k = y] − α_k and −½ α_k(1 − α_k).
func (l softmax) Slopes(y float64, a, c, first []float64) {
	var alpha [glm.MaxClasses]float64
	tilt(a, c, alpha[:l.Classes])
	l.slopes(y, alpha[:l.Classes], first)
}

func (l softmax) slopes(y float64, alpha, first []float64) {
	for k, p := range alpha {
		first[k], first[l.Classes+k] = -p, -p*(1-p)/2
	}
	first[int(y)]++
}

// The work of [tilt] on a row is bounded, whoever chooses its means and variances:
// tiltPasses evaluations of the bound by Newton's method, each an exponential for
// every class, and where these do not reach the minimum rootPasses of [tiltByRoot],
// each about as much as four: at most tiltMost in all, some twenty times as much as
// an average row. Measured on whole studies with 3 to 100 numbers and 3 to 32
// classes: with a prior variance of 1 rows need 3 to 6 evaluations on average and
// 12 at most, but for one in six with 100 numbers and 32 classes; with prior
// variances of 10 and 100 the second search serves most rows in the end, and needs
// at most 10 passes. It is at the minimum to rounding for variances of activations up to
// 1e4, and near it up to 1e6; beyond, what comes out is still a bound.
const (
	tiltPasses = 12
	rootPasses = 16
	tiltMost   = tiltPasses + 4*rootPasses
)

// tilt sets α to the minimum of the bound, which is convex in it, by Newton's
// method with step halving, and returns the bound, and how many passes over the
// classes that took. Means and variances that are not finite have no bound: then all
// is NaN.
func tilt(a, c, alpha []float64) (bound float64, passes int) {
	if !calculable(a, c) {
		for k := range alpha {
			alpha[k] = math.NaN()
		}
		return math.NaN(), 0
	}
	var prob, trial, step [glm.MaxClasses]float64
	k := len(alpha)
	p, t, d := prob[:k], trial[:k], step[:k]
	copy(alpha, a)
	glm.SoftmaxOf(alpha) // exact for c = 0
	value := tiltedBound(a, c, alpha, p)
	for passes = 1; passes < tiltPasses; {
		// The gradient is C(α − p), the Hessian C + C(diag p − ppᵀ)C, so that the
		// step d solves d + (diag p − ppᵀ) C d = p − α: Sherman and Morrison.
		var num, rest float64
		for i := range d {
			w := 1 / (1 + c[i]*p[i])
			num += p[i] * c[i] * w * (p[i] - alpha[i])
			rest += p[i] * w
		}
		slope := 0.0
		for i := range d {
			d[i] = (p[i] - alpha[i] + p[i]*num/rest) / (1 + c[i]*p[i])
			slope += c[i] * (p[i] - alpha[i]) * d[i]
		}
		last := slope <= 1e-12 // the next error is about the square of this one
		for f := 1.0; passes < tiltPasses; f /= 2 {
			for i := range t {
				t[i] = alpha[i] + f*d[i]
			}
			v := tiltedBound(a, c, t, p)
			passes++
			if last || v <= value-1e-4*f*slope {
				value = v
				break
			}
		}
		copy(alpha, t)
		if last {
			copy(alpha, p) // the same at the minimum, and probabilities to the last bit
			return value, passes
		}
	}
	more := tiltByRoot(a, c, alpha)
	return tiltedBound(a, c, alpha, p), passes + 4*more
}

// calculable says whether means and variances are finite, and small enough that the
// bound is. The variances are not negative.
func calculable(a, c []float64) bool {
	size := 0.0
	for k, v := range c {
		size += math.Abs(a[k]) + v
	}
	return size < math.MaxFloat64/4
}

// tiltByRoot sets α to the minimum of the bound whatever the variances, where
// Newton's method on α would take small steps only, and returns the number of passes
// over the classes. At the minimum α is the softmax of its exponents, so that with
// b = a + c/2 and the logarithm L of their sum
//
//	α_k c_k + ln(α_k c_k) = ln c_k + b_k − L ,  Σ α_k = 1.
//
// Each α_k falls with L by α_k/(1 + α_k c_k), convexly, so that Newton's method for
// the sum comes from below L without a step too far. No α_k is above 1, so that L is
// nowhere below b_k − c_k: there it begins.
func tiltByRoot(a, c, alpha []float64) (passes int) {
	l := math.Inf(-1)
	for k, v := range c {
		l = max(l, a[k]-v/2)
	}
	for passes < rootPasses {
		passes++
		sum, slope := 0.0, 0.0
		for k, v := range c {
			x := wright(math.Log(v) + a[k] + v/2 - l)
			if x > 1e-30 {
				alpha[k] = x / v
			} else {
				alpha[k] = math.Exp(a[k] + v/2 - l)
			}
			sum += alpha[k]
			slope += alpha[k] / (1 + alpha[k]*v)
		}
		next := l + (sum-1)/slope
		if !(sum > 1+1e-15) || next == l {
			break
		}
		l = next
	}
	sum := 0.0
	for _, x := range alpha {
		sum += x
	}
	for k := range alpha {
		alpha[k] /= sum
	}
	return passes
}

// wright returns the solution y ≥ 0 of y + ln y = x, Wright's ω function: two steps
// of Fritsch, Shafer and Crowley from the approximations of Lawrence, Corless and
// Jeffrey (Algorithm 917, 2012), which leave rounding alone.
func wright(x float64) float64 {
	var y float64
	switch {
	case x < -2:
		y = math.Exp(x)
		if y *= 1 - y*(1-1.5*y); y < 1e-20 {
			return y
		}
	case x < 1:
		y = math.Exp(2 * (x - 1) / 3)
	default:
		y = x - math.Log(x)
		if x > 1e17 {
			return y
		}
		if y < 1 {
			y = 1
		}
	}
	for range 2 {
		r := x - y - math.Log(y)
		q := (1 + y) * (1 + y + 2*r/3)
		y *= 1 + r/(1+y)*(q-r/2)/(q-r)
	}
	return y
}

// tiltedBound returns the bound at α and sets p to the softmax of its exponents.
func tiltedBound(a, c, alpha, p []float64) float64 {
	s := 0.0
	for k := range p {
		s += alpha[k] * alpha[k] * c[k]
		p[k] = a[k] + (1-2*alpha[k])*c[k]/2
	}
	return s/2 + glm.SoftmaxOf(p)
}

// curveSoftmax sets the second derivatives of −bound, −Dᵀ S D with D = [I, diag(½ − α)]
// and S = (P⁺ + C)⁻¹ for P = diag α − ααᵀ, which takes into account that α follows.
// With e = α/(1 + αc), S = diag e − eeᵀ/Σe.
func curveSoftmax(c, alpha, second []float64) {
	k := len(alpha)
	var e [glm.MaxClasses]float64
	sum := 0.0
	for i, p := range alpha {
		e[i] = p / (1 + p*c[i])
		sum += e[i]
	}
	at := 0
	for i := range 2 * k {
		for j := range i + 1 {
			m, n := i%k, j%k
			s := -e[m] * e[n] / sum
			if m == n {
				s += e[m]
			}
			if i >= k {
				s *= 0.5 - alpha[m]
			}
			if j >= k {
				s *= 0.5 - alpha[n]
			}
			second[at] = -s
			at++
		}
	}
}
