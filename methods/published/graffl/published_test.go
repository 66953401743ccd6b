package graffl

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"parley/internal/testkit"
	"parley/internal/vectors"
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

// Number returns the number of the proposal that an answer is about, given the
// number of rows at each site.
func (a answer) Number(rows []int) int {
	total, before := 0, 0
	for j, n := range rows {
		total += n
		if j < a.Site {
			before += n
		}
	}
	return a.Iteration*total + before + a.Row
}

// What is accepted does not depend on the order of offers.
func TestAcceptanceForgetsOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 60).Draw(t, "n")
		limit := rapid.IntRange(1, 70).Draw(t, "limit")
		var answers []answer
		for i := range n {
			answers = append(answers, answer{i / 7, i % 7 / 3, i % 3,
				float64(rapid.IntRange(0, 9).Draw(t, "distance"))})
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
			got, err := trilaterate(points, squared, 2)
			if err != nil || math.Sqrt(gmm.SquaredDistance(got, rows[k:k+2])) > 1e-6 {
				t.Fatalf("row %d of site %d is %v, recovered as %v (%v)", k/2, j, rows[k:k+2], got, err)
			}
		}
	}
}

// verifyVectors holds the numerics to one file of numbers from an independent implementation.
func verifyVectors(file []byte) ([]vectors.Check, error) {
	return vectors.Run(file, map[string]func([]byte, *vectors.List) error{
		"graffl/discrepancy/1": vectors.Format((*discrepancyFile).verify),
		"graffl/selection/1":   verifySelection,
		"graffl/setdistance/1": vectors.Format((*setDistanceFile).verify),
	})
}

// unused are whole rounds in a number of proposals, where plans state rounds.
var unused = regexp.MustCompile(`^\.schedule`)

func TestVectorsAgree(t *testing.T) {
	for name, file := range testkit.Files(t, "testdata/*.json", 3) {
		t.Run(name, func(t *testing.T) {
			testkit.Agree(t, testkit.Get(verifyVectors(file))(t), 3)
			testkit.Changed(t, file, unused, 60, verifyVectors)
		})
	}
}

type discrepancyFile struct {
	Schema string `json:"schema"`
	Cases  []struct {
		Encoded   [][]float64 `json:"x_enc"`
		Generated [][]float64 `json:"x_gen"`
		Squared   []float64   `json:"squared_distance"`
	} `json:"cases"`
}

func (f *discrepancyFile) verify(list *vectors.List) error {
	for i, c := range f.Cases {
		d, x, g := len(c.Encoded[0]), slices.Concat(c.Encoded...), slices.Concat(c.Generated...)
		if len(x) != len(g) {
			return fmt.Errorf("case %d pairs %d rows with %d", i, len(c.Encoded), len(c.Generated))
		}
		got := make([]float64, len(c.Encoded))
		for k := range got {
			got[k] = gmm.SquaredDistance(x[k*d:][:d], g[k*d:][:d])
		}
		list.Floats(fmt.Sprintf("cases[%d].squared_distance", i), c.Squared, got, tolNumber)
	}
	return nil
}

func verifySelection(file []byte, list *vectors.List) error {
	type accepted struct {
		Iteration int     `json:"iteration"`
		Site      int     `json:"site"`
		Row       int     `json:"row"`
		Distance  float64 `json:"distance"`
	}
	var f struct {
		Schema     string        `json:"schema"`
		Rows       []int         `json:"n_j"`
		Iterations int           `json:"iterations"`
		Distances  [][][]float64 `json:"distances"`
		TieRule    string        `json:"tie_rule"`
		Cases      []struct {
			L        int        `json:"L"`
			Accepted []accepted `json:"accepted"`
			Largest  float64    `json:"eps_largest_accepted"`
			Smallest *float64   `json:"eps_smallest_rejected"`
		} `json:"cases"`
		Schedule []any `json:"schedule"`
	}
	if err := vectors.Decode(file, &f); err != nil {
		return err
	}
	list.Equal("iterations", f.Iterations, len(f.Distances))
	for t, sites := range f.Distances {
		counts := make([]int, len(sites))
		for j, rows := range sites {
			counts[j] = len(rows)
		}
		list.Equal(fmt.Sprintf("n_j[%d]", t), f.Rows, counts)
	}
	for i, c := range f.Cases {
		entry := fmt.Sprintf("cases[%d]", i)
		h, err := newAcceptance(c.L)
		if err != nil {
			return fmt.Errorf("%s: %w", entry, err)
		}
		for t, sites := range f.Distances {
			for j, rows := range sites {
				for k, v := range rows {
					if err := h.Offer(answer{Iteration: t, Site: j, Row: k, Distance: v}); err != nil {
						return err
					}
				}
			}
		}
		got := h.Sorted()
		list.Equal(entry+".accepted", len(c.Accepted), len(got))
		for k, a := range got[:min(len(got), len(c.Accepted))] {
			list.Equal(fmt.Sprintf("%s.accepted[%d]", entry, k), answer(c.Accepted[k]), a)
		}
		largest, smallest := h.Thresholds()
		list.Float(entry+".eps_largest_accepted", c.Largest, largest, vectors.Tolerance{})
		if c.Smallest == nil {
			list.Equal(entry+".eps_smallest_rejected", math.Inf(1), smallest)
		} else {
			list.Float(entry+".eps_smallest_rejected", *c.Smallest, smallest, vectors.Tolerance{})
		}
	}
	return nil
}

