// Package private measures what the private mechanism "statistics" is worth, through whole
// studies with real gates and noise: the error of describing subjects who took no part, and
// how often 90 % intervals hold what is hidden.
//
// Errors are in parts of the range of the training rows, which stands in for the
// public one. Of paper's subjects two thirds are trained with; wide's number is
// that of the training rows. The data are a function of the draw's number; the
// noise is not, so that two runs differ by it.
package private

import (
	"context"
	"fmt"
	"math/rand/v2"

	"parley/figure"
	"parley/judge/evaluate"
	"parley/papers/experiment"
)

// Experiments are those of this package.
func Experiments() experiment.List { return experiment.List{threeSites(), manySites()} }

// kind is one line of the tables.
type kind struct {
	name     string
	draw     func(*rand.Rand, int) (*data, error)
	scenario evaluate.Scenario
	subjects int
	draws    int
}

var epsilons = []float64{1, 3, 10} // of every kind

var kinds = []kind{
	{"paper, 400", paper, evaluate.IID, 400, 10},
	{"paper, 4000", paper, evaluate.IID, 4000, 10},
	{"paper, 40000", paper, evaluate.IID, 40000, 10},
	{"paper, G, 4000", paper, evaluate.G, 4000, 10},
	{"paper, K, 4000", paper, evaluate.K, 4000, 10},
	{"paper, G/K, 4000", paper, evaluate.GK, 4000, 10},
	{"wide, 400", wide, evaluate.IID, 400, 5},
	{"wide, 2000", wide, evaluate.IID, 2000, 5},
}

func id(name string, of any, draw int) string {
	return experiment.Slug(fmt.Sprintf("%s %v %d", name, of, draw+1))
}

// A cell's values are an error and, where there are intervals, their coverage of each of
// these, by these names and what they are of.
const (
	missed   = "error of "
	coverage = "coverage of "
)

// The fits that are compared.
const (
	openly   = "no privacy"
	pooled   = "trusted curator"
	eachSite = "noise per site"
	theMean  = "the mean"
)

func under(epsilon float64) string { return fmt.Sprintf("ε = %v", epsilon) }

func threeSites() experiment.Experiment {
	return experiment.Experiment{Name: "parley-private",
		Cells: func(quick bool) (cells experiment.Cells) {
			for i, k := range kinds {
				for draw := range k.draws {
					if !quick || i+draw == 0 {
						cells.Add(id(k.name, "", draw), func(ctx context.Context,
							_ experiment.Data) (experiment.Values, error) {
							return k.measure(ctx, uint64(draw))
						})
					}
				}
			}
			return cells
		},
		Conclude: func(o experiment.Outcomes) (out experiment.Conclusion) {
			var names []string
			for _, e := range epsilons {
				names = append(names, under(e))
			}
			names = append(names, openly, theMean)
			for _, t := range []struct {
				id, title, caption, of, format string
				scale                          float64
			}{
				{"error", "Error on subjects who took no part", "Mean absolute errors in parts of the range, " +
					"mean ± standard deviation between draws.", missed, "%.4f", 1},
				{"coverage", "Intervals of 90 %", "Per cent of hidden values that they hold, " +
					"mean ± standard deviation between draws.", coverage, "%.1f", 100},
			} {
				table := figure.Table{ID: t.id, Title: t.title, Caption: t.caption,
					Columns: figure.TextColumns(append([]string{t.id}, names...)...)}
				for _, k := range kinds {
					row, found := []any{k.name}, false
					for _, name := range names {
						var x []float64
						for draw := range k.draws {
							for _, v := range o[id(k.name, "", draw)][t.of+name] {
								x = append(x, t.scale*v)
							}
						}
						text := "–" // the mean of all rows has no intervals
						if s := experiment.SpreadOf(x); s != nil {
							text, found = fmt.Sprintf(t.format+" ± "+t.format, s.Mean, s.SD), true
						}
						row = append(row, text)
					}
					if found {
						table.Add(row...)
					}
				}
				out.Tables = append(out.Tables, table)
			}
			return out
		},
	}
}
