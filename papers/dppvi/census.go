package dppvi

import (
	"context"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"

	"parley/dataset"
	"parley/engine/local"
	"parley/judge/evaluate"
	"parley/method"
	published "parley/methods/published/dppvi"
	"parley/methods/regression"
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
	"parley/papers/deal"
	"parley/papers/experiment"
	"parley/privacy"
	"parley/privacy/account"
	"parley/privacy/ledger"
	"parley/study"
)

var methods = method.Registry{regression.Method{}, published.Method{}}

// census is the example's data as the published experiments see them.
type census struct {
	plan     *study.Plan // the example's, with the columns that divide the rows
	says     *options.Options
	table    *dataset.Table
	test     *dataset.Table // rows kept for testing
	outcome  int            // its column among those of subjects
	positive string
	views    []keys
	constant []glm.Constant
}

// open reads the data.
func open(ctx context.Context, at experiment.Data) (*census, error) {
	folder, err := at.Folder(data[0])
	if err != nil {
		return nil, err
	}
	plan, err := study.Load(filepath.Join(at.Clone, "examples", "income", "plan.yaml"), methods)
	if err != nil {
		return nil, err
	}
	c := &census{plan: plan, says: plan.Method.Options.(*options.Options)}
	plan.Subjects = append([]string{c.says.Outcome.Column, "split"}, schemes...)
	c.positive = c.says.Outcome.Levels[1]
	schema := plan.Schema()
	dir, err := dataset.Open(ctx, folder, dataset.Options{Schema: &schema})
	if err != nil {
		return nil, err
	}
	if c.table, err = dataset.Collect(ctx, dir); err != nil {
		return nil, err
	}
	for k, v := range plan.Views {
		var features []keys
		for j, f := range v.Features {
			one := keys{"name": f.Name}
			if f.Kind == study.Category {
				one["kind"], one["levels"] = f.Kind, f.Levels
			} else {
				c.constant = append(c.constant, c.standard(k, j, f.Name))
			}
			features = append(features, one)
		}
		c.views = append(c.views, keys{"name": v.Name, "features": features})
	}
	c.test = c.where("split")["test"]
	return c, nil
}

// standard is the mean and the standard deviation (divisor n) of a column over all rows.
func (c *census) standard(view, column int, name string) glm.Constant {
	n, mean, square := float64(c.table.Len()), 0.0, 0.0
	for i := range c.table.Len() {
		mean += c.table.Row(i).Views[view][column] / n
	}
	for i := range c.table.Len() {
		d := c.table.Row(i).Views[view][column] - mean
		square += d * d / n
	}
	return glm.Constant{Feature: name, Centre: mean, Scale: math.Sqrt(square)}
}

// where returns the rows by what a column says.
func (c *census) where(column string) map[string]*dataset.Table {
	place := slices.Index(c.plan.Subjects, column)
	at := map[string][]int{}
	for i := range c.table.Len() {
		level := c.table.Row(i).Subject[place]
		at[level] = append(at[level], i)
	}
	out := map[string]*dataset.Table{}
	for level, rows := range at {
		out[level] = c.table.Select(rows...)
	}
	return out
}

// spread divides the training rows by a distribution of Table 1.
func (c *census) spread(scheme string) map[string]*dataset.Table {
	sites := c.where(scheme)
	maps.DeleteFunc(sites, func(name string, _ *dataset.Table) bool { return !slices.Contains(c.plan.Sites, name) })
	return sites
}

// divide divides the training rows by a scheme; nil if there are too few of a class.
func (c *census) divide(s evaluate.Scheme, names []string) (map[string]*dataset.Table, error) {
	train := c.where("split")["train"]
	var subjects []evaluate.Subject
	majority := 0
	for i := range train.Len() {
		r := train.Row(i)
		subjects = append(subjects, evaluate.Subject{ID: r.ID, Group: r.Subject[c.outcome]})
		if r.Subject[c.outcome] != c.positive {
			majority++
		}
	}
	if shares, err := s.Shares(len(names), train.Len(), majority); err != nil || !shares.Valid() {
		return nil, nil
	}
	placed, err := s.Assign(subjects, names, 0)
	if err != nil {
		return nil, err
	}
	ids := map[string][]string{}
	for _, p := range placed {
		name := names[p.Site]
		ids[name] = append(ids[name], p.ID)
	}
	sites := map[string]*dataset.Table{}
	for name, of := range ids {
		if sites[name], err = train.SelectIDs(of...); err != nil {
			return nil, err
		}
	}
	return sites, nil
}

