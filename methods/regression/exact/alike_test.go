package exact_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"parley/dataset"
	"parley/engine/local"
	"parley/internal/testkit"
	"parley/study"
)

// That no subject with a level has the outcome, or every one has it, is said of levels and of numbers with
// two values, of whatever coding and outcome, converged or not; with one exception among them, of a
// number with many values, and where weights are a sample's, nothing is.
func TestLevelsWithoutOutcomesAreSaid(t *testing.T) {
	const (
		classes = `outcome: {column: y, levels: ["0", "1"]}`
		counts  = "outcome: {column: y}, likelihood: poisson"
		times   = `outcome: {column: days, event: y, levels: ["0", "1"], cuts: [15, 30, 45, 60]}`
	)
	for name, c := range map[string]struct {
		options string
		have    int    // of 12 subjects with the level
		weight  string // of all
		missing bool   // of every hundredth subject the number of two values is missing
		want    string // "" for nothing
	}{
		"classes":       {classes, 0, "1", false, "effect of b, g=rare on one side"},
		"all of them":   {classes, 12, "1", false, "effect of b, g=rare on one side"},
		"all but one":   {classes, 11, "1", false, ""},
		"one":           {classes, 1, "1", false, ""},
		"missing cells": {classes, 0, "1", true, "effect of b, g=rare on one side"},
		"people": {classes + ", weights: {column: w, as: counts}", 0, "2", false,
			"effect of b, g=rare on one side"},
		"a sample":             {classes + ", weights: {column: w, as: survey}", 0, "1.5", false, ""},
		"random":               {classes + ", site_effects: random", 0, "1", false, "effect of b, g=rare on one side"},
		"counts":               {counts, 0, "1", false, "effect of b, g=rare on one side"},
		"one count":            {counts, 1, "1", false, ""},
		"deaths":               {times, 0, "1", false, "effect of b, g=rare on one side"},
		"one death":            {times, 1, "1", false, ""},
		"numbers, not classes": {"outcome: {column: y}", 0, "1", false, ""},
	} {
		p, err := study.Parse("plan", []byte(`{parley: 1, name: rare, sites: [one, two, three], subjects: [y, days, w],
			views: [{name: v, features: [a, b, {name: g, kind: category, levels: [often, rare]}]}],
			method: {name: regression, `+c.options+`}, privacy: {protection: none}}`), methods)
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(8, 10))
		rows := make([][]dataset.Row, 3)
		for i := range 600 {
			rare := 0.0
			y := fmt.Sprint(r.IntN(5) / 4)
			if i%50 == 7 {
				rare = 1
				switch {
				case i/50 < c.have:
					y = "1"
				default:
					y = "0"
				}
			}
			x := []float64{r.NormFloat64(), 1 + rare, rare}
			if c.missing && i%100 == 3 {
				x = []float64{x[0], math.NaN(), x[2]}
			}
			rows[i%3] = append(rows[i%3], dataset.Row{ID: fmt.Sprintf("%03d", i), Views: [][]float64{x},
				Subject: []string{y, fmt.Sprint(60 * r.Float64()), c.weight}})
		}
		said := doubts(t, p, map[string]dataset.Source{"one": table(t, p, rows[0]), "two": table(t, p, rows[1]),
			"three": table(t, p, rows[2])})
		if c.want == "" && strings.Contains(said, "on one side only") || !strings.Contains(said, c.want) {
			t.Errorf("%s: said %q, want %q", name, said, c.want)
		}
	}
}

// doubts is what a study says against relying on its fit.
func doubts(t *testing.T, p *study.Plan, data map[string]dataset.Source) string {
	t.Helper()
	out := testkit.Get(local.Run(t.Context(), local.Config{Plan: p, Methods: methods, Data: data}))(t)
	return strings.Join(out.Result.Verdicts(), "\n")
}
