package noise

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"parley/internal/testkit"
)

// The probability is the rate, cut to 64 binary places.
func TestCoinIsNeverAboveItsRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := math.Ldexp(rapid.Float64Range(0.5, math.Nextafter(1, 0)).Draw(t, "mantissa"),
			-rapid.IntRange(0, 62).Draw(t, "exponent"))
		c := testkit.Get(NewCoin(rate))(t)
		p := new(big.Rat).SetFrac(natural(c.threshold), new(big.Int).Lsh(big.NewInt(1), 64))
		gap := new(big.Rat).Sub(new(big.Rat).SetFloat64(rate), p)
		if gap.Sign() < 0 || gap.Cmp(new(big.Rat).SetFrac(big.NewInt(1), new(big.Int).Lsh(big.NewInt(1), 64))) >= 0 ||
			rate >= 0x1p-11 && gap.Sign() != 0 {
			t.Fatalf("rate %v becomes %v", rate, p)
		}
	})
	for _, rate := range []float64{0, -1, 1, 2, 0x1p-65, math.NaN(), math.Inf(1)} {
		if _, err := NewCoin(rate); err == nil {
			t.Errorf("a rate of %v was taken", rate)
		}
	}
}

// The share of ones is the rate within five standard deviations: a right coin
// would fail with probability 6·10⁻⁷ at another seed.
func TestCoinShowsItsRate(t *testing.T) {
	for i, rate := range []float64{0.02, 0.5, 0.97} {
		c := testkit.Get(NewCoin(rate))(t)
		dst := make([]int64, 100_000)
		testkit.Do(t, c.Fill(dst, Keyed([32]byte{byte(i)})))
		sum := 0.0
		for _, x := range dst {
			if x != 0 && x != 1 {
				t.Fatalf("drew %d", x)
			}
			sum += float64(x)
		}
		n := float64(len(dst))
		if sd := math.Sqrt(n * rate * (1 - rate)); math.Abs(sum-n*rate) > 5*sd {
			t.Errorf("rate %v: %v of %v", rate, sum, n)
		}
	}
}
