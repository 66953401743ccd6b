package pvi

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"

	"parley/dataset"
	"parley/engine/local"
	"parley/method"
	"parley/method/fitted"
	"parley/methods/pvi"
	"parley/methods/pvi/options"
	"parley/methods/pvi/use"
	"parley/privacy"
	"parley/privacy/account"
	"parley/privacy/ledger"
	"parley/study"
)

// spec is one method of the tables.
type spec struct {
	name    string
	private bool
	draws   bool // results differ between seeds
	options map[string]any
	rows    bool // the sites' numbers of rows are declared
	lost    bool // a change to the default that did not win: measured if named only
}

var specs = []spec{
	{name: "partitioned", options: map[string]any{"variant": options.VariantPartitioned}},
	{name: "global", options: map[string]any{"variant": options.VariantGlobal}, rows: true, draws: true},
	{name: "published", options: map[string]any{"variant": options.VariantPublished}, rows: true, private: true, draws: true},
	{name: "default", options: map[string]any{"variant": options.VariantPartitioned}, private: true, draws: true},
	{name: "sequential", options: map[string]any{"schedule": options.ScheduleSequential}, private: true, draws: true, lost: true},
	{name: "half-clip", options: map[string]any{"clip": defaultClip / 2}, private: true, draws: true, lost: true},
	{name: "twice-clip", options: map[string]any{"clip": defaultClip * 2}, private: true, draws: true, lost: true},
	{name: "large-steps", options: map[string]any{"rounds": 5, "damping": 0.5}, private: true, draws: true, lost: true},
}

// defaultClip is the default clipping bound with the 14 features of the example, ½ √14.
const defaultClip = math.Sqrt2 * 2.6457513110645906 / 2

// methodNames are all names of methods; without those that lost, if asked for.
func methodNames(lost bool) (names []string) {
	for _, s := range specs {
		if lost || !s.lost {
			names = append(names, s.name)
		}
	}
	return names
}

// outcome is how a study did, and what it cost.
type outcome struct {
	score
	epsilon float64 // true cost of everything released, at the plan's δ: the dearest site's
}

// study runs one study through the engine, in memory.
func (c *census) study(ctx context.Context, s spec, scheme string, total *account.Budget, seed uint64) (*outcome, error) {
	sites := c.sites[scheme]
	names := slices.Sorted(maps.Keys(sites))
	with := map[string]any{"name": pvi.Method{}.Name(), "outcome": c.outcome, "intercept": false, "constants": c.constants}
	maps.Copy(with, s.options)
	if s.rows {
		var rows []options.SiteRows
		for _, name := range names {
			rows = append(rows, options.SiteRows{Site: name, Rows: sites[name].Len()})
		}
		with["rows"] = rows
	}
	protection := map[string]any{"protection": study.ProtectionNone}
	if total != nil {
		protection = map[string]any{"protection": study.ProtectionDifferential, "unit": study.UnitSubject, "adjacency": account.AddRemove, "total": total}
	}
	// JSON is YAML.
	text, err := json.Marshal(map[string]any{
		"parley": study.Version, "name": "income", "seed": seed, "sites": names, "views": c.views, "subjects": c.plan.Subjects,
		"method": with, "privacy": protection,
	})
	if err != nil {
		return nil, err
	}
	methods := method.Registry{pvi.Method{}}
	p, err := study.Parse("plan", text, methods)
	if err != nil {
		return nil, err
	}
	config := local.Config{Plan: p, Methods: methods, Data: map[string]dataset.Source{}}
	for name, table := range sites {
		config.Data[name] = table
	}
	out, err := local.Run(ctx, config)
	if err != nil {
		return nil, err
	}
	m, err := modelOf(out.Result)
	if err != nil {
		return nil, err
	}
	o := &outcome{epsilon: math.Inf(1)}
	if o.score, err = c.score(m.Posterior); err != nil || total == nil {
		return o, err
	}
	o.epsilon, err = trueEpsilon(p, total.Delta)
	return o, err
}

// modelOf reads the model of a study.
func modelOf(r *method.Result) (*use.Model, error) {
	data, err := fitted.JSON(r.Files)
	if err != nil {
		return nil, err
	}
	return use.LoadModel(data)
}

// trueEpsilon is what the dearest site releases over the whole plan.
func trueEpsilon(p *study.Plan, delta float64) (worst float64, err error) {
	for _, site := range p.Sites {
		list, err := pvi.Method{}.Requests(p, site)
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
