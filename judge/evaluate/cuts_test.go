package evaluate

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestPersonPeriodsByHand(t *testing.T) {
	months := Cuts{30, 60, 90}
	for _, c := range []struct {
		time    float64
		event   bool
		periods int
		failed  bool
	}{
		{0, true, 1, true}, {30, true, 1, true}, {30.5, true, 2, true}, {90, true, 3, true}, {91, true, 3, false},
		{0, false, 0, false}, {14, false, 0, false}, {15, false, 1, false}, {30, false, 1, false}, {44, false, 1, false}, {45, false, 2, false},
		{74, false, 2, false}, {80, false, 3, false}, {1e9, false, 3, false},
	} {
		periods, failed, err := months.Seen(c.time, c.event)
		if periods != c.periods || failed != c.failed || err != nil {
			t.Errorf("%v, event %v: %d, %v, %v", c.time, c.event, periods, failed, err)
		}
	}
	for _, x := range []float64{-1, math.NaN(), math.Inf(1)} {
		if _, _, err := months.Seen(x, true); err == nil {
			t.Errorf("the time %v passes", x)
		}
	}
	if got := strings.Join(months.Names(), " "); got != "(0, 30] (30, 60] (60, 90]" {
		t.Error(got)
	}
	for _, bad := range []Cuts{nil, {0, 1}, {2, 2}, {3, 1}, {math.Inf(1)}, {math.NaN()}} {
		if bad.Check() == nil {
			t.Errorf("%v passes", bad)
		}
	}
}

// Events are counted once and in their own period, whatever the cuts.
func TestPersonPeriodsKeepEvents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var ends Cuts
		last := 0.0
		for range rapid.IntRange(1, 8).Draw(t, "periods") {
			last += rapid.Float64Range(0.1, 20).Draw(t, "length")
			ends = append(ends, last)
		}
		if err := ends.Check(); err != nil {
			t.Fatal(err)
		}
		time := rapid.Float64Range(0, 2*last).Draw(t, "time")
		k, failed, err := ends.Seen(time, true)
		if err != nil || failed != (time <= last) || k < 1 {
			t.Fatalf("%d, %v, %v", k, failed, err)
		}
		if failed && (ends[k-1] < time || k > 1 && ends[k-2] >= time) {
			t.Fatalf("an event at %v in period %d of %v", time, k, ends)
		}
		if n, _, _ := ends.Seen(time, false); n > k || n < k-1 {
			t.Fatalf("%d periods without an event and %d with one", n, k)
		}
	})
}
