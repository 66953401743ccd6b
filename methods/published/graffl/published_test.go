package graffl

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"parley/internal/testkit"
	"parley/methods/mixture/gmm"
)

// Algorithm 2 does not contract: the mean weight of the component that made an
// accepted row is (α+1)/(Kα+1) = 1/2, and the other components stay at the prior.
func TestPublishedDoesNotContract(t *testing.T) {
	sites := toySites(1, toyThirds)
	const limit = 400
	h := testkit.Get(newAcceptance(limit))(t)
	p, m, x := NewProposer(toyPrior, 1), gmm.NewMixture(3, 2), make([]float64, 2)
	for round := range 90_000 / len(slices.Concat(sites...)) * 2 {
		for j, rows := range sites {
			for k := range len(rows) / 2 {
				a := answer{Iteration: round, Site: j, Row: k}
				p.Row(a.Number(toyThirds), x)
				a.Distance = gmm.SquaredDistance(x, rows[2*k:][:2])
				testkit.Do(t, h.Offer(a))
			}
		}
	}
	own, other, spread := 0.0, 0.0, 0.0
	for _, a := range h.Sorted() {
		row := sites[a.Site][2*a.Row:][:2]
		p.Row(a.Number(toyThirds), x)
		if got := gmm.SquaredDistance(row, x); got != a.Distance {
			t.Fatalf("proposal %d lies at %v when it is drawn again, not %v", a.Number(toyThirds), got, a.Distance)
		}
		k := p.Parameter(a.Number(toyThirds), m)
		own += m.Weights[k] / limit
		e := m.Mean((k + 1) % 3)
		other += gmm.Squares(e) / (2 * limit)
		spread += gmm.SquaredDistance(m.Mean(k), row) / (2 * limit)
	}
	// Standard errors are 0.012 of the weight and 13 % of the variance.
	if math.Abs(own-0.5) > 0.05 {
		t.Errorf("the row's own component weighs %.3f on average, want 1/2", own)
	}
	if other < 0.4*24*24 {
		t.Errorf("the variance of another component's mean is %.0f: want the prior's, about %d", other, 24*24)
	}
	if spread > 40 {
		t.Errorf("the own mean is %.1f² from the row", math.Sqrt(spread))
	}
	largest, smallest := h.Thresholds()
	if !(largest <= smallest && smallest < 2*largest) {
		t.Errorf("thresholds %v and %v", largest, smallest)
	}
}

// What is accepted does not depend on the order of offers.
func TestAcceptanceForgetsOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 60).Draw(t, "n")
		limit := rapid.IntRange(1, 70).Draw(t, "limit")
		var answers []answer
		for i := range n {
			answers = append(answers, answer{i / 7, i % 7 / 3, i % 3, float64(rapid.IntRange(0, 9).Draw(t, "distance"))})
		}
		var want *acceptance
		for range 3 {
			h := testkit.Get(newAcceptance(limit))(t)
			for _, i := range rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "order"), 1)).Perm(n) {
				testkit.Do(t, h.Offer(answers[i]))
			}
			if want == nil {
				want = h
			}
			a, b := h.Thresholds()
			c, d := want.Thresholds()
			if !reflect.DeepEqual(h.Sorted(), want.Sorted()) || a != c || b != d {
				t.Fatalf("%v and %v", h.Sorted(), want.Sorted())
			}
		}
	})
}

func TestNoSquaredDistanceIsRefused(t *testing.T) {
	if _, err := newAcceptance(0); err == nil {
		t.Error("nothing is to be kept")
	}
	h := testkit.Get(newAcceptance(1))(t)
	for _, bad := range []float64{-1, math.NaN()} {
		if h.Offer(answer{Distance: bad}) == nil {
			t.Errorf("%v was taken as a squared distance", bad)
		}
	}
}

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
				squared[i] = gmm.SquaredDistance(rows[k:k+2], points[2*i:2*i+2])
			}
			got, err := Trilaterate(points, squared, 2)
			if err != nil || math.Sqrt(gmm.SquaredDistance(got, rows[k:k+2])) > 1e-6 {
				t.Fatalf("row %d of site %d is %v, recovered as %v (%v)", k/2, j, rows[k:k+2], got, err)
			}
		}
	}
}
