package rotation

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// ability are the varimax loadings of six ability tests (general, picture, blocks, maze,
// reading, vocabulary; Bartholomew and Knott 1999) that R's factanal prints for its data
// set ability.cov with two factors, and oblique what it prints for them with promax.
var (
	ability = []float64{.499, .543, .156, .622, .206, .860, .109, .468, .956, .182, .785, .225}
	oblique = []float64{.364, .470, 0, .671, 0, .932, 0, .508, 1.023, 0, .811, 0} // R leaves out loadings below .1
)

func product(a, t []float64, q int) []float64 {
	var out mat.Dense
	out.Mul(mat.NewDense(len(a)/q, q, a), mat.NewDense(q, q, t))
	return out.RawMatrix().Data
}

// covariance returns (TᵀT)⁻¹, that of the rotated factors.
func covariance(t []float64, q int) *mat.Dense {
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

func TestPublishedRotations(t *testing.T) {
	start := turned(ability, 2, 0.6)
	v, err := Varimax(start, 2)
	if err != nil {
		t.Fatal(err)
	}
	// R ends when the criterion grows by less than 1e-5, which leaves .003 radians.
	near(t, "varimax", product(start, v, 2), ability, 0.004)
	p, err := Promax(start, 2, Power)
	if err != nil {
		t.Fatal(err)
	}
	pattern, phi := product(start, p, 2), covariance(p, 2)
	for i, x := range oblique {
		if x == 0 && math.Abs(pattern[i]) >= 0.1 || x != 0 && math.Abs(pattern[i]-x) > 0.004 {
			t.Fatalf("promax: got %.3f, want %v", pattern, oblique)
		}
	}
	if math.Abs(phi.At(0, 1)-0.557) > 0.004 || math.Abs(phi.At(0, 0)-1) > 1e-12 {
		t.Errorf("correlation of factors %v, want .557", phi)
	}
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
		rotation, err := Varimax(a, q)
		if err != nil {
			t.Fatal(err)
		}
		phi := covariance(rotation, q)
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
		rotation, err := rotate(start, q)
		if err != nil {
			t.Fatal(err)
		}
		near(t, name, product(start, rotation, q), simple, 1e-8)
		near(t, name, covariance(rotation, q).RawMatrix().Data, []float64{1, 0, 0, 0, 1, 0, 0, 0, 1}, 1e-8)
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
	rotation, err := Promax(a, q, Power)
	if err != nil {
		t.Fatal(err)
	}
	pattern := mat.NewDense(20, q, product(a, rotation, q))
	var structure mat.Dense
	structure.Mul(pattern, covariance(rotation, q))
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
