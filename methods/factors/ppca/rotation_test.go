package ppca

import (
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"parley/internal/testkit"
)

func product(a, t []float64, q int) []float64 {
	var out mat.Dense
	out.Mul(mat.NewDense(len(a)/q, q, a), mat.NewDense(q, q, t))
	return out.RawMatrix().Data
}

func criterion(a []float64, q int) (sum float64) {
	rows := len(a) / q
	for c := range q {
		second, fourth := 0.0, 0.0
		for j := range rows {
			x := a[j*q+c] / floats.Norm(a[j*q:][:q], 2)
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
		var gram mat.Dense
		m := mat.NewDense(q, q, rotation)
		if gram.Mul(m.T(), m); !mat.EqualApprox(&gram, mat.NewDiagDense(q, slices.Repeat([]float64{1}, q)), 1e-12) {
			t.Fatalf("q = %d: the rotation is not orthogonal: %v", q, mat.Formatted(&gram))
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

func TestLoadingsOfOneDimensionAreRotated(t *testing.T) {
	if _, err := Varimax([]float64{1, 1, 2, 2, 3, 3, -1, -1}, 2); err != nil {
		t.Error(err)
	}
}
