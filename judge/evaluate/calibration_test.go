package evaluate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"parley/internal/testkit"
)

// Probabilities drawn from the predictive distribution itself are calibrated: of
// 20 000 rows the error is about 0.01, and above 0.02 with probability below 1e-6.
func TestCalibrationOfTrueProbabilities(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	var own, sure Calibration
	for range 20000 {
		p := r.Float64()
		happened := r.Float64() < p
		own.Add(p, happened)
		sure.Add(math.Sqrt(p), happened) // too sure of +1: by 1/6 on average
	}
	if own.Error() > 0.02 {
		t.Errorf("error %v", own.Error())
	}
	if math.Abs(sure.Error()-1.0/6) > 0.02 {
		t.Errorf("error %v of distorted probabilities", sure.Error())
	}
}

func TestCalibrationByHand(t *testing.T) {
	var c Calibration
	for i, p := range []float64{0, 0.05, 1, 0.9} {
		c.Add(p, i != 1)
	}
	if c[0] != (Bin{Rows: 2, Expected: 0.025, Observed: 0.5}) || c[9] != (Bin{Rows: 2, Expected: 0.95, Observed: 1}) || c[5] != (Bin{}) {
		t.Errorf("%+v", c)
	}
	if want := (0.475 + 0.05) / 2; math.Abs(c.Error()-want) > 1e-15 {
		t.Errorf("error %v, want %v", c.Error(), want)
	}
	if (&Calibration{}).Error() != 0 {
		t.Error("an error of nothing")
	}
}

func TestAUCCountsPairs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 40).Draw(t, "n")
		labels := rapid.SliceOfN(rapid.Bool(), n, n).Draw(t, "labels")
		scores := make([]float64, n)
		for i := range scores { // few values, so that there are ties
			scores[i] = float64(rapid.IntRange(0, 6).Draw(t, "score"))
		}
		wins, pairs := 0.0, 0.0
		for i, a := range labels {
			for j, b := range labels {
				if a && !b {
					pairs++
					if scores[i] > scores[j] {
						wins++
					} else if scores[i] == scores[j] {
						wins += 0.5
					}
				}
			}
		}
		got := AUC(scores, labels)
		if pairs == 0 {
			if !math.IsNaN(got) {
				t.Fatalf("AUC %v of one class", got)
			}
		} else if math.Abs(got-wins/pairs) > 1e-12 {
			t.Fatalf("AUC %v, want %v", got, wins/pairs)
		}
	})
	if v := AUC([]float64{1, math.NaN(), 2}, []bool{true, false, true}); !math.IsNaN(v) {
		t.Errorf("AUC %v of a score that is not a number", v)
	}
}

// However subjects are divided, the rows of a person stay together, and nobody is lost.
func TestRowsOfAPersonStayTogether(t *testing.T) {
	var subjects []Subject
	of := map[string]string{}
	for i := range 60 {
		s := Subject{ID: fmt.Sprintf("r%02d", i), Group: fmt.Sprint(i % 2), Person: fmt.Sprint("p", i%17)}
		if i >= 50 {
			s.Person = ""
		} else {
			of[s.ID] = s.Person
		}
		subjects = append(subjects, s)
	}
	check := func(what string, at map[string]int) {
		t.Helper()
		where := map[string]int{}
		for id, site := range at {
			if person := of[id]; person != "" {
				if known, ok := where[person]; ok && known != site {
					t.Errorf("%s: a person is at %d and at %d", what, known, site)
				}
				where[person] = site
			}
		}
		if len(at) != len(subjects) {
			t.Errorf("%s: %d of %d rows have a place", what, len(at), len(subjects))
		}
	}
	placed := func(list []Placement) map[string]int {
		at := map[string]int{}
		for _, p := range list {
			at[p.ID] = p.Site
		}
		return at
	}
	sites := SiteNames(4)
	for _, sc := range []Scenario{IID, G, K} {
		check(fmt.Sprint(sc), placed(testkit.Get(Assign(subjects, sites, sc, 3))(t)))
	}
	folds := map[string]int{}
	for _, f := range testkit.Get(FoldsOf(subjects, 5, 0, 3))(t) {
		for _, id := range f.Test {
			folds[id] = f.Index
		}
	}
	check("folds", folds)
	at := placed(testkit.Get((Scheme{Rho: 0, Kappa: 0}).Assign(subjects, sites, 3))(t))
	for _, s := range subjects {
		if _, there := at[s.ID]; !there {
			delete(of, s.ID)
		}
	}
	subjects = subjects[:len(at)]
	check("unequal", at)
}
