package noise

import (
	"fmt"
	"math"
	"math/big"
	randv2 "math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"parley/internal/testkit"
)

// oracle is the algorithms of Canonne, Kamath and Steinke as they are printed,
// on rational numbers throughout. It takes the same bits in the same order, so
// that the fast sampler must agree with it draw by draw.
type oracle struct{ *stream }

func newOracle(seed byte) oracle {
	s := &stream{source: Keyed([32]byte{seed})}
	s.next = len(s.block)
	return oracle{s}
}

func (o oracle) bernoulli(p *big.Rat) bool {
	lo, width := new(big.Rat), big.NewRat(1, 1)
	for {
		width.Quo(width, big.NewRat(1<<16, 1))
		lo.Add(lo, new(big.Rat).Mul(width, big.NewRat(int64(o.chunk()), 1)))
		if new(big.Rat).Add(lo, width).Cmp(p) <= 0 {
			return true
		}
		if lo.Cmp(p) >= 0 {
			return false
		}
	}
}

func (o oracle) expNeg(γ *big.Rat) bool {
	one := big.NewRat(1, 1)
	for ; γ.Cmp(one) >= 0; γ = new(big.Rat).Sub(γ, one) {
		if !o.expNegOne() {
			return false
		}
	}
	k := int64(1)
	for o.bernoulli(new(big.Rat).Quo(γ, big.NewRat(k, 1))) {
		k++
	}
	return k%2 == 1
}

// expNegOne needs no bits for the first comparison, 1 with a number below 1.
func (o oracle) expNegOne() bool {
	k := int64(2)
	for o.bernoulli(big.NewRat(1, k)) {
		k++
	}
	return k%2 == 1
}

func (o oracle) laplace(t *big.Int) (x *big.Int, negative bool) {
	width := new(big.Int).Sub(t, big.NewInt(1)).BitLen()
	for {
		r := o.bits(width + 1)
		u := natural(r >> 1)
		if u.Cmp(t) >= 0 || !o.expNeg(new(big.Rat).SetFrac(u, t)) {
			continue
		}
		for o.expNegOne() {
			u.Add(u, t)
		}
		return u, r%2 == 1
	}
}

func (o oracle) gaussian(variance *big.Rat, t *big.Int) int64 {
	for {
		y, negative := o.laplace(t)
		if negative && y.Sign() == 0 {
			continue
		}
		d := new(big.Rat).SetInt(y)
		d.Sub(d, new(big.Rat).Quo(variance, new(big.Rat).SetInt(t)))
		d.Mul(d, d).Quo(d, variance).Quo(d, big.NewRat(2, 1))
		if o.expNeg(d) {
			if negative {
				y.Neg(y)
			}
			return y.Int64()
		}
	}
}

func (o oracle) discreteLaplace(scale *big.Rat) int64 {
	for {
		x, negative := o.laplace(scale.Num())
		y := x.Quo(x, scale.Denom()).Int64()
		if negative && y == 0 {
			continue
		}
		if negative {
			y = -y
		}
		return y
	}
}

func ratio(t testing.TB, s string) *big.Rat {
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		t.Fatalf("%s is no number", s)
	}
	return r
}

func TestEveryDrawIsTheOracles(t *testing.T) {
	const n = 800
	got := make([]int64, n)
	compare := func(t *testing.T, draw func() int64) {
		for i, y := range got {
			if want := draw(); y != want {
				t.Fatalf("draw %d is %d, want %d", i, y, want)
			}
		}
	}
	for i, s := range []string{"1/1048576", "1/4", "1/2", "1", "2", "13.69", "4096", "1234567/89", "1048576",
		"1000000000000/7", "1208925819614629174706176", "79228162514264337593543950335",
		"79228162514264337593543950336"} {
		t.Run("variance "+s, func(t *testing.T) {
			variance := ratio(t, s)
			g := testkit.Get(NewGaussian(variance))(t)
			testkit.Do(t, g.Fill(got, Keyed([32]byte{byte(i)})))
			o := newOracle(byte(i))
			compare(t, func() int64 { return o.gaussian(variance, new(big.Int).Lsh(big.NewInt(1), uint(g.width))) })
		})
	}
	for i, s := range []string{"1/3", "1", "5/2", "1000/7", "1024", "1000003", "281474976710656",
		"281474976710655/4294967295"} {
		t.Run("scale "+s, func(t *testing.T) {
			scale := ratio(t, s)
			l := testkit.Get(NewLaplace(scale))(t)
			testkit.Do(t, l.Fill(got, Keyed([32]byte{byte(i)})))
			o := newOracle(byte(i))
			compare(t, func() int64 { return o.discreteLaplace(scale) })
		})
	}
}

