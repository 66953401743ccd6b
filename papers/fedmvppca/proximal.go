package fedmvppca

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"parley/figure"
	"parley/judge/evaluate"
	"parley/papers/experiment"
)

// autoencoders of Table 7 and Figure 11: the names that the table has, those of plans, and
// with a hidden layer, which the figure adds.
var autoencoders = []struct {
	name, model string
	layers      rival
}{
	{"VAE", "linear", federated("VAE, two layers", true, autoencoder("two-layer", 0))},
	{"mc-VAE", "multi-channel", federated("mc-VAE, two layers", true, deepChannels)},
}

// deepChannels is the multi-channel autoencoder with a hidden layer in every channel. The
// paper gives no width: this is the default of one channel, √(dq), for a view of the mean
// number d of features.
func deepChannels(c condition, d *division) (keys, keys) {
	m, privacy := autoencoder("multi-channel", 0)(c, d)
	views := d.sites[0].Schema().Views
	features := 0
	for _, v := range views {
		features += len(v.Columns)
	}
	m["hidden"] = max(c.data.factors, int(math.Round(math.Sqrt(float64(features*c.data.factors)/float64(len(views))))))
	return m, privacy
}

// shrunk is the autoencoder of a line of Table 7.
func shrunk(l line) rival {
	name, text, _ := strings.Cut(l.method, ", λ ")
	lambda, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(err)
	}
	for _, a := range autoencoders {
		if a.name == name {
			return federated(l.method, true, autoencoder(a.model, lambda))
		}
	}
	panic(name)
}

// proximal is Table 7 with Figure 11: FedProx in scenario G.
func proximal() experiment.Experiment {
	published := tableOf("table-7")
	each := func(quick bool, do func(c condition, r rival)) {
		for _, l := range published {
			if quick && (l.sites != 3 || l.method != "VAE, λ 0.1") {
				continue
			}
			do(condition{data: adcsf, scenario: l.scenario, sites: l.sites, own: true}, shrunk(l))
		}
		for _, r := range beside() {
			do(figure11, r)
		}
	}
	return experiment.Experiment{Name: "fedmvppca-table-7", Data: adcsf.needs(),
		Cells: func(quick bool) (cells experiment.Cells) {
			each(quick, func(c condition, r rival) {
				for i := range r.repeats(adcsf, quick) {
					c.add(&cells, r, i, quick)
				}
			})
			return cells
		},
		Conclude: func(o experiment.Outcomes) experiment.Conclusion { return concludeProximal(o, published) },
	}
}

// figure11 is the condition of Figure 11, and beside are the methods that it compares with
// the rows of the table.
var figure11 = condition{data: adcsf, scenario: evaluate.G, sites: 3, own: true}

func beside() []rival { return []rival{paperFit, autoencoders[0].layers, autoencoders[1].layers} }

func concludeProximal(o experiment.Outcomes, published []line) experiment.Conclusion {
	out := conclude(o, adcsf, published, nil, field{})
	for _, r := range beside() {
		if ids := figure11.ids(o, r.name); len(ids) > 0 {
			for _, m := range measures {
				out.Add(append(figure11.of(), r.name), m.title, m.digits, nil, o.Gather(m.name, ids...))
			}
		}
	}
	out.Figures = figures11(out.Rows)
	return out
}

// figures11 draws Figure 11 from the rows of the table.
func figures11(rows []experiment.Row) (all []figure.Figure) {
	for _, a := range autoencoders {
		errors := byLambda(rows, a.name, a.layers.name, "training error", "test error")
		hits := byLambda(rows, a.name, a.layers.name, "accuracy")
		if len(errors.Series) == 0 {
			continue
		}
		id := experiment.Slug(a.name)
		const caption = "Figure 11: scenario G, three sites, mean over folds and one standard deviation to both " +
			"sides. Dashed, without λ: Fed-mv-PPCA, and two layers by FedAvg."
		errors.Y.Label, hits.Y.Label = "mean absolute error", "accuracy"
		all = append(all,
			figure.Figure{ID: "error-" + id, Title: a.name + ": error by λ", Caption: caption,
				Alt: "Training and test error of " + a.name + " by λ.", Chart: errors},
			figure.Figure{ID: "accuracy-" + id, Title: a.name + ": accuracy by λ", Caption: caption,
				Alt: "Accuracy of " + a.name + " by λ.", Chart: hits})
	}
	return all
}

// byLambda draws measures of an autoencoder by λ, with those of what has none.
func byLambda(rows []experiment.Row, name, layers string, measures ...string) figure.Lines {
	chart := figure.Lines{X: figure.Axis{Label: "λ of FedProx; 0 is FedAvg"}}
	var besides []figure.Line
	for _, measure := range measures {
		l := figure.Line{Name: name + ", " + measure}
		for _, r := range rows {
			if r.Of[1] != fmt.Sprint(figure11.sites) || r.Measure != measure || r.Ours == nil {
				continue
			}
			with, text, _ := strings.Cut(r.Of[2], ", λ ")
			if lambda, err := strconv.ParseFloat(text, 64); err == nil && with == name {
				r.Ours.Point(&l, lambda)
			}
			if r.Of[2] == paperFit.name || r.Of[2] == layers {
				besides = append(besides, figure.Line{Name: r.Of[2] + ", " + measure,
					Y: figure.Numbers{r.Ours.Mean, r.Ours.Mean}, Reference: true})
			}
		}
		if len(l.X) > 1 {
			chart.Series = append(chart.Series, l)
		}
	}
	if len(chart.Series) == 0 {
		return chart
	}
	for _, b := range besides {
		x := chart.Series[0].X
		b.X = figure.Numbers{x[0], x[len(x)-1]}
		chart.Series = append(chart.Series, b)
	}
	return chart
}
