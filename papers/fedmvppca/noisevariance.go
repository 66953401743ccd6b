package fedmvppca

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"parley/dataset"
	"parley/figure"
	"parley/judge/evaluate"
	"parley/papers/experiment"
)

// explanation is one that Figure 10 may have: a setting in which the study differs from the published
// one, whose name also names its cells.
type explanation struct {
	name     string
	data     source
	common   bool                       // one scale for all sites
	reverse  bool                       // the order of views
	plan     keys                       // what both plans say instead
	clipping keys                       // what the private plan says there
	drawn    func(a, b float64) float64 // what is drawn of the inverse-gamma law; nil for the sites' mean
}

func explanations() []explanation {
	// A release without clipping to speak of, and without noise.
	const far, exact = 1e6, 1e12
	as := keys{"constant": far, "epsilon": exact}
	gaussian := keys{"constant": far, "epsilon": exact, "delta": 0.01}
	start := func(sd, mean, a, b float64) keys {
		return keys{"initial": "prior",
			"prior": keys{"loading_sd": sd, "mean": 0.5, "mean_sd": mean, "noise_alpha": a, "noise_beta": b}}
	}
	return []explanation{
		{name: "as published", data: adcsf},
		{name: "one common scale", data: adcsf, common: true},
		{name: "views in reverse order", data: adcsf, reverse: true},
		{name: "2 factors", data: adcsf.of(2)},
		{name: "synthetic data, 5 factors", data: synthetic},
		{name: "mean of the inverse-gamma law is drawn", data: adcsf,
			drawn: func(a, b float64) float64 { return b / (a - 1) }},
		{name: "its mode is drawn", data: adcsf, drawn: func(a, b float64) float64 { return b / (a + 1) }},
		{name: "rounds begin at the global parameters", data: adcsf, plan: keys{"restart": "mean"}},
		{name: "first round of 1 iteration", data: adcsf, plan: keys{"first_iterations": 1}},
		{name: "first round of 15 iterations", data: adcsf, plan: keys{"first_iterations": 15}},
		{name: "first round of 300 iterations", data: adcsf, plan: keys{"first_iterations": 300}},
		{name: "first round MAP, σ² about 0.5", data: adcsf, plan: start(1, 1, 2.25, 0.625)},
		{name: "first round protected", data: adcsf, plan: start(0.1, 0.25, 3, 0.08),
			clipping: keys{"first_round": "prior"}},
		{name: "noise on the noise variance alone", data: adcsf,
			clipping: keys{"loadings": gaussian, "mean": gaussian}},
		{name: "noise variance as sites have it", data: adcsf, clipping: keys{"noise_variance": as}},
		{name: "noise variance clipped, without noise", data: adcsf,
			clipping: keys{"noise_variance": keys{"constant": 1, "epsilon": far}}},
		{name: "noise variance noised as before, clip of ten sd", data: adcsf,
			clipping: keys{"noise_variance": keys{"constant": 10, "epsilon": 100}}},
	}
}

// of is the data set with another latent dimension.
func (s source) of(factors int) source {
	s.factors = factors
	return s
}

// condition is that of Figure 10, with other data or scales.
func (x explanation) condition() condition {
	return condition{data: x.data, scenario: evaluate.IID, sites: 3, own: !x.common}
}

// compare runs the study without privacy and with it, and keeps the noise variance of every view
// after the first round and after the last.
func (x explanation) compare(ctx context.Context, d *division, seed uint64,
	quick bool) (_ experiment.Values, err error) {
	views := d.sites[0].Schema().Views
	if x.reverse {
		for i := range d.sites {
			if d.sites[i], err = reversed(ctx, d.sites[i]); err != nil {
				return nil, err
			}
		}
	}
	v := experiment.Values{}
	for _, f := range followed {
		all, err := globals(ctx, x.condition(), d, seed, func(c condition, d *division) (keys, keys) {
			m, privacy := f.say(c, d)
			if quick {
				m["rounds"] = 2
			}
			maps.Copy(m, x.plan)
			if privacy != nil {
				maps.Copy(m["clipping"].(keys), x.clipping)
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
					now = x.drawn(all[g].Alpha[at], all[g].Beta[at])
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

// reversed is a source whose views stand in the reverse order.
func reversed(ctx context.Context, from dataset.Source) (*dataset.Table, error) {
	s := from.Schema()
	s.Views = slices.Clone(s.Views)
	slices.Reverse(s.Views)
	var rows []dataset.Row
	for row, err := range from.Rows(ctx) {
		if err != nil {
			return nil, err
		}
		back := dataset.Row{ID: row.ID, Subject: row.Subject}
		for _, v := range slices.Backward(row.Views) {
			back.Views = append(back.Views, slices.Clone(v))
		}
		rows = append(rows, back)
	}
	return dataset.NewTable(s, rows)
}

// id names the cells of an explanation.
func (x explanation) id() string { return "noise " + x.name }

// explained shows what privacy makes of the noise variance under every explanation.
func explained(o experiment.Outcomes) []figure.Table {
	t := figure.Table{ID: "explanations", Title: "What makes the noise variance greater",
		Caption: "Noise variance after the last round with privacy, divided by that without, " +
			"geometric mean over repeats with its range; in brackets by that which both have after the first round. " +
			"In the paper all are above one. Of the synthetic data the columns are its three views.",
		Columns: figure.TextColumns("setting", shownViews[0], shownViews[1], shownViews[2], shownViews[3],
			"views above one")}
	for _, x := range explanations() {
		cells, above, views := []any{x.name}, 0, 0
		for k := range shownViews {
			at := func(study, when string) []float64 { return of(o, x.id(), fmt.Sprintf("%s %s %d", study, when, k)) }
			with, without, first := at(paperDP.name, "last"), at(paperFit.name, "last"), at(paperDP.name, "first")
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