// However wide the enclosure of γ, the answer and the bits it takes are those
// of its exact value.
func TestEnclosuresDecideNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		den := rapid.Int64Range(1, 1<<40).Draw(t, "denominator")
		γ := big.NewRat(rapid.Int64Range(0, 3*den).Draw(t, "numerator"), den)
		if rapid.Bool().Draw(t, "whole") {
			γ = big.NewRat(rapid.Int64Range(0, 3).Draw(t, "γ"), 1)
		}
		seed := rapid.Byte().Draw(t, "seed")
		if rapid.Bool().Draw(t, "next to the first bits") { // where the first comparison cannot decide
			γ = big.NewRat(int64(newOracle(seed).chunk())<<24+rapid.Int64Range(0, 1<<10).Draw(t, "above"), 1<<40)
		}
		scaled := new(big.Rat).Mul(γ, big.NewRat(one, 1))
		floor := new(big.Int).Quo(scaled.Num(), scaled.Denom()).Uint64()
		slack := rapid.OneOf(rapid.Just(uint64(1)), rapid.Uint64Range(1, 1<<33)).Draw(t, "slack")
		lo, hi := floor-min(slack-1, floor), floor+slack
		if rapid.Bool().Draw(t, "nothing known") {
			lo, hi = 0, math.MaxUint64
		}
		s, o := newOracle(seed).stream, newOracle(seed)
		for range 20 {
			got, want := s.expNeg(lo, hi, func() *big.Rat { return new(big.Rat).Set(γ) }), o.expNeg(γ)
			if got != want || s.next != o.next {
				t.Fatalf("exp(−%v) in [%d, %d]: %v after %d bytes, want %v after %d", γ, lo, hi, got, s.next,
					want, o.next)
			}
		}
	})
}

func TestQuotientsAreEnclosed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.Uint64Range(1, maxScale).Draw(t, "t")
		u := rapid.Uint64Range(0, d-1).Draw(t, "u")
		lo, hi := quotient(u, d)
		exact := new(big.Rat).SetFrac(new(big.Int).Lsh(natural(u), 32), natural(d))
		if exact.Cmp(new(big.Rat).SetInt(natural(lo))) < 0 || exact.Cmp(new(big.Rat).SetInt(natural(hi))) > 0 ||
			hi > lo+1 {
			t.Fatalf("%d/%d = %s·2⁻³² is not in [%d, %d]", u, d, exact.FloatString(3), lo, hi)
		}
	})
}

// The enclosure of the acceptance exponent holds its exact value. An end that
// is wrong by the last bit shows in one of a thousand places.
func TestTheExponentIsEnclosed(t *testing.T) {
	r := randv2.New(randv2.NewPCG(1, 2))
	for log := -20; log <= 95; log += 5 {
		for range 20 {
			// in [1, 2), with places beyond the 40 that are kept
			variance := big.NewRat(1<<31+r.Int64N(1<<31-2), 1<<31-1)
			power := new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), uint(max(log, -log))))
			if log < 0 {
				power.Inv(power)
			}
			g := testkit.Get(NewGaussian(variance.Mul(variance, power)))(t)
			for i := range 100 {
				u, v := r.Uint64N(1<<g.width), r.Uint64N(3)
				if i%10 == 0 {
					v = r.Uint64N(120)
				}
				lo, hi := g.exponent(u, v)
				exact := g.exact(u | v<<g.width)
				exact.Mul(exact, big.NewRat(one, 1))
				if exact.Cmp(new(big.Rat).SetInt(natural(lo))) < 0 || hi < math.MaxUint64 &&
					exact.Cmp(new(big.Rat).SetInt(natural(hi))) > 0 {
					t.Errorf("σ² = %v, u = %d, v = %d: %s is not in [%d, %d]", variance, u, v,
						exact.FloatString(3), lo, hi)
				}
				// Tight enough to decide nearly always: 10⁻⁶ of γ and 2⁻³⁰.
				if γ, _ := exact.Float64(); v < 64 && log >= 0 && float64(hi-lo) > 4+1e-6*γ {
					t.Errorf("σ² = %v, u = %d, v = %d: [%d, %d] is too wide", variance, u, v, lo, hi)
				}
			}
		}
	}
}

func ExampleGaussian() {
	g, err := NewGaussian(big.NewRat(1<<20, 1)) // σ = 1024 steps
	if err != nil {
		fmt.Println(err)
		return
	}
	noise := make([]int64, 3)
	if err := g.Fill(noise, Keyed([32]byte{7})); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(noise), "draws")
	// Output: 3 draws
}
