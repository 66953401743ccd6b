// Package protocoltest judges a fit by stored splits of one data set, as published papers
// do: [CrossValidate], with [StoredSplits]. It scales all rows together and knows no engine, so it serves
// tests only; studies are judged by judge/crossval.
package protocoltest

import (
	"context"
	"fmt"
	"math"

	"parley/dataset"
	"parley/judge/evaluate"
)

// Fit fits a model to the rows of several sites. The values are scaled.
type Fit func(ctx context.Context, sites []dataset.Source) (evaluate.Model, error)

// Result is what came of one split.
type Result struct {
	Repeat, Fold int
	Train, Test  evaluate.Score // of the rows as the sites have them, and of the complete test rows
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
func CrossValidate(ctx context.Context, src dataset.Source, splits []evaluate.Split, label string,
	fit Fit) ([]Result, error) {
	var results []Result
	for _, s := range splits {
		r, err := run(ctx, s, src, label, fit)
		if err != nil {
			return nil, fmt.Errorf("repeat %d, fold %d: %w", s.Repeat, s.Index, err)
		}
		results = append(results, r)
	}
	return results, nil
}

func run(ctx context.Context, s evaluate.Split, src dataset.Source, label string, fit Fit) (Result, error) {
	sites, train, test := s.Sources(src)
	complete := s
	complete.Lacking = nil
	_, whole, _ := complete.Sources(src)
	scaling, err := evaluate.FitMinMax(ctx, whole)
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
	if r.Train, err = evaluate.EvaluateIn(ctx, nil, m, train); err != nil {
		return Result{}, err
	}
	if r.Test, err = evaluate.EvaluateIn(ctx, nil, m, test); err != nil {
		return Result{}, err
	}
	if label != "" {
		r.Accuracy, err = accuracy(ctx, m, train, test, label)
	}
	return r, err
}

func accuracy(ctx context.Context, m evaluate.Model, train, test dataset.Source, label string) (float64, error) {
	fitted, err := evaluate.Project(ctx, m, train, label)
	if err != nil {
		return 0, err
	}
	held, err := evaluate.Project(ctx, m, test, label)
	if err != nil {
		return 0, err
	}
	lda, err := evaluate.FitLDA(fitted)
	if err != nil {
		return 0, err
	}
	return lda.Accuracy(held), nil
}
