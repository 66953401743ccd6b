package fedmvppca

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"parley/figure"
	"parley/judge/evaluate"
	"parley/papers/experiment"
	"parley/privacy/account"
)

// settings of Figure 6: one of both is varied at a time.
var (
	figure6Epsilons = []float64{0.1, 0.5, 1, 5, 10, 50, 100}
	figure6Clips    = []float64{0.05, 0.1, 0.2, 0.5, 1, 2}
)

const figure6Epsilon = 1 // at which the clip is varied, as the text has it

func (r rival) with(epsilon, clip float64) rival {
	return federated(fmt.Sprintf("%s-epsilon-%v-clip-%v", r.name, epsilon, clip), false,
		noised(epsilon, clip)).failing()
}

// privacyFigure is Figure 6.
func privacyFigure() experiment.Experiment {
	c := condition{data: adcsf, scenario: evaluate.IID, sites: 3, own: true}
	rivals := []rival{paperFit}
	for _, s := range figure6Settings() {
		rivals = append(rivals, paperDP.with(s.epsilon, s.clip))
	}
	return experiment.Experiment{Name: "fedmvppca-figure-6", Data: adcsf.needs(),
		Cells: func(quick bool) (cells experiment.Cells) {
			for _, r := range rivals {
				for i := range repeats(quick) {
					c.add(&cells, r, i, quick)
				}
			}
			for _, s := range figure6Settings() {
				c.repeated(&cells, s.id(), min(repeats(quick), growthRepeats), func(ctx context.Context, d *division,
					seed uint64) (experiment.Values, error) {
					return c.growth(ctx, d, seed, s)
				})
			}
			return cells
		},
		Conclude: func(o experiment.Outcomes) experiment.Conclusion {
			out := experiment.Conclusion{}
			clear := experiment.SpreadOf(o.Gather(accuracy, c.ids(o, paperFit.name)...))
			show := func(id, title, label string, values []float64, setting func(float64) rival) {
				private := figure.Line{Name: paperDP.name}
				var spread, came, boxes, tests []string
				without := o.Gather(accuracy, c.ids(o, paperFit.name)...)
				for _, v := range values {
					ids := c.ids(o, setting(v).name)
					s, n := experiment.SpreadOf(o.Gather(accuracy, ids...)), len(o.Gather(failed, ids...))
					spread = append(spread, s.Text(3))
					with := o.Gather(accuracy, ids...)
					boxes, tests = append(boxes, box(with)), append(tests, against(with, without))
					if s == nil { // nothing came of any fit
						s = &experiment.Spread{Mean: math.NaN()}
					}
					s.Point(&private, v)
					came = append(came, fmt.Sprintf("%d of %d", n, n+s.N))
				}
				if clear == nil {
					return
				}
				plain := figure.Line{Name: paperFit.name, X: figure.Numbers{values[0], values[len(values)-1]},
					Y: figure.Numbers{clear.Mean, clear.Mean}, Reference: true}
				out.Figures = append(out.Figures, figure.Figure{ID: id, Title: title, Alt: "Accuracy by " + label + ".",
					Caption: "Mean over folds, and one standard deviation to both sides; dashed: without privacy.",
					Chart: figure.Lines{X: figure.Axis{Label: label, Log: true}, Y: figure.Axis{Label: "accuracy"},
						Series: []figure.Line{private, plain}}})
				t := figure.Table{ID: id + "-numbers", Title: title, Caption: "Mean ± standard deviation over folds, " +
					"the box (median, quartiles), and against no privacy two-sided p of a paired t test: " +
					"as if folds were independent, and corrected for what they share (Nadeau and Bengio).",
					Columns: []figure.Column{{Name: label, Numbers: private.X}, {Name: "accuracy", Text: spread},
						{Name: "box", Text: boxes}, {Name: "p, independent; corrected", Text: tests},
						{Name: "fits that diverged", Text: came}}}
				out.Tables = append(out.Tables, t)
			}
			show("epsilon", "Accuracy by ε", "ε of each release", figure6Epsilons,
				func(e float64) rival { return paperDP.with(e, 1) })
			show("clip", fmt.Sprintf("Accuracy by clipping constant, ε %d", figure6Epsilon), "clipping constant",
				figure6Clips, func(k float64) rival { return paperDP.with(figure6Epsilon, k) })
			if t := growthTable(o, c); t.Len() > 0 {
				out.Tables = append(out.Tables, t)
			}
			return out
		},
	}
}

// box is the median of some numbers with their quartiles.
func box(x []float64) string {
	if len(x) == 0 {
		return ""
	}
	x = slices.Sorted(slices.Values(x))
	at := func(p float64) float64 { return stat.Quantile(p, stat.LinInterp, x, nil) }
	return fmt.Sprintf("%.3f (%.3f, %.3f)", experiment.Median(x), at(0.25), at(0.75))
}

// against tests accuracies against those of the same folds without privacy; "" where a fit diverged.
func against(with, without []float64) string {
	var text []string
	for _, overlap := range []float64{0, 1 / float64(folds-1)} {
		d, err := evaluate.Paired(with, without, 0.95, overlap)
		if err != nil || d.High == d.Low {
			return ""
		}
		law := distuv.StudentsT{Sigma: 1, Nu: float64(len(with) - 1)}
		t := math.Abs(d.Mean) / (d.High - d.Low) * 2 * law.Quantile(0.975)
		p := 2 * law.Survival(t)
		stars := ""
		for i, limit := range []float64{1e-2, 1e-3, 1e-4} {
			if p <= limit {
				stars = " " + strings.Repeat("∗", i+2)
			}
		}
		text = append(text, fmt.Sprintf("%.2g%s", p, stars))
	}
	return strings.Join(text, "; ")
}

