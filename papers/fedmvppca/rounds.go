package fedmvppca

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"parley/figure"
	"parley/judge/evaluate"
	"parley/papers/experiment"
)

// Rounds after which the fit is looked at.
var looked = []int{1, 2, 3, 5, 8, 12, 20, 40, 70, 100}

// followed are the studies whose rounds are followed.
var followed = []struct {
	name string
	say  func(condition, *division) (keys, keys)
}{{paperFit.name, published}, {paperDP.name, noised(10, 1)}}

// byRound is Figure 7 in scenario G/K, or Figure 10 and the last panel of Figure 7 in IID.
func byRound(name, item, what string, notes []string, sc evaluate.Scenario, conclude func(experiment.Outcomes) experiment.Conclusion) experiment.Experiment {
	c := condition{data: adcsf, scenario: sc, sites: 3, own: true}
	return experiment.Experiment{Name: name, Paper: Paper.Name, Item: item, Data: adcsf.needs(), About: what + " " + about["adcsf"], Notes: notes,
		Cells: func(quick bool) (cells []experiment.Cell) {
			rounds := looked
			if quick {
				rounds = looked[:2]
			}
			for _, f := range followed {
				for _, r := range rounds {
					cells = append(cells, series(fmt.Sprintf("%s-round-%d", f.name, r), repeats(quick), func(ctx context.Context, at experiment.Data, repeat int) (experiment.Values, error) {
						return after(ctx, c, at, repeat, r, f.say)
					})...)
				}
			}
			return cells
		},
		Conclude: conclude,
	}
}

// largest are what the coordinator knows of the spread between sites after each round, in
// a private study too, whose model keeps none.
var largest = []string{"loadings between sites, largest sd", "means between sites, largest sd"}

// after is the fit of the first fold after so many rounds.
func after(ctx context.Context, c condition, at experiment.Data, repeat, rounds int, say func(condition, *division) (keys, keys)) (experiment.Values, error) {
	d, err := c.first(ctx, at, repeat)
	if err != nil {
		return nil, err
	}
	m, out, err := run(ctx, c, d, uint64(repeat), func(c condition, d *division) (keys, keys) {
		m, privacy := say(c, d)
		m["rounds"] = rounds
		return m, privacy
	})
	if err != nil {
		return nil, err
	}
	v := experiment.Values{}
	if err := score(ctx, m, d, v); err != nil {
		return nil, err
	}
	model, err := modelOf(out)
	if err != nil {
		return nil, err
	}
	for _, r := range out.Rounds {
		for _, name := range largest {
			if x, ok := r.Info[name]; ok {
				v[name] = []float64{x}
			}
		}
	}
	for k, view := range model.Views {
		add := func(what string, x *float64) {
			if x != nil && !math.IsInf(*x, 0) && !math.IsNaN(*x) {
				v[fmt.Sprintf("%s %s", what, d.sites[0].Schema().Views[k].Name)] = []float64{*x}
			}
		}
		add("loadings", view.LoadingSD)
		add("mean", view.MeanSD)
		add("noise", &view.Features[0].Noise)
		add("noise sd", view.Features[0].NoiseSD)
	}
	return v, nil
}

// curve is a value by round, over repeats: the median with the range of the middle half,
// or the mean with one standard deviation.
func curve(o experiment.Outcomes, study, value, name string, median bool) (l figure.Line, ok bool) {
	l.Name = name
	for _, r := range looked {
		x := of(o, fmt.Sprintf("%s-round-%d", study, r), value)
		if len(x) == 0 {
			continue
		}
		l.X = append(l.X, float64(r))
		if median {
			l.Y = append(l.Y, quantile(x, 0.5))
			continue
		}
		m, sd := stat.MeanStdDev(x, nil)
		if len(x) == 1 {
			sd = 0
		}
		l.Y, l.Low, l.High = append(l.Y, m), append(l.Low, m-sd), append(l.High, m+sd)
	}
	return l, len(l.X) > 0
}

func quantile(x []float64, p float64) float64 {
	return stat.Quantile(p, stat.LinInterp, slices.Sorted(slices.Values(x)), nil)
}

