package exact_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"parley/dataset"
	"parley/figure"
	"parley/internal/testkit"
	"parley/method"
	"parley/study"
)

// The table of subjects, of a study of two classes, of three, and of times, is what the rows say.
func TestSubjectsAreDescribedBySiteAndOutcome(t *testing.T) {
	for name, c := range map[string]struct {
		options string
		levels  []string // of the outcome, that the table has
	}{
		"classes": {`outcome: {column: y, levels: ["0", "1"]}`, []string{"0", "1"}},
		"three":   {`outcome: {column: y, levels: ["0", "1", "2"]}`, []string{"0", "1", "2"}},
		"times":   {"outcome: {column: y, event: dead, levels: [no, yes], cuts: [1, 2]}", nil},
		"secure":  {`outcome: {column: y, levels: ["0", "1"]}`, []string{"0", "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(44, 2))
			sum := ""
			if name == "secure" {
				sum = ", sum: secure"
			}
			p, err := study.Parse("plan", []byte(`{parley: 1, name: people, sites: [one, two, three], subjects: [y, dead],
				views: [{name: v, features: [{name: age, unit: years, range: [0, 100]}, {name: weight, range: [0, 200]}, {name: sex, kind: category, levels: [female, male, other]}]}],
				method: {name: regression, `+c.options+`, missing: neutral}, privacy: {protection: none`+sum+`}}`), methods)
			if err != nil {
				t.Fatal(err)
			}
			data, of := map[string]dataset.Source{}, map[string][]float64{} // ages by site, by outcome and of all
			sex := map[string]int{}
			for s, site := range p.Sites {
				var rows []dataset.Row
				for i := range 100 {
					age, weight, level := float64(20+r.IntN(60)), 50+30*r.Float64(), float64(r.IntN(2))
					if s == 2 && i < 12 {
						weight = math.NaN()
					}
					if i < 2*s { // 0, 2 and 4
						level = 2
					}
					y := fmt.Sprint(r.IntN(max(2, len(c.levels))))
					for _, group := range []string{site, y, "all"} {
						of[group] = append(of[group], age)
						sex[fmt.Sprint(group, " ", level)]++
					}
					if c.levels == nil {
						y = "1.5"
					}
					rows = append(rows, dataset.Row{ID: fmt.Sprintf("%d-%03d", s, i),
						Views:   [][]float64{{age, weight, level}},
						Subject: []string{y, []string{"no", "yes"}[r.IntN(2)]}})
				}
				data[site] = table(t, p, rows)
			}
			_, result := ended(t, p, data)
			var text strings.Builder
			testkit.Do(t, tableOf(t, result, "baseline").CSV(&text))
			groups := append([]string{"one", "two", "three"}, c.levels...)
			if name == "secure" {
				groups = c.levels
			}
			want := "\"age, years\",mean ± sd"
			for _, g := range append(groups, "all") {
				n, mean, squares := float64(len(of[g])), 0.0, 0.0
				for _, x := range of[g] {
					mean += x / n
				}
				for _, x := range of[g] {
					squares += (x - mean) * (x - mean) / (n - 1)
				}
				want += fmt.Sprintf(",%.1f", mean)
				if g == "all" || len(g) > 1 {
					want += fmt.Sprintf(" ± %.1f", math.Sqrt(squares))
				}
			}
			if !strings.Contains(text.String(), want+"\n") {
				t.Errorf("the table is\n%s\nand has no line\n%s", &text, want)
			}
			if name == "secure" {
				want = "sex,female,–,–,141 (47.0 %)"
			} else {
				want = fmt.Sprintf("sex,female,%d (%d.0 %%)", sex["one 0"], sex["one 0"])
			}
			if !strings.Contains(text.String(), want) || strings.Contains(text.String(), ",4 (4.0") ||
				strings.Contains(text.String(), ",2 (2.0") || strings.Contains(text.String(), ",,,") {
				t.Errorf("the table is\n%s\nand has not %s, or has a small cell or an empty one", &text, want)
			}
		})
	}
}

func tableOf(t *testing.T, r *method.Result, id string) *figure.Table {
	t.Helper()
	for _, s := range r.Sections {
		for _, item := range s.Items {
			if item.Table != nil && item.Table.ID == id {
				return item.Table
			}
		}
	}
	t.Fatalf("there is no table %s", id)
	return nil
}
