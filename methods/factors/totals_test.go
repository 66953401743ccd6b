package factors

import (
	"math"
	"testing"

	"parley/engine/local"
	"parley/internal/testkit"
	"parley/method"
	"parley/methods/factors/fitted"
	"parley/methods/factors/halves"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
)

// Totals along directions give the model that one site with all rows gives along directions, to nine digits of its
// likelihood, and that of the study that learns all products, to seven. Where views are missing, a site by itself
// describes a few subjects with others.
func TestTotalsAlongDirections(t *testing.T) {
	const settings = "  latent: 1\n  noise: feature\n  site_means: pooled\n  outliers: keep\n"
	// logLik is that of a study's model, by the rows of another.
	logLik := func(by Method, s, rows *small) float64 {
		out := testkit.Get(local.Run(t.Context(), local.Config{Plan: s.plan, Methods: method.Registry{by},
			Data: sources(s)}))(t)
		model := testkit.Get(fitted.LoadModel(fileOf(t, out.Result, "model/model.json")))(t)
		return newRowwise(rows, model).step(t)
	}
	for name, c := range map[string]struct {
		missing, gaps, share float64
		patterns             string
	}{
		"complete":        {0, 0, 1e-9, ""},
		"cells missing":   {0.05, 0, 1e-9, ""},
		"patterns":        {0, 0.3, 1e-7, "  patterns: [{views: [v0]}, {views: [v1]}]\n"},
		"patterns, cells": {0.05, 0.3, 1e-7, "  patterns: [{views: [v0]}, {views: [v1]}]\n"},
	} {
		x := shape{dims: []int{7, 6}, sites: 4, rows: 60, missing: c.missing, gaps: c.gaps, seed: 12}
		x.options, x.privacy = settings+c.patterns, "{protection: none, sum: secure}"
		secure := x.study(t)
		x.privacy, x.sites = "", 1
		one := x.study(t)
		one.data["site-0"] = secure.all(t)
		along := Method{most: 30}
		total, told, whole := logLik(along, secure, one), logLik(along, one, one), logLik(Method{}, one, one)
		t.Logf("%s: %v, %v along directions in one place, %v in whole", name, total, told, whole)
		if !(math.Abs(total-told) <= c.share) || !(math.Abs(total-whole) <= 1e-7) {
			t.Errorf("%s: a log-likelihood of %v, and in one place of %v, or in whole of %v", name, total, told, whole)
		}
	}
}

// Whatever scale a coordinator names, sums are as large on the grid: a step above those of most sites would tell how
// many sites are above it, and many such steps each site's own sums.
func TestTasksDoNotChooseTheStepOfTotals(t *testing.T) {
	x := shape{dims: []int{1, 1}, sites: 4, rows: 60, options: "  latent: 1\n  site_means: pooled\n"}
	set := testkit.Get(options.SetUp(x.study(t).plan))(t)
	b := ppca.Block{Features: []int{0, 1}, N: 9, Mean: []float64{2, 3}, Scatter: []float64{4, 1, 1, 5}}
	said := func(factor float64) []float64 {
		by := options.Scale{Scale: ppca.Scale{Shift: []float64{0, 0}, Factor: []float64{factor, 2 * factor}}}
		return testkit.Get(halves.Raw(set, &ppca.Description{Blocks: []ppca.Block{b.Scaled(&by.Scale)}},
			&halves.FitTask{Scale: by}))(t)
	}
	for _, factor := range []float64{3e-40, 7e-5, 6e30} {
		for i, x := range said(factor) {
			if y := said(1)[i]; !(math.Abs(x) <= 2*math.Abs(y) && math.Abs(y) <= 2*math.Abs(x)) {
				t.Errorf("a factor of %v: number %d is %v, and %v by another", factor, i, x, y)
			}
		}
	}
}
