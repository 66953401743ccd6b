package stages

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"parley/figure"
	"parley/methods/mixture/gmm"
	"parley/methods/mixture/mixturetest"
)

// calibratedAs ranks 200 replicates of three quantities, the first as bend makes of
// uniform ones.
func calibratedAs(t *testing.T, bend func(float64) float64) (all []gmm.Calibrated) {
	t.Helper()
	rng := rand.New(rand.NewPCG(3, 4))
	for i, name := range []string{"largest component: weight", "all rows: mean 1", "landmark means: distance"} {
		var ranks []float64
		for range 200 {
			u := rng.Float64()
			if i == 0 {
				u = bend(u)
			}
			ranks = append(ranks, u)
		}
		one, err := gmm.Calibration(name, ranks)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	return all
}

func TestCalibrationSection(t *testing.T) {
	straight := func(u float64) float64 { return u }
	// Ranks that crowd at the ends: intervals are too narrow.
	narrow := func(u float64) float64 { return 0.5 + math.Copysign(math.Pow(math.Abs(2*u-1), 0.3)/2, u-0.5) }
	for _, c := range []struct {
		bend    func(float64) float64
		warning bool
		word    string
	}{{straight, false, "none departs"}, {narrow, true, "largest component: weight"}} {
		all := calibratedAs(t, c.bend)
		s := calibrationSection(all, 200)
		note := s.Items[0].Note
		if note.Warning != c.warning || !strings.Contains(note.Text, c.word) || note.Warning == gmm.Pass(all, calibrationLevel) {
			t.Errorf("the verdict is %q: %s", note.Title, note.Text)
		}
		if strings.Contains(note.Text, "all rows") && c.warning {
			t.Errorf("a quantity that is calibrated is accused: %s", note.Text)
		}
		draws(t, s)
		ranks := s.Items[1].Figure.Chart.(figure.Histograms)
		for i, cell := range ranks.Cells {
			outside := 0
			for b, n := range cell.Filled {
				if n < cell.Low[b] || n > cell.High[b] {
					outside++
				}
			}
			if bad := i == 0 && c.warning; bad != (outside > 2) {
				t.Errorf("%s: %d of %d bars beyond the band", ranks.Rows[i], outside, len(cell.Filled))
			}
		}
		bars := s.Items[2].Figure.Chart.(figure.Bars)
		if holds := bars.Low[0] <= 0.9 && bars.High[0] >= 0.9; holds == c.warning {
			t.Errorf("coverage of the first from %v to %v, warned of: %v", bars.Low[0], bars.High[0], c.warning)
		}
	}
	if note := calibrationVerdict(nil); !note.Warning {
		t.Error("nothing passes")
	}
}

// The ends are where the share is as far away as 1.96 standard errors of their own.
func TestWilson(t *testing.T) {
	for _, n := range []int{20, 200} {
		for _, share := range []float64{0, 0.5, 0.9, 1} {
			low, high := wilson(share, n)
			for _, p := range []float64{low, high} {
				if p == share { // at 0 or 1
					continue
				}
				if z := math.Abs(share-p) / math.Sqrt(p*(1-p)/float64(n)); math.Abs(z-1.959964) > 1e-6 {
					t.Errorf("%v of %d: the end %v is %v standard errors away", share, n, p, z)
				}
			}
			if !(low <= share && share <= high && low < high) {
				t.Errorf("%v of %d: from %v to %v", share, n, low, high)
			}
		}
	}
}

// draws checks that everything in a section can be shown, and shows no row.
func draws(t *testing.T, s figure.Section) []*figure.Figure {
	t.Helper()
	figures, err := mixturetest.Shown(s)
	if err != nil {
		t.Error(err)
	}
	return figures
}
