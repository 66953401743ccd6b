package acceptance

import (
	"context"
	"encoding/json"
	"iter"

	"parley/dataset"
	"parley/engine"
	"parley/engine/local"
	"parley/judge/evaluate"
	"parley/method"
	"parley/method/fitted"
	"parley/methods/mvppca"
	says "parley/methods/mvppca/options"
	"parley/methods/mvppca/use"
	"parley/study"
	"parley/tools/measure/protocol"
)

var methods = method.Registry{mvppca.Method{}}

// options are what a plan says under method, beyond its name; and under
// "privacy", what it says there, if its releases are to be protected.
type options map[string]any

// asIs are the options of the default method on rows that are already scaled.
func asIs(q, rounds int) options {
	return options{"latent": q, "scaling": says.ScaleNone, "rounds": rounds}
}

// asPublished are those of the paper's experiment: each site scales its own
// rows; 100 rounds of 15 iterations, 30 in the first, are the defaults.
func asPublished(q int) options {
	return options{"variant": says.PublishedVariant, "latent": q, "scaling": says.ScaleSiteRange}
}

// plan describes a study of the views that the sites share.
func plan(schema dataset.Schema, sites []string, o options, seed uint64) (*study.Plan, error) {
	type view struct {
		Name     string   `json:"name"`
		Features []string `json:"features"`
	}
	var views []view
	for _, v := range schema.Views {
		w := view{Name: v.Name}
		for _, c := range v.Columns {
			w.Features = append(w.Features, c.Name)
		}
		views = append(views, w)
	}
	m, privacy := options{"name": mvppca.Method{}.Name()}, any(map[string]any{"protection": study.ProtectionNone})
	for k, v := range o {
		if k == "privacy" {
			privacy = v
		} else {
			m[k] = v
		}
	}
	// JSON is YAML.
	text, err := json.Marshal(map[string]any{
		"parley": study.Version, "name": "acceptance", "seed": seed, "sites": sites, "views": views,
		"method": m, "privacy": privacy,
	})
	if err != nil {
		return nil, err
	}
	return study.Parse("acceptance plan", text, methods)
}

// federate runs a whole study over the sites through the engine, in memory.
func federate(ctx context.Context, sites []dataset.Source, o options, seed uint64) (*use.Model, *engine.Outcome, error) {
	return federateNamed(ctx, evaluate.SiteNames(len(sites)), sites, o, seed)
}

// federateNamed is federate over sites of these names, from which random starts follow.
func federateNamed(ctx context.Context, names []string, sites []dataset.Source, o options, seed uint64) (*use.Model, *engine.Outcome, error) {
	p, err := plan(sites[0].Schema(), names, o, seed)
	if err != nil {
		return nil, nil, err
	}
	data := map[string]dataset.Source{}
	for i, name := range p.Sites {
		data[name] = sites[i]
	}
	out, err := local.Run(ctx, local.Config{Plan: p, Methods: methods, Data: data})
	if err != nil {
		return nil, nil, err
	}
	file, err := fitted.JSON(out.Result.Files)
	if err != nil {
		return nil, nil, err
	}
	m, err := use.LoadModel(file)
	return m, out.Outcome, err
}

// federated is federate for cross-validation.
func federated(o options, seed uint64) protocol.Fit {
	return func(ctx context.Context, sites []dataset.Source) (evaluate.Model, error) {
		m, _, err := federate(ctx, sites, o, seed)
		if err != nil {
			return nil, err
		}
		return m.Evaluator()
	}
}

// central is the maximum-likelihood fit of the same model to the rows of all
// sites in one place, with the same views missing.
func central(q int) protocol.Fit {
	return func(ctx context.Context, sites []dataset.Source) (evaluate.Model, error) {
		p, err := plan(sites[0].Schema(), evaluate.SiteNames(len(sites)), asIs(q, 0), 1)
		if err != nil {
			return nil, err
		}
		return mvppca.Method{}.Central(ctx, p, pooled(sites))
	}
}

// pooled is the rows of all sites, one site after the other.
type pooled []dataset.Source

func (p pooled) Schema() dataset.Schema { return p[0].Schema() }

func (p pooled) Rows(ctx context.Context) iter.Seq2[*dataset.Row, error] {
	return func(yield func(*dataset.Row, error) bool) {
		for _, site := range p {
			for row, err := range site.Rows(ctx) {
				if !yield(row, err) || err != nil {
					return
				}
			}
		}
	}
}

// pca is the trivial rival: principal components with means in the gaps.
func pca(q int) protocol.Fit {
	return func(ctx context.Context, sites []dataset.Source) (evaluate.Model, error) {
		return evaluate.FitPCA(ctx, q, sites...)
	}
}
