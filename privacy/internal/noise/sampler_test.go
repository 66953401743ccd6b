package noise

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	randv2 "math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"parley/internal/testkit"
)

// Seeds are fixed, so nothing here fails by chance from run to run. With
// another seed, a right sampler would fail each single check with the
// probability alarm.
const alarm = 1e-6

// mass is an exact probability mass function on the integers.
type mass func(x int64) float64

func gaussianMass(variance float64) mass {
	total := 1.0
	for x := 1.0; x*x < 1600*variance; x++ {
		total += 2 * math.Exp(-x*x/(2*variance))
	}
	return func(x int64) float64 { return math.Exp(-float64(x)*float64(x)/(2*variance)) / total }
}

func laplaceMass(b float64) mass {
	return func(x int64) float64 { return math.Tanh(1/(2*b)) * math.Exp(-math.Abs(float64(x))/b) }
}

// fits compares draws with a probability mass function by Pearson's χ², each
// integer a bin that is expected 10 times or more, the rest in two tails.
func fits(draws []int64, p mass) error {
	n := float64(len(draws))
	var edge int64
	for n*p(edge+1) >= 10 {
		edge++
	}
	counts := make(map[int64]float64)
	for _, x := range draws {
		counts[min(max(x, -edge-1), edge+1)]++
	}
	inside, χ2 := 0.0, 0.0
	for x := -edge; x <= edge; x++ {
		e := n * p(x)
		inside += p(x)
		χ2 += (counts[x] - e) * (counts[x] - e) / e
	}
	df := float64(2 * edge)
	if e := n * (1 - inside) / 2; e >= 5 {
		for _, x := range []int64{-edge - 1, edge + 1} {
			χ2 += (counts[x] - e) * (counts[x] - e) / e
			df++
		}
	} else if beyond := counts[-edge-1] + counts[edge+1]; poissonTail(beyond, 2*e) < alarm {
		return fmt.Errorf("%v draws beyond ±%d, expected %.1f", beyond, edge, 2*e)
	}
	if df == 0 { // one bin holds all
		return nil
	}
	if tail := (distuv.ChiSquared{K: df}).Survival(χ2); tail < alarm {
		return fmt.Errorf("χ² = %.1f on %v degrees of freedom: probability %.1g", χ2, df, tail)
	}
	return nil
}

// poissonTail is the probability of k or more (or, if k is below the mean, k
// or fewer).
func poissonTail(k, mean float64) float64 {
	d := distuv.Poisson{Lambda: max(mean, 1e-300)}
	if k < mean {
		return d.CDF(k)
	}
	if k == 0 {
		return 1
	}
	return 1 - d.CDF(k-1)
}

// normal looks at draws whose σ is so large that they can be held against the
// continuous distribution: moments, Kolmogorov–Smirnov, tails, symmetry.
func normal(draws []int64, σ float64) (problems []error) {
	n := float64(len(draws))
	z := -distuv.UnitNormal.Quantile(alarm / 2)
	var m [5]float64
	for _, x := range draws {
		v := float64(x) / σ
		m[1] += v
		m[2] += v * v
		m[3] += v * v * v
		m[4] += v * v * v * v
	}
	// Variances of powers of a standard normal variable: Var v^k = E v^2k − (E v^k)².
	for k, want := range []struct{ mean, variance float64 }{{}, {0, 1}, {1, 2}, {0, 15}, {3, 96}} {
		if got := m[k] / n; k > 0 && !(math.Abs(got-want.mean) <= z*math.Sqrt(want.variance/n)) {
			problems = append(problems, fmt.Errorf("moment %d is %v, want %v ± %.1g", k, got, want.mean,
				z*math.Sqrt(want.variance/n)))
		}
	}
	sorted := slices.Sorted(slices.Values(draws))
	distance := 0.0
	for i, x := range sorted {
		if f := distuv.UnitNormal.CDF((float64(x) + 0.5) / σ); i+1 == len(sorted) || sorted[i+1] != x {
			distance = max(distance, math.Abs(f-float64(i+1)/n))
		}
	}
	if limit := math.Sqrt(math.Log(2/alarm) / 2 / n); distance > limit {
		problems = append(problems, fmt.Errorf("Kolmogorov–Smirnov distance %.2g, limit %.2g", distance, limit))
	}
	for k := 4; k <= 20; k += 2 {
		p := math.Ldexp(1, -k)
		cut := -σ * distuv.UnitNormal.Quantile(p/2)
		beyond := 0.0
		for i := 0; i < len(sorted) && float64(sorted[i])-0.5 <= -cut; i++ {
			beyond++
		}
		for i := len(sorted) - 1; i >= 0 && float64(sorted[i])+0.5 >= cut; i-- {
			beyond++
		}
		// One step more or less at the cut changes p by less than 10 % where σ ≥ 2⁷.
		slack := 0.05
		if σ >= 1<<20 {
			slack = 0
		}
		if mean := n * p; poissonTail(beyond, min(max(beyond, mean*(1-slack)), mean*(1+slack))) < alarm {
			problems = append(problems, fmt.Errorf("%v draws beyond the quantile of 2^-%d, expected %.1f",
				beyond, k, mean))
		}
	}
	return problems
}

