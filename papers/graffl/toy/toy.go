// Package toy is the example of section 4.2 of GRAFFL (Hahn and Lee 2020): a normal mode at
// each of three sites, studies of it through the engine, and how far their samples are from
// the truth.
package toy

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"parley/dataset"
	"parley/engine/local"
	"parley/method"
	"parley/methods/mixture"
	"parley/methods/mixture/gmm"
	"parley/methods/published/graffl"
	"parley/papers/deal"
	"parley/study"
)

// box is the public range of both features, and Delta the δ of private studies.
const (
	box   = 12.0 // ±
	Delta = 1e-5
)

// Sites have one mode each.
var Sites = []string{"west", "south", "east"}

var names = []string{"x", "y"} // of the features

// Truth is the mixture that sites with so many rows each have seen: the modes of the
// paper, whose covariances are the identity.
func Truth(rows []int) gmm.Mixture {
	m := gmm.Mixture{Dim: 2, Means: []float64{-9, 3, 0, -9, 8, 3}, Covs: []float64{1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1}}
	total := 0
	for _, n := range rows {
		total += n
	}
	for _, n := range rows {
		m.Weights = append(m.Weights, float64(n)/float64(total))
	}
	return m
}

// Data draws so many rows of each site, one after the other.
func Data(rows []int, seed uint64) (sites [][]float64) {
	truth, r := Truth(rows), rand.New(rand.NewPCG(seed, 1))
	for j, n := range rows {
		var s []float64
		for range n {
			for _, m := range truth.Mean(j) {
				s = append(s, m+r.NormFloat64())
			}
		}
		sites = append(sites, s)
	}
	return sites
}

// Prior is that of the studies, with a concentration α of the weights.
func Prior(alpha float64) (gmm.Prior, error) {
	p, err := gmm.BoxPrior([]float64{-box, -box}, []float64{box, box}, len(Sites))
	for k := range p.Alpha {
		p.Alpha[k] = alpha
	}
	return p, err
}

// Study is a study of the example.
type Study struct {
	Options map[string]any // under method, beside its name and the components
	Rows    []int          // of each site
	Epsilon float64        // of the total; 0 for no privacy
	Seed    uint64         // of the plan and of the data
}

var methods = method.Registry{mixture.Method{}, graffl.Method{}}

// Plan is the study's plan.
func (s Study) Plan() (*study.Plan, error) {
	options := deal.Keys{"name": mixture.Method{}.Name(), "components": len(Sites)}
	maps.Copy(options, s.Options)
	view := dataset.View{Name: "point"}
	for _, name := range names {
		view.Columns = append(view.Columns, dataset.Column{Name: name})
	}
	return deal.Plan(methods, deal.Keys{"name": "toy", "seed": s.Seed, "sites": Sites, "method": options,
		"views":   deal.Views(dataset.Schema{Views: []dataset.View{view}}, deal.Within(box)),
		"privacy": deal.Protected(s.Epsilon, Delta)})
}

// result is what came of a study.
type result struct {
	Metrics map[string]float64
	Sample  *gmm.Posterior
	Up      int // bytes that sites sent
}

// Run runs the study through the engine, in memory.
func (s Study) Run(ctx context.Context) (*result, error) {
	p, err := s.Plan()
	if err != nil {
		return nil, err
	}
	c := local.Config{Plan: p, Methods: methods, Data: map[string]dataset.Source{}}
	for j, rows := range Data(s.Rows, s.Seed) {
		if c.Data[Sites[j]], err = Table(p.Schema(), rows); err != nil {
			return nil, err
		}
	}
	out, err := local.Run(ctx, c)
	if err != nil {
		return nil, err
	}
	r := &result{Metrics: out.Result.Metrics}
	for _, round := range out.Rounds {
		for _, x := range round.Sites {
			r.Up += x.Up
		}
	}
	r.Sample, err = Sample(out.Result.Files, len(Sites), len(names))
	return r, err
}

// Table makes a table with one view of rows that stand one after the other.
func Table(schema dataset.Schema, rows []float64) (*dataset.Table, error) {
	var all []dataset.Row
	for x := range slices.Chunk(rows, len(schema.Views[0].Columns)) {
		all = append(all, dataset.Row{ID: fmt.Sprintf("%06d", len(all)), Views: [][]float64{x}})
	}
	return dataset.NewTable(schema, all)
}

// Modes are the modes that a study of the published algorithm reports, matched to the
// truth; ok is false where there are fewer.
func (r *result) Modes(truth gmm.Mixture) (m gmm.Mixture, ok bool) {
	m = truth.Clone()
	for k := range Sites {
		for i, name := range names {
			if m.Mean(k)[i], ok = r.Metrics[fmt.Sprintf("mode/%d/%s", k+1, name)]; !ok {
				return m, false
			}
		}
	}
	return m.Reorder(gmm.Match(truth, m, nil)), true
}
