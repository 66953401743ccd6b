package mixture

import (
	"math"
	"strings"
	"testing"

	"parley/methods/mixture/mixturetest"
)

// known is what both halves know of a plan. It panics if the plan is wrong.
func known(text string) *setup {
	s, err := landmarkSetup(mixturetest.New(text))
	if err != nil {
		panic(err)
	}
	return s
}

// smallPlan is of one feature.
func smallPlan(privacy string) *setup {
	return known(mixturetest.Text(1, "components: 2", privacy))
}

// The replicate of a plan has the noise that its sites make together.
func TestAReplicateHasThePlansNoise(t *testing.T) {
	s := smallPlan("{protection: differential, unit: subject, adjacency: add-remove, total: {epsilon: 5, delta: 1e-5}}")
	c, err := NewReplicate(s.Plan, 600)
	if err != nil {
		t.Fatal(err)
	}
	want := math.Sqrt2 * s.Sum.Mechanism.Noise * s.Sum.Bound
	if math.Abs(c.Noise-want*s.Scale) > 1e-9 || math.Abs(c.RowsNoise-want/countEntry) > 1e-9 || c.Rows != 600 {
		t.Errorf("%+v, want noise of %v on φ/B and its share on the count", c, want)
	}
	open, err := NewReplicate(smallPlan("{protection: none}").Plan, 600)
	if err != nil || open.Noise != 0 || open.RowsNoise != 0 {
		t.Errorf("without privacy: %+v, %v", open, err)
	}
	if _, err := NewReplicate(s.Plan, 0); err == nil || !strings.Contains(err.Error(), "0 rows") {
		t.Errorf("no rows: %v", err)
	}
}
