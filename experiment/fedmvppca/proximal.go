package fedmvppca

import (
	"fmt"
	"strconv"
	"strings"

	"parley/experiment"
	"parley/figure"
	"parley/judge/evaluate"
)

// autoencoders of Table 7 and Figure 11, by the names that the table has.
var autoencoders = map[string]string{"VAE": "linear", "mc-VAE": "multi-channel"}

// layers is the autoencoder with a hidden layer, of Figure 11.
var layers = federated("VAE, two layers", true, autoencoder("two-layer", 0))

// proximal is Table 7 with Figure 11: FedProx in scenario G.
func proximal() experiment.Experiment {
	published := tableOf("table-7")
	of := func(l line) rival {
		name, lambda, _ := strings.Cut(l.method, ", λ ")
		x, err := strconv.ParseFloat(lambda, 64)
		if err != nil {
			panic(err)
		}
		return federated(l.method, true, autoencoder(autoencoders[name], x))
	}
	each := func(quick bool, do func(c condition, r rival)) {
		for _, l := range published {
			if quick && (l.sites != 3 || l.method != "VAE, λ 0.1") {
				continue
			}
			do(condition{data: adcsf, scenario: l.scenario, sites: l.sites, own: true}, of(l))
		}
		if !quick {
			c := condition{data: adcsf, scenario: evaluate.G, sites: 3, own: true}
			do(c, layers)
			do(c, paperFit)
		}
	}
	return experiment.Experiment{Name: "fedmvppca-table-7", Paper: Paper.Name, Item: "Table 7, Figure 11",
		About: "Whether FedProx helps autoencoders where sites hold other groups (G), by its λ; and whether a second layer does. " + about["adcsf"],
		Notes: []string{"The rows λ = 0 (FedAvg) of the published table are those of scenario IID in Table 2 to the last digit, not of G: VAE with three sites has .1172, .1192 and .8289 in both. The step from them to λ = 0.01 is therefore one of scenarios, and no effect of FedProx."},
		Cells: func(quick bool) (cells []experiment.Cell) {
			each(quick, func(c condition, r rival) {
				for i := range r.repeats(adcsf, quick) {
					cells = append(cells, c.cell(r, i, quick))
				}
			})
			return cells
		},
		Conclude: func(o experiment.Outcomes) experiment.Conclusion {
			out := conclude(o, adcsf, published, nil, nil)
			out.Tables = nil
			var bars figure.Bars
			bars.X.Label = "test error, G, three sites"
			each(false, func(c condition, r rival) {
				s := experiment.SpreadOf(o.Gather(testError, c.ids(o, r.name)...))
				if c.sites != 3 || s == nil {
					return
				}
				bars.Labels, bars.Values = append(bars.Labels, r.name), append(bars.Values, s.Mean)
				bars.Low, bars.High = append(bars.Low, s.Mean-s.SD), append(bars.High, s.Mean+s.SD)
			})
			if len(bars.Labels) > 0 {
				out.Figures = append(out.Figures, figure.Figure{ID: "test-error", Title: "Test error by method", Caption: fmt.Sprintf("Figure 11: mean over folds, and one standard deviation to both sides, of %d methods.", len(bars.Labels)), Alt: "Forest plot of test errors.", Chart: bars})
			}
			return out
		},
	}
}
