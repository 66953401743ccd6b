package federated

import (
	"strings"
	"testing"

	"parley/methods/factors/options"
)

// A spread is shown as settled, as unsettled, or, of rounds that ran away, not at all.
func TestSpreadIsSaidToHaveSettledOrNot(t *testing.T) {
	trace := func(logLik []float64, sd ...float64) (out options.Trace) {
		for i, x := range sd {
			p := options.Point{Round: i, SDW: []float64{x, 0}}
			if i == 0 {
				p.SDW = nil
			}
			if i < len(logLik) {
				p.LogLik = logLik[i]
			}
			out = append(out, p)
		}
		return out
	}
	one := []float64{1, 1}
	for _, c := range []struct {
		trace    options.Trace
		diverged bool
		ended    bool
		title    string
	}{
		{trace([]float64{-100}, 0, 0.1), false, false, ""},
		{trace([]float64{-100, -100.1}, 0, 0.1, 0.102), false, true, "has settled"},
		{trace([]float64{-100, -100.1}, 0, 0.1, 0.13), false, false, "has not settled"},
		{trace([]float64{-100, -100.1}, 0, 0, 0), false, true, "has settled"},
		{trace([]float64{-100, -100.1}, 0, 0.009, 0.007), false, true, "has settled"},
		{trace([]float64{-8, -25}, 0, 0.1, 0.1), false, false, "has settled"},
		{trace([]float64{-174, -212, -2110}, 0, 0.1, 0.1, 0.1), true, false, "could not be estimated"},
		{trace([]float64{-174, -212, -212.5}, 0, 0.1, 0.1, 0.1), false, true, "has settled"},
	} {
		if got := diverged(c.trace); got != c.diverged {
			t.Errorf("%v: diverged %t", c.trace, got)
		}
		if got := settled(c.trace, one, 0.1); got != c.ended {
			t.Errorf("%v: settled %t", c.trace, got)
		}
		note := spreadNote(c.trace, one, 0.1, nil, c.diverged)
		if (note == nil) != (c.title == "") || note != nil && (!strings.Contains(note.Title, c.title) || note.Warning != (c.title != "has settled")) {
			t.Errorf("%v: %+v, want %q", c.trace, note, c.title)
		}
	}
	note := spreadNote(trace([]float64{-100}, 0, 0.1), one, 0.1, []string{"north"}, false)
	if note == nil || !note.Warning || !strings.Contains(note.Title, "could not be estimated") || !strings.Contains(note.Text, "north") {
		t.Errorf("of a site that does not determine the factors, %+v is said", note)
	}
}
