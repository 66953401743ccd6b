package pvi

import (
	"fmt"
	"math"
)

// Softmax is p(y | f) = exp(f_y) / Σ exp(f_k) for y of 0 … Classes−1, with
// weights for every class. E ln Σ exp(f_k) has no closed form; in its place
// stands the tilted upper bound of Knowles and Minka (Non-conjugate variational message passing, NIPS 2011),
//
//	½ Σ α_k² c_k + ln Σ exp(a_k + (1 − 2α_k) c_k/2),
//
// at its least over α, where α is the softmax of the exponents. It is tight as
// c → 0, and for two classes as for two hundred needs no samples. The free
// energy remains a lower bound on the evidence, concave in means and standard
// deviations together.
type Softmax struct{ Classes int } // 2 to maxClasses

// maxClasses bounds the work space that rows need.
const maxClasses = 32

// Activations returns the number of classes.
func (l Softmax) Activations() int { return l.Classes }

// Check wants a whole number below Classes.
func (l Softmax) Check(y float64) error {
	if l.Classes < 2 || l.Classes > maxClasses {
		return fmt.Errorf("%d classes: want 2 to %d", l.Classes, maxClasses)
	}
	if y != math.Trunc(y) || y < 0 || y >= float64(l.Classes) {
		return fmt.Errorf("outcome %v of a model of %d classes: want one of 0 to %d", y, l.Classes, l.Classes-1)
	}
	return nil
}

// Expect returns a_y less the bound. By the envelope theorem the derivatives are
// those at fixed α.
func (l Softmax) Expect(y float64, a, c, first, second []float64) float64 {
	var alpha [maxClasses]float64
	bound := tilt(a, c, alpha[:l.Classes])
	l.slopes(y, alpha[:l.Classes], first)
	if second != nil {
		curveSoftmax(c, alpha[:l.Classes], second)
	}
	return a[int(y)] - bound
}

// Slopes sets [k = y] − α_k and −½ α_k(1 − α_k).
func (l Softmax) Slopes(y float64, a, c, first []float64) {
	var alpha [maxClasses]float64
	tilt(a, c, alpha[:l.Classes])
	l.slopes(y, alpha[:l.Classes], first)
}

func (l Softmax) slopes(y float64, alpha, first []float64) {
	for k, p := range alpha {
		first[k], first[l.Classes+k] = -p, -p*(1-p)/2
	}
	first[int(y)]++
}

// Predict sets softmax(a_k/√(1 + π c_k/8)), the probit approximation of every
// class (equation 11), normalised.
func (l Softmax) Predict(a, c, dst []float64) {
	for k := range dst {
		dst[k] = a[k] / math.Sqrt(1+math.Pi*c[k]/8)
	}
	softmax(dst)
}

// softmax replaces exponents by probabilities and returns ln Σ exp.
func softmax(x []float64) (lse float64) {
	top := math.Inf(-1)
	for _, v := range x {
		top = max(top, v)
	}
	sum := 0.0
	for k, v := range x {
		x[k] = math.Exp(v - top)
		sum += x[k]
	}
	for k := range x {
		x[k] /= sum
	}
	return top + math.Log(sum)
}

// tilt sets α to the minimum of the bound, which is convex in it, by Newton's
// method with step halving, and returns the bound.
func tilt(a, c, alpha []float64) float64 {
	var prob, trial, step [maxClasses]float64
	k := len(alpha)
	p, t, d := prob[:k], trial[:k], step[:k]
	copy(alpha, a)
	softmax(alpha) // exact for c = 0
	value := tiltedBound(a, c, alpha, p)
	for range 100 {
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
		for f := 1.0; ; f /= 2 {
			for i := range t {
				t[i] = alpha[i] + f*d[i]
			}
			v := tiltedBound(a, c, t, p)
			if last || f < 1e-6 || v <= value-1e-4*f*slope {
				value = v
				break
			}
		}
		copy(alpha, t)
		if last {
			break
		}
	}
	copy(alpha, p) // the same at the minimum, and probabilities to the last bit
	return value
}

// tiltedBound returns the bound at α and sets p to the softmax of its exponents.
func tiltedBound(a, c, alpha, p []float64) float64 {
	s := 0.0
	for k := range p {
		s += alpha[k] * alpha[k] * c[k]
		p[k] = a[k] + (1-2*alpha[k])*c[k]/2
	}
	return s/2 + softmax(p)
}

// curveSoftmax sets the second derivatives of −bound, −Dᵀ S D with D = [I, diag(½ − α)]
// and S = (P⁺ + C)⁻¹ for P = diag α − ααᵀ, which takes into account that α follows.
// With e = α/(1 + αc), S = diag e − eeᵀ/Σe.
func curveSoftmax(c, alpha, second []float64) {
	k := len(alpha)
	var e [maxClasses]float64
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
