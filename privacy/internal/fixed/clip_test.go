package fixed

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// exact returns Σ vᵢ² or Σ |vᵢ| without rounding.
func exact(v []float64, norm Norm) *big.Rat {
	total := new(big.Rat)
	for _, x := range v {
		r := new(big.Rat).SetFloat64(x)
		if norm == L2 {
			r.Mul(r, r)
		}
		total.Add(total, r.Abs(r))
	}
	return total
}

// power returns the bound as exact returns norms.
func power(bound float64, norm Norm) *big.Rat {
	r := new(big.Rat).SetFloat64(bound)
	if norm == L2 {
		r.Mul(r, r)
	}
	return r
}

// length returns the norm of v to 200 bits.
func length(v []float64, norm Norm) *big.Float {
	f := new(big.Float).SetPrec(200).SetRat(exact(v, norm))
	if norm == L2 {
		f.Sqrt(f)
	}
	return f
}

// finite draws floats of every size, with many of like size.
func finite() *rapid.Generator[float64] {
	return rapid.OneOf(
		rapid.Float64Range(-2, 2),
		rapid.Float64Range(-math.MaxFloat64, math.MaxFloat64),
		rapid.Float64Range(-1e-300, 1e-300),
		rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 1, -1, math.MaxFloat64, -math.MaxFloat64,
			math.SmallestNonzeroFloat64, 0x1p-1022, 1e200, 1e-200, 3, 4}),
	)
}

func TestClipNeverExceedsTheBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SliceOfN(finite(), 0, 12).Draw(t, "v")
		norm := rapid.SampledFrom([]Norm{L1, L2}).Draw(t, "norm")
		bound := math.Abs(finite().Draw(t, "bound"))
		before := length(v, norm)
		if f, _ := before.Float64(); rapid.Bool().Draw(t, "at the boundary") && !math.IsInf(f, 0) {
			bound = f
			for range rapid.IntRange(0, 3).Draw(t, "ulps") {
				bound = math.Nextafter(bound, rapid.SampledFrom([]float64{0, math.Inf(1)}).Draw(t, "to"))
			}
			if math.IsInf(bound, 1) {
				bound = math.MaxFloat64
			}
		}
		got := slices.Clone(v)
		n, clipped, err := Clip(got, bound, norm)
		if err != nil {
			t.Fatal(err)
		}
		if exact(got, norm).Cmp(power(bound, norm)) > 0 {
			t.Fatalf("Clip(%v, %v, %s) = %v, longer than the bound", v, bound, norm, got)
		}
		if f, _ := before.Float64(); !(n == f || math.Abs(n-f) <= 4e-16*f+math.SmallestNonzeroFloat64) {
			t.Fatalf("norm of %v is %v, want %v", v, n, f)
		}
		if !clipped && !slices.Equal(got, v) {
			t.Fatalf("%v became %v, and is said to be left alone", v, got)
		}
		// v/max(1, ‖v‖/bound), but for what subnormal numbers cannot hold.
		factor := new(big.Float).SetPrec(200).SetFloat64(1)
		if b := new(big.Float).SetFloat64(bound); before.Cmp(b) > 0 {
			factor.Quo(b, before)
		}
		for i, x := range v {
			want, _ := new(big.Float).Mul(factor, new(big.Float).SetFloat64(x)).Float64()
			if math.Abs(got[i]-want) > 1e-12*math.Abs(want)+2*math.SmallestNonzeroFloat64 {
				t.Fatalf("Clip(%v, %v, %s)[%d] = %v, want %v", v, bound, norm, i, got[i], want)
			}
		}
	})
}

// Where entries become subnormal, rounding to nearest could double them.
func TestClipToSubnormalBounds(t *testing.T) {
	for _, norm := range []Norm{L1, L2} {
		for k := range 200 {
			for _, v := range [][]float64{{1, 1}, {3, 2, 2}, {1e300, -1e300, 1e299},
				{0x1p-1060, 0x1p-1061, 0x1p-1062}} {
				bound := float64(k) * math.SmallestNonzeroFloat64
				got := slices.Clone(v)
				if _, _, err := Clip(got, bound, norm); err != nil {
					t.Fatal(err)
				}
				if exact(got, norm).Cmp(power(bound, norm)) > 0 {
					t.Errorf("Clip(%v, %v, %s) = %v, longer than the bound", v, bound, norm, got)
				}
			}
		}
	}
}

// Long vectors must not lose the margin to the rounding of their sum.
func TestClipOfLongVectors(t *testing.T) {
	for _, norm := range []Norm{L1, L2} {
		for _, n := range []int{1000, 100_000} {
			v := make([]float64, n)
			for i := range v {
				v[i] = 1 + 0.1*math.Sin(float64(i))
			}
			v[0] = 1e6 // all that follows is small against the sum
			want := length(v, norm)
			got, clipped, err := Clip(v, 10, norm)
			if err != nil || !clipped {
				t.Fatalf("clipped %v, error %v", clipped, err)
			}
			if f, _ := want.Float64(); math.Abs(got-f) > 4e-16*f {
				t.Errorf("%s of %d values is %v, want %v", norm, n, got, f)
			}
			if exact(v, norm).Cmp(power(10, norm)) > 0 {
				t.Errorf("%s of %d values: longer than the bound", norm, n)
			}
			if f, _ := length(v, norm).Float64(); f < 10*(1-3e-15) {
				t.Errorf("%s of %d values: clipped to %v", norm, n, f)
			}
		}
	}
}

func TestClipRefuses(t *testing.T) {
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		for _, v := range [][]float64{{x, 5}, {5, x}, {x}} {
			w := slices.Clone(v)
			if _, _, err := Clip(w, 1, L2); !errors.Is(err, ErrNotFinite) || !slices.EqualFunc(v, w, same) {
				t.Errorf("Clip(%v) leaves %v, error %v", v, w, err)
			}
		}
		if _, _, err := Clip([]float64{1}, x, L2); err == nil || errors.Is(err, ErrNotFinite) {
			t.Errorf("bound %v: error %v", x, err)
		}
	}
	if _, _, err := Clip([]float64{1}, -1, L1); err == nil {
		t.Error("a negative bound is accepted")
	}
	if _, _, err := Clip([]float64{1}, 1, "l∞"); err == nil {
		t.Error("an unknown norm is accepted")
	}
	if _, _, err := Clip(make([]float64, maxLength+1), 1, L2); err == nil {
		t.Error("a vector of any length is accepted")
	}
}

func same(a, b float64) bool { return a == b || a != a && b != b }

func ExampleClip() {
	v := []float64{3, 4}
	before, clipped, err := Clip(v, 1, L2)
	fmt.Println(before, clipped, err)
	fmt.Printf("%.6f\n", v)
	// Output:
	// 5 true <nil>
	// [0.600000 0.800000]
}