// lowBits looks for what rounding does: draws on a coarser grid than 1, all of
// them or the large ones alone: then some results come from one input and not
// from its neighbour (Haney et al., 2022).
func lowBits(draws []int64, σ float64) (problems []error) {
	for _, least := range []float64{0, 0.5, 1, 2, 3} {
		counts := make([]float64, 16)
		for _, x := range draws {
			if math.Abs(float64(x)) >= least*σ {
				counts[x&15]++
			}
		}
		if err := even(counts); err != nil {
			problems = append(problems, fmt.Errorf("last four bits of draws beyond %vσ: %w", least, err))
		}
	}
	return problems
}

// even compares counts with equal probabilities.
func even(counts []float64) error {
	n := 0.0
	for _, c := range counts {
		n += c
	}
	χ2, e := 0.0, n/float64(len(counts))
	for _, c := range counts {
		χ2 += (c - e) * (c - e) / e
	}
	if e < 10 {
		return fmt.Errorf("only %v draws", n)
	}
	if tail := (distuv.ChiSquared{K: float64(len(counts) - 1)}).Survival(χ2); tail < alarm {
		return fmt.Errorf("χ² = %.1f over %d bins: probability %.1g", χ2, len(counts), tail)
	}
	return nil
}

func draw(t *testing.T, n int, fill func([]int64, Source) error, seed byte) []int64 {
	t.Helper()
	v := make([]int64, n)
	testkit.Do(t, fill(v, Keyed([32]byte{seed, 77})))
	return v
}

func gaussian(t *testing.T, variance string) *Gaussian {
	t.Helper()
	return testkit.Get(NewGaussian(ratio(t, variance)))(t)
}

func TestSmallGaussiansFitTheirMass(t *testing.T) {
	for i, variance := range []string{"1/100", "1/4", "1/2", "1", "2", "13.69", "4096"} {
		v, _ := ratio(t, variance).Float64()
		draws := draw(t, 100_000, gaussian(t, variance).Fill, byte(i))
		if err := fits(draws, gaussianMass(v)); err != nil {
			t.Errorf("variance %s: %v", variance, err)
		}
		for name, wrong := range map[string]mass{"σ/2": gaussianMass(v / 4), "4 % less noise": gaussianMass(v * 0.92)} {
			if v >= 0.25 && fits(draws, wrong) == nil {
				t.Errorf("variance %s: also fits the mass for %s", variance, name)
			}
		}
	}
}

