package graffl

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"time"

	"parley/dataset"
	"parley/engine"
	"parley/engine/local"
	"parley/internal/cputime"
	"parley/method"
	"parley/methods/graffl"
	"parley/methods/graffl/mixture"
	"parley/study"
)

// variantStudy is a study of the toy without protection, with one mode at each site.
type variantStudy struct {
	options map[string]any // under method
	rows    int            // of each site
	seed    uint64         // of the plan and of the data
}

// variantRun is what is measured of one.
type variantRun struct {
	metrics  map[string]float64
	sample   *mixture.Posterior
	up, down int           // bytes
	used     time.Duration // of processors
	heap     uint64        // largest in use after a round, in bytes, with what waits for the collector
}

// run runs the study through the engine, with checkpoints and stores in a folder that is
// then removed, as parley run has them.
func (s variantStudy) run(ctx context.Context) (*variantRun, error) {
	config, err := s.config()
	if err != nil {
		return nil, err
	}
	if config.Dir, err = os.MkdirTemp("", "graffl"); err != nil {
		return nil, err
	}
	defer os.RemoveAll(config.Dir)
	r := &variantRun{}
	config.Observe = func(engine.Event) {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		r.heap = max(r.heap, m.HeapInuse)
	}
	runtime.GC() // what earlier studies left is not this one's
	start := cputime.Used()
	out, err := local.Run(ctx, *config)
	if err != nil {
		return nil, err
	}
	r.used = cputime.Used() - start
	for _, round := range out.Rounds {
		for _, x := range round.Sites {
			r.up, r.down = r.up+x.Up, r.down+x.Down
		}
	}
	at := slices.IndexFunc(out.Result.Files, func(f method.File) bool { return f.Name == "model/posterior.csv" })
	if at < 0 {
		return nil, fmt.Errorf("the result has no sample")
	}
	r.metrics = out.Result.Metrics
	r.sample, err = readPosterior(out.Result.Files[at].Data, len(toySites), len(toyNames))
	return r, err
}

// data draws the sites' rows.
func (s variantStudy) data() [][]float64 {
	return toyRow{rows: slices.Repeat([]int{s.rows}, len(toySites))}.data(s.seed)
}

func (s variantStudy) config() (*local.Config, error) {
	var features []map[string]any
	for _, name := range toyNames {
		features = append(features, map[string]any{"name": name, "range": toyBox})
	}
	options := map[string]any{"name": graffl.Method{}.Name(), "components": len(toySites)}
	for key, v := range s.options {
		options[key] = v
	}
	text, err := json.Marshal(map[string]any{ // JSON is YAML
		"parley": study.Version, "name": "toy", "seed": s.seed, "sites": toySites, "method": options,
		"views":   []map[string]any{{"name": "point", "features": features}},
		"privacy": map[string]any{"protection": study.ProtectionNone},
	})
	if err != nil {
		return nil, err
	}
	c := &local.Config{Methods: method.Registry{graffl.Method{}}, Data: map[string]dataset.Source{}}
	if c.Plan, err = study.Parse("plan", text, c.Methods); err != nil {
		return nil, err
	}
	for j, rows := range s.data() {
		var table []dataset.Row
		for x := range slices.Chunk(rows, len(toyNames)) {
			table = append(table, dataset.Row{ID: fmt.Sprintf("%06d", len(table)), Views: [][]float64{x}})
		}
		if c.Data[toySites[j]], err = dataset.NewTable(c.Plan.Schema(), table); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// thirds is the truth where all sites have as many rows.
func thirds() mixture.Mixture {
	m := toyTruth.Clone()
	m.Weights = slices.Repeat([]float64{1. / 3}, len(toySites))
	return m
}

// toyPrior is the prior of the toy's plans, with a concentration α of the weights.
func toyPrior(alpha float64) (mixture.Prior, error) {
	p, err := mixture.BoxPrior(slices.Repeat(toyBox[:1], len(toyNames)), slices.Repeat(toyBox[1:], len(toyNames)), len(toySites))
	for k := range p.Alpha {
		p.Alpha[k] = alpha
	}
	return p, err
}

// priorSample draws from a prior.
func priorSample(p mixture.Prior, draws int, seed uint64) *mixture.Posterior {
	r, sampler, out := rand.New(rand.NewPCG(seed, 4)), p.Sampler(), &mixture.Posterior{}
	for range draws {
		m := mixture.NewMixture(p.Components(), p.Dim())
		sampler.Draw(r, m)
		out.Draws, out.Weights = append(out.Draws, m), append(out.Weights, 1/float64(draws))
	}
	return out
}
