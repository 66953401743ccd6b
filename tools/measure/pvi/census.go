package pvi

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"parley/dataset"
	"parley/method"
	"parley/methods/pvi"
	"parley/methods/pvi/gvi"
	"parley/methods/pvi/options"
	"parley/study"
)

// census is the example's data as the published experiments see them.
type census struct {
	plan        *study.Plan // the example's, with every column that says who has which rows
	outcome     gvi.Outcome
	constants   []options.Constant
	views       []map[string]any
	sites       map[string]map[string]*dataset.Table // by distribution and site
	train, test *gvi.Design
	held        *dataset.Table // the rows of test
}

// open reads the data, and divides the rows by every distribution asked for.
func open(ctx context.Context, c *config) (*census, error) {
	plan, err := study.Load(c.plan, method.Registry{pvi.Method{}})
	if err != nil {
		return nil, err
	}
	options, ok := plan.Method.Options.(*options.Options)
	if !ok {
		return nil, fmt.Errorf("%s is a plan of method %s", c.plan, plan.Method.Name)
	}
	plan.Subjects = append([]string{options.Outcome.Column, "split"}, c.schemes...)
	schema := plan.Schema()
	dir, err := dataset.Open(ctx, c.data, dataset.Options{Schema: &schema})
	if err != nil {
		return nil, err
	}
	table, err := dataset.Collect(ctx, dir)
	if err != nil {
		return nil, err
	}
	x := &census{plan: plan, outcome: options.Outcome, sites: map[string]map[string]*dataset.Table{}}
	x.features(table)
	rows := func(column string) map[string]*dataset.Table {
		at := map[string][]int{}
		place := slices.Index(plan.Subjects, column)
		for i := range table.Len() {
			level := table.Row(i).Subject[place]
			at[level] = append(at[level], i)
		}
		out := map[string]*dataset.Table{}
		for level, rows := range at {
			out[level] = table.Select(rows...)
		}
		return out
	}
	for _, scheme := range c.schemes {
		x.sites[scheme] = rows(scheme)
		maps.DeleteFunc(x.sites[scheme], func(name string, _ *dataset.Table) bool { return !slices.Contains(plan.Sites, name) })
	}
	parts := rows("split")
	x.held = parts["test"]
	if x.train, err = x.design(ctx, parts["train"]); err != nil {
		return nil, err
	}
	x.test, err = x.design(ctx, parts["test"])
	return x, err
}

// features describes the columns for a plan, with constants of all rows.
func (x *census) features(table *dataset.Table) {
	for k, v := range x.plan.Views {
		var features []map[string]any
		for j, f := range v.Features {
			one := map[string]any{"name": f.Name}
			if f.Kind == study.Category {
				one["kind"], one["levels"] = f.Kind, f.Levels
			} else {
				x.constants = append(x.constants, standard(table, k, j, f.Name))
			}
			features = append(features, one)
		}
		x.views = append(x.views, map[string]any{"name": v.Name, "features": features})
	}
}

// standard is the mean and the standard deviation (divisor n) of a column.
func standard(table *dataset.Table, view, column int, name string) options.Constant {
	n, mean, square := float64(table.Len()), 0.0, 0.0
	for i := range table.Len() {
		mean += table.Row(i).Views[view][column] / n
	}
	for i := range table.Len() {
		d := table.Row(i).Views[view][column] - mean
		square += d * d / n
	}
	return options.Constant{Feature: name, Centre: mean, Scale: math.Sqrt(square)}
}

// design encodes rows as the plans do.
func (x *census) design(ctx context.Context, table *dataset.Table) (*gvi.Design, error) {
	if table == nil {
		return nil, fmt.Errorf("column split has no rows to train with, or none to test")
	}
	e := gvi.Encoding{}
	constants := x.constants
	for _, v := range x.plan.Views {
		for _, f := range v.Features {
			if f.Kind == study.Category {
				e.Columns = append(e.Columns, gvi.Column{Name: f.Name, Levels: f.Levels})
				continue
			}
			e.Columns = append(e.Columns, gvi.Column{Name: f.Name, Centre: constants[0].Centre, Scale: constants[0].Scale})
			constants = constants[1:]
		}
	}
	return designOf(ctx, &e, &x.outcome, table)
}

// score is how well the test rows are predicted, by the probit approximation.
type score struct{ accuracy, logLik float64 }

func (x *census) score(q gvi.Gaussian) (score, error) {
	p, err := gvi.PredictBinary(x.test, q, false)
	if err != nil {
		return score{}, err
	}
	return score{100 * p.Accuracy(), p.LogLik}, nil
}

// exact is central inference on all training rows.
func (x *census) exact() (scores, error) {
	prior := gvi.Isotropic(x.train.Columns(), 0, 1)
	local := gvi.Local{Likelihood: gvi.Logistic{}, Data: x.train, Cavity: prior}
	q, info, err := local.Optimum(prior, gvi.Solve{})
	if err != nil {
		return nil, err
	}
	if !info.Converged {
		return nil, gvi.ErrNotConverged
	}
	s, err := x.score(q)
	return scores{s}, err
}

// scores are those of runs that differ in their seed.
type scores []score

// String gives mean ± standard deviation of accuracy and log-likelihood.
func (all scores) String() string {
	var accuracy, logLik []float64
	for _, s := range all {
		accuracy, logLik = append(accuracy, s.accuracy), append(logLik, s.logLik)
	}
	return plusMinus(accuracy, "%.2f") + " %, " + plusMinus(logLik, "%.4f")
}

// plusMinus gives mean ± standard deviation; of a single number the number.
func plusMinus(x []float64, format string) string {
	mean, sd := stat.MeanStdDev(x, nil)
	text := fmt.Sprintf(format, mean)
	if len(x) > 1 {
		text += " ± " + fmt.Sprintf(format, sd)
	}
	return strings.ReplaceAll(text, "-", "−")
}