// guardedRounds sets Algorithm 2 with a protected first round, and the private default,
// beside the published rows.
func guardedRounds() experiment.Experiment {
	const times = 2 // repeats: the private default takes its time
	rivals := []rival{today, private, paperDP, paperGuarded}
	var conditions []condition
	for _, x := range []struct {
		table string
		data  source
	}{{"table-2", adcsf}, {"table-6", synthetic}} {
		for _, c := range conditionsOf(tableOf(x.table), x.data) {
			if c.own = true; c.sites > 1 {
				conditions = append(conditions, c)
			}
		}
	}
	return experiment.Experiment{Name: "fedmvppca-private", Data: adcsf.needs(),
		Cells: func(quick bool) (cells experiment.Cells) {
			for _, c := range conditions {
				for _, r := range rivals {
					for i := range min(repeats(quick), times) {
						if !quick || c.sites == 3 && c.scenario == evaluate.GK && c.data.name == synthetic.name {
							c.add(&cells, r, i, quick)
						}
					}
				}
			}
			return cells
		},
		Conclude: func(o experiment.Outcomes) (out experiment.Conclusion) {
			for _, data := range []source{adcsf, synthetic} {
				at := slices.DeleteFunc(slices.Clone(conditions),
					func(c condition) bool { return c.data.name != data.name })
				t := scores(figure.Table{ID: "scores-" + data.name, Title: "With every round protected, " + data.name,
					Caption: "Mean ± standard deviation over folds."}, o, at, rivals)
				won := contest{"who-wins-" + data.name, "Who wins where, " + data.name,
					"The private default less a rival on the same folds.", private, rivals}
				out.Tables = append(append(out.Tables, t), won.tables(o, at)...)
			}
			return out
		},
	}
}

// setting is a point of Figure 6.
type setting struct{ epsilon, clip float64 }

func (s setting) id() string { return fmt.Sprintf("growth-epsilon-%v-clip-%v", s.epsilon, s.clip) }

func figure6Settings() (all []setting) {
	for _, e := range figure6Epsilons {
		all = append(all, setting{e, 1})
	}
	for _, k := range figure6Clips {
		if k != 1 {
			all = append(all, setting{figure6Epsilon, k})
		}
	}
	return all
}

// relative is the standard deviation of the noise on an entry of μ or W, in those of the
// prior: clipping to one of them, a row that is replaced moves the message by twice as much.
func (s setting) relative() float64 {
	factor, _, err := account.ZhaoGaussian(s.epsilon, figure6Delta)
	if err != nil {
		return math.NaN()
	}
	return 2 * s.clip * factor
}

const (
	figure6Delta  = 0.01
	growthRepeats = 3
	// The spread is followed from the first private round to that many rounds later: few
	// enough for noise that grows sixtyfold a round to remain a number.
	growthFrom, growthTo = 2, 5
)

// growth is by what factor a private round changes the spread between sites, on the first
// fold of a repeat: the geometric mean over a few rounds, of loadings and of means.
func (c condition) growth(ctx context.Context, d *division, seed uint64, s setting) (experiment.Values, error) {
	_, out, err := run(ctx, c, d, seed, func(c condition, d *division) (keys, keys) {
		m, privacy := noised(s.epsilon, s.clip)(c, d)
		m["rounds"] = growthTo
		return m, privacy
	})
	if err != nil {
		return nil, err
	}
	v := experiment.Values{}
	for _, name := range largest {
		first, last := out.Rounds[growthFrom-1].Info[name], out.Rounds[growthTo-1].Info[name]
		v[name] = []float64{math.Pow(last/first, 1.0/(growthTo-growthFrom))}
	}
	return v, nil
}

// growthTable sets what noise alone would do to the spread beside what it does.
func growthTable(o experiment.Outcomes, c condition) figure.Table {
	t := figure.Table{ID: "growth", Title: "Why fits diverge", Caption: fmt.Sprintf("By what factor a private round "+
		"changes the largest spread between sites: as noise alone would have it, and as measured over rounds %d "+
		"to %d, mean ± standard deviation of %s.", growthFrom, growthTo, figure.Plural(growthRepeats, "repeat")),
		Columns: figure.TextColumns("ε", "constant", "noise, prior sd", "expected", "of loadings",
			"of means", "diverged")}
	for _, s := range figure6Settings() {
		w, mu := of(o, s.id(), largest[0]), of(o, s.id(), largest[1])
		if len(w) == 0 {
			continue
		}
		ids := c.ids(o, paperDP.with(s.epsilon, s.clip).name)
		n, bad := len(o.Gather(accuracy, ids...)), len(o.Gather(failed, ids...))
		expected := s.relative() * math.Sqrt(1-1/float64(c.sites))
		t.Add(fmt.Sprint(s.epsilon), fmt.Sprint(s.clip), fmt.Sprintf("%.2f", s.relative()),
			fmt.Sprintf("%.2f", expected),
			experiment.SpreadOf(w).Text(2), experiment.SpreadOf(mu).Text(2), fmt.Sprintf("%d of %d", bad, n+bad))
	}
	return t
}
