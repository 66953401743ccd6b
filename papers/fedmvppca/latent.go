package fedmvppca

import (
	"context"
	"fmt"
	"math"
	"strings"

	"gonum.org/v1/gonum/stat"

	"parley/figure"
	"parley/judge/evaluate"
	"parley/papers/experiment"
)

// repeated adds a cell for every repeat, which has its first fold and a seed.
func (c condition) repeated(cells *experiment.Cells, prefix string, repeats int,
	run func(ctx context.Context, d *division, seed uint64) (experiment.Values, error)) {
	for i := range repeats {
		cells.Add(nth(prefix, i), func(ctx context.Context, at experiment.Data) (experiment.Values, error) {
			d, err := c.first(ctx, at, i)
			if err != nil {
				return nil, err
			}
			return run(ctx, d, uint64(i))
		})
	}
}

// of gathers the values of such cells.
func of(o experiment.Outcomes, prefix, name string) []float64 {
	var ids []string
	for i := range repeats(false) {
		ids = append(ids, nth(prefix, i))
	}
	return o.Gather(name, ids...)
}

// latentSource is a data set of Table 5 with the dimensions that are tried: those of the
// table for the first, of Figure 9 for the other.
type latentSource struct {
	source
	published string // its name in the table
	largest   int
}

var latentSources = []latentSource{{synthetic, "sd", 7}, {adcsf, "adni", 15}}

// noiseOf are the models of which WAIC is: with a noise variance for each view, as the paper
// has, or for each feature.
var noiseOf = []struct{ key, prefix, measure string }{{"view", "waic-", "WAIC"},
	{"feature", "waic-by-feature-", "WAIC, noise by feature"}}

const waicRepeats = 3 // draws of the posterior take their time

// latentDimension is Table 5 with Figures 3, 4 and 9.
func latentDimension() experiment.Experiment {
	return experiment.Experiment{Name: "fedmvppca-table-5", Data: adcsf.needs(),
		Cells: func(quick bool) (cells experiment.Cells) {
			for _, d := range latentSources {
				largest, n := d.largest, min(repeats(quick), 3)
				if quick {
					largest = 3
				}
				for q := 2; q <= largest; q++ {
					for i := range n {
						d.condition(q).add(&cells, paperFit.named(q), i, quick)
					}
				}
				if !quick {
					n = waicRepeats
				}
				for _, noise := range noiseOf {
					c := condition{data: d.source, scenario: evaluate.IID, sites: 3}
					c.repeated(&cells, noise.prefix+d.name, n, func(ctx context.Context, x *division,
						seed uint64) (experiment.Values, error) {
						return waicOf(ctx, c, x, seed, largest, noise.key)
					})
				}
			}
			return cells
		},
		Conclude: concludeLatent,
	}
}

// condition is that of Table 5.
func (d latentSource) condition(q int) condition {
	s := d.source
	s.factors = q
	return condition{data: s, scenario: evaluate.IID, sites: 3, own: true}
}

// named is the rival with the dimension in its name, which names its cells.
func (r rival) named(q int) rival {
	r.name = fmt.Sprintf("%s-q-%d", r.name, q)
	return r
}

