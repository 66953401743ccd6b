package study_test

import (
	"math"
	"slices"
	"testing"

	"parley/study"
)

func TestReportDemands(t *testing.T) {
	var got []string
	r := study.Report(func(key, what, hint string) { got = append(got, key+": "+what+"; "+hint) }).Within("part")
	if !r.OneOf("word", "a", "a", "b") || r.OneOf("word", "c", "a", "b") {
		t.Error("OneOf")
	}
	r.AtLeast("count", 3, 3)
	r.AtLeast("count", 2, 3)
	for _, x := range []float64{1e-300, 0, math.NaN(), math.Inf(1)} {
		if r.Positive("size", x) != (x == 1e-300) {
			t.Errorf("Positive(%v)", x)
		}
	}
	r.Share("share", 1, "of it")
	r.Share("share", 1.5, "of it cannot be")
	r.Absent("belongs elsewhere", "leave it out", map[string]bool{"z": true, "y": true, "x": false})
	want := []string{
		`part.word: "c" is not known; one of a, b`, "part.count: 2 is too few; at least 3",
		"part.size: 0 is not positive and finite; a positive number",
		"part.size: NaN is not positive and finite; a positive number",
		"part.size: +Inf is not positive and finite; a positive number",
		"part.share: 1.5 of it cannot be; above 0, to 1 for all of it", "part.y: belongs elsewhere; leave it out",
		"part.z: belongs elsewhere; leave it out",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
