package mixture

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"parley/methods/mixture/gmm"
	"parley/methods/mixture/sketch"
)

func sumsAt(f sketch.Frequencies, rows []float64) []float64 {
	sum, phi := make([]float64, f.Len()), make([]float64, f.Len())
	for row := range slices.Chunk(rows, f.Dim) {
		f.Features(phi, row)
		for i, v := range phi {
			sum[i] += v
		}
	}
	return sum
}

// What two exact releases differ by is the row that sets them apart, in one feature and in eight; so are all
// rows of a small site. What is not determined is not given.
func TestRowsFollowFromExactSums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, n := rapid.SampledFrom([]int{1, 2, 8}).Draw(t, "features"), 1
		if d == 2 {
			n = rapid.IntRange(1, 3).Draw(t, "rows")
		}
		f := known(text(d, "components: 2", noProtection)).Of
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 3))
		var rows []float64
		for k := range n { // a few widths apart
			for range d {
				rows = append(rows, float64(5*k)-5+r.Float64())
			}
		}
		got, err := locate(f, sumsAt(f, rows), n)
		if err != nil {
			t.Fatal(err)
		}
		for row := range slices.Chunk(rows, d) {
			least := math.Inf(1)
			for g := range slices.Chunk(got, d) {
				least = min(least, math.Sqrt(gmm.SquaredDistance(row, g)))
			}
			if least > 1e-5 {
				t.Fatalf("rows %v were located at %v", rows, got)
			}
		}
	})
	f := known(text(2, "components: 2", noProtection)).Of
	for name, c := range map[string]struct {
		sums []float64
		rows int
	}{"too many": {make([]float64, f.Len()), f.Len()/2 + 1}, "none": {make([]float64, f.Len()), 0}, "other sums": {[]float64{1}, 1}} {
		if x, err := locate(f, c.sums, c.rows); err == nil {
			t.Errorf("%s: %v", name, x)
		}
	}
}
