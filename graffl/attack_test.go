package graffl

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"parley/privacy/account"
)

// d + 1 honest rounds of Algorithm 2 give every row of every site.
func TestTrilaterationRecoversEveryRow(t *testing.T) {
	sites := toySites(1, []int{30, 20, 10})
	p := NewProposer(toyPrior, 7)
	const rounds = 3
	for j, rows := range sites {
		for k := 0; k < len(rows); k += 2 {
			points, squared := make([]float64, 2*rounds), make([]float64, rounds)
			for i := range rounds {
				p.Row(i*60+j*1000+k, points[2*i:2*i+2])
				SquaredDistances(squared[i:i+1], rows[k:k+2], points[2*i:2*i+2], 2)
			}
			got, err := Trilaterate(points, squared, 2)
			if err != nil || math.Sqrt(squaredDistance(got, rows[k:k+2])) > 1e-6 {
				t.Fatalf("row %d of site %d is %v, recovered as %v (%v)", k/2, j, rows[k:k+2], got, err)
			}
		}
	}
}

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
	x, err := toyMarks.Locate(d, 1)
	if err != nil || math.Sqrt(squaredDistance(x, rows[:2])) > 1e-4 {
		t.Errorf("row %v was located at %v (%v)", rows[:2], x, err)
	}

	const epsilon, delta, trials = 1, 1e-5, 4000
	factor, err := account.AnalyticGaussian(epsilon, delta)
	if err != nil {
		t.Fatal(err)
	}
	b := toyMarks.NormBound()
	sd := factor * ReplaceOne(b)
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
		x, err := toyMarks.Locate(noisy, 1)
		if err != nil {
			t.Fatal(err)
		}
		if math.Sqrt(squaredDistance(x, rows[:2])) > 2 {
			far++
		}
	}
	if far < 5 {
		t.Errorf("with noise of ε = 1, only %d of 8 guesses were further than 2 from the row", far)
	}
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
