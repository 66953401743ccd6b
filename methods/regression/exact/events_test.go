package exact_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"parley/dataset"
	"parley/engine/local"
	"parley/internal/testkit"
	"parley/study"
)

// Effects that are many for so few events are said, of the rarer class, of counts and of times, and
// not where there are five events for each; an intercept and periods are no effects.
func TestFewEventsAreSaid(t *testing.T) {
	const (
		classes = `outcome: {column: y, levels: ["0", "1"]}`
		counts  = "outcome: {column: y}, likelihood: poisson"
		three   = `outcome: {column: y, levels: ["0", "1", "2"]}`
		times   = `outcome: {column: days, event: y, levels: ["0", "1"], cuts: [10, 20, 30, 40, 50, 60]}`
	)
	for name, c := range map[string]struct {
		options string
		events  int // of 400 rows
		weight  string
		want    string // "" for nothing
	}{
		"few cases":     {classes, 24, "1", "24 subjects with y = 1, and 5 effects"},
		"enough cases":  {classes, 25, "1", ""},
		"few controls":  {classes, 388, "1", "12 subjects with y = 0, and 5 effects"},
		"random":        {classes + ", site_effects: random", 20, "1", "20 subjects with y = 1, and 5 effects"},
		"few of three":  {three, 24, "1", "24 subjects with y = 1, and 5 effects"},
		"three classes": {three, 25, "1", ""},
		"few counts":    {counts, 11, "1", "11 events in all counts of y, and 5 effects"},
		"enough counts": {counts, 30, "1", ""},
		"few deaths":    {times, 24, "1", "24 events, and 5 effects"},
		"enough deaths": {times, 25, "1", ""},
		"people":        {classes + ", weights: {column: w, as: counts}", 24, "3", ""},
		"a sample": {classes + ", weights: {column: w, as: survey}", 24, "1.5",
			"24 subjects with y = 1, and 5 effects"},
		"numbers": {"outcome: {column: y}", 24, "1", ""},
		"terms": {classes + ", interactions: [[a, b]], splines: [{feature: c, knots: [-1, 0, 1]}]", 34, "1",
			"34 subjects with y = 1, and 7 effects"},
	} {
		p, err := study.Parse("plan", []byte(`{parley: 1, name: rare, sites: [one, two, three], subjects: [y, days, w], views: [{name: v, features: [a, b, c, d, e]}],
			method: {name: regression, `+c.options+`}, privacy: {protection: none}}`), methods)
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(8, 9))
		var rows []dataset.Row
		for i := range 400 {
			x := make([]float64, 5)
			for j := range x {
				x[j] = r.NormFloat64()
			}
			y := "0"
			if i*7%400 < c.events { // 7 and 400 have no factor in common
				y = "1"
			} else if c.options == three && i%3 == 0 {
				y = "2"
			}
			rows = append(rows, dataset.Row{ID: fmt.Sprintf("%03d", i), Views: [][]float64{x},
				Subject: []string{y, fmt.Sprint(60 * r.Float64()), c.weight}})
		}
		out := testkit.Get(local.Run(t.Context(),
			local.Config{Plan: p, Methods: methods, Data: map[string]dataset.Source{"one": table(t, p, rows[:90]),
				"two": table(t, p, rows[90:200]), "three": table(t, p, rows[200:])}}))(t)
		said := ""
		for _, s := range out.Result.Sections {
			for _, i := range s.Items {
				if i.Note != nil && slices.Contains(out.Result.Verdicts(), i.Note.Title) &&
					strings.HasPrefix(i.Note.Title, "Few events") {
					said = i.Note.Text
				}
			}
		}
		if (said == "") != (c.want == "") || !strings.Contains(said, c.want) {
			t.Errorf("%s: said %q, want %q", name, said, c.want)
		}
	}
}
