package fedmvppca

import (
	"context"
	"fmt"
	"math"
	"slices"

	"parley/dataset"
	"parley/figure"
	"parley/judge/evaluate"
	"parley/papers/experiment"
)

// explanation is one that Figure 10 may have: the setting in which the study differs from the
// published one, which also names its cells.
type explanation struct {
	name    string
	data    source
	common  bool                          // one scale for all sites
	reverse bool                          // the order of views
	change  func(m, privacy keys)         // of the plan; privacy is nil without it
	drawn   func(a, b, x float64) float64 // what is drawn, of the inverse-gamma law and the mean; nil for the mean
}

// clip changes how a parameter is released: in so many standard deviations of its prior, at an ε.
func clip(parameter string, constant, epsilon float64) func(m, privacy keys) {
	return func(m, privacy keys) {
		if privacy == nil {
			return
		}
		part := keys{"constant": constant, "epsilon": epsilon}
		if parameter != "noise_variance" {
			part["delta"] = 0.01
		}
		m["clipping"].(keys)[parameter] = part
	}
}

// asIs is a release without clipping to speak of, and without noise.
const asIs = 1e6

func also(all ...func(m, privacy keys)) func(m, privacy keys) {
	return func(m, privacy keys) {
		for _, f := range all {
			f(m, privacy)
		}
	}
}

func says(key string, value any) func(m, privacy keys) {
	return func(m, _ keys) { m[key] = value }
}

func explanations() []explanation {
	clear := func(parameter string) func(m, privacy keys) { return clip(parameter, asIs, asIs*asIs) }
	return []explanation{
		{name: "as published", data: adcsf},
		{name: "one common scale", data: adcsf, common: true},
		{name: "views in reverse order", data: adcsf, reverse: true},
		{name: "2 factors", data: adcsf.of(2)},
		{name: "synthetic data, 5 factors", data: synthetic},
		{name: "mean of the inverse-gamma law is drawn", data: adcsf, drawn: func(a, b, _ float64) float64 { return b / (a - 1) }},
		{name: "its mode is drawn", data: adcsf, drawn: func(a, b, _ float64) float64 { return b / (a + 1) }},
		{name: "rounds begin at the global parameters", data: adcsf, change: says("restart", "mean")},
		{name: "first round of 1 iteration", data: adcsf, change: says("first_iterations", 1)},
		{name: "first round of 15 iterations", data: adcsf, change: says("first_iterations", 15)},
		{name: "first round of 300 iterations", data: adcsf, change: says("first_iterations", 300)},
		{name: "first round MAP, σ² about 0.5", data: adcsf, change: func(m, _ keys) {
			m["initial"], m["prior"] = "prior", keys{"loading_sd": 1, "mean": 0.5, "mean_sd": 1, "noise_alpha": 2.25, "noise_beta": 0.625}
		}},
		{name: "first round protected", data: adcsf, change: func(m, privacy keys) {
			m["initial"], m["prior"] = "prior", keys{"loading_sd": 0.1, "mean": 0.5, "mean_sd": 0.25, "noise_alpha": 3, "noise_beta": 0.08}
			if privacy != nil {
				m["clipping"].(keys)["first_round"] = "prior"
			}
		}},
		{name: "noise on the noise variance alone", data: adcsf, change: also(clear("loadings"), clear("mean"))},
		{name: "noise variance as sites have it", data: adcsf, change: clear("noise_variance")},
		{name: "noise variance clipped, without noise", data: adcsf, change: clip("noise_variance", 1, asIs)},
		{name: "noise variance noised as before, clip of ten sd", data: adcsf, change: clip("noise_variance", 10, 100)},
	}
}

// of is the data set with another latent dimension.
func (s source) of(factors int) source {
	s.factors = factors
	return s
}