// scores runs a rival's study with each seed, and judges it by the test rows.
func (c *census) scores(ctx context.Context, r rival, sites map[string]*dataset.Table,
	seeds int) (experiment.Values, error) {
	v := experiment.Values{}
	for seed := range seeds {
		p, err := c.study(r, sites, uint64(seed)+1)
		if err != nil {
			return nil, err
		}
		data := map[string]dataset.Source{}
		for name, t := range sites {
			data[name] = t
		}
		seen := map[int][2]float64{}
		with := watched{at: r.marks, show: func(updates int, found *method.Result) (err error) {
			seen[updates], err = c.judge(ctx, p, found)
			return err
		}}
		out, err := local.Run(ctx,
			local.Config{Plan: p, Methods: method.Registry{regression.Method{}, with}, Data: data})
		if err != nil {
			return nil, err
		}
		end, err := c.judge(ctx, p, out.Result)
		if err != nil {
			return nil, err
		}
		for _, n := range r.marks { // a study that has ended stays where it is
			x, ok := seen[n]
			if !ok {
				x = end
			}
			for i, value := range []string{accuracy, logLik} {
				v[after(value, n)] = append(v[after(value, n)], x[i])
			}
		}
		bytes := 0
		for _, round := range out.Rounds {
			for _, x := range round.Sites {
				bytes += int(x.Up + x.Down)
			}
		}
		v[updates], v[traffic] = append(v[updates], out.Result.Metrics["updates"]), append(v[traffic], float64(bytes))
		if r.total.Epsilon > 0 && seed == 0 {
			e, err := trueEpsilon(p, r.total.Delta)
			if err != nil {
				return nil, err
			}
			v[spent] = []float64{e}
		}
		v[accuracy], v[logLik] = append(v[accuracy], end[0]), append(v[logLik], end[1])
	}
	return v, nil
}

// judge is how a model predicts the test rows: per cent that are right, and the log-likelihood.
func (c *census) judge(ctx context.Context, p *study.Plan, found *method.Result) (x [2]float64, err error) {
	m, err := regression.Method{}.Evaluator(p, found.Files, false)
	if err != nil {
		return x, err
	}
	j, err := c.says.Outcome.Judged().Judge(ctx, m, c.test, 0.9)
	if err != nil {
		return x, err
	}
	return [2]float64{100 * j.Marks.Get(evaluate.MeasureAccuracy), j.Marks.Get(evaluate.MeasureLogLik)}, nil
}

// study is the plan of one run.
func (c *census) study(r rival, sites map[string]*dataset.Table, seed uint64) (*study.Plan, error) {
	with := keys{"name": regression.Method{}.Name(), "outcome": c.says.Outcome, "constants": c.constant}
	if maps.Copy(with, r.options); with["name"] == published.Name {
		with["intercept"] = false
	}
	names := slices.Sorted(maps.Keys(sites))
	if r.rows {
		var rows []published.SiteRows
		for _, name := range names {
			rows = append(rows, published.SiteRows{Site: name, Rows: sites[name].Len()})
		}
		with["rows"] = rows
	}
	return deal.Plan(methods, keys{"name": "income", "seed": seed, "sites": names, "views": c.views,
		"subjects": c.plan.Subjects, "method": with, "privacy": deal.Protected(r.total.Epsilon, r.total.Delta)})
}

// trueEpsilon is what the dearest site releases over the whole plan.
func trueEpsilon(p *study.Plan, delta float64) (worst float64, err error) {
	for _, site := range p.Sites {
		m, _ := methods.Lookup(p.Method.Name)
		list, err := m.Requests(p, site)
		if err != nil {
			return 0, err
		}
		losses, err := ledger.Losses(privacy.Requests(list), delta, privacy.Subject)
		if err != nil {
			return 0, err
		}
		for _, l := range losses {
			if l.Adjacency != account.AddRemove {
				continue
			}
			if l.Epsilon == nil {
				return 0, fmt.Errorf("site %s: no total: %s", site, l.Unbounded)
			}
			worst = max(worst, *l.Epsilon)
		}
	}
	return worst, nil
}

// Division is the rows of a distribution, with what a plan says of their columns.
type Division struct {
	Views     []map[string]any
	Constants []glm.Constant
	Outcome   glm.Outcome
	Subjects  []string
	Sites     map[string]*dataset.Table
	Held      *dataset.Table // the rows kept for testing
}

// Divide reads the data and divides the rows by a distribution of Table 1.
func Divide(ctx context.Context, at experiment.Data, scheme string) (*Division, error) {
	c, err := open(ctx, at)
	if err != nil {
		return nil, err
	}
	return &Division{c.views, c.constant, c.says.Outcome, c.plan.Subjects, c.spread(scheme), c.test}, nil
}
