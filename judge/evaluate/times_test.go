package evaluate

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/dataset"
	"parley/internal/testkit"
)

// Concordance is that of counting all pairs.
func TestConcordanceCountsPairs(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 3))
		n := 1 + r.IntN(30)
		survival, y := make([]float64, n), make([]Observed, n)
		for i := range n { // few values, so that there are ties of both
			survival[i], y[i] = -float64(r.IntN(6)), Observed{Time: float64(r.IntN(5)), Value: float64(r.IntN(2))}
		}
		right, pairs := 0.0, 0.0
		for i := range n {
			for j := range n {
				if y[i].Value == 1 && (y[j].Time > y[i].Time || y[j].Time == y[i].Time && y[j].Value == 0) {
					pairs++
					if survival[i] < survival[j] {
						right++
					} else if survival[i] == survival[j] {
						right += 0.5
					}
				}
			}
		}
		want, got := right/pairs, concordance(survival, y)
		if pairs == 0 != math.IsNaN(got) || pairs > 0 && math.Abs(got-want) > 1e-12 {
			t.Fatalf("seed %d: %v, want %v of %v pairs", seed, got, want, pairs)
		}
	}
}

type fixed []float64

func (f fixed) Infer(row *dataset.Row, dst *Posterior) error {
	dst.Unknown(0, row)
	dst.Outcome.LogSurvival = f
	return nil
}

// What is said of times is the probability of what was seen, and the life table is that of
// the rows with one subject more of each kind.
func TestTimesAreJudged(t *testing.T) {
	o := Outcome{Column: "died", Levels: []string{"no", "yes"}, Times: &Times{Column: "days", Cuts: Cuts{10, 20}}}
	s := dataset.Schema{Views: []dataset.View{
		{Name: "v", Columns: []dataset.Column{{Name: "x", Kind: dataset.Number}}}},
		Subject: []dataset.Column{{Name: "died", Kind: dataset.Label}, {Name: "days", Kind: dataset.Label}}}
	var rows []dataset.Row
	for i, c := range []struct {
		days float64
		died string
	}{{5, "yes"}, {12, "yes"}, {18, "no"}, {30, "yes"}, {10, "no"}, {2, "no"}} {
		rows = append(rows, dataset.Row{ID: fmt.Sprint(i), Views: [][]float64{{1}},
			Subject: []string{c.died, strconv.FormatFloat(c.days, 'g', -1, 64)}})
	}
	table := testkit.Get(dataset.NewTable(s, rows))(t)
	j := testkit.Get(o.Judge(context.Background(), fixed{math.Log(0.8), math.Log(0.6)}, table, 0.9))(t)
	// Seen: the event in the first period and in the second, two through both, one through the
	// first, and one who counts in none.
	want := (math.Log(0.2) + math.Log(0.2) + 2*math.Log(0.6) + math.Log(0.8)) / 6
	if got := j.Marks.Get(MeasureLogLik); math.Abs(got-want) > 1e-12 {
		t.Errorf("log-likelihood %v, want %v", got, want)
	}
	if got := j.Marks.Get(MeasureConcordance); got != 0.5 {
		t.Errorf("concordance %v of the same for all", got)
	}
	if n := j.Calibration[2].Rows + j.Calibration[1].Rows; n != 8 { // hazards of .2 and ¼
		t.Errorf("%+v of 8 person-periods", j.Calibration)
	}
	base := testkit.Get(o.FitBaseRate(context.Background(), table))(t)
	var p Posterior
	testkit.Do(t, base.Infer(&rows[0], &p))
	for k, want := range []float64{5.0 / 7, 5.0 / 7 * 3 / 5} { // 1 of 5, and 1 of 3
		if got := math.Exp(p.Outcome.LogSurvival[k]); math.Abs(got-want) > 1e-12 {
			t.Errorf("survival %v until cut %d, want %v", got, k+1, want)
		}
	}
	for name, bad := range map[string]fixed{"one cut": {0}, "above 1": {0.1, 0}, "none": {0, math.NaN()}} {
		if _, err := o.Judge(context.Background(), bad, table, 0.9); err == nil {
			t.Errorf("%s passes", name)
		}
	}
	for _, bad := range [][]string{{"maybe", "3"}, {"yes", "-1"}, {"yes", "x"}} {
		if o.Read(s, &dataset.Row{Subject: bad}) == nil {
			t.Errorf("%q can be read", bad)
		}
	}
}

func TestPersonPeriodsByHand(t *testing.T) {
	months := Cuts{30, 60, 90}
	for _, c := range []struct {
		time    float64
		event   bool
		periods int
		failed  bool
	}{
		{0, true, 1, true}, {30, true, 1, true}, {30.5, true, 2, true}, {90, true, 3, true}, {91, true, 3, false},
		{0, false, 0, false}, {14, false, 0, false}, {15, false, 1, false}, {30, false, 1, false},
		{44, false, 1, false}, {45, false, 2, false},
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
		testkit.Do(t, ends.Check())
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
	if c[0] != (Bin{Rows: 2, Expected: 0.025, Observed: 0.5}) || c[9] != (Bin{Rows: 2, Expected: 0.95, Observed: 1}) ||
		c[5] != (Bin{}) {
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
