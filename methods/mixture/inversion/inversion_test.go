package inversion

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"parley/methods/mixture/gmm"
	"parley/methods/mixture/sketch"
	"parley/privacy/account"
)

func TestTrilaterateRefuses(t *testing.T) {
	for _, c := range []struct{ points, squared []float64 }{
		{[]float64{0, 0, 1, 1}, []float64{1, 1}},
		{[]float64{0, 0, 1, 1, 2, 2}, []float64{1, 1, 1}}, // on one line
		{[]float64{0, 0, 1, 1, 2}, []float64{1, 1, 1}},
		{[]float64{0, 0, 1, 1, 2, math.NaN()}, []float64{1, 1, 1}},
	} {
		if x, err := Trilaterate(c.points, c.squared, 2); err == nil {
			t.Errorf("points %v gave %v", c.points, x)
		}
	}
}

// Differencing two exact releases of landmark means gives the row by which they
// differ; with the noise of ε = 1 the guess is as far off as a guess without
// any release, and telling two candidates apart succeeds no more often than ε allows.
func TestDifferencingLandmarks(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	rows := toySites(2, []int{300})[0]
	all := sums(toyMarks, rows, 0, r)
	without := sums(toyMarks, rows[2:], 0, r)
	d, err := Difference(all, without)
	if err != nil {
		t.Fatal(err)
	}
	x, err := Locate(toyMarks, d, 1)
	if err != nil || math.Sqrt(gmm.SquaredDistance(x, rows[:2])) > 1e-4 {
		t.Errorf("row %v was located at %v (%v)", rows[:2], x, err)
	}

	const epsilon, delta, trials = 1, 1e-5, 4000
	factor, err := account.AnalyticGaussian(epsilon, delta)
	if err != nil {
		t.Fatal(err)
	}
	b := toyMarks.NormBound()
	sd := factor * sketch.ReplaceOne(b)
	// The worst pair: two rows at landmarks far apart.
	one, two := make([]float64, toyMarks.Len()), make([]float64, toyMarks.Len())
	toyMarks.Features(one, toyMarks.Point(65))
	toyMarks.Features(two, toyMarks.Point(78+36))
	right := 0
	for range trials {
		truth, other := one, two
		score := 0.0 // of log likelihoods, truth against other
		for i := range truth {
			y := truth[i] + sd*r.NormFloat64()
			score += (y-other[i])*(y-other[i]) - (y-truth[i])*(y-truth[i])
		}
		if score > 0 {
			right++
		}
	}
	// Four standard errors of a share above what is allowed: false failure below 1e-4.
	most := MostAdvantage(epsilon, delta)
	if got := float64(right) / trials; got > most+4*0.5/math.Sqrt(trials) || got < 0.55 {
		t.Errorf("the best test is right in %.3f of cases: (ε, δ) allows %.3f, and some advantage is expected", got, most)
	}
	noisy := make([]float64, len(d))
	far := 0
	for range 8 {
		for i, v := range d {
			noisy[i] = v + math.Sqrt2*sd*r.NormFloat64()
		}
		x, err := Locate(toyMarks, noisy, 1)
		if err != nil {
			t.Fatal(err)
		}
		if math.Sqrt(gmm.SquaredDistance(x, rows[:2])) > 2 {
			far++
		}
	}
	if far < 5 {
		t.Errorf("with noise of ε = 1, only %d of 8 guesses were further than 2 from the row", far)
	}
}

