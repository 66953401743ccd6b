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

// Of two factors, the best angle can be searched for, and promax written out.
func TestRotationsOfTwoFactors(t *testing.T) {
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
	// Least squares of sign(x)|x|⁴ on x, column by column, with factors of variance 1.
	xx, xy, yy := dotColumns(x, x, 0, 0), dotColumns(x, x, 0, 1), dotColumns(x, x, 1, 1)
	var u [2][2]float64
	for c := range 2 {
		p, q := 0.0, 0.0
		for i := 0; i < len(x); i += 2 {
			y := x[i+c] * math.Abs(math.Pow(x[i+c], 3))
			p, q = p+x[i]*y, q+x[i+1]*y
		}
		det := xx*yy - xy*xy
		u[0][c], u[1][c] = (yy*p-xy*q)/det, (xx*q-xy*p)/det
	}
	// (UᵀU)⁻¹ has the squared length of the other column over the determinant on its diagonal.
	length := func(c int) float64 { return u[0][c]*u[0][c] + u[1][c]*u[1][c] }
	across := u[0][0]*u[0][1] + u[1][0]*u[1][1]
	det := length(0)*length(1) - across*across
	scale := [2]float64{math.Sqrt(length(1) / det), math.Sqrt(length(0) / det)}
	want := make([]float64, len(x))
	for i := range want {
		want[i] = (x[i/2*2]*u[0][i%2] + x[i/2*2+1]*u[1][i%2]) * scale[i%2]
	}
	correlation := -across / math.Sqrt(length(0)*length(1))
	p := testkit.Get(Promax(start, 2, Power))(t)
	phi := rotatedCovariance(p, 2)
	near(t, "promax", product(start, p, 2), want, 1e-6)
	if math.Abs(phi.At(0, 1)-correlation) > 1e-6 || math.Abs(phi.At(0, 0)-1) > 1e-12 || !(correlation > 0.4) {
		t.Errorf("correlation of factors %v, want %v", phi.At(0, 1), correlation)
	}
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

// TestSimpleStructureStays has features that load on one factor each: both rotations find
// that from any start, in order and with positive signs, and promax leaves the factors
// uncorrelated.
func TestSimpleStructureStays(t *testing.T) {
	const q = 3
	simple := make([]float64, 12*q)
	for j := range 12 {
		simple[j*q+j%q] = float64(q-j%q) * (1 + 0.1*float64(j))
	}
	start := turned(simple, q, 0.4)
	for name, rotate := range map[string]func([]float64, int) ([]float64, error){
		"varimax": Varimax, "promax": func(a []float64, q int) ([]float64, error) { return Promax(a, q, Power) },
	} {
		rotation := testkit.Get(rotate(start, q))(t)
		near(t, name, product(start, rotation, q), simple, 1e-8)
		near(t, name, rotatedCovariance(rotation, q).RawMatrix().Data, []float64{1, 0, 0, 0, 1, 0, 0, 0, 1}, 1e-8)
	}
}

// TestVariancesAddUp holds what the order of the factors goes by.
func TestVariancesAddUp(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 1))
	const q = 4
	a, total := make([]float64, 20*q), 0.0
	for i := range a {
		a[i] = r.NormFloat64()
		total += a[i] * a[i]
	}
	rotation := testkit.Get(Promax(a, q, Power))(t)
	pattern := mat.NewDense(20, q, product(a, rotation, q))
	var structure mat.Dense
	structure.Mul(pattern, rotatedCovariance(rotation, q))
	before, sum := math.Inf(1), 0.0
	for c := range q {
		x := mat.Dot(pattern.ColView(c), structure.ColView(c))
		if x > before {
			t.Errorf("factor %d accounts for more than the one before it", c+1)
		}
		before, sum = x, sum+x
	}
	if math.Abs(sum-total) > 1e-10*total {
		t.Errorf("the variances add up to %v, not to %v", sum, total)
	}
}

func TestWhatCannotBeRotatedIsRefused(t *testing.T) {
	twice := []float64{1, 1, 2, 2, 3, 3, -1, -1}
	for name, f := range map[string]func() error{
		"power 1":          func() error { _, err := Promax(ability, 2, 1); return err },
		"one dimension":    func() error { _, err := Promax(twice, 2, Power); return err },
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
