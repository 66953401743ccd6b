package local_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"parley/dataset"
	"parley/engine/local"
	"parley/judge/evaluate"
	"parley/methods/factors"
	"parley/methods/factors/ppca"
	"parley/methods/published/fedmvppca"
	"parley/study"
)

// The benchmarks run whole studies of three sites through the engine, in
// memory and without a checkpoint. Beside the time they report cpu-s/op, the
// processor seconds of all cores, which sites that run at the same time do not
// shorten.

var (
	// 100 rounds × 15 iterations, 30 in the first
	published = map[string]any{"name": fedmvppca.Name, "scaling": ppca.ScaleSiteRange}
	byDefault = map[string]any{}
)

// The paper's synthetic data: 400 subjects, of whom two thirds train.
func BenchmarkPublishedSynthetic(b *testing.B) { benchmark(b, published, 5, 89, 15, 8, 10) }
func BenchmarkDefaultSynthetic(b *testing.B)   { benchmark(b, byDefault, 5, 89, 15, 8, 10) }

// Clinical markers and protein panels of 333 subjects.
func BenchmarkPublishedClinical(b *testing.B) { benchmark(b, published, 6, 74, 7, 41, 41, 42) }
func BenchmarkDefaultClinical(b *testing.B)   { benchmark(b, byDefault, 6, 74, 7, 41, 41, 42) }

func benchmark(b *testing.B, options map[string]any, q, subjects int, dims ...int) {
	c := local.Config{Methods: methods, Data: map[string]dataset.Source{}}
	schema := schemaOf(dims)
	var err error
	if c.Plan, err = planOf(schema, options, q); err != nil {
		b.Fatal(err)
	}
	p := newPopulation(q, dims)
	for _, site := range c.Plan.Sites {
		if c.Data[site], err = p.site(schema, subjects); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	start := cpuTime(b)
	for b.Loop() {
		if _, err := local.Run(b.Context(), c); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric((cpuTime(b)-start).Seconds()/float64(b.N), "cpu-s/op")
}

func schemaOf(dims []int) (s dataset.Schema) {
	for k, d := range dims {
		v := dataset.View{Name: fmt.Sprintf("v%d", k+1)}
		for j := range d {
			v.Columns = append(v.Columns, dataset.Column{Name: fmt.Sprintf("v%d_%d", k+1, j+1)})
		}
		s.Views = append(s.Views, v)
	}
	return s
}

func planOf(schema dataset.Schema, options map[string]any, q int) (*study.Plan, error) {
	var views []any
	for _, v := range schema.Views {
		var names []string
		for _, c := range v.Columns {
			names = append(names, c.Name)
		}
		views = append(views, map[string]any{"name": v.Name, "features": names})
	}
	m := map[string]any{"name": factors.Method{}.Name(), "latent": q}
	for k, v := range options {
		m[k] = v
	}
	text, err := json.Marshal(map[string]any{ // JSON is YAML
		"parley": study.Version, "name": "benchmark", "sites": evaluate.SiteNames(3), "views": views,
		"method": m, "privacy": map[string]any{"protection": study.ProtectionNone},
	})
	if err != nil {
		return nil, err
	}
	return study.Parse("benchmark plan", text, methods)
}

// population draws subjects like the paper's synthetic data: loadings and
// means uniform on (−10, 10), noise of variance 2, and a group that a shift of
// the factors parts from the others.
type population struct {
	rng   *rand.Rand
	dims  []int
	w     [][]float64
	mu    []float64
	shift []float64
	drawn int
}

func newPopulation(q int, dims []int) *population {
	p := &population{rng: rand.New(rand.NewPCG(1, 1)), dims: dims}
	uniform := func(n int) []float64 {
		v := make([]float64, n)
		for i := range v {
			v[i] = 20*p.rng.Float64() - 10
		}
		return v
	}
	p.shift = uniform(q)
	for _, d := range dims {
		for range d {
			p.w = append(p.w, uniform(q))
		}
		p.mu = append(p.mu, uniform(d)...)
	}
	return p
}

func (p *population) site(schema dataset.Schema, subjects int) (dataset.Source, error) {
	const noise = 1.4142135623730951
	var rows []dataset.Row
	for i := range subjects {
		p.drawn++
		row := dataset.Row{ID: fmt.Sprintf("s%04d", p.drawn)}
		x := make([]float64, len(p.shift))
		for a := range x {
			x[a] = p.rng.NormFloat64()
			if i%8 < 5 {
				x[a] += p.shift[a]
			}
		}
		j := 0
		for _, d := range p.dims {
			t := make([]float64, d)
			for i := range t {
				t[i] = p.mu[j] + noise*p.rng.NormFloat64()
				for a, v := range x {
					t[i] += p.w[j][a] * v
				}
				j++
			}
			row.Views = append(row.Views, t)
		}
		rows = append(rows, row)
	}
	return dataset.NewTable(schema, rows)
}

// cpuTime is the processor time that this process has used.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	t, err := processTime()
	if err != nil {
		b.Fatal(err)
	}
	return t
}
