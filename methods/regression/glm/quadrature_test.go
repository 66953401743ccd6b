package glm

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"
)

// trapezoid takes expectations by the trapezoidal rule over ±13 standard
// deviations of f, which converges faster than any power of the step: the steps
// here are a twentieth of the distance of the logistic function's poles, and of a
// standard deviation.
func trapezoid(a, s float64, g func(f float64) float64) float64 {
	h := math.Min(1.0/20, 1/(8*s))
	n := int(13 / h)
	sum := scalarSum{}
	for k := -n; k <= n; k++ {
		z := float64(k) * h
		sum.add(g(a+s*z) * math.Exp(-z*z/2))
	}
	return sum.total() * h / math.Sqrt(2*math.Pi)
}

// scalarSum is Neumaier's compensated sum.
type scalarSum struct{ s, c float64 }

func (k *scalarSum) add(x float64) {
	t := k.s + x
	if math.Abs(k.s) >= math.Abs(x) {
		k.c += (k.s - t) + x
	} else {
		k.c += (x - t) + k.s
	}
	k.s = t
}

func (k *scalarSum) total() float64 { return k.s + k.c }

func TestExpectationsAgreeWithFineQuadratureHoweverWide(t *testing.T) {
	sigma := func(f float64) float64 { return 1 / (1 + math.Exp(-f)) }
	logSigma := func(f float64) float64 { return min(f, 0) - math.Log1p(math.Exp(-math.Abs(f))) }
	derivatives := []func(f float64) float64{
		func(f float64) float64 { return sigma(-f) },
		func(f float64) float64 { return -sigma(f) * sigma(-f) },
		func(f float64) float64 { return -sigma(f) * sigma(-f) * (1 - 2*sigma(f)) },
		func(f float64) float64 { return -sigma(f) * sigma(-f) * (1 - 6*sigma(f)*sigma(-f)) },
	}
	for _, s := range []float64{1e-9, 0.1, 0.5, narrow, narrow * 1.0000001, 1, 1.7, 3, 8, 30, 200} {
		for _, a := range []float64{0, 0.3, -1, 2.5, -6, 17, -45, 300} {
			value, d := ExpectLogSigmoid(a, s*s)
			if want := trapezoid(a, s, logSigma); !scalar.EqualWithinAbsOrRel(value, want, 1e-12, 1e-12) {
				t.Errorf("E ln σ at %v, %v: %v, want %v", a, s, value, want)
			}
			for i, tol := range []float64{1e-11, 1e-11, 1e-10, 1e-9} {
				if want := trapezoid(a, s, derivatives[i]); !scalar.EqualWithinAbsOrRel(d[i], want, tol, 1e-13) {
					t.Errorf("derivative %d at %v, %v: %v, want %v", i+1, a, s, d[i], want)
				}
			}
			if d1 := expectSigmoid(-a, s*s); !scalar.EqualWithinAbs(d1, d[0], 1e-15) {
				t.Errorf("slope at %v, %v: %v, want %v", a, s, d1, d[0])
			}
		}
	}
}

func TestHermiteRuleIsExactForPolynomials(t *testing.T) {
	r := GaussHermite(20)
	moment := 1.0 // of z², z⁴, …: 1, 3, 15, …
	for k := 2; k < 40; k += 2 {
		moment *= float64(k - 1)
		got := 0.0
		for i, z := range r.Nodes {
			got += r.Weights[i] * math.Pow(z, float64(k))
		}
		if !scalar.EqualWithinRel(got, moment, 1e-12) {
			t.Errorf("moment %d is %v, want %v", k, got, moment)
		}
	}
}
