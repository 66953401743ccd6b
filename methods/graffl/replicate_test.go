package graffl

import (
	"math"
	"strings"
	"testing"

	"parley/method"
	"parley/study"
)

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
	c := &coordinator{s}
	for _, rows := range []float64{300, 8 * maxReplicateRows} {
		st := &state{Phase: taskLandmarks, Sites: map[string]*siteSums{"a": {Sums: make([]float64, s.marks.Len()), Rows: rows, SD: 3, RowsSD: 16}}}
		r, err := c.Replicate(st)
		if err != nil {
			t.Fatal(err)
		}
		want := min(rows, maxReplicateRows)
		if float64(r.Rows) != want || math.Abs(r.Noise/want-3/rows) > 1e-12 || math.Abs(r.RowsNoise/want-16/rows) > 1e-12 {
			t.Errorf("of %v rows: %d with noise %v and %v", rows, r.Rows, r.Noise, r.RowsNoise)
		}
	}
}
