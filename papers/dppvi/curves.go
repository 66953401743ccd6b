package dppvi

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"parley/figure"
	"parley/judge/evaluate"
	"parley/papers/experiment"
)

// watch is the rival whose model is judged on its way, too.
func (r rival) watch() rival {
	r.marks = marks()
	return r
}

// curves are those of a distribution: by communications, and by privacy.
func curves(scheme string, o experiment.Outcomes) (all []figure.Figure) {
	epsilons := []float64{0.25, 0.5, 0.75, 1}
	for _, value := range []string{accuracy, logLik} {
		var lines []figure.Line
		for _, r := range []rival{pvi, exact, globalVI, dpPVI(0.5), dpPVI(1)} {
			lines = append(lines, path(r.label(), o[id(scheme, r)], value))
		}
		all = append(all, chart(scheme, value, "updates", lines))
		lines = nil
		for _, make := range []func(float64) rival{dpPVI, today} {
			l := figure.Line{Name: make(1).name}
			for _, e := range epsilons {
				experiment.SpreadOf(o[id(scheme, make(e))][value]).Point(&l, e)
			}
			lines = append(lines, l)
		}
		if x := experiment.SpreadOf(o[id(scheme, pvi)][value]); x != nil {
			lines = append(lines, figure.Line{Name: "PVI without privacy", X: figure.Numbers{epsilons[0],
				epsilons[len(epsilons)-1]}, Y: figure.Numbers{x.Mean, x.Mean}, Reference: true})
		}
		all = append(all, chart(scheme, value, "ε", lines))
	}
	return all
}

// path is a curve up to the end of the longest run.
func path(name string, v experiment.Values, value string) figure.Line {
	l := figure.Line{Name: name}
	for _, n := range taken(v) {
		experiment.SpreadOf(v[after(value, n)]).Point(&l, float64(n))
	}
	if len(v[updates]) > 0 {
		if last := slices.Max(v[updates]); len(l.X) == 0 || l.X[len(l.X)-1] < last {
			experiment.SpreadOf(v[value]).Point(&l, last)
		}
	}
	return l
}

// taken are the marks that a run has come to.
func taken(v experiment.Values) (at []int) {
	for _, n := range marks() {
		if len(v[updates]) > 0 && float64(n) <= slices.Max(v[updates]) {
			at = append(at, n)
		}
	}
	return at
}

// near is how many points below its end a method counts as nearly there.
const near = 0.5

// communications tells what methods need to come near their ends: an update is one
// communication, a task to one site and its answer.
func communications(o experiment.Outcomes, rivals []rival) figure.Table {
	t := figure.Table{ID: "communications", Title: "Communications and bytes",
		Caption: fmt.Sprintf("Mean over runs. A method is near its end from the first update looked at (every 10 up "+
			"to 100, every 50 up to 1000, every 500 beyond) on which its mean accuracy stays within %v points of "+
			"where it ends. Bytes are those of tasks and answers, in both directions.", near),
		Columns: figure.TextColumns("distribution", "method", "updates in all", "megabytes in all",
			"kilobytes an update", "updates until near its end", "megabytes until then", "accuracy at its end, %")}
	for _, scheme := range schemes {
		for _, r := range rivals {
			v := o[id(scheme, r)]
			if at := taken(v); len(at) > 0 && len(v[after(accuracy, at[0])]) > 0 {
				n, bytes, end := stat.Mean(v[updates], nil), stat.Mean(v[traffic], nil), stat.Mean(v[accuracy], nil)
				until := n
				for _, m := range slices.Backward(at) {
					if math.Abs(stat.Mean(v[after(accuracy, m)], nil)-end) > near {
						break
					}
					until = min(until, float64(m))
				}
				t.Add(scheme, r.label(), fmt.Sprintf("%.0f", n), fmt.Sprintf("%.1f", bytes/1e6),
					fmt.Sprintf("%.1f", bytes/n/1e3), fmt.Sprintf("%.0f", until),
					fmt.Sprintf("%.2f", bytes/n*until/1e6), experiment.SpreadOf(v[accuracy]).Text(2))
			}
		}
	}
	return t
}

// risen holds the paper's claim against the record: private curves rise, and fall near their ends.
func risen(o experiment.Outcomes, rivals []rival) figure.Table {
	t := figure.Table{ID: "risen", Title: "Rises, then falls",
		Caption: "The paper sees private curves fall near their ends. The best update is that of the mean curve of " +
			"five runs, which favours it a little; in brackets a 95 % interval of the difference within runs.",
		Columns: figure.TextColumns("distribution", "method", "measure", "best after", "best", "at the end",
			"end less best", "verdict")}
	for _, scheme := range schemes {
		for _, r := range rivals {
			v := o[id(scheme, r)]
			on := taken(v)
			if r.total.Epsilon == 0 || len(on) == 0 || len(v[after(accuracy, on[0])]) < 2 {
				continue
			}
			for _, value := range []string{accuracy, logLik} {
				best := on[0]
				for _, n := range on {
					if stat.Mean(v[after(value, n)], nil) > stat.Mean(v[after(value, best)], nil) {
						best = n
					}
				}
				at := v[after(value, best)]
				fall := make([]float64, len(at))
				for i, x := range v[value] {
					fall[i] = x - at[i]
				}
				mean, half, _ := difference(fall, []float64{0})
				says, digits := "does not fall", map[string]int{accuracy: 2, logLik: 4}[value]
				if mean+half < 0 {
					says = "falls"
				}
				t.Add(scheme, r.label(), value, fmt.Sprint(best),
					experiment.Minus(experiment.SpreadOf(at).Text(digits)),
					experiment.Minus(experiment.SpreadOf(v[value]).Text(digits)),
					experiment.Interval(mean, mean-half, mean+half), says)
			}
		}
	}
	return t
}

