package fitted

import (
	"context"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"

	"parley/dataset"
	"parley/methods/factors/options"
	"parley/problem"
)

// drawnBy is the subject column that tells drawn subjects from real ones
// wherever their data go.
const drawnBy = "drawn_from"

// Sample implements [method.Sampler]: subjects drawn from N(μ, W Wᵀ + Ψ), in
// the features' own units; with the variance between sites, where these have means of their
// own, each subject being of another site. A model of adjusted features draws nobody. Which views are asked for does not change what is
// drawn of the others. The subject column drawn_from names the model.
func (m *Model) Sample(n int, seed uint64, views []string) (dataset.Source, error) {
	if n < 1 {
		return nil, problem.Problem{Where: "n", What: fmt.Sprintf("%d subjects cannot be drawn", n), Hint: "a whole number from 1"}
	}
	wanted, err := m.wanted(views)
	if err != nil {
		return nil, err
	}
	if m.Scaling == options.ScaleSiteRange {
		return nil, problem.Problem{Where: "model " + m.Study, What: fmt.Sprintf("was fitted with scaling %q: every site had units of its own, and drawn subjects have none", m.Scaling),
			Hint: "fit it with another scaling"}
	}
	if m.Adjusts() {
		return nil, problem.Problem{Where: "model " + m.Study, What: fmt.Sprintf("is adjusted for %s: it says what to expect of a subject of whom these are known, and drawn subjects have none", options.AdjustedFor(m.adjustedFor())),
			Hint: "draw from a model that was fitted without adjust"}
	}
	s := &drawn{model: m, n: n, seed: seed, schema: m.Schema(), wanted: wanted}
	s.schema.Subject = []dataset.Column{{Name: drawnBy, Kind: dataset.Label}}
	return s, nil
}

// drawn is a data set that is drawn anew, and alike, whenever it is read.
type drawn struct {
	model  *Model
	n      int
	seed   uint64
	schema dataset.Schema
	wanted []bool
}

// Schema implements [dataset.Source].
func (s *drawn) Schema() dataset.Schema { return s.schema }

// Rows implements [dataset.Source].
func (s *drawn) Rows(ctx context.Context) iter.Seq2[*dataset.Row, error] {
	return func(yield func(*dataset.Row, error) bool) {
		r := rand.New(rand.NewPCG(s.seed, 0x70617269)) // its own stream of the seed
		q := len(s.model.Factors)
		x := make([]float64, q)
		row := &dataset.Row{Views: make([][]float64, len(s.schema.Views)), Subject: []string{fmt.Sprintf("model %.12s", s.model.Plan)}}
		values := make([][]float64, len(row.Views))
		for k, v := range s.schema.Views {
			values[k] = make([]float64, len(v.Columns))
		}
		digits := len(fmt.Sprint(s.n))
		for i := range s.n {
			if i%1024 == 0 && ctx.Err() != nil {
				yield(nil, ctx.Err())
				return
			}
			row.ID = fmt.Sprintf("drawn-%0*d", digits, i+1)
			for a := range x {
				x[a] = r.NormFloat64()
			}
			j := 0
			for k, v := range s.model.Views {
				row.Views[k] = nil
				for c, f := range v.Features {
					z := f.Mean + math.Sqrt(f.Noise+f.SiteVariance)*r.NormFloat64()
					for a, w := range f.Loadings {
						z += w * x[a]
					}
					values[k][c] = z/f.Factor + f.Shift
					if f.Noise == 0 { // not described
						values[k][c] = math.NaN()
					} else if s.wanted[j] {
						row.Views[k] = values[k]
					}
					j++
				}
			}
			if !yield(row, nil) {
				return
			}
		}
	}
}
