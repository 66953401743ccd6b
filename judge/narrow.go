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
	"parley/study"
)

// narrowing leaves out of a fit what its rows cannot say anything about: views
// that nobody has, of which nothing is then expected, and features that do not
// vary, which are expected to stay as they are.
type narrowing struct {
	full     dataset.Schema
	schema   dataset.Schema
	views    []int       // that are kept, of full
	features [][]int     // of every view in full, those kept
	constant [][]float64 // of every view in full; NaN where a feature is kept or unknown
	lacking  []int       // views of full of which nothing is known
	whole    bool        // nothing is left out
	outcome  bool        // the fit predicts an outcome, and nothing of features
}

// everything is kept.
func everything(src dataset.Source) *narrowing {
	return &narrowing{full: src.Schema(), schema: src.Schema(), whole: true, outcome: true}
}

// narrow reads the rows once. It is an error if they have a view, but of one of
// its features not a single value. What takes features as given, to predict an
// outcome, can do without that feature, and knows what categories there are.
func narrow(ctx context.Context, src dataset.Source, outcome bool) (*narrowing, error) {
	n := &narrowing{full: src.Schema(), whole: true, outcome: outcome}
	low, varies := make([][]float64, len(n.full.Views)), make([][]bool, len(n.full.Views))
	has := make([]bool, len(n.full.Views))
	for k, v := range n.full.Views {
		low[k], varies[k] = make([]float64, len(v.Columns)), make([]bool, len(v.Columns))
		for j := range low[k] {
			low[k][j] = math.NaN()
		}
	}
	for row, err := range src.Rows(ctx) {
		if err != nil {
			return nil, err
		}
		for k, x := range row.Views {
			for j, v := range x {
				switch {
				case math.IsNaN(v):
				case math.IsNaN(low[k][j]):
					low[k][j], has[k] = v, true
				case v != low[k][j]:
					varies[k][j] = true
				}
			}
		}
	}
	n.features, n.constant = make([][]int, len(n.full.Views)), low
	n.schema.Subject = n.full.Subject
	for k, v := range n.full.Views {
		if !has[k] {
			n.lacking, n.whole = append(n.lacking, k), false
			continue
		}
		kept := dataset.View{Name: v.Name}
		for j, c := range v.Columns {
			switch {
			case outcome && c.Kind == dataset.Category, varies[k][j]:
				low[k][j] = math.NaN()
				n.features[k] = append(n.features[k], j)
				kept.Columns = append(kept.Columns, c)
			case math.IsNaN(low[k][j]) && !outcome:
				return nil, fmt.Errorf("view %s, feature %s: no training subject has a single value of it",
					v.Name, c.Name)
			default:
				n.whole = false
			}
		}
		if len(kept.Columns) > 0 {
			n.views, n.schema.Views = append(n.views, k), append(n.schema.Views, kept)
		}
	}
	if len(n.views) == 0 {
		return nil, fmt.Errorf("nothing varies among the training subjects")
	}
	return n, nil
}

// plan is the plan of a study of these sites, without what is left out.
func (n *narrowing) plan(p *study.Plan, sites []string) *study.Plan {
	own := p.Among(sites)
	if n.whole {
		return own
	}
	own.Views = nil
	for _, k := range n.views {
		v := study.View{Name: p.Views[k].Name}
		for _, j := range n.features[k] {
			v.Features = append(v.Features, p.Views[k].Features[j])
		}
		own.Views = append(own.Views, v)
	}
	return own
}

// known is the source without the views that were left out.
func (n *narrowing) known(src dataset.Source) dataset.Source {
	if len(n.lacking) == 0 {
		return src
	}
	return evaluate.Select(src, func(string) ([]int, bool) { return n.lacking, true })
}

// nobody is a subject without any view.
func (n *narrowing) nobody() *dataset.Row {
	return &dataset.Row{Views: make([][]float64, len(n.full.Views)), Subject: make([]string, len(n.full.Subject))}
}

// source is the source without anything that was left out.
func (n *narrowing) source(src dataset.Source) dataset.Source {
	if n.whole {
		return src
	}
	return dataset.Derive(src, n.schema, func() func(*dataset.Row) *dataset.Row {
		workspace := n.workspace()
		return func(row *dataset.Row) *dataset.Row { return n.row(row, workspace) }
	})
}

