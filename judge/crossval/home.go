package crossval

import (
	"parley/dataset"
	"parley/judge/evaluate"
)

// atHome is a fit that predicts subjects as those of the site where they are.
type atHome struct {
	evaluate.Predictive // for subjects of no site of the fit
	sites               map[string]evaluate.Predictive
	home                map[string]string // site of each subject, by id
}

// atHome lets a model that tells the sites of its fit apart do so for subjects whose site
// is known: those that were fitted, and those held out of sites that are real.
func (t *trial) atHome(m evaluate.Model, names []string) (evaluate.Model, error) {
	sited, ok := m.(evaluate.Sited)
	if !ok || t.newSite {
		return m, nil
	}
	out := &atHome{Predictive: sited, sites: map[string]evaluate.Predictive{}, home: map[string]string{}}
	for _, name := range names {
		at, err := sited.AtSite(name)
		if err != nil {
			return nil, err
		}
		out.sites[name] = at
	}
	for _, p := range t.Train {
		out.home[p.ID] = t.names[p.Site]
	}
	for i, table := range t.homes {
		for k := range table.Len() {
			out.home[table.Row(k).ID] = t.Plan.Sites[i]
		}
	}
	return out, nil
}

func (m *atHome) of(row *dataset.Row) evaluate.Predictive {
	if at, ok := m.sites[m.home[row.ID]]; ok {
		return at
	}
	return m.Predictive
}

// Infer implements [evaluate.Model].
func (m *atHome) Infer(row *dataset.Row, dst *evaluate.Posterior) error {
	return m.of(row).Infer(row, dst)
}

// Predict implements [evaluate.Predictive].
func (m *atHome) Predict(row *dataset.Row, dst *evaluate.Posterior, sd [][]float64) error {
	return m.of(row).Predict(row, dst, sd)
}
