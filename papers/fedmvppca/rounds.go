package fedmvppca

import (
	"context"
	"fmt"
	"math"
	"strings"

	"parley/figure"
	"parley/judge/evaluate"
	"parley/papers/experiment"
)

// Rounds after which the fit is looked at.
var looked = []int{1, 2, 3, 5, 8, 12, 20, 40, 70, 100}

// followed are the studies whose rounds are followed.
var followed = []struct {
	name string
	say  says
}{{paperFit.name, published}, {paperDP.name, noised(10, 1)}}

// largest are what the coordinator knows of the spread between sites after each round, in
// a private study too, whose model keeps none.
var largest = []string{"loadings between sites, largest sd", "means between sites, largest sd"}

// after is the fit of the first fold after so many rounds.
func after(ctx context.Context, c condition, d *division, seed uint64, rounds int,
	say says) (experiment.Values, error) {
	m, out, err := run(ctx, c, d, seed, func(c condition, d *division) (keys, keys) {
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
	for k, view := range model.Views {
		v["noise "+d.sites[0].Schema().Views[k].Name] = []float64{view.Features[0].Noise}
	}
	return v, nil
}

// curve is a value by round, over repeats: the median, or the mean with one standard deviation.
func curve(name string, median bool, at func(round int) []float64) (l figure.Line, ok bool) {
	l.Name = name
	for _, r := range looked {
		x := at(r)
		if len(x) == 0 {
			continue
		}
		if median {
			l.X, l.Y = append(l.X, float64(r)), append(l.Y, experiment.Median(x))
			continue
		}
		experiment.SpreadOf(x).Point(&l, float64(r))
	}
	return l, len(l.X) > 0
}

// parameters are those of Figure 7, in the order of [spreadsOf].
var parameters = []string{"loadings", "means", "noise variances"}

// spreads is Figure 7, (a) and (b).
func spreads() experiment.Experiment {
	c := condition{data: adcsf, scenario: evaluate.GK, sites: 3, own: true}
	return experiment.Experiment{Name: "fedmvppca-figure-7", Data: adcsf.needs(),
		Cells: func(quick bool) (cells experiment.Cells) {
			for _, f := range followed {
				c.repeated(&cells, "spread "+f.name, repeats(quick), func(ctx context.Context, d *division,
					seed uint64) (experiment.Values, error) {
					all, err := globals(ctx, c, d, seed, func(c condition, d *division) (keys, keys) {
						m, privacy := f.say(c, d)
						if quick {
							m["rounds"] = looked[1]
						}
						return m, privacy
					})
					v := experiment.Values{}
					for _, r := range looked {
						for k, view := range shownViews {
							for i, what := range parameters {
								if r > len(all) {
									continue
								}
								if sd := spreadsOf(all[r-1], k)[i]; !math.IsNaN(sd) {
									v[fmt.Sprintf("%s %s %d", what, view, r)] = []float64{sd}
								}
							}
						}
					}
					return v, err
				})
			}
			return cells
		},
		Conclude: func(o experiment.Outcomes) (out experiment.Conclusion) {
			t := figure.Table{ID: "spreads", Title: "Spread between sites",
				Caption: "Median standard deviation between sites after the first round, after 20 and after the last.",
				Columns: figure.TextColumns("parameter", "view", paperFit.name, paperDP.name)}
			at := func(study, what, view string, round int) []float64 {
				return of(o, "spread "+study, fmt.Sprintf("%s %s %d", what, view, round))
			}
			for _, what := range parameters {
				for j, f := range followed {
					var lines []figure.Line
					for _, view := range shownViews {
						if l, ok := curve(view, true, func(r int) []float64 { return at(f.name, what, view, r) }); ok {
							lines = append(lines, l)
						}
					}
					if len(lines) > 0 {
						y := figure.Axis{Label: "standard deviation", Log: true}
						id := []string{"clear-", "private-"}[j] + experiment.Slug(what)
						out.Figures = append(out.Figures, figure.Figure{ID: id,
							Title: f.name + ": spread of " + what, Alt: "Spread of " + what + " by round.",
							Caption: fmt.Sprintf("Figure 7 (%s), %s: standard deviation between sites by round, "+
								"one line for each view.", []string{"a", "b"}[j], what),
							Chart: figure.Lines{X: figure.Axis{Label: "round"}, Y: y, Series: lines}})
					}
				}
				for _, view := range shownViews {
					cells := []any{what, view}
					for _, f := range followed {
						var text []string
						for _, r := range []int{looked[0], 20, looked[len(looked)-1]} {
							if x := at(f.name, what, view, r); len(x) > 0 {
								text = append(text, fmt.Sprintf("%.2g", experiment.Median(x)))
							} else {
								text = append(text, "none")
							}
						}
						cells = append(cells, strings.Join(text, ", "))
					}
					t.Add(cells...)
				}
			}
			out.Tables = append(out.Tables, t)
			return out
		}}
}

// noises is Figure 10 with Figure 7 (c).
func noises() experiment.Experiment {
	c := condition{data: adcsf, scenario: evaluate.IID, sites: 3, own: true}
	at := func(study string, round int) string { return fmt.Sprintf("%s-round-%d", study, round) }
	return experiment.Experiment{Name: "fedmvppca-figure-10", Data: adcsf.needs(),
		Cells: func(quick bool) (cells experiment.Cells) {
			rounds := looked
			if quick {
				rounds = looked[:2]
			}
			for _, f := range followed {
				for _, r := range rounds {
					c.repeated(&cells, at(f.name, r), repeats(quick), func(ctx context.Context, d *division,
						seed uint64) (experiment.Values, error) {
						return after(ctx, c, d, seed, r, f.say)
					})
				}
			}
			for _, x := range explanations() {
				x.condition().repeated(&cells, x.id(), repeats(quick), func(ctx context.Context, d *division,
					seed uint64) (experiment.Values, error) {
					return x.compare(ctx, d, seed, quick)
				})
			}
			return cells
		},
		Conclude: func(o experiment.Outcomes) experiment.Conclusion {
			out := experiment.Conclusion{Tables: explained(o)}
			draw := func(value, title, unit string) {
				var lines []figure.Line
				for _, f := range followed {
					if l, ok := curve(f.name, false, func(r int) []float64 { return of(o, at(f.name, r), value) }); ok {
						lines = append(lines, l)
					}
				}
				if len(lines) > 0 {
					out.Figures = append(out.Figures, figure.Figure{ID: experiment.Slug(value), Title: title,
						Caption: "Mean over repeats, and one standard deviation to both sides.",
						Alt:     title + " by round.",
						Chart: figure.Lines{X: figure.Axis{Label: "round"}, Y: figure.Axis{Label: unit},
							Series: lines}})
				}
			}
			draw(accuracy, "Accuracy in latent space", "accuracy")
			for _, view := range shownViews {
				draw("noise "+view, "Noise variance of view "+view, "variance")
			}
			return out
		}}
}
