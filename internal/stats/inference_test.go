package stats_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"parley/internal/stats"
)

// Scores of one effect leave what the textbook's Q of estimates s/h with weights h²/v has, whatever the sites without
// information say; its tail is as often below .05 as it should be (false alarm of this test: 10⁻⁶).
func TestCochranQ(t *testing.T) {
	r := rand.New(rand.NewPCG(1954, 1))
	const studies = 4000
	below := 0
	for range studies {
		scores := []stats.Score{{}}
		num, den := 0.0, 0.0
		for range 5 {
			h, v := 1+9*r.Float64(), 1+4*r.Float64()
			s := 0.7*h + math.Sqrt(v)*r.NormFloat64()
			scores = append(scores, stats.Score{Sum: s, Information: h, Variance: v})
			num, den = num+h*h/v*(s/h), den+h*h/v
		}
		want := 0.0
		for _, x := range scores[1:] {
			d := x.Sum/x.Information - num/den
			want += x.Information * x.Information / x.Variance * d * d
		}
		by, q, free := stats.CochranQ(scores)
		if free != 4 || by[0] != 0 || math.Abs(q-want) > 1e-9*want {
			t.Fatalf("q %v with %v degrees of freedom, want %v with 4", q, free, want)
		}
		if stats.ChiSquareTail(q, free) < 0.05 {
			below++
		}
	}
	if off := math.Abs(float64(below) - 0.05*studies); off > 5*math.Sqrt(0.05*0.95*studies) {
		t.Errorf("%d of %d tails are below .05", below, studies)
	}
	if _, _, free := stats.CochranQ(make([]stats.Score, 3)); free != -1 {
		t.Errorf("%v degrees of freedom of nothing", free)
	}
}

// Tails of χ² are those of its quantiles, which the approximation has within 5 %, and within 0.1 % of many degrees.
func TestChiSquare(t *testing.T) {
	for _, free := range []float64{5, 40, 700} {
		for _, z := range []float64{-1, 0, 2, 4.753} {
			want := distuv.ChiSquared{K: free}.Quantile(distuv.UnitNormal.CDF(z))
			if got := stats.ChiSquareQuantile(z, free); math.Abs(got-want) > (0.001+0.25/free)*want {
				t.Errorf("χ² of %v at %v: %v, want %v", free, z, got, want)
			}
			if p, want := stats.ChiSquareTail(want, free), distuv.UnitNormal.Survival(z); math.Abs(p-want) > 1e-6 {
				t.Errorf("tail of χ² of %v at %v: %v, want %v", free, z, p, want)
			}
		}
	}
	for _, x := range []struct{ x, free, want float64 }{{3, 0, 1}, {math.NaN(), 2, 1}, {-1, 2, 1}, {1e9, 2, 0}} {
		if p := stats.ChiSquareTail(x.x, x.free); p != x.want {
			t.Errorf("tail of %v with %v degrees: %v", x.x, x.free, p)
		}
	}
}

// A quantile lies between two values as the share does between their ranks.
func TestQuantile(t *testing.T) {
	if m := stats.Median([]float64{9, 1, 4}); m != 4 {
		t.Errorf("median %v", m)
	}
	for p, want := range map[float64]float64{0: 1, 0.5: 2.5, 0.75: 3.25, 1: 4} {
		if q := stats.Quantile([]float64{4, 1, 3, 2}, p); q != want {
			t.Errorf("quantile of %v: %v, want %v", p, q, want)
		}
	}
}

// TestAdjustedPValues has the example of Benjamini and Hochberg 1995, section
// 3.2: of these fifteen, the four smallest are below .05 when adjusted.
func TestAdjustedPValues(t *testing.T) {
	p := []float64{0.6528, 0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
		0.5719, 0.7590, 1}
	adjusted, below := stats.BenjaminiHochberg(p), 0
	for i, x := range adjusted {
		if x < p[i] || x > 1 {
			t.Errorf("%v adjusted to %v", p[i], x)
		}
		if x <= 0.05 {
			below++
		}
	}
	// The sixth, 0.0278·15/6, cannot be more than the seventh, 0.0298·15/7.
	seventh := 0.0298 * 15 / 7
	if below != 4 || math.Abs(adjusted[1]-0.0015) > 1e-15 || math.Abs(adjusted[6]-seventh) > 1e-15 ||
		math.Abs(adjusted[7]-seventh) > 1e-15 {
		t.Errorf("%d below: %v", below, adjusted)
	}
}

// Means of groups that are 10¹² times what they differ by, beside sums in rational numbers, and each in another unit.
func TestPartsHoldWhatMeansDifferBy(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 1))
	for _, far := range []float64{1, 1e3, 1e9, 1e12} {
		for range 100 {
			n, sums := 0.0, [6]float64{}
			all, sum, squares := new(big.Rat), new(big.Rat), new(big.Rat)
			for range 30 {
				size, mean := float64(1+r.IntN(1000)), far+r.NormFloat64()
				n += size
				for i, x := range stats.Parts(size, mean) {
					sums[i] += x
				}
				of, m := new(big.Rat).SetFloat64(size), new(big.Rat).SetFloat64(mean)
				all.Add(all, of)
				of.Mul(of, m)
				sum.Add(sum, of)
				squares.Add(squares, of.Mul(of, m))
			}
			mean, between := stats.Together(n, sums)
			want, _ := new(big.Rat).Quo(sum, all).Float64()
			square, _ := squares.Sub(squares, sum.Quo(sum.Mul(sum, sum), all)).Float64()
			if mean != want || math.Abs(between/square-1) > 1e-6 {
				t.Fatalf("means near %g: %v and %v, not %v and %v", far, mean, between, want, square)
			}
		}
	}
}
