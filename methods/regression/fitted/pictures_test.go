package fitted

import (
	"testing"

	"parley/internal/wire"
	"parley/methods/regression/options"
	"parley/methods/regression/predict"
)

// What a clip takes away moves the level of predictions, unless it takes little or predictions are
// known to be level.
func TestAShortClipIsSaidToMovePredictions(t *testing.T) {
	level := predict.NewAssessment()
	level.Count, level.Expected, level.Observed = bins(400), bins(100), bins(103)
	off := predict.NewAssessment()
	off.Count, off.Expected, off.Observed = bins(400), bins(100), bins(140)
	unknown := predict.NewAssessment()
	unknown.Count, unknown.Expected, unknown.Observed, unknown.Noise = level.Count, level.Expected, level.Observed, 50
	for _, c := range []struct {
		clip   float64 // 0: none
		pooled *predict.Assessment
		says   bool
	}{{0, nil, false}, {0.5, nil, true}, {0.99, nil, true}, {1, nil, false}, {0.5, level, false}, {0.5, off, true}, {0.5, unknown, true}} {
		m := &Model{Options: options.Default()}
		if c.clip > 0 {
			m.Options.Clip = &c.clip
		}
		if got := leaning(m, c.pooled); (got != "") != c.says {
			t.Errorf("clip %v, %+v: %q", c.clip, c.pooled, got)
		}
	}
}

// bins are as many in each.
func bins(n float64) wire.Vector {
	v := make(wire.Vector, predict.Bins)
	for i := range v {
		v[i] = n
	}
	return v
}