func concludeLatent(o experiment.Outcomes) experiment.Conclusion {
	out := experiment.Conclusion{Headings: []string{"data", "dimension"}}
	smallest := figure.Table{ID: "smallest", Title: "Where WAIC is smallest",
		Caption: "The dimension with the smallest value, in each repeat.",
		Columns: figure.TextColumns("data", "largest tried", "one noise variance for each view",
			"one for each feature")}
	for _, d := range latentSources {
		said := map[string]map[string]string{}
		for _, l := range read("table-5") {
			if l["data"] == d.published {
				said[l["q"]] = l
			}
		}
		var q, train, test, low, middle, high, steps figure.Numbers
		var before []float64
		for k := 2; k <= d.largest; k++ {
			at := []string{d.name, fmt.Sprint(k)}
			c := d.condition(k)
			ids := c.ids(o, paperFit.named(k).name)
			w := of(o, "waic-"+d.name, fmt.Sprintf("q%d", k))
			if len(ids) == 0 {
				continue
			}
			var waic, fit, held *experiment.Spread // as published
			if l := said[at[1]]; l != nil {
				waic = &experiment.Spread{Mean: number(l["waic"])}
				fit = &experiment.Spread{Mean: number(l["train"]), SD: number(l["train_sd"])}
				held = &experiment.Spread{Mean: number(l["test"]), SD: number(l["test_sd"])}
			}
			trained, tested := o.Gather(trainError, ids...), o.Gather(testError, ids...)
			out.Add(at, noiseOf[0].measure, 0, waic, w)
			out.Add(at, noiseOf[1].measure, 0, nil, of(o, noiseOf[1].prefix+d.name, fmt.Sprintf("q%d", k)))
			out.Add(at, "training error", 4, fit, trained)
			out.Add(at, "test error", 4, held, tested)
			q = append(q, float64(k))
			train, test = append(train, mid(trained)), append(test, mid(tested))
			low, middle = append(low, extreme(w, math.Min)), append(middle, mid(w))
			high = append(high, extreme(w, math.Max))
			steps = append(steps, standardized(w, before))
			before = w
		}
		smallest.Add(d.name, fmt.Sprint(d.largest), d.smallest(o, noiseOf[0].prefix), d.smallest(o, noiseOf[1].prefix))
		byDimension := func(label string, lines ...figure.Line) figure.Lines {
			for i := range lines {
				lines[i].X = q
			}
			return figure.Lines{X: figure.Axis{Label: "latent dimension", Count: true}, Y: figure.Axis{Label: label},
				Series: lines}
		}
		out.Figures = append(out.Figures,
			figure.Figure{ID: "error-" + d.name, Title: "Error by latent dimension, " + d.name,
				Caption: "Figure 3: mean absolute error of the published method, each site scaled by itself.",
				Alt:     "Training and test error by latent dimension.",
				Chart: byDimension("mean absolute error", figure.Line{Name: "training", Y: train},
					figure.Line{Name: "test", Y: test})},
			figure.Figure{ID: "waic-" + d.name, Title: "WAIC by latent dimension, " + d.name,
				Caption: "Figures 3 and 9: mean over repeats, and the range.", Alt: "WAIC by latent dimension.",
				Chart: byDimension("WAIC", figure.Line{Name: "WAIC", Y: middle, Low: low, High: high})},
			figure.Figure{ID: "waic-steps-" + d.name, Title: "Standardised steps of WAIC, " + d.name,
				Caption: "Figure 4: what one more dimension changes, in standard errors.",
				Alt:     "Standardised mean differences of WAIC by latent dimension.",
				Chart:   byDimension("standard errors", figure.Line{Name: "step", Y: steps})},
		)
	}
	out.Tables = append(out.Tables, smallest)
	return out
}

// smallest lists the dimensions with the smallest WAIC, one for each repeat.
func (d latentSource) smallest(o experiment.Outcomes, prefix string) string {
	var best []string
	for i := range repeats(false) {
		v := o[nth(prefix+d.name, i)]
		at, least := 0, math.Inf(1)
		for k := 2; k <= d.largest; k++ {
			if w := v[fmt.Sprintf("q%d", k)]; len(w) > 0 && w[0] < least {
				at, least = k, w[0]
			}
		}
		if at > 0 {
			best = append(best, fmt.Sprint(at))
		}
	}
	return strings.Join(best, ", ")
}

func mid(x []float64) float64 {
	if len(x) == 0 {
		return math.NaN()
	}
	return stat.Mean(x, nil)
}

func extreme(x []float64, pick func(a, b float64) float64) float64 {
	out := math.NaN()
	for i, v := range x {
		if i == 0 {
			out = v
		}
		out = pick(out, v)
	}
	return out
}

// standardized is the mean difference in standard errors; NaN where there is none.
func standardized(x, before []float64) float64 {
	if len(x) < 2 || len(before) < 2 {
		return math.NaN()
	}
	a, va := stat.MeanVariance(x, nil)
	b, vb := stat.MeanVariance(before, nil)
	return (a - b) / math.Sqrt(va/float64(len(x))+vb/float64(len(before)))
}
