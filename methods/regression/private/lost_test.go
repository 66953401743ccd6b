package private

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"parley/methods/regression/glm"
)

// numbersOnly are columns of so many numbers, and the intercept.
func numbersOnly(features int) *columns {
	c := &columns{features: features}
	for j := range features {
		c.numbers, c.Feature = append(c.numbers, j), append(c.Feature, j)
	}
	c.Feature, c.Category = append(c.Feature, -1), make([]bool, features+1)
	return c
}

// rowsOf are independent numbers and an intercept, with outcomes of which weights are true.
func rowsOf(n int, w []float64, next func(r *rand.Rand) float64, r *rand.Rand) data {
	return dataOf(n, w, r, func() (x glm.Row) {
		for j := range w[:len(w)-1] {
			x.Index, x.Value = append(x.Index, int32(j)), append(x.Value, next(r))
		}
		x.Index, x.Value = append(x.Index, int32(len(w)-1)), append(x.Value, 1)
		return x
	})
}

// dataOf are rows with outcomes of which weights are true.
func dataOf(n int, w []float64, r *rand.Rand, next func() glm.Row) (d data) {
	for range n {
		x, a, y := next(), 0.0, -1.0
		for i, j := range x.Index {
			a += x.Value[i] * w[j]
		}
		if r.Float64() < 1/(1+math.Exp(-a)) {
			y = 1
		}
		d.rows, d.outcome = append(d.rows, x), append(d.outcome, y)
	}
	return d
}

// normalRows have numbers within ±2.
func normalRows(n int, w []float64, r *rand.Rand) data {
	return rowsOf(n, w, func(r *rand.Rand) float64 { return min(max(r.NormFloat64(), -2), 2) }, r)
}

// interceptOf draws a study of n subjects and fits it at a signal over noise of mu: whether
// the verdict is there, for how many cases, and whether the interval of 90 % holds the intercept.
func interceptOf(slopes []float64, intercept, mu float64, n int,
	r *rand.Rand) (said bool, cases, noise float64, held bool) {
	one := len(slopes)
	d := normalRows(n, append(slices.Clone(slopes), intercept), r)
	f, g, mean, covariance := rehearse(numbersOnly(one), d, mu, 5, fault{told: 1, clips: 1, sign: 1}, r)
	cases, noise, said = f.lost(g)
	return said, cases, noise, math.Abs(mean[one]-intercept) <= 1.645*math.Sqrt(covariance.At(one, one))
}

// Where noise hides the rarer class, the fit takes it for more frequent than it is, and intervals do
// not hold. The verdict is there then, for either class, in at least 16 of 20 studies, and in none of
// 100 studies in which the intercept's intervals hold. Where .9 are meant fewer than 14 of 20 are held
// in one of 400 cases, so that five of them fail by chance in one run of 80 (seeds are fixed).
func TestRareClassesThatNoiseHides(t *testing.T) {
	for _, c := range []struct {
		intercept, mu float64
		n             int
		lost          bool
	}{
		{0, 0.07, 1000, false}, {0, 1.6, 1000, false}, {-2, 0.27, 1000, false}, {-3, 1.6, 1000, false},
		{-5, 1.6, 4000, false},
		{-4, 0.07, 1000, true}, {-4, 0.27, 1000, true}, {4, 0.27, 1000, true}, {-5, 0.27, 4000, true},
		{-5, 0.7, 1000, true},
	} {
		said, held, sign := 0, 0, 0
		for seed := range uint64(20) {
			is, cases, noise, holds := interceptOf([]float64{1, -0.7, 0.5, 0}, c.intercept, c.mu, c.n,
				rand.New(rand.NewPCG(seed, 29)))
			if is {
				said++
			}
			if is && (cases > 0) == (c.intercept < 0) && noise > math.Abs(cases)/fewestNoises {
				sign++
			}
			if holds {
				held++
			}
		}
		if !c.lost && (said > 0 || held < 14) || c.lost && (said < 16 || sign < said) {
			t.Errorf("%+v: %d of 20 verdicts, %d of the right class, %d intercepts held", c, said, sign, held)
		}
	}
}

// slopesOf draws a study of n subjects whose slopes have a standard deviation of spread, and fits it at
// a signal over noise of mu: whether the verdict on sizes is there, and the share of slopes that
// intervals of 90 % hold.
func slopesOf(features int, spread, mu float64, n int, r *rand.Rand) (said bool, held float64) {
	c, w := numbersOnly(features), make([]float64, features+1)
	for j := range features {
		w[j] = spread * r.NormFloat64()
	}
	f, g, mean, covariance := rehearse(c, normalRows(n, w, r), mu, 5, fault{told: 1, clips: 1, sign: 1}, r)
	for j := range features {
		if math.Abs(mean[j]-w[j]) <= 1.645*math.Sqrt(covariance.At(j, j)) {
			held += 1 / float64(features)
		}
	}
	return f.unsized(g, priorOf(c)), held
}

