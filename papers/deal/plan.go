package deal

import (
	"encoding/json"
	"slices"

	"parley/dataset"
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
	if says["privacy"] == nil {
		says["privacy"] = Keys{"protection": study.ProtectionNone}
	}
	text, err := json.Marshal(says) // JSON is YAML
	if err != nil {
		return nil, err
	}
	return study.Parse("plan", text, methods)
}

// Protected is the privacy that promises a total to each subject, one more or one less.
func Protected(total account.Budget) Keys {
	return Keys{"protection": study.ProtectionDifferential, "unit": study.UnitSubject, "adjacency": account.AddRemove, "total": total}
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
