package graffl

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/method"
	"parley/methods/graffl/mixture"
	"parley/study"
)

// Sixteen data sets of the toy at ε 5: 90 % intervals hold 96 component means as often as
// chance allows. Honest intervals fail for one seed in five hundred, intervals two
// thirds as wide in most.
func TestIntervalsOfTheToyHoldTheTruth(t *testing.T) {
	if testing.Short() {
		t.Skip("sixteen posteriors, and nothing that the others do not race")
	}
	held, of := 0, 0
	for seed := range uint64(16) {
		o := toyObserved(t, 100+seed, toyThirds, 5)
		post, err := toyMarks.Posterior(o, toyPrior, Sampling{128, 2, seed})
		if err != nil {
			t.Fatal(err)
		}
		_, covered, _ := judged(post, toyTruth)
		held, of = held+covered, of+len(toyTruth.Means)
	}
	low, high := mixture.ChanceBand(of, 0.9, 0.998)
	if share := float64(held) / float64(of); share < low || share > high {
		t.Errorf("%d of %d intervals hold the truth, want a share from %.2f to %.2f", held, of, low, high)
	}
}

// Two components in a public box, under noise, most of them outside it: ranks of the truth
// are uniform. A calibrated sampler fails for one seed in a thousand; one that
// gets stuck, for most.
func TestMixturesAreCalibrated(t *testing.T) {
	if testing.Short() {
		t.Skip("40 posteriors")
	}
	prior, err := mixture.BoxPrior([]float64{-8}, []float64{8}, 2)
	if err != nil {
		t.Fatal(err)
	}
	marks, err := Grid([]float64{-8}, []float64{8}, []float64{1})
	if err != nil {
		t.Fatal(err)
	}
	c := Replicate{Prior: prior, Landmarks: marks, Rows: 300, Noise: 3, RowsNoise: 5, Sampling: Sampling{256, 3, 7}}
	var ranks [][]float64
	for i := range 40 {
		r, err := c.Ranks(i)
		if err != nil {
			t.Fatal(err)
		}
		ranks = append(ranks, r)
	}
	all, err := c.Calibrate(ranks)
	if err != nil {
		t.Fatal(err)
	}
	if !mixture.Pass(all, 0.001) {
		t.Errorf("%+v", all)
	}
	if _, err := c.Calibrate([][]float64{{1}}); err == nil {
		t.Error("a replicate without its ranks was taken")
	}
}

