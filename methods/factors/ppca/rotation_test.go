package ppca

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"parley/internal/testkit"
)

// ability are loadings of six features on two factors, near a simple structure.
var ability = []float64{.499, .543, .156, .622, .206, .860, .109, .468, .956, .182, .785, .225}

func product(a, t []float64, q int) []float64 {
	var out mat.Dense
	out.Mul(mat.NewDense(len(a)/q, q, a), mat.NewDense(q, q, t))
	return out.RawMatrix().Data
}

// rotatedCovariance returns (TᵀT)⁻¹, that of the rotated factors.
func rotatedCovariance(t []float64, q int) *mat.Dense {
	m, gram, out := mat.NewDense(q, q, t), new(mat.Dense), new(mat.Dense)
	gram.Mul(m.T(), m)
	if err := out.Inverse(gram); err != nil {
		panic(err)
	}
	return out
}

func turned(a []float64, q int, angle float64) []float64 {
	out := slices.Clone(a)
	for i := range q {
		for k := i + 1; k < q; k++ {
			turn(out, q, i, k, angle)
		}
	}
	return out
}

func near(t *testing.T, what string, got, want []float64, by float64) {
	t.Helper()
	for i, x := range want {
		if math.Abs(got[i]-x) > by {
			t.Fatalf("%s: got %.4g, want %.4g", what, got, want)
		}
	}
}

// Of two factors, the best angle can be searched for.
func TestVarimaxOfTwoFactors(t *testing.T) {
	start := turned(ability, 2, 0.6)
	v := testkit.Get(Varimax(start, 2))(t)
	best := 0.0
	for step := 0.1; step > 1e-9; step /= 10 { // a quarter turn exchanges the factors
		from := best
		for i := -10; i <= 10; i++ {
			if angle := from + float64(i)*step; criterion(turned(start, 2, angle), 2) > criterion(turned(start, 2, best), 2) {
				best = angle
			}
		}
	}
	x, found := turned(start, 2, best), product(start, v, 2)
	if along, other := math.Abs(dotColumns(x, found, 0, 0)), math.Abs(dotColumns(x, found, 0, 1)); other > along { // in the other order
		for i := 0; i < len(x); i += 2 {
			x[i], x[i+1] = x[i+1], x[i]
		}
	}
	for c := range 2 {
		if dotColumns(x, found, c, c) < 0 {
			for i := c; i < len(x); i += 2 {
				x[i] = -x[i]
			}
		}
	}
	near(t, "varimax", found, x, 1e-6)
}

// dotColumns is the product of a column of two columns with one of another.
func dotColumns(a, b []float64, i, k int) (sum float64) {
	for j := 0; j < len(a); j += 2 {
		sum += a[j+i] * b[j+k]
	}
	return sum
}

func criterion(a []float64, q int) (sum float64) {
	rows := len(a) / q
	for c := range q {
		second, fourth := 0.0, 0.0
		for j := range rows {
			x := a[j*q+c] / norm(a[j*q:][:q])
			second, fourth = second+x*x, fourth+x*x*x*x
		}
		sum += fourth - second*second/float64(rows)
	}
	return sum
}

func TestVarimaxIsAMaximum(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, q := range []int{1, 2, 3, 5} {
		a := make([]float64, 30*q)
		for i := range a {
			a[i] = r.NormFloat64()
		}
		rotation := testkit.Get(Varimax(a, q))(t)
		phi := rotatedCovariance(rotation, q)
		for i := range q {
			for k := range q {
				if want := map[bool]float64{true: 1}[i == k]; math.Abs(phi.At(i, k)-want) > 1e-12 {
					t.Fatalf("q = %d: the rotation is not orthogonal: %v", q, mat.Formatted(phi))
				}
			}
		}
		b := product(a, rotation, q)
		top := criterion(b, q)
		if q > 1 && top <= criterion(a, q) {
			t.Errorf("q = %d: the criterion fell", q)
		}
		for i := range q {
			for k := i + 1; k < q; k++ {
				for _, angle := range []float64{-0.01, 0.01} {
					c := slices.Clone(b)
					turn(c, q, i, k, angle)
					if criterion(c, q) >= top {
						t.Errorf("q = %d: turning %d and %d by %v is better", q, i, k, angle)
					}
				}
			}
		}
	}
}

func TestWhatCannotBeRotatedIsRefused(t *testing.T) {
	twice := []float64{1, 1, 2, 2, 3, 3, -1, -1}
	for name, f := range map[string]func() error{
		"no loadings":      func() error { _, err := Varimax(nil, 2); return err },
		"ragged":           func() error { _, err := Varimax(ability[:3], 2); return err },
		"NaN":              func() error { _, err := Varimax([]float64{1, math.NaN()}, 2); return err },
		"no factor at all": func() error { _, err := Varimax(ability, 0); return err },
	} {
		if f() == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := Varimax(twice, 2); err != nil {
		t.Errorf("varimax of loadings of one dimension: %v", err)
	}
}
