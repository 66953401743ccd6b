package dppvi

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"parley/figure"
	"parley/papers/experiment"
)

// whoWins compares the default at each ε with the published method at the same ε, and with
// the methods that are not private.
func whoWins(o experiment.Outcomes, rivals []rival) figure.Table {
	t := figure.Table{ID: "who-wins", Title: "Who wins where",
		Caption: "The default less a rival on the same test rows: above zero the default is better. " +
			"In brackets a 95 % interval (Welch) for the draws of noise and of seeds over five runs; " +
			"it says nothing of other test rows, whose accuracy varies by about 0.3 points.",
		Columns: figure.TextColumns("distribution", "default", "rival", "accuracy, points", "verdict",
			"log-likelihood", "verdict")}
	for _, s := range schemes {
		for _, mine := range rivals {
			if mine.name != today(1).name {
				continue
			}
			for _, r := range rivals {
				if r.name == mine.name || r.total.Epsilon > 0 && r.total.Epsilon != mine.total.Epsilon {
					continue
				}
				cells := []any{s, mine.label(), r.label()}
				for _, measure := range []string{accuracy, logLik} {
					if mean, half, ok := difference(o[id(s, mine)][measure], o[id(s, r)][measure]); ok {
						cells = append(cells, experiment.Interval(mean, mean-half, mean+half),
							experiment.Verdict(mean-half, mean+half, true))
					}
				}
				if len(cells) == len(t.Columns) {
					t.Add(cells...)
				}
			}
		}
	}
	return t
}

// difference is that of two means of independent runs, with half the width of Welch's 95 %
// interval. A method that draws nothing has one run and no variance.
func difference(a, b []float64) (mean, half float64, ok bool) {
	if len(a) == 0 || len(b) == 0 || len(a)+len(b) < 3 {
		return 0, 0, false
	}
	var square, freedom float64 // of the standard error, and the denominator of its degrees of freedom
	for _, x := range [][]float64{a, b} {
		if len(x) > 1 {
			n := float64(len(x))
			v := stat.Variance(x, nil) / n
			square += v
			freedom += v * v / (n - 1)
		}
	}
	if square > 0 {
		half = math.Sqrt(square) * distuv.StudentsT{Sigma: 1, Nu: square * square / freedom}.Quantile(0.975)
	}
	return stat.Mean(a, nil) - stat.Mean(b, nil), half, true
}
