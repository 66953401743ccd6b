package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"time"

	"parley/dataset"
	"parley/judge/evaluate"
	"parley/methods/factors/ppca"
	"parley/papers/internal/cputime"
)

// cost is what something took, and the training log-likelihood per subject that it reached.
type cost struct {
	CPU        float64 `json:"cpu"`  // seconds of all processors
	Wall       float64 `json:"wall"` // seconds
	LogLik     float64 `json:"log_likelihood_per_subject"`
	Iterations int     `json:"iterations"` // of the last fit; 0 of a study
	Peak       int64   `json:"peak"`       // bytes that the process needed; 0 where that is not told
	BLAS       string  `json:"blas"`       // what numpy multiplies with; empty if nobody says
}

// works are what is measured beside numpy, each in a process of its own.
var works = []struct {
	name string
	run  func(c sized, ctx context.Context, sites map[string]dataset.Source) (cost, error)
}{
	{"pooled", func(c sized, ctx context.Context, sites map[string]dataset.Source) (cost, error) {
		return c.fits(ctx, sites, c.pooled)
	}},
	{"fits", func(c sized, ctx context.Context, sites map[string]dataset.Source) (cost, error) {
		return c.fits(ctx, sites, c.exchanged)
	}},
	{"exchange", func(c sized, ctx context.Context, sites map[string]dataset.Source) (cost, error) {
		return c.study(ctx, sites, oneExchange)
	}},
	{"default", func(c sized, ctx context.Context, sites map[string]dataset.Source) (cost, error) {
		return c.study(ctx, sites, nil)
	}},
}

// work draws the subjects and does one of the works in this process.
func (c sized) work(ctx context.Context, name string) (cost, error) {
	sites, err := c.draw(os.DevNull)
	if err != nil {
		return cost{}, err
	}
	for _, w := range works {
		if w.name == name {
			out, err := w.run(c, ctx, sites)
			out.Peak = peakMemory(os.Getpid())
			return out, err
		}
	}
	return cost{}, fmt.Errorf("no work is called %q", name)
}

// fits measures scaling and a fit, without anything around them.
func (c sized) fits(ctx context.Context, sites map[string]dataset.Source,
	fit func(ppca.Layout, [][]ppca.Block) (*ppca.Fitted, error)) (out cost, err error) {
	l, err := ppca.NewLayout(c.dims, ppca.NoisePerFeature)
	if err != nil {
		return out, err
	}
	var rows [][]dataset.Row
	for _, name := range evaluate.SiteNames(len(sites)) {
		var all []dataset.Row
		for row, err := range sites[name].Rows(ctx) {
			if err != nil {
				return out, err
			}
			all = append(all, *row)
		}
		rows = append(rows, all)
	}
	used, began := cputime.Used(), time.Now()
	scale := standard(l, rows)
	var blocks [][]ppca.Block
	for _, of := range rows {
		a := ppca.NewAccumulator(l)
		for i := range of {
			if err := a.Add(of[i].Views); err != nil {
				return out, err
			}
		}
		own := ppca.RowSums{Blocks: a.Blocks()}
		blocks = append(blocks, own.In(scale))
	}
	model, err := fit(l, blocks)
	if err != nil {
		return out, err
	}
	out.CPU, out.Wall, out.Iterations = (cputime.Used() - used).Seconds(), time.Since(began).Seconds(), model.Iterations
	total, subjects, err := ppca.LogLik(l, &model.Params, slices.Concat(blocks...))
	out.LogLik = total / subjects
	return out, err
}

// standard scales by mean and standard deviation of what is observed, as factors.py does.
func standard(l ppca.Layout, rows [][]dataset.Row) *ppca.Scale {
	d := l.Features()
	n, mean, squares := make([]float64, d), make([]float64, d), make([]float64, d)
	for _, of := range rows {
		for _, row := range of {
			j := 0
			for k, view := range row.Views {
				for i, x := range view {
					n[j+i]++
					delta := x - mean[j+i]
					mean[j+i] += delta / n[j+i]
					squares[j+i] += delta * (x - mean[j+i])
				}
				j += l.Dims[k]
			}
		}
	}
	s := &ppca.Scale{Shift: mean, Factor: make([]float64, d)}
	for j := range d {
		s.Factor[j] = math.Sqrt(n[j] / squares[j])
	}
	return s
}

// likest are the options of a study's own fit of one model.
var likest = ppca.FitOptions{LeastNoise: ppca.LeastNoise}

// pooled fits all rows in one place, as factors.py does: one start, the same iterations, the
// same rule to stop.
func (c sized) pooled(l ppca.Layout, sites [][]ppca.Block) (*ppca.Fitted, error) {
	return ppca.Fit(l, ppca.Merge(slices.Concat(sites...)), c.factors, nil, likest)
}

// exchanged makes what a study of one exchange does: the sums of each site, and the coordinator's fit.
func (c sized) exchanged(l ppca.Layout, sites [][]ppca.Block) (*ppca.Fitted, error) {
	var all []ppca.Block
	for _, blocks := range sites {
		said, err := ppca.Describe(l, nil, blocks, nil, ppca.Bound{Numbers: ppca.LargestExact})
		if err != nil {
			return nil, err
		}
		all = append(all, said.Blocks...)
	}
	return ppca.FitBest(l, ppca.Merge(all), c.factors, likest)
}