func smallPlan(t *testing.T, privacy string) *study.Plan {
	t.Helper()
	text := "parley: 1\nname: small\nsites: [a, b]\nviews:\n  - {name: v, features: [{name: x, range: [-8, 8]}]}\nmethod: {name: graffl, components: 2}\nprivacy: " + privacy + "\n"
	p, err := study.Parse("plan.yaml", []byte(text), method.Registry{Method{}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The replicate of a plan has the noise that its sites make together.
func TestAReplicateHasThePlansNoise(t *testing.T) {
	p := smallPlan(t, "{protection: differential, unit: subject, adjacency: add-remove, total: {epsilon: 5, delta: 1e-5}}")
	c, err := NewReplicate(p, 600)
	if err != nil {
		t.Fatal(err)
	}
	s, err := newSetup(p)
	if err != nil {
		t.Fatal(err)
	}
	want := math.Sqrt2 * s.sum.Mechanism.Noise * s.sum.Bound
	if math.Abs(c.Noise-want*s.scale) > 1e-9 || math.Abs(c.RowsNoise-want/countEntry) > 1e-9 || c.Rows != 600 {
		t.Errorf("%+v, want noise of %v on φ/B and its share on the count", c, want)
	}
	open, err := NewReplicate(smallPlan(t, "{protection: none}"), 600)
	if err != nil || open.Noise != 0 || open.RowsNoise != 0 {
		t.Errorf("without privacy: %+v, %v", open, err)
	}
	if _, err := NewReplicate(p, 0); err == nil || !strings.Contains(err.Error(), "0 rows") {
		t.Errorf("no rows: %v", err)
	}
}

// The replicate of a study does not grow with what sites claim: its noise shrinks with
// its rows, so that their means are as noisy as the study's.
func TestAReplicateIsBounded(t *testing.T) {
	p := smallPlan(t, "{protection: differential, unit: subject, adjacency: add-remove, total: {epsilon: 5, delta: 1e-5}}")
	s, err := newSetup(p)
	if err != nil {
		t.Fatal(err)
	}
	c := &staged{setup: s}
	for _, rows := range []float64{300, 8 * maxReplicateRows} {
		st := &state{Phase: taskLandmarks, Sites: map[string]*siteSums{"a": {Sums: make([]float64, s.marks.Len()), Rows: rows, SD: 3, RowsSD: 16}}}
		r, err := c.replicate(&stagedState{inner: st})
		if err != nil {
			t.Fatal(err)
		}
		want := min(rows, maxReplicateRows)
		if float64(r.Rows) != want || math.Abs(r.Noise/want-3/rows) > 1e-12 || math.Abs(r.RowsNoise/want-16/rows) > 1e-12 {
			t.Errorf("of %v rows: %d with noise %v and %v", rows, r.Rows, r.Noise, r.RowsNoise)
		}
	}
}

// Rows that are drawn a few at a time are those that are drawn at once.
func TestSimulatedSumsAreThoseOfAllRows(t *testing.T) {
	m, n := toyTruth, 600
	rows := make([]float64, n*m.Dim)
	if err := m.Simulate(rand.New(rand.NewPCG(1, 2)), rows); err != nil {
		t.Fatal(err)
	}
	want, phi := make([]float64, toyMarks.Len()), make([]float64, toyMarks.Len())
	for at := 0; at < len(rows); at += m.Dim {
		toyMarks.Features(phi, rows[at:])
		for j, v := range phi {
			want[j] += v
		}
	}
	got, err := toyMarks.simulated(rand.New(rand.NewPCG(1, 2)), m, n)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("other sums: %v", err)
	}
}

// A band of chance holds what chance does, and no more than it must.
func TestChanceBand(t *testing.T) {
	for _, c := range []struct {
		n            int
		p, level     float64
		lowest, most int // quantiles (1 ± level)/2, by summing exact probabilities
	}{{200, 0.05, 0.98, 4, 18}, {200, 0.9, 0.98, 170, 189}, {20, 0.5, 0.9, 6, 14}} {
		low, high := mixture.ChanceBand(c.n, c.p, c.level)
		if int(math.Round(low*float64(c.n))) != c.lowest || int(math.Round(high*float64(c.n))) != c.most {
			t.Errorf("n %d, p %v: %v to %v, want %d and %d", c.n, c.p, low*float64(c.n), high*float64(c.n), c.lowest, c.most)
		}
	}
	if low, high := mixture.ChanceBand(0, 0.5, 0.9); low != 0 || high != 1 {
		t.Errorf("of nothing: %v to %v", low, high)
	}
}

// What a grid shares between landmarks changes nothing: neither a line's recurrence nor
// midpoints.
func TestMomentsOnAGridAreThoseOfItsPoints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lo, hi, h := drawnBox(t, 1)
		d := len(lo)
		grid, err := Grid(lo, hi, h)
		if err != nil {
			t.Fatal(err)
		}
		points := grid
		points.Spacing = nil
		prior, err := mixture.BoxPrior(lo, hi, 2)
		if err != nil {
			t.Fatal(err)
		}
		m := mixture.NewMixture(2, d)
		prior.Sampler().Draw(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)), m)
		mean, cov, err := grid.Moments(m)
		if err != nil {
			t.Fatal(err)
		}
		wantMean, wantCov, err := points.Moments(m)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range wantMean {
			if math.Abs(mean[i]-v) > 1e-13 {
				t.Fatalf("mean %d is %v, want %v", i, mean[i], v)
			}
		}
		for i, v := range wantCov {
			if math.Abs(cov[i]-v) > 1e-13 {
				t.Fatalf("covariance %d is %v, want %v", i, cov[i], v)
			}
		}
	})
}