// All rows of a small site follow from its one exact release; where they are not
// determined, none are given.
func TestLocateSeveralRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		n := rapid.IntRange(1, 3).Draw(t, "rows")
		r := rand.New(rand.NewPCG(seed, 3))
		var rows []float64
		for k := range n { // a few bandwidths apart
			rows = append(rows, float64(6*k)-6+r.Float64(), 4*r.NormFloat64())
		}
		got, err := Locate(toyMarks, sums(toyMarks, rows, 0, r), n)
		if err != nil {
			t.Fatal(err)
		}
		for k := 0; k < len(rows); k += 2 {
			least := math.Inf(1)
			for g := 0; g < len(got); g += 2 {
				least = min(least, math.Sqrt(gmm.SquaredDistance(rows[k:k+2], got[g:g+2])))
			}
			if least > 1e-5 {
				t.Fatalf("rows %v were located at %v", rows, got)
			}
		}
	})
	for name, f := range map[string]func() ([]float64, error){
		"too many rows": func() ([]float64, error) {
			return Locate(toyMarks, make([]float64, toyMarks.Len()), toyMarks.Len()/2+1)
		},
		"no row":      func() ([]float64, error) { return Locate(toyMarks, make([]float64, toyMarks.Len()), 0) },
		"other sums":  func() ([]float64, error) { return Locate(toyMarks, []float64{1}, 1) },
		"no landmark": func() ([]float64, error) { return Locate(sketch.Landmarks{Dim: 1}, nil, 1) },
	} {
		if x, err := f(); err == nil {
			t.Errorf("%s: %v", name, x)
		}
	}
}

// The minimum of Rosenbrock's function is 0 at (1, 1).
func TestLeastSquaresFindsTheMinimum(t *testing.T) {
	x := []float64{-1.2, 1}
	loss := LeastSquares(x, 2, func(r, jac, x []float64) {
		r[0], r[1] = 10*(x[1]-x[0]*x[0]), 1-x[0]
		if jac != nil {
			copy(jac, []float64{-20 * x[0], 10, -1, 0})
		}
	})
	if loss > 1e-20 || math.Abs(x[0]-1) > 1e-9 || math.Abs(x[1]-1) > 1e-9 {
		t.Errorf("got %v with %v", x, loss)
	}
}

// The derivatives of a mean discrepancy are those of differences.
func TestSlopeOfADiscrepancy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		set := rapid.SliceOfN(rapid.Float64Range(-5, 5), 12, 12).Draw(t, "set")
		x := rapid.SliceOfN(rapid.Float64Range(6, 9), 3, 3).Draw(t, "x") // not on a row, where there is none
		for _, d := range []gmm.Discrepancy{{Kind: gmm.Energy}, {Kind: gmm.MMD, Bandwidth: 4}} {
			got := make([]float64, 3)
			if v, want := Slope(d, got, x, set), d.Cross(x, set, 3); math.Abs(v-want) > 1e-12*(1+want) {
				t.Fatalf("%s: a mean of %v, want %v", d.Kind, v, want)
			}
			for i := range x {
				up, down := append([]float64(nil), x...), append([]float64(nil), x...)
				up[i] += 1e-5
				down[i] -= 1e-5
				if want := (d.Cross(up, set, 3) - d.Cross(down, set, 3)) / 2e-5; math.Abs(got[i]-want) > 1e-7 {
					t.Fatalf("%s: derivative %d is %v, want %v", d.Kind, i, got[i], want)
				}
			}
		}
	})
}

func TestMostAdvantage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := rapid.Float64Range(0, 50).Draw(t, "ε")
		if a := MostAdvantage(e, 1e-5); a < 0.5 || a > 1 || a > MostAdvantage(e+0.1, 1e-5) {
			t.Fatalf("at ε = %v: %v", e, a)
		}
	})
	if got := MostAdvantage(0, 0); got != 0.5 {
		t.Errorf("ε = 0 allows %v, want a coin", got)
	}
}

// At ε = 1 nobody tells more than 73 of 100 neighbours apart; at 5, almost all may be.
func ExampleMostAdvantage() {
	fmt.Printf("%.3f %.3f %.3f\n", MostAdvantage(0, 0), MostAdvantage(1, 1e-5), MostAdvantage(5, 1e-5))
	// Output: 0.500 0.731 0.993
}
