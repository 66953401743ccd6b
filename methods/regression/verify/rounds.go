package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"parley/dataset"
	"parley/internal/vectors"
	"parley/method"
	"parley/methods/regression/fitted"
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
	"parley/methods/regression/partitioned"
	"parley/study"
)

type roundsJSON struct {
	Schema string      `json:"schema"`
	X      [][]float64 `json:"X"`
	T      []float64   `json:"t"`
	Owner  []int       `json:"owner"`
	Prior  naturalJSON `json:"prior"`
	Global struct {
		naturalJSON
		ELBO float64 `json:"elbo"`
	} `json:"global_vi"`
	Runs []struct {
		Schedule string  `json:"schedule"`
		Damping  float64 `json:"damping"`
		Rounds   []struct {
			Round int `json:"round"`
			naturalJSON
		} `json:"rounds"`
		After struct {
			naturalJSON
			MaxError float64 `json:"max_abs_error_to_global"`
		} `json:"after_60_rounds"`
	} `json:"runs"`
}

// Bounds on what a damaged file can ask for.
const (
	maxSites  = 1000
	maxRounds = 60
	maxRuns   = 10
)

// studies are whole studies of the method.
type studies struct {
	method.Method
	run func(*study.Plan, map[string]dataset.Source) (*method.Result, error)
}

// verify runs each schedule as a study of so many rounds as the file has
// moments after, and all rows in one place.
func (f *roundsJSON) verify(list *vectors.List, of studies) error {
	if of.run == nil {
		return errors.New("this runs studies, and cannot here")
	}
	s, err := f.study()
	if err != nil {
		return err
	}
	if len(f.Runs) > maxRuns {
		return fmt.Errorf("%d runs are more than %d", len(f.Runs), maxRuns)
	}
	// Plans know priors of one variance around 0.
	list.Floats("prior.mean", f.Prior.Mean, make([]float64, s.columns), tolExact)
	list.Floats("prior.var", f.Prior.Var, slices.Repeat([]float64{s.variance}, s.columns), tolExact)
	p, err := s.plan(of, "sequential", 1, 1)
	if err != nil {
		return err
	}
	all, err := dataset.NewTable(p.Schema(), slices.Concat(s.rows...))
	if err != nil {
		return err
	}
	central, err := partitioned.Central(context.Background(), p, all)
	if err != nil {
		return err
	}
	list.Equal("global_vi: converged", true, central.Info.Converged)
	f.Global.compareMoments(list, "global_vi", central.Model.Posterior, tolOptimum)
	list.Float("global_vi.elbo", f.Global.ELBO, central.Info.Value, tolOptimum)
	for i, r := range f.Runs {
		at := fmt.Sprintf("runs[%d]", i)
		if r.Schedule != "sequential" && r.Schedule != "synchronous" {
			return fmt.Errorf("%s: unknown schedule %q", at, r.Schedule)
		}
		if len(r.Rounds) > maxRounds {
			return fmt.Errorf("%s: %d rounds, and there are %d", at, len(r.Rounds), maxRounds)
		}
		for n, want := range r.Rounds {
			entry := fmt.Sprintf("%s.rounds[%d]", at, n)
			q, err := s.posterior(of, r.Schedule, r.Damping, n+1)
			if err != nil {
				return fmt.Errorf("%s: %w", entry, err)
			}
			list.Equal(entry+".round", want.Round, n+1)
			want.compareMoments(list, entry, q, tolOptimum)
		}
		q, err := s.posterior(of, r.Schedule, r.Damping, maxRounds)
		if err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
		r.After.compareMoments(list, at+".after_60_rounds", q, tolFixedPoint)
		// The file's own distance says no more than that it is within the tolerance.
		list.Equal(at+".after_60_rounds.max_abs_error_to_global: small", true, r.After.MaxError >= 0 && r.After.MaxError < tolFixedPoint.Rel)
	}
	return nil
}

// partition is the file's rows as those of the sites of a study.
type partition struct {
	columns  int
	variance float64 // of the prior
	sites    []string
	rows     [][]dataset.Row // by site
}

var answers = map[float64]string{-1: "no", 1: "yes"}

// study divides the rows among their owners.
func (f *roundsJSON) study() (*partition, error) {
	all, err := design(f.X, f.T)
	if err != nil {
		return nil, err
	}
	prior, err := f.Prior.density()
	if err != nil {
		return nil, fmt.Errorf("prior: %w", err)
	}
	if len(f.Owner) != all.Rows() {
		return nil, fmt.Errorf("%d owners of %d rows", len(f.Owner), all.Rows())
	}
	s := &partition{columns: all.Columns(), variance: f.Prior.Var[0]}
	if err := prior.CheckProper(s.columns); err != nil {
		return nil, fmt.Errorf("prior: %w", err)
	}
	for i, m := range f.Owner {
		if m < 0 || m >= maxSites {
			return nil, fmt.Errorf("row %d belongs to client %d", i, m)
		}
		if err := (glm.Logistic{}).Check(f.T[i]); err != nil {
			return nil, fmt.Errorf("row %d: %w", i, err)
		}
		for len(s.rows) <= m {
			s.sites = append(s.sites, fmt.Sprintf("c%d", len(s.rows)))
			s.rows = append(s.rows, nil)
		}
		s.rows[m] = append(s.rows[m], dataset.Row{ID: fmt.Sprintf("%06d", i), Views: [][]float64{f.X[i]}, Subject: []string{answers[f.T[i]]}})
	}
	return s, nil
}

// plan is a plan that takes numbers as they are.
func (s *partition) plan(of studies, schedule string, damping float64, rounds int) (*study.Plan, error) {
	features, constants := make([]string, s.columns), make([]options.Constant, s.columns)
	for j := range features {
		features[j] = fmt.Sprintf("x%d", j)
		constants[j] = options.Constant{Feature: features[j], Scale: 1}
	}
	// JSON is YAML.
	text, err := json.Marshal(map[string]any{
		"parley": study.Version, "name": "vectors", "sites": s.sites, "subjects": []string{"y"},
		"views":   []any{map[string]any{"name": "v", "features": features}},
		"privacy": map[string]any{"protection": study.ProtectionNone},
		"method": map[string]any{
			"name": of.Name(), "variant": options.VariantPartitioned, "outcome": glm.Outcome{Column: "y", Levels: []string{"no", "yes"}}, "intercept": false, "constants": constants,
			"prior_variance": s.variance, "schedule": schedule, "rounds": rounds, "damping": damping, "tolerance": 0,
		},
	})
	if err != nil {
		return nil, err
	}
	return study.Parse("the vectors' plan", text, method.Registry{of.Method})
}

// posterior is that of a whole study.
func (s *partition) posterior(of studies, schedule string, damping float64, rounds int) (q glm.Gaussian, err error) {
	p, err := s.plan(of, schedule, damping, rounds)
	if err != nil {
		return q, err
	}
	rows := map[string]dataset.Source{}
	for m, site := range s.sites {
		if rows[site], err = dataset.NewTable(p.Schema(), s.rows[m]); err != nil {
			return q, err
		}
	}
	r, err := of.run(p, rows)
	if err != nil {
		return q, err
	}
	data, err := method.ModelJSON(r.Files)
	if err != nil {
		return q, err
	}
	m, err := fitted.LoadModel(data)
	if err != nil {
		return q, err
	}
	return m.Posterior, m.Posterior.CheckProper(s.columns)
}
