// Package oneshot measures the factor model's one exchange: on the Alzheimer example beside a
// fit to all rows in one place and the published iteration, and how well the rounds after it
// find a known spread between sites.
package oneshot

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"

	"parley/dataset"
	"parley/engine/local"
	"parley/figure"
	"parley/methods/factors/ppca"
	"parley/methods/published/fedmvppca"
	"parley/papers/experiment"
	"parley/study"
)

// Experiments are those of this package.
func Experiments() experiment.List { return experiment.List{alzheimer(), spreads()} }

const (
	examplePlan    = "examples/alzheimer/plan.yaml"
	exampleFactors = 6
)

// way is a way to fit the example.
type way struct {
	name    string
	options options
}

// exampleFits have a noise variance for each view, which is all that the published method
// has.
var exampleFits = []way{
	{"sums", options{"noise": "view"}},
	{"published", options{"name": fedmvppca.Name}},
}

// The last scenario is that of the plan.
var (
	exampleScenarios = []string{"IID", "G", "K", "G/K"}
	planned          = exampleScenarios[len(exampleScenarios)-1]
	scalings         = []string{ppca.ScaleStandard, ppca.ScaleView, ppca.ScaleNone}
	noises           = []string{"view", "feature"}
)

func (w way) id(scenario string) string { return experiment.Slug(scenario + " " + w.name) }

func scaled(scaling string) way { return way{"scaling " + scaling, options{"scaling": scaling}} }
func noised(noise string) way   { return way{"noise " + noise, options{"noise": noise}} }

// The names of a fit's values, beside those of its metrics.
const (
	logLik   = "log_likelihood_per_subject"
	r2       = "r2/"      // and a view
	strength = "strength" // of the strongest factor
	sent     = "sent"     // bytes of all sites
	most     = "most"     // bytes of the site that sent most
)

func alzheimer() experiment.Experiment {
	return experiment.Experiment{Name: "parley-alzheimer",
		Cells: func(quick bool) (cells experiment.Cells) {
			add := func(scenario string, w way) {
				cells.Add(w.id(scenario), func(ctx context.Context, at experiment.Data) (experiment.Values, error) {
					return w.fit(ctx, filepath.Join(at.Clone, examplePlan), scenario)
				})
			}
			for _, scenario := range exampleScenarios {
				for _, w := range exampleFits {
					if !quick || scenario == planned && w.name != "published" {
						add(scenario, w)
					}
				}
			}
			for _, s := range scalings {
				add(planned, scaled(s))
			}
			for _, n := range noises {
				add(planned, noised(n))
			}
			return cells
		},
		Conclude: concludeAlzheimer,
	}
}

func concludeAlzheimer(o experiment.Outcomes) experiment.Conclusion {
	minus := experiment.Minus
	fits := figure.Table{ID: "fits", Title: "Beside the published iteration", Caption: "Log-likelihood in nats for " +
		"each training subject, and the same less that of the sums. Bytes are those that all sites send.",
		Columns: figure.TextColumns("sites", "fit", "log-likelihood", "less that of the sums",
			"strength of the strongest factor", "bytes")}
	for _, scenario := range exampleScenarios {
		pooled := o[exampleFits[0].id(scenario)][logLik]
		for _, w := range exampleFits {
			if v := o[w.id(scenario)]; v != nil {
				fits.Add(scenario, w.name, minus(fmt.Sprintf("%.2f", v[logLik][0])),
					minus(fmt.Sprintf("%.4f", v[logLik][0]-pooled[0])), fmt.Sprintf("%.1f", v[strength][0]),
					fmt.Sprintf("%.0f", v[sent][0]))
			}
		}
	}
	explained := figure.Table{ID: "scaling", Title: "R² of views by scaling",
		Columns: figure.TextColumns("scaling", "clinic", "immune", "metabolic", "vascular")}
	for _, s := range scalings {
		row := []any{s}
		for _, view := range explained.Columns[1:] {
			row = append(row, fmt.Sprintf("%.4f", o[scaled(s).id(planned)][r2+view.Name][0]))
		}
		explained.Add(row...)
	}
	noise := figure.Table{ID: "noise", Title: "Noise of views and of features", Caption: "Bytes are those of the " +
		"site with all views.", Columns: figure.TextColumns("noise", "log-likelihood", "bytes")}
	for _, n := range noises {
		v := o[noised(n).id(planned)]
		noise.Add(n, minus(fmt.Sprintf("%.2f", v[logLik][0])), fmt.Sprintf("%.0f", v[most][0]))
	}
	return experiment.Conclusion{Tables: []figure.Table{fits, explained, noise}}
}

// fit fits the example with its subjects spread in a scenario.
func (w way) fit(ctx context.Context, plan, scenario string) (experiment.Values, error) {
	p, err := study.Load(plan, methods)
	if err != nil {
		return nil, err
	}
	p.Local.Split.Scenario = scenario
	sites, err := exampleSites(ctx, p)
	if err != nil {
		return nil, err
	}
	all := options{"latent": exampleFactors}
	maps.Copy(all, w.options)
	m, out, err := federateNamed(ctx, p.Sites, sites, all, p.Seed)
	if err != nil {
		return nil, err
	}
	v := experiment.Values{logLik: {out.Result.Metrics[logLik]}, strength: {m.Factors[0]}, sent: {0}, most: {0}}
	for _, view := range p.Views {
		v[r2+view.Name] = []float64{out.Result.Metrics[r2+view.Name]}
	}
	up := make([]float64, len(sites))
	for _, r := range out.Rounds {
		for i, s := range r.Sites {
			up[i] += float64(s.Up)
			v[sent][0] += float64(s.Up)
			v[most][0] = max(v[most][0], up[i])
		}
	}
	return v, nil
}

// exampleSites spreads the example's subjects over the plan's sites.
func exampleSites(ctx context.Context, p *study.Plan) (sites []dataset.Source, err error) {
	b, err := local.Bind(ctx, p, nil)
	if err != nil {
		return nil, err
	}
	for _, name := range p.Sites {
		sites = append(sites, b.Data[name])
	}
	return sites, nil
}