// chart is of a distribution, or of what else of names.
func chart(of, value, by string, lines []figure.Line) figure.Figure {
	word := map[string]string{"updates": "updates", "ε": "epsilon"}[by]
	title := fmt.Sprintf("Distribution %s: %s by %s", of, value, by)
	id := strings.ReplaceAll(experiment.Slug(of), ".", "-") // which names of pictures have none of
	return figure.Figure{ID: id + "-" + value + "-by-" + word, Title: title,
		Caption: title + ". Mean over five seeds, and one standard deviation to both sides.",
		Alt:     value + " of test rows by " + by + ", distribution " + of + ".",
		Chart:   figure.Lines{X: figure.Axis{Label: by, Log: true}, Y: figure.Axis{Label: value}, Series: lines}}
}

// The map of Figure 3, and the places whose curves are shown.
var (
	rhos   = []float64{0, 0.3, 0.6, 0.9}
	kappas = []float64{-3, -1.5, 0, 0.5, 0.95}
	chosen = [][2]float64{{0, 0}, {0.6, -1.5}, {0.6, -3}, {0.9, 0.95}}
)

// lasting is over how many last updates the paper averages.
const lasting = 10

// differences is Figure 3: PVI less Global VI, and training curves.
func differences() experiment.Experiment {
	at := func(rho, kappa float64) string { return fmt.Sprintf("rho %v kappa %v", rho, kappa) }
	rivals := []rival{pvi, globalVI}
	length := map[string]int{pvi.name: 1000, globalVI.name: 10000} // ten sites' updates
	last := func(r rival, v experiment.Values, value string) *experiment.Spread {
		runs := make([]float64, len(v[value]))
		for n := length[r.name] - lasting + 1; n <= length[r.name]; n++ {
			for i, x := range v[after(value, n)] {
				runs[i] += x / lasting
			}
		}
		return experiment.SpreadOf(runs)
	}
	return experiment.Experiment{Name: "dppvi-figure-3", Data: data,
		Cells: func(quick bool) (cells experiment.Cells) {
			for _, rho := range rhos {
				for _, kappa := range kappas {
					if quick && (rho != 0.9 || kappa != 0) {
						continue
					}
					for _, r := range rivals {
						seen := r.watch()
						for n := length[r.name] - lasting + 1; n < length[r.name]; n++ {
							seen.marks = append(seen.marks, n)
						}
						if quick {
							seen = seen.with("rounds", 10)
						}
						cells.Add(id(at(rho, kappa), r), func(ctx context.Context,
							from experiment.Data) (experiment.Values, error) {
							c, err := open(ctx, from)
							if err != nil {
								return nil, err
							}
							sites, err := c.divide(evaluate.Scheme{Rho: rho, Kappa: kappa}, c.plan.Sites)
							if err != nil || sites == nil {
								return experiment.Values{}, err
							}
							return c.scores(ctx, seen, sites, seeds(r, quick))
						})
					}
				}
			}
			return cells
		},
		Conclude: func(o experiment.Outcomes) experiment.Conclusion {
			out := experiment.Conclusion{}
			for _, value := range []string{accuracy, logLik} {
				h := figure.Heatmap{Legend: "PVI less Global VI", Diverging: true,
					Facets: []figure.Facet{{Title: value}}}
				for _, kappa := range kappas {
					h.Columns = append(h.Columns, fmt.Sprintf("κ %v", kappa))
				}
				for _, rho := range rhos {
					h.Rows = append(h.Rows, fmt.Sprintf("ρ %v", rho))
					var row figure.Numbers
					for _, kappa := range kappas {
						a, b := last(pvi, o[id(at(rho, kappa), pvi)], value),
							last(globalVI, o[id(at(rho, kappa), globalVI)], value)
						if a == nil || b == nil {
							row = append(row, math.NaN())
						} else {
							row = append(row, a.Mean-b.Mean)
						}
					}
					h.Facets[0].Values = append(h.Facets[0].Values, row)
				}
				out.Figures = append(out.Figures, figure.Figure{ID: value, Title: "PVI less Global VI: " + value,
					Caption: "Rows: ρ. Columns: κ.", Alt: "Differences by ρ and κ.", Chart: h})
				for _, c := range chosen {
					var lines []figure.Line
					for _, r := range rivals {
						lines = append(lines, path(r.name, o[id(at(c[0], c[1]), r)], value))
					}
					out.Figures = append(out.Figures, chart(at(c[0], c[1]), value, "updates", lines))
				}
			}
			return out
		},
	}
}
