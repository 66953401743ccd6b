package graffl

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"parley/methods/mixture/gmm"
)

func TestTrilaterateRefuses(t *testing.T) {
	for _, c := range []struct{ points, squared []float64 }{
		{[]float64{0, 0, 1, 1}, []float64{1, 1}},
		{[]float64{0, 0, 1, 1, 2, 2}, []float64{1, 1, 1}}, // on one line
		{[]float64{0, 0, 1, 1, 2}, []float64{1, 1, 1}},
		{[]float64{0, 0, 1, 1, 2, math.NaN()}, []float64{1, 1, 1}},
	} {
		if x, err := Trilaterate(c.points, c.squared, 2); err == nil {
			t.Errorf("points %v gave %v", c.points, x)
		}
	}
}

// The derivatives of a mean discrepancy are those of differences.
func TestSlopeOfADiscrepancy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		set := rapid.SliceOfN(rapid.Float64Range(-5, 5), 12, 12).Draw(t, "set")
		x := rapid.SliceOfN(rapid.Float64Range(6, 9), 3, 3).Draw(t, "x") // not on a row, where there is none
		for _, d := range []gmm.Discrepancy{{Kind: gmm.Energy}, {Kind: gmm.MMD, Bandwidth: 4}} {
			got := make([]float64, 3)
			if v, want := slope(d, got, x, set), d.Cross(x, set, 3); math.Abs(v-want) > 1e-12*(1+want) {
				t.Fatalf("%s: a mean of %v, want %v", d.Kind, v, want)
			}
			for i := range x {
				up, down := append([]float64(nil), x...), append([]float64(nil), x...)
				up[i] += 1e-5
				down[i] -= 1e-5
				if want := (d.Cross(up, set, 3) - d.Cross(down, set, 3)) / 2e-5; math.Abs(got[i]-want) > 1e-7 {
					t.Fatalf("%s: derivative %d is %v, want %v", d.Kind, i, got[i], want)
				}
			}
		}
	})
}

// Three honest rounds of Algorithm 2 give a row in two dimensions away.
func ExampleTrilaterate() {
	row := []float64{7.25, -2.5}
	points := []float64{1, -1, 0.5, -5.5, -3.5, 1.5}
	squared := make([]float64, 3)
	for i := range squared {
		squared[i] = gmm.SquaredDistance(row, points[2*i:2*i+2])
	}
	recovered, err := Trilaterate(points, squared, 2)
	fmt.Printf("%.2f %v\n", recovered, err)
	// Output: [7.25 -2.50] <nil>
}

// Coordinates in another order are those of the mixture in that order.
func TestReorder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := gmm.Coordinates{K: rapid.IntRange(1, 4).Draw(t, "k"), Dim: rapid.IntRange(1, 3).Draw(t, "d")}
		u := rapid.SliceOfN(rapid.Float64Range(-2, 2), c.Len(), c.Len()).Draw(t, "u")
		order := rapid.Permutation([]int{0, 1, 2, 3}[:c.K]).Draw(t, "order")
		m, back := gmm.NewMixture(c.K, c.Dim), gmm.NewMixture(c.K, c.Dim)
		c.From(m, u)
		reorder(c, u, order)
		c.From(back, u)
		near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*(1+math.Abs(a)) }
		if want := m.Reorder(order); !slices.EqualFunc(want.Means, back.Means, near) || !slices.EqualFunc(want.Weights, back.Weights, near) || !slices.EqualFunc(want.Covs, back.Covs, near) {
			t.Fatalf("order %v made %v of %v", order, back, m)
		}
	})
}
