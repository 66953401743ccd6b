package evaluate

import (
	"context"
	"fmt"
	"math"
	"slices"

	"parley/dataset"
)

// Fold is one division of the subjects into those that are fitted and those
// that are held out.
type Fold struct {
	Repeat, Index int      // from 0
	Test          []string // ids held out, ascending
}

// Folds divides the subjects into k folds, and does so repeats times. Each
// subject is held out once in every repeat; folds differ by at most one subject
// in size and in the number of subjects of each group. The result depends on
// the seed and the set of subjects, not on their order.
func Folds(subjects []Subject, k, repeats int, seed uint64) ([]Fold, error) {
	var folds []Fold
	for r := range repeats {
		some, err := FoldsOf(subjects, k, r, seed)
		if err != nil {
			return nil, err
		}
		folds = append(folds, some...)
	}
	return folds, nil
}

// FoldsOf returns the folds of one repeat alone, counted from 0.
func FoldsOf(subjects []Subject, k, repeat int, seed uint64) ([]Fold, error) {
	if k < 2 || k > len(subjects) {
		return nil, fmt.Errorf("folds: %d folds of %d subjects; needs at least two folds, and a subject for each", k, len(subjects))
	}
	byGroup, groups, err := stratify(subjects, seed, fmt.Sprintf("fold %d", repeat))
	if err != nil {
		return nil, fmt.Errorf("folds: %w", err)
	}
	folds := make([]Fold, k)
	next := 0
	for _, g := range groups {
		for _, id := range byGroup[g] {
			folds[next%k].Test = append(folds[next%k].Test, id)
			next++
		}
	}
	for i := range folds {
		folds[i].Repeat, folds[i].Index = repeat, i
		slices.Sort(folds[i].Test)
	}
	return folds, nil
}

// Split is one experiment: who is held out, and who of the others is where.
type Split struct {
	Fold
	Train   []Placement // in any order
	Sites   int
	Lacking [][]int // for each site, indices of the views it lacks; nil if no site lacks any
}

// Splits crosses folds with a scenario: in each fold, the subjects that are not
// held out are spread over the sites.
func Splits(subjects []Subject, folds []Fold, sites []string, sc Scenario, views int, seed uint64) ([]Split, error) {
	lacking, err := Lacking(sc, len(sites), views)
	if err != nil {
		return nil, err
	}
	var splits []Split
	for _, f := range folds {
		var train []Subject
		for _, s := range subjects {
			if _, held := slices.BinarySearch(f.Test, s.ID); !held {
				train = append(train, s)
			}
		}
		placed, err := Assign(train, sites, sc, seed+uint64(f.Repeat))
		if err != nil {
			return nil, fmt.Errorf("repeat %d, fold %d: %w", f.Repeat, f.Index, err)
		}
		splits = append(splits, Split{f, placed, len(sites), lacking})
	}
	return splits, nil
}

// Fit fits a model to the rows of several sites. The values are scaled.
type Fit func(ctx context.Context, sites []dataset.Source) (Model, error)

// Result is what came of one split.
type Result struct {
	Repeat, Fold int
	Train, Test  Score // of the rows as the sites have them, and of the complete test rows
	// Accuracy of linear discriminant analysis in latent space, fitted to the
	// training subjects and scored on those held out; NaN without a label.
	Accuracy float64
}

// CrossValidate fits a model for each split and scores it. Numbers are scaled
// by the pooled minimum and maximum of the training rows, so that errors are in
// parts of a feature's range there. The range is taken before the scenario
// removes views, so that errors of different scenarios have the same unit; thus
// sites are scaled by values that a scenario hides from them. The label names a
// column of the subjects table for the accuracy; "" if there is none.
func CrossValidate(ctx context.Context, src dataset.Source, splits []Split, label string, fit Fit) ([]Result, error) {
	var results []Result
	for _, s := range splits {
		r, err := s.run(ctx, src, label, fit)
		if err != nil {
			return nil, fmt.Errorf("repeat %d, fold %d: %w", s.Repeat, s.Index, err)
		}
		results = append(results, r)
	}
	return results, nil
}

// Sources returns the rows of each site, the same rows all together, and those
// held out, which lack nothing.
func (s Split) Sources(src dataset.Source) (sites []dataset.Source, train, test dataset.Source) {
	site := make(map[string]int, len(s.Train))
	for _, p := range s.Train {
		site[p.ID] = p.Site
	}
	from := func(wanted func(site int) bool) dataset.Source {
		return Select(src, func(id string) ([]int, bool) {
			at, ok := site[id]
			if !ok || !wanted(at) {
				return nil, false
			}
			if s.Lacking == nil {
				return nil, true
			}
			return s.Lacking[at], true
		})
	}
	for i := range s.Sites {
		sites = append(sites, from(func(at int) bool { return at == i }))
	}
	train = from(func(int) bool { return true })
	test = Select(src, func(id string) ([]int, bool) {
		_, held := slices.BinarySearch(s.Test, id)
		return nil, held
	})
	return sites, train, test
}

func (s Split) run(ctx context.Context, src dataset.Source, label string, fit Fit) (Result, error) {
	sites, train, test := s.Sources(src)
	complete := s
	complete.Lacking = nil
	_, whole, _ := complete.Sources(src)
	scaling, err := FitMinMax(ctx, whole)
	if err != nil {
		return Result{}, err
	}
	for i := range sites {
		sites[i] = scaling.Apply(sites[i])
	}
	train, test = scaling.Apply(train), scaling.Apply(test)
	m, err := fit(ctx, sites)
	if err != nil {
		return Result{}, fmt.Errorf("fitting: %w", err)
	}
	r := Result{Repeat: s.Repeat, Fold: s.Index, Accuracy: math.NaN()}
	if r.Train, err = Evaluate(ctx, m, train); err != nil {
		return Result{}, err
	}
	if r.Test, err = Evaluate(ctx, m, test); err != nil {
		return Result{}, err
	}
	if label != "" {
		r.Accuracy, err = accuracy(ctx, m, train, test, label)
	}
	return r, err
}

func accuracy(ctx context.Context, m Model, train, test dataset.Source, label string) (float64, error) {
	fitted, err := Project(ctx, m, train, label)
	if err != nil {
		return 0, err
	}
	held, err := Project(ctx, m, test, label)
	if err != nil {
		return 0, err
	}
	lda, err := FitLDA(fitted)
	if err != nil {
		return 0, err
	}
	return lda.Accuracy(held), nil
}
