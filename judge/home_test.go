package judge_test

import (
	"context"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"parley/internal/testkit"
	"parley/judge"
	"parley/study"
)

// shiftedData is a plan of three sites whose means differ.
func shiftedData(t *testing.T, options string) *study.Plan {
	t.Helper()
	dir := t.TempDir()
	for i := range 3 {
		site := filepath.Join(dir, fmt.Sprint("data", i))
		draw(t, site, uint64(i+1), 40, false)
		for _, view := range []string{"u", "v", "w"} {
			shift(t, filepath.Join(site, "view_"+view+".csv"), float64(i))
		}
	}
	return parse(t, dir, `{parley: 1, name: own, sites: [one, two, three], views: `+threeViews+`, subjects: [group],
		method: {name: mvppca, latent: 2, rounds: 0`+options+`}, privacy: {protection: none}, local: {sites: {one: data0, two: data1, three: data2}}}`)
}

// shift adds to the columns of a table, up and down in turn.
func shift(t *testing.T, file string, by float64) {
	t.Helper()
	f := testkit.Get(os.Open(file))(t)
	records, err := csv.NewReader(f).ReadAll()
	f.Close()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	w := csv.NewWriter(&b)
	for i, r := range records {
		for j := 1; i > 0 && j < len(r); j++ {
			x := testkit.Get(strconv.ParseFloat(r[j], 64))(t)
			r[j] = fmt.Sprint(x + 2*by*float64(1-2*(j%2)))
		}
		testkit.Do(t, w.Write(r))
	}
	w.Flush()
	testkit.Do(t, os.WriteFile(file, []byte(b.String()), 0o666))
}

// Subjects held out of a site that took part are predicted as subjects of that site.
func TestSubjectsHeldOutAreAtHome(t *testing.T) {
	got := map[string]float64{}
	for _, options := range []string{"", ", site_means: pooled", ", site_means: separate"} {
		ev := testkit.Get(judge.Evaluate(context.Background(), judge.EvaluationConfig{Plan: shiftedData(t, options), Methods: methods, Folds: 3, Repeats: 1, Dir: t.TempDir()}))(t)
		s := ev.Find("folds", "column", judge.Federated, judge.LogLik, "")
		if s == nil {
			t.Fatal("no log-likelihood")
		}
		got[options] = s.Mean
		if c := ev.Find("folds", "column", judge.Federated, judge.Coverage, ""); !(c.Mean > 0.8 && c.Mean < 0.98) {
			t.Errorf("%q: intervals of 90 %% cover %.3f", options, c.Mean)
		}
	}
	t.Logf("%v", got)
	if own, pooled := got[", site_means: separate"], got[", site_means: pooled"]; own < pooled+1 || got[""] != own {
		t.Errorf("%.2f nats with sites' own means, %.2f without, %.2f where the data decide", own, pooled, got[""])
	}
}