// compare runs the study without privacy and with it, and keeps the noise variance of every view
// after the first round and after the last.
func (x explanation) compare(ctx context.Context, at experiment.Data, repeat int, quick bool) (experiment.Values, error) {
	c := condition{data: x.data, scenario: evaluate.IID, sites: 3, own: !x.common}
	d, err := c.first(ctx, at, repeat)
	if err != nil {
		return nil, err
	}
	views := d.sites[0].Schema().Views
	if x.reverse {
		for i, s := range d.sites {
			table, err := dataset.Collect(ctx, s)
			if err != nil {
				return nil, err
			}
			if d.sites[i], err = reversed(ctx, table); err != nil {
				return nil, err
			}
		}
	}
	v := experiment.Values{}
	for _, f := range followed {
		all, err := globals(ctx, c, d, uint64(repeat), func(c condition, d *division) (keys, keys) {
			m, privacy := f.say(c, d)
			if quick {
				m["rounds"] = 2
			}
			if x.change != nil {
				x.change(m, privacy)
			}
			return m, privacy
		})
		if err != nil {
			return nil, err
		}
		for when, g := range map[string]int{"first": 0, "last": len(all) - 1} {
			for k := range views {
				at := k
				if x.reverse {
					at = len(views) - 1 - k
				}
				now := all[g].Params.Noise[at]
				if x.drawn != nil {
					now = x.drawn(all[g].Alpha[at], all[g].Beta[at], now)
				}
				key := fmt.Sprintf("%s %s %d", f.name, when, k)
				if v[key] = []float64{now}; math.IsInf(now, 0) || math.IsNaN(now) {
					delete(v, key)
				}
			}
		}
	}
	return v, nil
}

// reversed is a table whose views stand in the reverse order.
func reversed(ctx context.Context, table *dataset.Table) (*dataset.Table, error) {
	s := table.Schema()
	s.Views = slices.Clone(s.Views)
	slices.Reverse(s.Views)
	var rows []dataset.Row
	for row, err := range table.Rows(ctx) {
		if err != nil {
			return nil, err
		}
		back := *row
		back.Views = slices.Clone(row.Views)
		slices.Reverse(back.Views)
		rows = append(rows, back)
	}
	return dataset.NewTable(s, rows)
}

// id names the cells of an explanation.
func (x explanation) id() string { return "noise " + x.name }

// explained shows what privacy makes of the noise variance under every explanation.
func explained(o experiment.Outcomes) []figure.Table {
	t := figure.Table{ID: "explanations", Title: "What makes the noise variance greater",
		Caption: "Noise variance after the last round with privacy, divided by that without, geometric mean over repeats with its range; in brackets by that which both have after the first round. In the paper all are above one.",
		Columns: figure.TextColumns("setting", shownViews[0], shownViews[1], shownViews[2], shownViews[3], "views above one")}
	for _, x := range explanations() {
		cells, above, views := []any{x.name}, 0, 0
		for k := range shownViews {
			with, without, first := of(o, x.id(), fmt.Sprintf("%s last %d", paperDP.name, k)), of(o, x.id(), fmt.Sprintf("%s last %d", paperFit.name, k)), of(o, x.id(), fmt.Sprintf("%s first %d", paperDP.name, k))
			text := ""
			if n := len(with); n > 0 && n == len(without) && n == len(first) {
				ratio, low, high := ratios(with, without)
				rise, _, _ := ratios(with, first)
				text = fmt.Sprintf("%.3g, %.3g to %.3g (%.3g)", ratio, low, high, rise)
				if views++; ratio > 1 {
					above++
				}
			} else if n > 0 {
				text = "none"
			}
			cells = append(cells, text)
		}
		if views > 0 {
			t.Add(append(cells, fmt.Sprintf("%d of %d", above, views))...)
		}
	}
	return []figure.Table{t}
}

// ratios are the geometric mean, the least and the largest of ratios.
func ratios(x, y []float64) (mean, low, high float64) {
	low = math.Inf(1)
	for i := range x {
		r := x[i] / y[i]
		mean, low, high = mean+math.Log(r)/float64(len(x)), min(low, r), max(high, r)
	}
	return math.Exp(mean), low, high
}
