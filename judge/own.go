package judge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"parley/dataset"
	"parley/judge/evaluate"
)

// everySite is the key, beside sites' names, of the own subjects of all sites together.
const everySite = ""

// placed says which site each subject held out belongs to: its own, or, where sites are
// simulated, the one that they are dealt out to as those who are fitted.
func (e *evaluation) placed(x experiment, d *division) (map[string]int, error) {
	sites, groups := e.sitesOf(x.scenario), e.groups
	if x.scenario == evaluate.Column {
		groups = e.own
	}
	subjects := slices.DeleteFunc(e.subjects(groups), func(s evaluate.Subject) bool {
		_, held := slices.BinarySearch(d.Test, s.ID)
		return !held
	})
	at := make(map[string]int, len(subjects))
	if x.scenario == evaluate.Column { // a site may have nobody here
		for _, s := range subjects {
			at[s.ID] = slices.Index(sites, s.Group)
		}
		return at, nil
	}
	placed, err := e.assign(x, subjects)
	for _, p := range placed {
		at[p.ID] = p.Site
	}
	return at, err
}

// alone is every site's own fit, asked about the site's own subjects, and what the
// federated fit says of the same values: that of sites that could be fitted, and of
// features that vary there, since no other density could be compared.
func (f *features) alone(ctx context.Context, t *foldTrial, federated evaluate.Model, unit *evaluate.Scaling) (*scored, error) {
	place, err := t.placed(t.experiment, t.division)
	if err != nil {
		return nil, err
	}
	for _, p := range t.Train {
		place[p.ID] = p.Site
	}
	own := &bySite{place: place, models: make([]evaluate.Model, len(t.names))}
	known := make([]*narrowing, len(t.names))
	_, failed := t.alone(ctx, func(site int, m evaluate.Model, of *narrowing) (*scored, error) {
		own.models[site], known[site] = m, of
		return &scored{}, nil
	})
	// said is the rows that some fit knows, without what it leaves out. Rows of which
	// nothing is left are passed over.
	said := func(src dataset.Source, sites ...int) dataset.Source {
		made := func(row *dataset.Row) *dataset.Row {
			site, ok := place[row.ID]
			if !ok || site < 0 || known[site] == nil || len(sites) > 0 && !slices.Contains(sites, site) {
				return nil
			}
			views := known[site].varying(row.Views)
			if !slices.ContainsFunc(views, func(x []float64) bool {
				return slices.ContainsFunc(x, func(v float64) bool { return !math.IsNaN(v) })
			}) {
				return nil
			}
			return &dataset.Row{ID: row.ID, Views: views, Subject: row.Subject}
		}
		return dataset.Derive(src, src.Schema(), func() func(*dataset.Row) *dataset.Row { return made })
	}
	train, err := evaluate.EvaluateIn(ctx, unit, own.model(), said(t.train))
	if err != nil {
		return nil, errors.Join(failed, err)
	}
	s := &scored{marks: evaluate.Marks{}, home: map[string]evaluate.Marks{}, beside: map[string]evaluate.Marks{}}
	both := func(key string, sites ...int) error {
		rows := said(t.test, sites...)
		if n, err := dataset.Count(ctx, rows); err != nil || n.Subjects == 0 {
			return err
		}
		for _, x := range []struct {
			m  evaluate.Model
			to map[string]evaluate.Marks
		}{{own.model(), s.home}, {federated, s.beside}} {
			marks, err := f.held(ctx, x.m, rows, unit)
			if err != nil {
				return err
			}
			x.to[key] = marks
		}
		return nil
	}
	if err := both(everySite); err != nil {
		return nil, errors.Join(failed, err)
	}
	for i, name := range t.names {
		if err := both(name, i); err != nil {
			return nil, errors.Join(failed, fmt.Errorf("site %s: %w", name, err))
		}
	}
	maps.Copy(s.marks, s.home[everySite])
	if slices.ContainsFunc(known, func(of *narrowing) bool { return of == nil || !of.whole }) {
		delete(s.marks, LogLik) // of less than what the other fits were asked about
	}
	f.setTrain(s.marks, train)
	return s, failed
}

// bySite is every site's own fit for its own subjects.
type bySite struct {
	place  map[string]int
	models []evaluate.Model // nil where there is none
}

// model is a [evaluate.Predictive] if all fits are.
func (b *bySite) model() evaluate.Model {
	for _, m := range b.models {
		if _, ok := m.(evaluate.Predictive); m != nil && !ok {
			return b
		}
	}
	return predictiveBySite{b}
}

// Infer implements [evaluate.Model].
func (b *bySite) Infer(row *dataset.Row, dst *evaluate.Posterior) error {
	return b.models[b.place[row.ID]].Infer(row, dst)
}

type predictiveBySite struct{ *bySite }

// Predict implements [evaluate.Predictive].
func (b predictiveBySite) Predict(row *dataset.Row, dst *evaluate.Posterior, sd [][]float64) error {
	return b.models[b.place[row.ID]].(evaluate.Predictive).Predict(row, dst, sd)
}

// varying copies the values of features that are kept, NaN in place of the others.
func (n *narrowing) varying(views [][]float64) [][]float64 {
	if n.whole {
		return views
	}
	out := make([][]float64, len(views))
	for _, k := range n.views {
		if views[k] == nil {
			continue
		}
		out[k] = make([]float64, len(views[k]))
		for j := range out[k] {
			out[k][j] = math.NaN()
		}
		for _, j := range n.features[k] {
			out[k][j] = views[k][j]
		}
	}
	return out
}
