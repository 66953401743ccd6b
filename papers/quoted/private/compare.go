package private

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"parley/dataset"
	"parley/engine/local"
	"parley/figure"
	"parley/judge/evaluate"
	"parley/methods/factors"
	"parley/papers/deal"
	"parley/papers/experiment"
)

// contest is studies of so many sites beside other fits.
type contest struct {
	name  string // of the subjects
	sites int
	draws int
	draw  func(context.Context, experiment.Data, *rand.Rand) (*data, error)
}

var contests = []contest{
	{"400 drawn", 34, 5,
		func(_ context.Context, _ experiment.Data, r *rand.Rand) (*data, error) { return middling(r, 400) }},
	{"4000 drawn", 34, 5,
		func(_ context.Context, _ experiment.Data, r *rand.Rand) (*data, error) { return middling(r, 4000) }},
	{"333 rows", 3, 2, func(ctx context.Context, at experiment.Data, r *rand.Rand) (*data, error) {
		folder, err := at.Folder("adcsf")
		if err != nil {
			return nil, err
		}
		rows, err := deal.Open(ctx, folder)
		if err != nil {
			return nil, err
		}
		return complete(ctx, r, rows)
	}},
}

// The names of further values, and of the private study.
const (
	ours   = "study"
	warned = "warned" // 1 if the report begins with a warning
)

var compared = []string{ours, pooled, eachSite, openly, theMean}

func manySites() experiment.Experiment {
	return experiment.Experiment{Name: "parley-private-sites",
		Cells: func(quick bool) (cells experiment.Cells) {
			for i, c := range contests {
				for j, epsilon := range epsilons {
					for draw := range c.draws {
						if !quick || i+j+draw == 0 {
							cells.Add(id(c.name, epsilon, draw), func(ctx context.Context,
								at experiment.Data) (experiment.Values, error) {
								return c.measure(ctx, at, epsilon, uint64(draw))
							})
						}
					}
				}
			}
			return cells
		},
		Conclude: func(o experiment.Outcomes) experiment.Conclusion {
			t := figure.Table{ID: "sites", Title: "Error of hidden views",
				Columns: figure.TextColumns(slices.Concat([]string{"subjects", "sites", "ε"}, compared,
					[]string{"worse, warned"})...),
				Caption: "Mean absolute error in parts of the range, " +
					"and in brackets the per cent of hidden values that 90 % intervals hold. Worse: " +
					"draws in which the study was worse than the mean by more than a fiftieth."}
			for _, c := range contests {
				for _, epsilon := range epsilons {
					if row := c.row(o, epsilon); row != nil {
						t.Add(row...)
					}
				}
			}
			return experiment.Conclusion{Tables: []figure.Table{t}}
		},
	}
}

// row is a line of the table; nil if nothing was run.
func (c contest) row(o experiment.Outcomes, epsilon float64) []any {
	var ids []string
	for draw := range c.draws {
		ids = append(ids, id(c.name, epsilon, draw))
	}
	own, mean := o.Gather(missed+ours, ids...), o.Gather(missed+theMean, ids...)
	if len(own) == 0 {
		return nil
	}
	row := []any{c.name, fmt.Sprint(c.sites), fmt.Sprint(epsilon)}
	for _, name := range compared {
		cell := fmt.Sprintf("%.4f", stat.Mean(o.Gather(missed+name, ids...), nil))
		if held := o.Gather(coverage+name, ids...); len(held) > 0 {
			cell += fmt.Sprintf(" (%.0f)", 100*stat.Mean(held, nil))
		}
		row = append(row, cell)
	}
	worse := 0
	for i, x := range own {
		if x > 1.02*mean[i] {
			worse++
		}
	}
	return append(row, fmt.Sprintf("%d, %.0f of %d", worse, floats.Sum(o.Gather(warned, ids...)), len(own)))
}

// measure compares the fits on one draw.
func (c contest) measure(ctx context.Context, at experiment.Data, epsilon float64,
	seed uint64) (experiment.Values, error) {
	x, err := c.draw(ctx, at, rand.New(rand.NewPCG(seed, 1)))
	if err != nil {
		return nil, err
	}
	fits, warns, err := x.fits(ctx, c.sites, epsilon, seed)
	if err != nil {
		return nil, err
	}
	unit, err := evaluate.FitMinMax(ctx, x.train)
	if err != nil {
		return nil, err
	}
	v := experiment.Values{warned: {0}}
	if warns {
		v[warned][0] = 1
	}
	for _, name := range compared {
		hidden, err := evaluate.Impute(ctx, unit, fits[name], x.test, level)
		if err != nil {
			return nil, err
		}
		set(v, name, hidden.MAE, hidden.Coverage)
	}
	return v, nil
}

// fits makes all of them for one draw, and tells whether the study warned of itself.
func (x *data) fits(ctx context.Context, sites int, epsilon float64,
	seed uint64) (map[string]evaluate.Model, bool, error) {
	fits := map[string]evaluate.Model{}
	warned := false
	for _, of := range []struct {
		name  string
		sites int
	}{{pooled, 1}, {ours, sites}} {
		p, err := x.plan(epsilon, make([][]int, of.sites), seed)
		if err != nil {
			return nil, false, err
		}
		spread, err := deal.Spread(ctx, x.train, "", evaluate.IID, of.sites, seed)
		if err != nil {
			return nil, false, err
		}
		if of.sites == sites {
			if fits[eachSite], err = x.plain(ctx, spread, epsilon, seed); err != nil {
				return nil, false, err
			}
			if fits[openly], err = (factors.Method{}).Central(ctx, p, x.train); err != nil {
				return nil, false, err
			}
		}
		out, err := local.Run(ctx, local.Config{Plan: p, Methods: methods, Data: deal.BySite(spread)})
		if err != nil {
			return nil, false, err
		}
		if fits[of.name], err = (factors.Method{}).Evaluator(p, out.Result.Files, false); err != nil {
			return nil, false, err
		}
		warned = out.Result.Sections[0].ID == "verdicts" // of the study, which is the last
	}
	var err error
	fits[theMean], err = evaluate.FitMean(ctx, x.train)
	return fits, warned, err
}

// middling has views of 10, 10, 10 and 8 features and four factors, noise having a third of
// the variance.
func middling(r *rand.Rand, n int) (*data, error) {
	return normal(r, n, 4, []int{10, 10, 10, 8}, math.Sqrt2)
}

// complete shuffles the complete rows of a data set, two thirds for training.
func complete(ctx context.Context, r *rand.Rand, src dataset.Source) (*data, error) {
	x := &data{q: 5}
	var dims []int
	for _, v := range src.Schema().Views {
		dims = append(dims, len(v.Columns))
	}
	var rows []drawn
	for row, err := range src.Rows(ctx) {
		if err != nil {
			return nil, err
		}
		values := slices.Concat(row.Views...)
		if !slices.ContainsFunc(values, math.IsNaN) &&
			!slices.ContainsFunc(row.Views, func(v []float64) bool { return v == nil }) {
			rows = append(rows, drawn{values: values})
		}
	}
	r.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	return x, x.split(dims, rows, len(rows)-len(rows)/3)
}
