package suffiae

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Codes of rows in their own units are those of the layers, written once more without batches,
// kernels and padding.
func TestCodesAreThoseOfTheLayers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number, width := rapid.Float64Range(-3, 3), rapid.IntRange(1, 12).Draw(t, "inputs")
		in := Inputs{
			Centre: rapid.SliceOfN(number, width, width).Draw(t, "centre"),
			Scale:  rapid.SliceOfN(rapid.Float64Range(0.1, 9), width, width).Draw(t, "scale"),
			Limit:  rapid.Float64Range(0.5, 8).Draw(t, "limit"),
		}
		o := Options{Dimension: rapid.IntRange(1, 10).Draw(t, "d"), Noise: 1,
			Hidden: rapid.SliceOfN(rapid.IntRange(1, 12), 0, 2).Draw(t, "hidden")}
		n := &Network{in, nil, newAutoencoder(width, o, 1)}
		n.net.encoder.Start(n.net.theta, 1, rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)))
		theta := make([]complex128, len(n.net.theta))
		for i, w := range n.net.theta {
			theta[i] = complex(w, 0)
		}
		cell := rapid.OneOf(rapid.Float64Range(-20, 20),
			rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1)}))
		rows := rapid.SliceOfN(rapid.SliceOfN(cell, width, width), 0, 70).Draw(t, "rows")
		codes, err := n.Encode(rows)
		if err != nil || len(codes) != len(rows) {
			t.Fatalf("%d codes of %d rows: %v", len(codes), len(rows), err)
		}
		for i, row := range rows {
			x := make([]complex128, width)
			for j, v := range row {
				if v = (v - in.Centre[j]) / in.Scale[j]; !math.IsNaN(v) {
					x[j] = complex(math.Max(-in.Limit, math.Min(in.Limit, v)), 0)
				}
			}
			for j, v := range pass(n.net.encoder, theta, x) {
				if want := real(v); !(math.Abs(codes[i][j]-want) <= 1e-9*(1+math.Abs(want))) {
					t.Fatalf("row %d, number %d: %v, want %v", i, j, codes[i][j], want)
				}
			}
		}
	})
}

func TestFitInputs(t *testing.T) {
	nan := math.NaN()
	rows := [][]float64{{1, 5, nan, 2}, {3, 5, nan, nan}, {nan, 5, nan, 4}}
	in, err := FitInputs(rows, 3)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(in.Centre, []float64{2, 5, 0, 3}) || !slices.Equal(in.Scale, []float64{1, 1, 1, 1}) {
		t.Errorf("centres %v, scales %v", in.Centre, in.Scale)
	}
	// One charting error among 999 of N(0, 1) stretches the first scale to 32, and
	// the second, of values within 3·32, to about 3.2.
	rng := rand.New(rand.NewPCG(4, 0))
	rows = nil
	for range 999 {
		rows = append(rows, []float64{rng.NormFloat64()})
	}
	if in, err = FitInputs(append(rows, []float64{1000}), 3); err != nil || in.Scale[0] > 4 {
		t.Errorf("scale %v, %v", in.Scale, err)
	}
	for name, bad := range map[string][][]float64{"no rows": nil, "no columns": {{}}, "lengths": {{1}, {1, 2}}} {
		if _, err := FitInputs(bad, 3); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