func TestLaplacesFitTheirMass(t *testing.T) {
	for i, scale := range []string{"1/3", "1", "5/2", "1000/7"} {
		l := testkit.Get(NewLaplace(ratio(t, scale)))(t)
		b, _ := ratio(t, scale).Float64()
		draws := draw(t, 200_000, l.Fill, byte(i))
		if err := fits(draws, laplaceMass(b)); err != nil {
			t.Errorf("scale %s: %v", scale, err)
		}
		for _, wrong := range []mass{laplaceMass(b / 2), laplaceMass(b * 0.95), gaussianMass(2 * b * b)} {
			if fits(draws, wrong) == nil {
				t.Errorf("scale %s: also fits a wrong mass", scale)
			}
		}
	}
}

func TestLargeLaplace(t *testing.T) {
	const b = 3_000_000_007
	l := testkit.Get(NewLaplace(big.NewRat(b, 1)))(t)
	draws := draw(t, 200_000, l.Fill, 9)
	// Through its distribution function a Laplace variable becomes uniform.
	counts := make([]float64, 1000)
	for _, x := range draws {
		u := math.Exp(-math.Abs(float64(x))/b) / 2
		if x > 0 {
			u = 1 - u
		}
		counts[int(u*1000)]++
	}
	if err := even(counts); err != nil {
		t.Error(err)
	}
	for _, err := range lowBits(draws, math.Sqrt2*b) {
		t.Error(err)
	}
}

func TestLargeGaussiansAreNormal(t *testing.T) {
	for i, variance := range []string{"1048576", "1099511627777/2", "1208925819614629174706176", "1e27"} {
		v, _ := ratio(t, variance).Float64()
		n := 200_000
		if i == 1 {
			n = 1 << 20 // enough to see 2⁻¹⁵ from both sides, and 2⁻²⁰ from above
		}
		draws := draw(t, n, gaussian(t, variance).Fill, byte(i))
		for _, err := range append(normal(draws, math.Sqrt(v)), lowBits(draws, math.Sqrt(v))...) {
			t.Errorf("variance %s: %v", variance, err)
		}
	}
}

// The tests above must catch the faults that they are there for.
func TestFaultySamplersAreCaught(t *testing.T) {
	const σ = 1 << 30
	right := draw(t, 400_000, gaussian(t, "1152921504606846976").Fill, 1)
	mutant := func(f func(x int64) int64) []int64 {
		v := make([]int64, len(right))
		for i, x := range right {
			v[i] = f(x)
		}
		return v
	}
	for name, c := range map[string]struct {
		draws []int64
		words string // what the test must say
	}{
		"half the noise":     {mutant(func(x int64) int64 { return x / 2 }), "moment 2"},
		"one per cent less":  {mutant(func(x int64) int64 { return x - x/100 }), "moment 2"},
		"cut at three sigma": {mutant(func(x int64) int64 { return min(max(x, -3*σ), 3*σ) }), "quantile"},
		"rounded to 24 bits": {mutant(func(x int64) int64 { return int64(float32(x)) }), "last four bits"},
		"large noise rounded": {mutant(func(x int64) int64 { return x &^ (max(x, -x) >> 31) }),
			"last four bits of draws beyond 2σ"},
		"one sign":              {mutant(func(x int64) int64 { return max(x, -x) }), "moment 1"},
		"Laplace of equal size": {laplaceLike(t, σ), "moment 4"},
	} {
		said := errors.Join(append(normal(c.draws, σ), lowBits(c.draws, σ)...)...)
		if said == nil || !strings.Contains(said.Error(), c.words) {
			t.Errorf("%s: the tests say %v, want %q among it", name, said, c.words)
		}
	}
	rounded := make([]int64, 200_000)
	r := randv2.New(randv2.NewPCG(1, 2))
	for i := range rounded {
		rounded[i] = int64(math.Round(r.NormFloat64() / 2))
	}
	if fits(rounded, gaussianMass(0.25)) == nil {
		t.Error("a rounded float at σ = 1/2 passes for the discrete Gaussian")
	}
}

func laplaceLike(t *testing.T, σ float64) []int64 {
	l := testkit.Get(NewLaplace(big.NewRat(int64(σ/math.Sqrt2), 1)))(t)
	return draw(t, 200_000, l.Fill, 3)
}
