package acceptance

import (
	"context"
	"fmt"
	"maps"

	"parley/dataset"
	"parley/engine/local"
	says "parley/methods/mvppca/options"
	"parley/study"
)

const (
	examplePlan    = "examples/alzheimer/plan.yaml"
	exampleFactors = 6
)

// exampleFits are ways to fit the example with a noise variance for each view, which is all
// that the published variant has, beside the pooled fit, whose sites send their exact
// moments, or, with few subjects, a fit that leaves out one direction.
var exampleFits = []struct {
	name    string
	options options
}{
	{"pooled", options{"noise": "view", "rounds": 0, "local_rank": 129}},
	{"one shot, local rank q", options{"noise": "view", "rounds": 0, "local_rank": exampleFactors}},
	{"one shot, local rank 4q", options{"noise": "view", "rounds": 0, "local_rank": 4 * exampleFactors}},
	{"published", options{"variant": says.PublishedVariant}},
}

// example measures on the example's data what documents say of it. Nothing is promised.
func example(ctx context.Context) ([]row, error) {
	t := &table{promise: "example"}
	p, err := study.Load(examplePlan, methods)
	if err != nil {
		return nil, err
	}
	for _, scenario := range []string{"IID", "G", "K", "G/K"} {
		p.Local.Split.Scenario = scenario
		sites, err := exampleSites(ctx, p)
		if err != nil {
			return nil, err
		}
		pooled := 0.0
		for i, f := range exampleFits {
			x, err := fitExample(ctx, p, sites, f.options)
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", scenario, f.name, err)
			}
			at := scenario + ", " + f.name
			if i == 0 {
				pooled = x.metrics["log_likelihood_per_subject"]
				t.add(at, "log-likelihood per subject", pooled)
			} else {
				t.add(at, "the same, minus that of the pooled fit", x.metrics["log_likelihood_per_subject"]-pooled)
				t.add(at, "bytes sent by all sites", x.up)
			}
			t.add(at, "strength of the strongest factor", x.strength)
		}
	}
	// The last scenario is that of the plan.
	sites, err := exampleSites(ctx, p)
	if err != nil {
		return nil, err
	}
	for _, scaling := range []string{says.ScaleStandard, says.ScaleView, says.ScaleNone} {
		x, err := fitExample(ctx, p, sites, options{"scaling": scaling})
		if err != nil {
			return nil, fmt.Errorf("scaling %s: %w", scaling, err)
		}
		for _, v := range p.Views {
			t.add("scaling: "+scaling, "R² of "+v.Name, x.metrics["r2/"+v.Name])
		}
	}
	for _, noise := range []string{"view", "feature"} {
		x, err := fitExample(ctx, p, sites, options{"noise": noise})
		if err != nil {
			return nil, fmt.Errorf("noise %s: %w", noise, err)
		}
		t.add("noise: "+noise, "log-likelihood per subject", x.metrics["log_likelihood_per_subject"])
		t.add("noise: "+noise, "bytes sent by the site with all views", x.most)
	}
	return t.rows, nil
}

// exampleSites spreads the example's subjects over the plan's sites.
func exampleSites(ctx context.Context, p *study.Plan) (sites []dataset.Source, err error) {
	b, err := local.Bind(ctx, p)
	if err != nil {
		return nil, err
	}
	for _, name := range p.Sites {
		sites = append(sites, b.Data[name])
	}
	return sites, nil
}

// exampleFit is what one fit of the example is judged by.
type exampleFit struct {
	metrics  map[string]float64
	strength float64 // of the strongest factor
	up, most float64 // bytes: of all sites, and of the one that sent most
}

func fitExample(ctx context.Context, p *study.Plan, sites []dataset.Source, o options) (*exampleFit, error) {
	all := options{"latent": exampleFactors}
	maps.Copy(all, o)
	m, out, err := federateNamed(ctx, p.Sites, sites, all, p.Seed)
	if err != nil {
		return nil, err
	}
	x := &exampleFit{metrics: out.Result.Metrics, strength: m.Factors[0]}
	up := make([]float64, len(sites))
	for _, r := range out.Rounds {
		for i, s := range r.Sites {
			up[i] += float64(s.Up)
			x.up += float64(s.Up)
			x.most = max(x.most, up[i])
		}
	}
	return x, nil
}
