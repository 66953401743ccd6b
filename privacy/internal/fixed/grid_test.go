package fixed

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"parley/internal/testkit"
)

var kinds = []struct {
	form Form
	norm Norm
}{{Vectors, L2}, {Vectors, L1}, {Moments, L2}}

func TestNoiseIsNeverLessThanCharged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom(kinds).Draw(t, "kind")
		bound := math.Exp(rapid.Float64Range(-200, 200).Draw(t, "log bound"))
		ratio := math.Exp(rapid.Float64Range(-27, 13).Draw(t, "log ratio"))
		g := testkit.Get(NewGrid(kind.form, kind.norm, bound, ratio))(t)
		// What the accountant was told: noise ≥ ratio × bound (or bound²), exactly,
		// between integers.
		sensitivity := new(big.Int).SetInt64(g.Limit)
		if kind.form == Moments {
			sensitivity.Mul(sensitivity, sensitivity)
		}
		charged := new(big.Rat).SetFloat64(ratio)
		charged.Mul(charged, new(big.Rat).SetInt(sensitivity))
		got, least := new(big.Rat).SetInt(g.Noise), big.NewRat(1<<10, 1)
		if kind.norm == L2 {
			charged.Mul(charged, charged)
			least.SetInt64(1 << 20)
		}
		if got.Cmp(charged) < 0 {
			t.Fatalf("noise %v, charged %v", g.Noise, charged)
		}
		if over, _ := new(big.Rat).Quo(got, charged).Float64(); over > 1+1.0/1024 {
			t.Fatalf("noise %v is %v times what was charged", g.Noise, over)
		}
		if kind.form == Moments {
			least.SetInt64(1 << 21)
			if g.Noise.Bit(0) == 1 {
				t.Fatalf("variance %v has no half", g.Noise)
			}
		}
		if got.Cmp(least) < 0 {
			t.Fatalf("noise %v is below %v", g.Noise, least)
		}
		real := ratio * bound
		if kind.form == Moments {
			real *= bound
		}
		if kind.norm == L1 {
			real *= math.Sqrt2
		}
		if sd := g.SD(); sd < real*(1-1e-14) || sd > real*1.001 {
			t.Fatalf("standard deviation %v, want %v", sd, real)
		}
	})
}

func TestGridsAreFine(t *testing.T) {
	for _, c := range []struct {
		form  Form
		norm  Norm
		ratio float64
		limit int64
	}{
		{Vectors, L2, 3, 1 << 24}, {Vectors, L1, 3, 1 << 24}, {Moments, L2, 3, 1 << 14},
		{Vectors, L2, 0x1p-20, 1 << 30}, {Vectors, L1, 0x1p-20, 1 << 30}, {Moments, L2, 0x1p-20, 1 << 16},
	} {
		g := testkit.Get(NewGrid(c.form, c.norm, 5, c.ratio))(t)
		step := 5 / float64(c.limit)
		if c.form == Moments {
			step *= step
		}
		if g.Limit != c.limit || g.Step != step || g.Bound != 5 {
			t.Errorf("%s %s, noise %v: limit %d, step %v, want %d, %v", c.form, c.norm, c.ratio, g.Limit, g.Step,
				c.limit, step)
		}
	}
}

func TestNoGrid(t *testing.T) {
	for _, c := range []struct {
		form         Form
		norm         Norm
		bound, ratio float64
	}{
		{"sums", L2, 1, 1}, {Vectors, "max", 1, 1}, {Moments, L1, 1, 1},
		{Vectors, L2, 0, 1}, {Vectors, L2, math.NaN(), 1}, {Vectors, L2, math.Inf(1), 1}, {Vectors, L2, -1, 1},
		{Vectors, L2, 1, 0}, {Vectors, L2, 1, -1}, {Vectors, L2, 1, math.NaN()}, {Vectors, L2, 1, math.Inf(1)},
		{Vectors, L2, 1, 1e-300}, {Vectors, L1, 1, 1e-15}, {Moments, L2, 1, 1e-15},
		{Vectors, L2, 1, 1e300}, {Vectors, L1, 1, 0x1p25}, {Moments, L2, 1, 0x1p21},
	} {
		if g, err := NewGrid(c.form, c.norm, c.bound, c.ratio); err == nil {
			t.Errorf("%+v has the grid %+v", c, g)
		}
	}
}
