package deal

import (
	"context"
	"encoding/json"
	"slices"

	"parley/dataset"
	"parley/engine/local"
	"parley/judge/evaluate"
	"parley/method"
	"parley/privacy/account"
	"parley/study"
)

// Keys are what a plan says under a key.
type Keys = map[string]any

// Plan is the study that a plan with these keys describes. Without privacy it promises
// nothing.
func Plan(methods method.Registry, says Keys) (*study.Plan, error) {
	says["parley"] = study.Version
	if privacy, _ := says["privacy"].(Keys); privacy == nil {
		says["privacy"] = Keys{"protection": study.ProtectionNone}
	}
	text, err := json.Marshal(says) // JSON is YAML
	if err != nil {
		return nil, err
	}
	return study.Parse("plan", text, methods)
}

// Protected is the privacy that promises a total to each subject, one more or one less; nil for
// an ε of 0, which stands for none.
func Protected(epsilon, delta float64) Keys {
	if epsilon == 0 {
		return nil
	}
	return Keys{"protection": study.ProtectionDifferential, "unit": study.UnitSubject, "adjacency": account.AddRemove,
		"total": account.Budget{Epsilon: epsilon, Delta: delta}}
}

// Noise is what so many Gaussian releases need for a total, in units of the clip: of Poisson samples at a
// rate, of records that lie so far apart at most.
func Noise(rate, diameter float64, count int, total account.Budget) (float64, error) {
	return account.Scale([]account.Mechanism{{Kind: account.Gaussian, Noise: 1, Rate: rate, Diameter: diameter,
		Count: count}}, account.AddRemove, total)
}

// Run makes a plan and runs its study in memory.
func Run(ctx context.Context, methods method.Registry, says Keys,
	data map[string]dataset.Source) (*study.Plan, *local.Outcome, error) {
	p, err := Plan(methods, says)
	if err != nil {
		return nil, nil, err
	}
	out, err := local.Run(ctx, local.Config{Plan: p, Methods: methods, Data: data})
	return p, out, err
}

// Views says which columns rows have. Public says between which values the features lie,
// all views' one after the other; nil if nobody knows.
func Views(s dataset.Schema, public func(feature int) [2]float64) (views []Keys) {
	n := 0
	for _, v := range s.Views {
		var features []Keys
		for _, c := range v.Columns {
			feature := Keys{"name": c.Name}
			if public != nil {
				feature["range"] = public(n)
			}
			features, n = append(features, feature), n+1
		}
		views = append(views, Keys{"name": v.Name, "features": features})
	}
	return views
}

// Within says that every feature lies between ± some value.
func Within(most float64) func(feature int) [2]float64 {
	return func(int) [2]float64 { return [2]float64{-most, most} }
}

// Patterns says which views each site has, where it lacks some.
func Patterns(s dataset.Schema, lacking [][]int) (all []Keys) {
	for i, site := range evaluate.SiteNames(len(lacking)) {
		var views []string
		for k, v := range s.Views {
			if !slices.Contains(lacking[i], k) {
				views = append(views, v.Name)
			}
		}
		all = append(all, Keys{"site": site, "views": views})
	}
	return all
}
