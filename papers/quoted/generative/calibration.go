package generative

import (
	"context"
	"fmt"
	"slices"

	"parley/figure"
	"parley/methods/mixture"
	"parley/methods/mixture/gmm"
	"parley/methods/mixture/sketch"
	"parley/papers/experiment"
	"parley/papers/graffl/toy"
)

const (
	verdictLevel = 0.01 // at which a calibrated method fails
	replicates   = 100
	fewest       = 20  // the fewest replicates that can be
	calibrated   = 900 // rows of a replicate, all sites together
	ranks        = "ranks"
)

var calibratedTotals = []float64{0, 5} // ε; 0 for no privacy

func replicateID(epsilon float64, i int) string {
	return experiment.Slug(fmt.Sprintf("%s %d", privacyName(epsilon), i))
}

// replicate is the toy's plan with parameters from its prior.
func replicate(epsilon float64) (c sketch.Replicate, err error) {
	p, err := toy.Study{Epsilon: epsilon, Seed: 1, Options: map[string]any{"draws": sketch.DefaultSampling(0).Particles}}.Plan()
	if err != nil {
		return c, err
	}
	return mixture.NewReplicate(p, calibrated)
}

// calibration asks whether parameters look like draws from the posteriors of their data.
func calibration() experiment.Experiment {
	return experiment.Experiment{Name: "parley-calibration", Paper: "parley", Item: "Calibration of the landmark variant",
		About: fmt.Sprintf("The example of three modes, with parameters drawn from the prior and %d rows. A calibrated posterior ranks them uniformly.", calibrated),
		Cells: func(quick bool) (cells []experiment.Cell) {
			for _, epsilon := range calibratedTotals {
				for i := range replicates {
					if quick && (epsilon > 0 || i >= fewest) {
						continue
					}
					cells = append(cells, experiment.Cell{ID: replicateID(epsilon, i), Run: func(ctx context.Context, _ experiment.Data) (experiment.Values, error) {
						c, err := replicate(epsilon)
						if err != nil {
							return nil, err
						}
						if quick {
							c.Sampling.Particles, c.Sampling.Sweeps = 64, 1
						}
						r, err := c.Ranks(i)
						return experiment.Values{ranks: r}, err
					}})
				}
			}
			return cells
		},
		Conclude: func(o experiment.Outcomes) (out experiment.Conclusion) {
			t := figure.Table{ID: "calibration", Title: "Ranks of the truth",
				Caption: fmt.Sprintf("%d replicates. Calibrated means p ≥ %v / 8 for each of 8 quantities: a calibrated method fails once in a hundred times.", replicates, verdictLevel),
				Columns: figure.TextColumns("privacy", "quantity", "p", "50 % intervals hold", "90 % intervals hold", "verdict")}
			for _, epsilon := range calibratedTotals {
				var all [][]float64
				for i := range replicates {
					if v := o[replicateID(epsilon, i)]; v != nil {
						all = append(all, v[ranks])
					}
				}
				c, err := replicate(epsilon)
				if err != nil || len(all) == 0 {
					continue
				}
				found, err := c.Calibrate(all)
				if err != nil {
					continue
				}
				verdict := "calibrated"
				if !gmm.Pass(found, verdictLevel) {
					verdict = "NOT calibrated"
					out.Broken = append(out.Broken, privacyName(epsilon)+": the posterior is not calibrated")
				}
				for _, one := range found {
					t.Add(privacyName(epsilon), one.Name, fmt.Sprintf("%.4f", one.P), fmt.Sprintf("%.3f", one.Curve[slices.Index(gmm.Levels(), 0.5)]), fmt.Sprintf("%.3f", one.Within), verdict)
				}
			}
			out.Tables = []figure.Table{t}
			return out
		},
	}
}
