package oneshot

import (
	"context"
	"maps"

	"parley/dataset"
	"parley/engine"
	"parley/engine/local"
	"parley/judge/evaluate"
	"parley/method"
	"parley/methods/factors"
	"parley/methods/factors/fitted"
	"parley/methods/factors/ppca"
	"parley/methods/published/fedmvppca"
	"parley/papers/deal"
	"parley/study"
)

var methods = method.Registry{factors.Method{}, fedmvppca.Method{}}

// options are what a plan says under method, beyond its name.
type options map[string]any

// asIs are the options of the default method on rows that are already scaled.
func asIs(q, rounds int) options {
	return options{"latent": q, "scaling": ppca.ScaleNone, "rounds": rounds}
}

// plan describes a study of the views that the sites share.
func plan(schema dataset.Schema, sites []string, o options, seed uint64) (*study.Plan, error) {
	m := deal.Keys{"name": factors.Method{}.Name()}
	maps.Copy(m, o)
	return deal.Plan(methods,
		deal.Keys{"name": "oneshot", "seed": seed, "sites": sites, "views": deal.Views(schema, nil), "method": m})
}

// federate runs a whole study over the sites through the engine, in memory.
func federate(ctx context.Context, sites []dataset.Source, o options,
	seed uint64) (*fitted.Model, *engine.Outcome, error) {
	return federateNamed(ctx, evaluate.SiteNames(len(sites)), sites, o, seed)
}

// federateNamed is federate over sites of these names, from which random starts follow.
func federateNamed(ctx context.Context, names []string, sites []dataset.Source, o options,
	seed uint64) (*fitted.Model, *engine.Outcome, error) {
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
	file, err := method.ModelJSON(out.Result.Files)
	if err != nil {
		return nil, nil, err
	}
	m, err := fitted.LoadModel(file)
	return m, out.Outcome, err
}