// Where effects are larger than the prior expects and noise hides by how much, the verdict is there in
// at least 16 of 20 studies of each kind, and in none of 20 of four kinds in which intervals hold.
func TestSizesThatNoiseHides(t *testing.T) {
	for _, k := range []struct {
		spread, mu float64
		n          int
		hidden     bool
	}{
		{0.5, 0.07, 2000, false}, {0.5, 1.6, 2000, false}, {1, 0.27, 4000, false}, {2, 5, 4000, false},
		{3, 0.27, 4000, true}, {6, 0.27, 4000, true}, {6, 0.7, 4000, true},
	} {
		said, held := 0, 0.0
		for seed := range uint64(20) {
			is, share := slopesOf(6, k.spread, k.mu, k.n, rand.New(rand.NewPCG(seed, 31)))
			if is {
				said++
			}
			held += share / 20
		}
		if k.hidden && said < 16 || !k.hidden && (said > 0 || held < 0.85) {
			t.Errorf("%+v: %d of 20 verdicts, intervals held %.2f", k, said, held)
		}
	}
}

// Rows that are others than the fit supposes are found, or do no harm: where numbers are five times as
// wide as the plan says, or mostly one value, at least 17 of 20 studies have a verdict, or intervals of
// 90 % hold at least .85 of the slopes of those that have none. Of studies with normal rows, small and
// large effects, with correlations and off the centre, hardly any is said to be so.
func TestRowsOfAnotherLawAreFound(t *testing.T) {
	const features = 5
	wide := func(r *rand.Rand) float64 { return 5 * r.NormFloat64() }
	limited := func(r *rand.Rand) float64 { return glm.Clamp(wide(r), 4) } // as numbers enter
	mostlyZero := func(r *rand.Rand) float64 { return 3 * math.Floor(r.Float64()+0.1) }
	standardised := func(r *rand.Rand) float64 { return (mostlyZero(r) - 0.3) / 0.9 }
	for _, k := range []struct {
		name   string
		next   func(r *rand.Rand) float64
		mu     float64
		normal bool
	}{
		{"wide", wide, 0.27, false}, {"wide", wide, 2, false}, {"limited", limited, 0.27, false},
		{"limited", limited, 2, false},
		{"mostly zero", mostlyZero, 1, false}, {"mostly zero", mostlyZero, 5, false},
		{"standardised", standardised, 1, false}, {"standardised", standardised, 5, false},
		{"normal", (*rand.Rand).NormFloat64, 0.27, true}, {"normal", (*rand.Rand).NormFloat64, 5, true},
		{"alike", nil, 2, true},
	} {
		said, silent, held := 0, 0, 0.0
		for seed := range uint64(20) {
			r := rand.New(rand.NewPCG(seed, 41))
			c, w := numbersOnly(features), make([]float64, features+1)
			spread := 0.3 * math.Pow(10, r.Float64())
			for j := range features {
				w[j] = spread * r.NormFloat64()
			}
			next, common, left := k.next, 0.0, 0
			if next == nil { // correlations of .8, and off the centre
				next = func(r *rand.Rand) float64 {
					if left--; left < 0 {
						common, left = r.NormFloat64(), features-1
					}
					return 1 + math.Sqrt(0.8)*common + math.Sqrt(0.2)*r.NormFloat64()
				}
			}
			f, g, mean, covariance := rehearse(c, rowsOf(4000, w, next, r), k.mu, 5, fault{told: 1, clips: 1, sign: 1},
				r)
			if g.odd() != nil || g.wide() != nil || !k.normal && f.unsized(g, priorOf(c)) {
				said++
				continue
			}
			silent++
			for j := range features {
				if math.Abs(mean[j]-w[j]) <= 1.645*math.Sqrt(covariance.At(j, j)) {
					held += 1. / features
				}
			}
		}
		t.Logf("%s, μ %v: %d of 20, %.2f held of the others", k.name, k.mu, said, held/float64(max(silent, 1)))
		if k.normal && said > 1 || !k.normal && said < 17 && held < 0.85*float64(silent) {
			t.Errorf("%s, μ %v: %d of 20, %.2f held of the others", k.name, k.mu, said, held/float64(silent))
		}
	}
}
