package fitted

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"

	"parley/dataset"
	"parley/method"
	"parley/methods/factors/ppca"
	"parley/problem"
)

// Impute implements [method.Imputer]: for every feature that was not observed
// of a subject, its conditional mean and standard deviation and the central
// interval that holds the value with probability Level. The columns are id,
// view, feature, mean, sd, low and high, in the feature's own unit.
//
// An interval is for one value of one subject, its measurement noise included, and what the
// fit to so many subjects leaves unknown: see [ppca.SamplingTimes].
func (m *Model) Impute(ctx context.Context, data dataset.Source, to io.Writer, opts method.ImputeOptions) (int, method.Notes, error) {
	if !(opts.Level > 0 && opts.Level < 1) {
		return 0, nil, problem.Problem{Where: "level", What: fmt.Sprintf("%v is not between 0 and 1", opts.Level), Hint: "0.9 for intervals that hold nine values of ten"}
	}
	wanted, err := m.wanted(opts.Views)
	if err != nil {
		return 0, nil, err
	}
	r, notes, err := m.use(Population{opts.Site, opts.NewSite})
	if err != nil {
		return 0, nil, err
	}
	d := len(r.units.features)
	z := mathext.NormalQuantile(0.5 + opts.Level/2)
	w := newLines(to, "id", "view", "feature", "mean", "sd", "low", "high")
	mean, variance := make([]float64, d), make([]float64, d)
	written := 0
	_, err = r.each(ctx, data, func(row *dataset.Row, post *ppca.Posterior, values []float64) error {
		post.Impute(mean, values)
		post.MissingVar(variance)
		for i, j := range post.Missing {
			if !wanted[j] {
				continue
			}
			centre, sd := r.own(j, mean[i]), math.Sqrt(variance[i])/r.scale.Factor[j]
			w.text(row.ID).text(r.units.view[j]).text(r.units.features[j].Name)
			if err := w.number(centre).number(sd).number(centre - z*sd).number(centre + z*sd).end(); err != nil {
				return err
			}
			written++
		}
		return nil
	})
	warnings := m.verdictNotes(func(v *Verdict) bool {
		return slices.ContainsFunc(v.Views, func(name string) bool { return len(opts.Views) == 0 || slices.Contains(opts.Views, name) })
	})
	if written > 0 {
		notes = append(notes, m.Biases.unseen(opts.Site, opts.NewSite, opts.Views)...)
	}
	return written, slices.Concat(warnings, notes, r.notes()), errors.Join(err, w.flush())
}

// verdictNotes are such verdicts.
func (m *Model) verdictNotes(such func(*Verdict) bool) (notes method.Notes) {
	for i := range m.Verdicts {
		if v := &m.Verdicts[i]; such(v) {
			notes.Add(problem.Problem{Where: "model " + m.Study, What: v.Says, Hint: v.Advice})
		}
	}
	return notes
}

// wanted says of each feature whether it is in one of the named views; in any
// if none is named.
func (m *Model) wanted(names []string) ([]bool, error) {
	var known []string
	for _, v := range m.Views {
		known = append(known, v.Name)
	}
	var wrong problem.List
	for _, name := range names {
		if !slices.Contains(known, name) {
			wrong.Add(problem.Problem{Where: "view " + name, What: "the model has no such view", Hint: problem.DidYouMean(name, known, "one of "+problem.Names(known))})
		}
	}
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	var wanted []bool
	for _, v := range m.Views {
		for range v.Features {
			wanted = append(wanted, len(names) == 0 || slices.Contains(names, v.Name))
		}
	}
	return wanted, nil
}
