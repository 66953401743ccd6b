package fedmvppca

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"parley/dataset"
	"parley/judge/evaluate"
	"parley/papers/deal"
	"parley/papers/experiment"
	"parley/papers/melba"
)

// source is a data set of the experiments.
type source struct {
	name    string
	factors int // latent dimension where the paper fixes one
	// open returns the rows of a repeat. Every subject has a label in column group.
	open func(ctx context.Context, at experiment.Data, repeat int) (*dataset.Table, error)
}

// needs names the data set, if it is stored.
func (s source) needs() []string {
	if s.name == synthetic.name {
		return nil
	}
	return []string{s.name}
}

// synthetic is the data of section 4.1, drawn anew for each repeat: the paper has one draw.
var synthetic = source{"sd", 5, func(_ context.Context, _ experiment.Data, repeat int) (*dataset.Table, error) {
	const subjects = 400
	rng := rand.New(rand.NewPCG(uint64(repeat)+1, 41))
	features := melba.Draw(rng, 5, 1)
	moves := map[bool][]float64{true: melba.Shift(rng, 5), false: make([]float64, 5)}
	s := melba.Schema(melba.Dims)
	s.Subject = []dataset.Column{{Name: "group"}}
	var rows []dataset.Row
	for i := range subjects {
		moved := melba.Moved(i, subjects)
		rows = append(rows, dataset.Row{ID: fmt.Sprintf("s%03d", i),
			Subject: []string{map[bool]string{true: "shifted", false: "base"}[moved]},
			Views:   melba.Views(melba.Dims, features.Subject(rng, moves[moved]))})
	}
	return dataset.NewTable(s, rows)
}}

// adcsf stands for the paper's extract of ADNI, which may not be shipped: it has the same
// shape and, in part, the same question.
var adcsf = stored("adcsf", 6)

// mfeat has more of everything, and is not shipped.
var mfeat = stored("mfeat", 5)

func stored(name string, factors int) source {
	return source{name, factors, func(ctx context.Context, at experiment.Data, _ int) (*dataset.Table, error) {
		path, err := at.Folder(name)
		if err != nil {
			return nil, err
		}
		return deal.Open(ctx, path)
	}}
}

// division is a fold of a repeat: rows at sites, and rows held out.
type division struct {
	sites   []dataset.Source
	train   dataset.Source   // of all sites
	full    []dataset.Source // sites before the scenario took views away
	whole   dataset.Source   // and train
	held    dataset.Source   // complete
	tests   []dataset.Source // held, as the paper tests: at sites that lack views as those of the training rows do
	lacking [][]int          // views, of each site
}

// divide makes the fold of a repeat that a condition asks for.
func (c condition) divide(ctx context.Context, rows *dataset.Table, repeat, fold int) (*division, error) {
	subjects, err := deal.Subjects(ctx, rows, "group")
	if err != nil {
		return nil, err
	}
	const seed = 2022
	folds, err := evaluate.FoldsOf(subjects, folds, repeat, seed)
	if err != nil {
		return nil, err
	}
	s := evaluate.Split{Fold: folds[fold], Sites: c.sites}
	if s.Lacking, err = evaluate.Lacking(c.scenario, c.sites, len(rows.Schema().Views)); err != nil {
		return nil, err
	}
	train := slices.DeleteFunc(subjects, func(x evaluate.Subject) bool { return slices.Contains(s.Test, x.ID) })
	if s.Train, err = evaluate.Assign(train, evaluate.SiteNames(c.sites), c.scenario, seed+uint64(repeat)); err != nil {
		return nil, err
	}
	d := &division{lacking: s.Lacking}
	d.sites, d.train, d.held = s.Sources(rows)
	whole := s
	whole.Lacking = nil
	d.full, d.whole, _ = whole.Sources(rows)
	d.tests = []dataset.Source{d.held}
	if c.scenario == evaluate.K || c.scenario == evaluate.GK {
		d.tests, err = deal.Spread(ctx, d.held, "group", c.scenario, 3, seed+uint64(repeat))
	}
	return d, err
}

// first is the first fold of a repeat, scaled.
func (c condition) first(ctx context.Context, at experiment.Data, repeat int) (*division, error) {
	rows, err := c.data.open(ctx, at, repeat)
	if err != nil {
		return nil, err
	}
	d, err := c.divide(ctx, rows, repeat, 0)
	if err != nil {
		return nil, err
	}
	return d, c.scale(ctx, d)
}

// scaled brings every source to [0, 1] by its own minimum and maximum, as the paper's
// code does.
func scaled(ctx context.Context, sources []dataset.Source) (out []dataset.Source, err error) {
	for _, s := range sources {
		unit, err := evaluate.FitMinMax(ctx, s)
		if err != nil {
			return nil, err
		}
		out = append(out, unit.Apply(s))
	}
	return out, nil
}