// spreads is Figure 7, (a) and (b).
func spreads() experiment.Experiment {
	return byRound("fedmvppca-figure-7", "Figure 7, (a) and (b)", "Standard deviations between sites of every global parameter by round, G/K, three sites: the median over repeats.", []string{
		"That all spreads fall to zero with noise is no convergence: each round's noise makes the clip, which is the prior's standard deviation, smaller by a factor that does not depend on the data (docs/privacy.md).",
		"Without noise they fall further, to rounding errors after a dozen rounds where sites are alike enough: the variances are estimated without a floor, and then nothing moves any more. The paper's figure shows them level off.",
		"Panel (b) is here the largest spread over views, which the coordinator knows in both studies. A private study's model keeps no spread by view, and none of the noise variance: what its sites release differs by privacy noise, and the spread would be that of the noise.",
	}, evaluate.GK, func(o experiment.Outcomes) experiment.Conclusion {
		out := experiment.Conclusion{}
		for i, name := range largest {
			var lines []figure.Line
			for _, f := range followed {
				if l, ok := curve(o, f.name, name, f.name, true); ok {
					lines = append(lines, l)
				}
			}
			if len(lines) > 0 {
				what := []string{"loadings", "means"}[i]
				out.Figures = append(out.Figures, figure.Figure{ID: "largest-" + what, Title: "Largest spread of " + what, Caption: "The largest standard deviation between sites over views, by round, with noise and without.",
					Alt: "Largest spread of " + what + " by round.", Chart: figure.Lines{X: figure.Axis{Label: "round"}, Y: figure.Axis{Label: "standard deviation", Log: true}, Series: lines}})
			}
		}
		for _, f := range followed {
			for _, what := range []struct{ key, title string }{{"loadings", "loadings"}, {"mean", "means"}, {"noise sd", "noise variances"}} {
				var lines []figure.Line
				for _, view := range shownViews {
					if l, ok := curve(o, f.name, what.key+" "+view, view, true); ok {
						lines = append(lines, l)
					}
				}
				if len(lines) == 0 {
					continue
				}
				id := fmt.Sprintf("%s-%s", map[string]string{paperFit.name: "clear", paperDP.name: "private"}[f.name], what.title)
				out.Figures = append(out.Figures, figure.Figure{ID: experiment.Slug(id), Title: f.name + ": spread of " + what.title, Caption: "Standard deviation between sites by round, one line for each view.",
					Alt: "Spread of " + what.title + " by round.", Chart: figure.Lines{X: figure.Axis{Label: "round"}, Y: figure.Axis{Label: "standard deviation", Log: true}, Series: lines}})
			}
		}
		return out
	})
}

var noiseNotes = []string{
	"The paper says that the noise variance “is greater for every view” with privacy (Figure 10), as a consequence of the perturbation. With these data it is greater for the clinical view alone, and a little smaller for the other three. We do not know why.",
}

// noises is Figure 10 with Figure 7 (c).
func noises() experiment.Experiment {
	return byRound("fedmvppca-figure-10", "Figure 10 and Figure 7 (c)", "Noise variance of every view and accuracy in latent space by round, IID, three sites.", noiseNotes, evaluate.IID, func(o experiment.Outcomes) experiment.Conclusion {
		out := experiment.Conclusion{}
		draw := func(value, title, unit string) {
			var lines []figure.Line
			for _, f := range followed {
				if l, ok := curve(o, f.name, value, f.name, false); ok {
					lines = append(lines, l)
				}
			}
			if len(lines) > 0 {
				out.Figures = append(out.Figures, figure.Figure{ID: experiment.Slug(value), Title: title, Caption: "Mean over repeats, and one standard deviation to both sides.", Alt: title + " by round.",
					Chart: figure.Lines{X: figure.Axis{Label: "round"}, Y: figure.Axis{Label: unit}, Series: lines}})
			}
		}
		draw(accuracy, "Accuracy in latent space", "accuracy")
		for _, view := range shownViews {
			draw("noise "+view, "Noise variance of view "+view, "variance")
		}
		return out
	})
}
