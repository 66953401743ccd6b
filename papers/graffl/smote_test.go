package graffl

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestSMOTEStaysBetweenNeighbours(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, k := rapid.IntRange(1, 20).Draw(t, "n"), rapid.IntRange(1, 6).Draw(t, "k")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		rows := make([][]float64, n)
		for i := range rows {
			rows[i] = []float64{rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64()}
		}
		out, err := smoted(rows, 30, k, rng)
		if err != nil || len(out) != 30 {
			t.Fatalf("%d rows, %v", len(out), err)
		}
		for _, x := range out {
			if n == 1 {
				if !slices.Equal(x, rows[0]) {
					t.Fatalf("%v from a single row", x)
				}
				continue
			}
			if !slices.ContainsFunc(rows, func(a []float64) bool { return betweenNeighbours(rows, a, x, k) }) {
				t.Fatalf("%v is not between a row and one of its %d neighbours", x, k)
			}
		}
	})
	if _, err := smoted([][]float64{{1}, {2}}, 1, 0, rand.New(rand.NewPCG(1, 0))); err == nil {
		t.Error("no neighbours were accepted")
	}
	if _, err := smoted(nil, 1, 5, rand.New(rand.NewPCG(1, 0))); err == nil {
		t.Error("rows came from nothing")
	}
}

// betweenNeighbours says whether x is on the line from row a to a row that fewer
// than k others are nearer to.
func betweenNeighbours(rows [][]float64, a, x []float64, k int) bool {
	apart := func(p, q []float64) float64 {
		return math.Hypot(math.Hypot(p[0]-q[0], p[1]-q[1]), p[2]-q[2])
	}
	for _, b := range rows {
		nearer := 0
		for _, c := range rows {
			if !slices.Equal(c, a) && apart(a, c) < apart(a, b) {
				nearer++
			}
		}
		if !slices.Equal(a, b) && nearer < k && math.Abs(apart(a, x)+apart(x, b)-apart(a, b)) < 1e-12*(1+apart(a, b)) {
			return true
		}
	}
	return false
}