func (n *narrowing) workspace() [][]float64 {
	workspace := make([][]float64, len(n.views))
	for i, k := range n.views {
		workspace[i] = make([]float64, len(n.features[k]))
	}
	return workspace
}

// row is the subject without what is left out; values are written to workspace.
func (n *narrowing) row(row *dataset.Row, workspace [][]float64) *dataset.Row {
	views := make([][]float64, len(n.views))
	for i, k := range n.views {
		if row.Views[k] == nil {
			continue
		}
		for a, j := range n.features[k] {
			workspace[i][a] = row.Views[k][j]
		}
		views[i] = workspace[i]
	}
	return &dataset.Row{ID: row.ID, Views: views, Subject: row.Subject}
}

// model makes a model of what was kept one of everything.
func (n *narrowing) model(m evaluate.Model) evaluate.Model {
	switch {
	case n.whole:
		return m
	case n.outcome:
		return &foretelling{n, m, n.workspace()}
	}
	w := &widened{of: n, inner: m, workspace: n.workspace(), sd: n.workspace()}
	for _, v := range n.full.Views {
		w.sizes = append(w.sizes, len(v.Columns))
	}
	if p, ok := m.(evaluate.Predictive); ok {
		return &widenedPredictive{w, p}
	}
	return w
}

type widened struct {
	of        *narrowing
	inner     evaluate.Model
	post      evaluate.Posterior
	workspace [][]float64
	sd        [][]float64
	sizes     []int
}

// Infer implements [evaluate.Model].
func (w *widened) Infer(row *dataset.Row, dst *evaluate.Posterior) error {
	if err := w.inner.Infer(w.of.row(row, w.workspace), &w.post); err != nil {
		return err
	}
	w.fill(dst)
	return nil
}

func (w *widened) fill(dst *evaluate.Posterior) {
	dst.Resize(len(w.post.Latent), w.sizes)
	copy(dst.Latent, w.post.Latent)
	dst.LogLik = w.post.LogLik
	for k := range dst.Mean {
		copy(dst.Mean[k], w.of.constant[k])
	}
	for i, k := range w.of.views {
		for a, j := range w.of.features[k] {
			dst.Mean[k][j] = w.post.Mean[i][a]
		}
	}
}

type widenedPredictive struct {
	*widened
	inner evaluate.Predictive
}

// Predict implements [evaluate.Predictive]. What does not vary is certain.
func (w *widenedPredictive) Predict(row *dataset.Row, dst *evaluate.Posterior, sd [][]float64) error {
	if err := w.inner.Predict(w.of.row(row, w.workspace), &w.post, w.sd); err != nil {
		return err
	}
	w.fill(dst)
	for k, x := range row.Views {
		if x == nil {
			clear(sd[k])
		}
	}
	for i, k := range w.of.views {
		for a, j := range w.of.features[k] {
			if x := row.Views[k]; x == nil || math.IsNaN(x[j]) {
				sd[k][j] = w.sd[i][a]
			}
		}
	}
	return nil
}

// foretelling predicts outcomes from what was kept.
type foretelling struct {
	of        *narrowing
	inner     evaluate.Model
	workspace [][]float64
}

// Infer implements [evaluate.Model].
func (f *foretelling) Infer(row *dataset.Row, dst *evaluate.Posterior) error {
	if err := f.inner.Infer(f.of.row(row, f.workspace), dst); err != nil {
		return err
	}
	dst.Unknown(len(dst.Latent), row)
	return nil
}

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

// siteFits is every site's own fit, asked about the site's own subjects, and what the
// federated fit says of the same values: that of sites that could be fitted, and of
// features that vary there, since no other density could be compared.
func (f *features) siteFits(ctx context.Context, t *foldTrial, federated evaluate.Model,
	unit *evaluate.Scaling) (*scored, error) {
	place, err := t.placed(t.experiment, t.division)
	if err != nil {
		return nil, err
	}
	for _, p := range t.Train {
		place[p.ID] = p.Site
	}
	own := &bySite{place: place, models: make([]evaluate.Model, len(t.names))}
	known := make([]*narrowing, len(t.names))
	_, failed := t.siteFits(ctx, func(site int, m evaluate.Model, of *narrowing) (*scored, error) {
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
