package pvi

import (
	"fmt"

	"parley/internal/vectors"
	"parley/methods/pvi/gvi"
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

// maxSites bounds what a damaged file can ask for.
const maxSites = 1000

func verifyRounds(file []byte, list *vectors.List) error {
	var f roundsJSON
	if err := vectors.Decode(file, &f); err != nil {
		return err
	}
	all, err := design(f.X, f.T)
	if err != nil {
		return err
	}
	prior, err := f.Prior.density()
	if err != nil {
		return fmt.Errorf("prior: %w", err)
	}
	sites, err := f.sites(all)
	if err != nil {
		return err
	}
	central := gvi.Local{Likelihood: gvi.Logistic{}, Data: all, Cavity: prior}
	best, info, err := central.Optimum(prior, gvi.Solve{})
	if err != nil {
		return err
	}
	list.Equal("global_vi: converged", true, info.Converged)
	f.Global.compareMoments(list, "global_vi", best, tolOptimum)
	list.Float("global_vi.elbo", f.Global.ELBO, info.Value, tolOptimum)
	for i, r := range f.Runs {
		at := fmt.Sprintf("runs[%d]", i)
		s := gvi.Begin(prior, len(sites))
		round := s.Sequential
		switch r.Schedule {
		case "sequential":
		case "synchronous":
			round = s.Synchronous
		default:
			return fmt.Errorf("%s: unknown schedule %q", at, r.Schedule)
		}
		order := make([]int, len(sites))
		for m := range order {
			order[m] = m
		}
		update := gvi.Exact(gvi.Logistic{}, sites, r.Damping, gvi.Solve{})
		for n := range 60 {
			if err := round(order, update); err != nil {
				return fmt.Errorf("%s: round %d: %w", at, n+1, err)
			}
			if n < len(r.Rounds) {
				entry := fmt.Sprintf("%s.rounds[%d]", at, n)
				list.Equal(entry+".round", r.Rounds[n].Round, n+1)
				r.Rounds[n].compareMoments(list, entry, s.Q, tolOptimum)
			}
		}
		r.After.compareMoments(list, at+".after_60_rounds", s.Q, tolFixedPoint)
		// The file's own distance says no more than that it is within the tolerance.
		list.Equal(at+".after_60_rounds.max_abs_error_to_global: small", true, r.After.MaxError >= 0 && r.After.MaxError < tolFixedPoint.Rel)
	}
	return nil
}

// sites divides the rows among their owners.
func (f *roundsJSON) sites(all *gvi.Design) ([]*gvi.Design, error) {
	if len(f.Owner) != all.Rows() {
		return nil, fmt.Errorf("%d owners of %d rows", len(f.Owner), all.Rows())
	}
	var sites []*gvi.Design
	for i, m := range f.Owner {
		if m < 0 || m >= maxSites {
			return nil, fmt.Errorf("row %d belongs to client %d", i, m)
		}
		for len(sites) <= m {
			sites = append(sites, gvi.NewDesign(all.Columns()))
		}
		if err := sites[m].Append(all.Row(i), all.Outcome(i)); err != nil {
			return nil, err
		}
	}
	return sites, nil
}
