package fedmvppca

import (
	"fmt"
	"math"

	"parley/experiment"
	"parley/figure"
	"parley/judge/evaluate"
)

// settings of Figure 6: one of both is varied at a time.
var (
	figure6Epsilons = []float64{0.1, 0.5, 1, 5, 10, 50, 100}
	figure6Clips    = []float64{0.05, 0.1, 0.2, 0.5, 1, 2}
)

const figure6Epsilon = 1 // at which the clip is varied, as the text has it

func (r rival) with(epsilon, clip float64) rival {
	r = federated(fmt.Sprintf("%s-epsilon-%v-clip-%v", r.name, epsilon, clip), false, noised(epsilon, clip))
	r.fails = true
	return r
}

// privacyFigure is Figure 6.
func privacyFigure() experiment.Experiment {
	c := condition{data: adcsf, scenario: evaluate.IID, sites: 3, own: true}
	rivals := []rival{paperFit}
	for _, e := range figure6Epsilons {
		rivals = append(rivals, paperDP.with(e, 1))
	}
	for _, k := range figure6Clips {
		if k != 1 {
			rivals = append(rivals, paperDP.with(figure6Epsilon, k))
		}
	}
	return experiment.Experiment{Name: "fedmvppca-figure-6", Paper: Paper.Name, Item: "Figure 6",
		About: "Accuracy in latent space by ε of each release and by the constant of the clipping, IID, three sites. " + about["adcsf"],
		Notes: []string{
			"The paper shows boxes without numbers. ε and δ = 0.01 are of each release; the first round is in clear, as the published errors need it to be. Nothing is promised in total: docs/privacy.md says what 100 rounds of such releases come to.",
		},
		Cells: func(quick bool) (cells []experiment.Cell) {
			for _, r := range rivals {
				for i := range repeats(quick) {
					cells = append(cells, c.cell(r, i, quick))
				}
			}
			return cells
		},
		Conclude: func(o experiment.Outcomes) experiment.Conclusion {
			out := experiment.Conclusion{}
			clear := experiment.SpreadOf(o.Gather(accuracy, c.ids(o, paperFit.name)...))
			show := func(id, title, label string, values []float64, setting func(float64) rival) {
				var x, y, low, high figure.Numbers
				var spread, came []string
				for _, v := range values {
					ids := c.ids(o, setting(v).name)
					s, n := experiment.SpreadOf(o.Gather(accuracy, ids...)), len(o.Gather(failed, ids...))
					x = append(x, v)
					spread = append(spread, s.Text(3))
					if s == nil { // nothing came of any fit
						s = &experiment.Spread{Mean: math.NaN()}
					}
					y, low, high = append(y, s.Mean), append(low, s.Mean-s.SD), append(high, s.Mean+s.SD)
					came = append(came, fmt.Sprintf("%d of %d", n, n+s.N))
				}
				if clear == nil {
					return
				}
				out.Figures = append(out.Figures, figure.Figure{ID: id, Title: title, Caption: "Mean over folds, and one standard deviation to both sides; dashed: without privacy.",
					Alt: "Accuracy by " + label + ".", Chart: figure.Lines{X: figure.Axis{Label: label, Log: true}, Y: figure.Axis{Label: "accuracy"}, Series: []figure.Line{
						{Name: "DP-Fed-mv-PPCA", X: x, Y: y, Low: low, High: high},
						{Name: "Fed-mv-PPCA", X: figure.Numbers{x[0], x[len(x)-1]}, Y: figure.Numbers{clear.Mean, clear.Mean}, Reference: true}}}})
				t := figure.Table{ID: id + "-numbers", Title: title, Caption: "Mean ± standard deviation over folds.", Columns: []figure.Column{{Name: label, Numbers: x}, {Name: "accuracy", Text: spread}, {Name: "fits that diverged", Text: came}}}
				out.Tables = append(out.Tables, t)
			}
			show("epsilon", "Accuracy by ε", "ε of each release", figure6Epsilons, func(e float64) rival { return paperDP.with(e, 1) })
			show("clip", fmt.Sprintf("Accuracy by clipping constant, ε %d", figure6Epsilon), "clipping constant", figure6Clips, func(k float64) rival { return paperDP.with(figure6Epsilon, k) })
			return out
		},
	}
}