// setDistanceFile has discrepancies over some sites.
type setDistanceFile struct {
	Schema    string        `json:"schema"`
	Sites     [][][]float64 `json:"sites"`
	Generated [][]float64   `json:"generated"`
	Bandwidth float64       `json:"bandwidth"`
	Kernel    string        `json:"kernel"`
	Energy    struct {
		Definition string    `json:"definition"`
		Cross      []float64 `json:"cross_mean_by_site"`
		Self       float64   `json:"self_generated"`
		Pooled     float64   `json:"pooled"`
		Sum        float64   `json:"sum_over_sites_weighted_n_j"`
		Difference float64   `json:"difference_does_not_depend_on_generated"`
	} `json:"energy"`
	MMD struct {
		Pooled float64   `json:"pooled"`
		Cross  []float64 `json:"cross_mean_by_site"`
	} `json:"mmd2_v"`
}

// Between returns D(a, b).
func (d discrepancy) Between(a, b []float64, dim int) float64 {
	return d.Combine(d.Cross(a, a, dim), d.Cross(a, b, dim), d.Cross(b, b, dim))
}

func (f *setDistanceFile) verify(list *vectors.List) error {
	d, g := len(f.Generated[0]), slices.Concat(f.Generated...)
	energy, mmd := discrepancy{Kind: byEnergy}, discrepancy{Kind: byMMD, Bandwidth: f.Bandwidth}
	pooled := slices.Concat(slices.Concat(f.Sites...)...)
	var counts []int
	var crossEnergy, crossMMD []float64
	bySite := 0.0
	for _, s := range f.Sites {
		rows := slices.Concat(s...)
		counts = append(counts, len(s))
		crossEnergy, crossMMD = append(crossEnergy, energy.Cross(g, rows, d)), append(crossMMD, mmd.Cross(g, rows, d))
		bySite += float64(len(rows)) / float64(len(pooled)) * energy.Between(g, rows, d)
	}
	within, between := energy.Cross(g, g, d), energy.Between(g, pooled, d)
	list.Floats("energy.cross_mean_by_site", f.Energy.Cross, crossEnergy, tolNumber)
	list.Float("energy.self_generated", f.Energy.Self, within, tolNumber)
	list.Float("energy.pooled", f.Energy.Pooled, between, tolNumber)
	list.Float("energy.pooled (from sites)", f.Energy.Pooled,
		energy.Over(within, crossEnergy, counts)-energy.Cross(pooled, pooled, d), tolNumber)
	list.Float("energy.sum_over_sites_weighted_n_j", f.Energy.Sum, bySite, tolNumber)
	list.Float("energy.difference_does_not_depend_on_generated", f.Energy.Difference, bySite-between, tolNumber)
	list.Floats("mmd2_v.cross_mean_by_site", f.MMD.Cross, crossMMD, tolNumber)
	list.Float("mmd2_v.pooled", f.MMD.Pooled, mmd.Between(g, pooled, d), tolNumber)
	return nil
}

// tolNumber keeps entries near zero from asking for more digits than float64 has.
var tolNumber = vectors.Tolerance{Rel: 1e-9, Floor: 1e-3}
