package selection

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"parley/dataset"
	"parley/engine/local"
	"parley/experiment/melba"
	"parley/internal/cputime"
	"parley/judge/evaluate"
	"parley/method"
	"parley/method/judged"
	"parley/methods/mvppca"
	"parley/methods/mvppca/options"
	"parley/methods/mvppca/statistics"
	"parley/privacy/account"
	"parley/study"
	"parley/tools/measure/protocol"
)

// release is a kind of private study.
type release struct {
	subjects int
	epsilon  float64
	sites    int
}

var releases = []release{{4000, 3, 3}, {4000, 10, 3}, {400, 10, 3}, {400, 3, 3}, {400, 10, 1}}

const delta = 1e-5

// released chooses from what private studies have released, of the first kinds.
func (c config) released(ctx context.Context, some int) error {
	fmt.Printf("%d data sets a row, δ = %v, add-remove: how often each rule gives the true number, how often there was a warning, and how often the recommendation was wrong without one.\n\n",
		c.seeds*(c.to-c.from+1), delta)
	fmt.Println("| subjects in all | ε | sites | BIC, noise split | one standard error | largest of sites left out | warned | wrong without a warning | CPU s |\n|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
	for _, r := range releases[:some] {
		start := cputime.Used()
		count, err := c.count(ctx, r)
		if err != nil {
			return fmt.Errorf("%+v: %w", r, err)
		}
		fmt.Printf("| %d | %v | %d | %s | %s | %s | %d | %d | %.0f |\n", r.subjects, r.epsilon, r.sites, count.of("smallest BIC, noise split"),
			count.of("smallest within one standard error of it"), count.of("largest log-likelihood of sites left out"), count.warned, count.unwarned, (cputime.Used() - start).Seconds())
	}
	return nil
}

// found is what selections found.
type found struct {
	right            map[string]int // by rule
	warned, unwarned int            // selections with a warning; wrong recommendations without one
}

// add takes one selection.
func (f *found) add(s *judged.Selection, truth int) {
	for _, choice := range s.Choices {
		n := f.right[choice.Rule]
		if choice.Value == truth {
			n++
		}
		f.right[choice.Rule] = n
	}
	switch {
	case len(s.Warnings) > 0:
		f.warned++
	case s.Recommended != truth:
		f.unwarned++
	}
}

// of returns how often a rule was right, as text; a dash where it made no choice.
func (f *found) of(rule string) string {
	n, ok := f.right[rule]
	if !ok {
		return "–"
	}
	return fmt.Sprint(n)
}

func (c config) count(ctx context.Context, r release) (*found, error) {
	f := &found{right: map[string]int{}}
	for q := c.from; q <= c.to; q++ {
		for seed := range c.seeds {
			s, err := r.choose(ctx, uint64(seed+1), q, c.selection)
			if err != nil {
				return nil, fmt.Errorf("%d factors, seed %d: %w", q, seed+1, err)
			}
			f.add(s, q)
		}
	}
	return f, nil
}

// choose runs a private study and chooses from its releases.
func (r release) choose(ctx context.Context, seed uint64, q int, c judged.SelectConfig) (*judged.Selection, error) {
	all, err := generate(seed, q, r.subjects, 1)
	if err != nil {
		return nil, err
	}
	methods := method.Registry{mvppca.Method{}}
	config := local.Config{Methods: methods}
	if config.Plan, err = r.plan(all, seed); err != nil {
		return nil, err
	}
	rows, err := protocol.Spread(ctx, all, "", evaluate.IID, r.sites, seed)
	if err != nil {
		return nil, err
	}
	config.Data = protocol.BySite(rows)
	out, err := local.Run(ctx, config)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(out.Result.Files, func(f method.File) bool { return f.Name == statistics.ReleasedName })
	if at < 0 {
		return nil, fmt.Errorf("the result has no %s", statistics.ReleasedName)
	}
	return mvppca.Method{}.SelectReleased(ctx, config.Plan, out.Result.Files[at].Data, judged.SelectConfig{Values: c.Values})
}

// plan is that of the study. The ranges of the data stand in for public ones.
func (r release) plan(all *dataset.Table, seed uint64) (*study.Plan, error) {
	var views []map[string]any
	for k, v := range melba.Schema(melba.Dims).Views {
		var features []map[string]any
		for j, c := range v.Columns {
			low, high := math.Inf(1), math.Inf(-1)
			for i := range all.Len() {
				x := all.Row(i).Views[k][j]
				low, high = min(low, x), max(high, x)
			}
			features = append(features, map[string]any{"name": c.Name, "range": []float64{low, high}})
		}
		views = append(views, map[string]any{"name": v.Name, "features": features})
	}
	text, err := json.Marshal(map[string]any{ // JSON is YAML
		"parley": study.Version, "name": "released", "seed": seed, "sites": evaluate.SiteNames(r.sites), "views": views,
		"method": map[string]any{"name": mvppca.Method{}.Name(), "latent": 1, "scaling": options.ScaleRange, "mechanism": options.MechanismStatistics},
		"privacy": map[string]any{"protection": study.ProtectionDifferential, "unit": study.UnitSubject, "adjacency": account.AddRemove,
			"total": account.Budget{Epsilon: r.epsilon, Delta: delta}},
	})
	if err != nil {
		return nil, err
	}
	return study.Parse("plan", text, method.Registry{mvppca.Method{}})
}
