package suffiae

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"parley/internal/wire"
)

func drawEncoder(t *rapid.T) *Encoder {
	number := rapid.Float64Range(-3, 3)
	width := rapid.IntRange(1, 12).Draw(t, "inputs")
	e := &Encoder{Inputs: Inputs{
		Centre: rapid.SliceOfN(number, width, width).Draw(t, "centre"),
		Scale:  rapid.SliceOfN(rapid.Float64Range(0.1, 9), width, width).Draw(t, "scale"),
		Limit:  rapid.Float64Range(0.5, 8).Draw(t, "limit"),
	}}
	for range rapid.IntRange(1, 3).Draw(t, "layers") {
		out := rapid.IntRange(1, 10).Draw(t, "out")
		e.Layers = append(e.Layers, newLayer(width, rapid.SliceOfN(number, width*out, width*out).Draw(t, "w"), rapid.SliceOfN(number, out, out).Draw(t, "b")))
		width = out
	}
	return e
}

func TestEncoderIsWhatItsMatricesSay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawEncoder(t)
		cell := rapid.OneOf(rapid.Float64Range(-20, 20), rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1)}))
		width := len(e.Inputs.Centre)
		rows := rapid.SliceOfN(rapid.SliceOfN(cell, width, width), 0, 70).Draw(t, "rows")

		codes, err := e.Encode(rows)
		if err != nil || len(codes) != len(rows) {
			t.Fatalf("%d codes of %d rows: %v", len(codes), len(rows), err)
		}
		for i, row := range rows {
			x := make([]float64, width)
			for j, v := range row {
				v = (v - e.Inputs.Centre[j]) / e.Inputs.Scale[j]
				if math.IsNaN(v) {
					v = 0
				}
				x[j] = math.Max(-e.Inputs.Limit, math.Min(e.Inputs.Limit, v))
			}
			for k, l := range e.Layers {
				y := slices.Clone(l.Bias)
				for r := range y {
					for c, v := range x {
						y[r] += l.Weights.Data[r*l.Weights.Cols+c] * v
					}
					if k+1 < len(e.Layers) {
						y[r] = math.Tanh(y[r])
					}
				}
				x = y
			}
			if len(codes[i]) != e.Dimension() {
				t.Fatalf("a code of %d numbers, not %d", len(codes[i]), e.Dimension())
			}
			for j, v := range codes[i] {
				if !(math.Abs(v-x[j]) <= 1e-9*(1+math.Abs(x[j]))) {
					t.Fatalf("row %d, number %d: %v, want %v", i, j, v, x[j])
				}
			}
		}
	})
}

func TestCodesAreFiniteWhateverIsEncoded(t *testing.T) {
	const width = 300
	e := &Encoder{Inputs: Inputs{Centre: make(wire.Vector, width), Scale: make(wire.Vector, width), Limit: largest}}
	for j := range width {
		e.Inputs.Scale[j] = math.SmallestNonzeroFloat64
	}
	w := slices.Repeat([]float64{largest}, width)
	e.Layers = []Layer{newLayer(width, w, []float64{largest})}
	row := slices.Repeat([]float64{math.MaxFloat64}, width)
	codes, err := e.Encode([][]float64{row})
	if err != nil || math.IsInf(codes[0][0], 0) || codes[0][0] < 1e14 {
		t.Errorf("code %v, %v", codes, err)
	}
}

func TestFitInputs(t *testing.T) {
	nan := math.NaN()
	rows := [][]float64{{1, 5, nan, 2}, {3, 5, nan, nan}, {nan, 5, nan, 4}}
	in, err := FitInputs(rows, 3)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(in.Centre, wire.Vector{2, 5, 0, 3}) || !slices.Equal(in.Scale, wire.Vector{1, 1, 1, 1}) {
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
	for name, bad := range map[string][][]float64{"no rows": nil, "no columns": {{}}, "lengths": {{1}, {1, 2}}, "infinite": {{math.Inf(1)}, {1}}} {
		if _, err := FitInputs(bad, 3); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := FitInputs(rows, 0); err == nil {
		t.Error("a limit of 0 was accepted")
	}
}
