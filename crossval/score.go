package crossval

import (
	"context"
	"errors"
	"math"
	"slices"

	"parley/dataset"
	"parley/evaluate"
	"parley/study"
)

// Scores are what was measured of one fit, by the name of the measure, with
// "/" and the view's name where it is about one view. What could not be
// measured is absent.
type Scores map[string]float64

// The measures. Errors are mean absolute errors, in parts of a feature's range
// in the training rows.
const (
	ErrorTrain  = "error_train"              // of the values that were fitted
	ErrorTest   = "error_test"               // of the values held out, reconstructed from themselves
	ErrorViews  = "error_test_mean_of_views" // the same, every view counting alike
	ErrorHidden = "error_hidden"             // of views held out and hidden, filled in from the other views
	Coverage    = "coverage"                 // share of hidden values inside their predictive intervals
	Accuracy    = "accuracy"                 // of linear discriminant analysis of the label in latent space
	LogLik      = "log_likelihood"           // mean of a row held out, in nats
)

func (s Scores) set(name string, x float64) {
	if !math.IsNaN(x) && !math.IsInf(x, 0) {
		s[name] = x
	}
}

// rows are what one fit is scored on.
type rows struct {
	train, test dataset.Source
	unit        *evaluate.Scaling // of the scores; nil if the rows have it already
}

// score measures a model.
func (e *evaluation) score(ctx context.Context, m evaluate.Model, r rows) (Scores, error) {
	s := Scores{}
	train, err := evaluate.EvaluateIn(ctx, r.unit, m, r.train)
	if err != nil {
		return nil, err
	}
	test, err := evaluate.EvaluateIn(ctx, r.unit, m, r.test)
	if err != nil {
		return nil, err
	}
	hidden, err := evaluate.Impute(ctx, r.unit, m, r.test, Level)
	if err != nil {
		return nil, err
	}
	s.set(ErrorTrain, train.MAE)
	s.set(ErrorTest, test.MAE)
	s.set(ErrorViews, test.MeanViewMAE)
	s.set(LogLik, test.LogLik)
	s.set(ErrorHidden, hidden.MAE)
	s.set(Coverage, hidden.Coverage)
	for k, v := range e.Plan.Views {
		s.set(ErrorTrain+"/"+v.Name, train.ViewMAE[k])
		s.set(ErrorTest+"/"+v.Name, test.ViewMAE[k])
		s.set(ErrorHidden+"/"+v.Name, hidden.ViewMAE[k])
		s.set(Coverage+"/"+v.Name, hidden.ViewCoverage[k])
	}
	if e.Label == "" {
		return s, nil
	}
	acc, err := e.accuracy(ctx, m, r)
	s.set(Accuracy, acc)
	return s, err
}

// accuracy is NaN where the training rows hold too few subjects or only one
// level of the label, and where those held out hold only one: then naming it
// would be right, and knowing the others wrong.
func (e *evaluation) accuracy(ctx context.Context, m evaluate.Model, r rows) (float64, error) {
	train, err := evaluate.Project(ctx, m, r.train, e.Label)
	if err != nil {
		return 0, err
	}
	test, err := evaluate.Project(ctx, m, r.test, e.Label)
	if err != nil {
		return 0, err
	}
	levels := func(s evaluate.Scores) int { return len(slices.Compact(slices.Sorted(slices.Values(s.Labels)))) }
	if levels(train) < 2 || levels(test) < 2 || len(train.Labels) <= levels(train) {
		return math.NaN(), nil
	}
	lda, err := evaluate.FitLDA(train)
	if err != nil {
		return 0, err
	}
	return lda.Accuracy(test), nil
}

// average is the mean over sites of what each by itself can say. A site knows
// nothing of a view that it lacks, so scores over all views are put together
// from those of the views, by the number of values of each that are held out.
func (e *evaluation) average(sites []Scores, values []float64) Scores {
	out := Scores{}
	mean := func(name string) float64 {
		sum, n := 0.0, 0.0
		for _, s := range sites {
			if x, ok := s[name]; ok {
				sum, n = sum+x, n+1
			}
		}
		return sum / n
	}
	overall := func(name string, weights []float64) {
		sum, n := 0.0, 0.0
		for k, v := range e.Plan.Views {
			if weights[k] == 0 {
				continue // nobody held out has it
			}
			x := mean(name + "/" + v.Name)
			out.set(name+"/"+v.Name, x)
			sum, n = sum+weights[k]*x, n+weights[k]
		}
		out.set(name, sum/n)
	}
	equal := make([]float64, len(values))
	for k, n := range values {
		if n > 0 {
			equal[k] = 1
		}
	}
	overall(ErrorTest, equal)
	out.set(ErrorViews, out.get(ErrorTest))
	overall(ErrorTest, values)
	overall(ErrorHidden, values)
	overall(Coverage, values)
	for _, v := range e.Plan.Views {
		out.set(ErrorTrain+"/"+v.Name, mean(ErrorTrain+"/"+v.Name))
	}
	out.set(ErrorTrain, mean(ErrorTrain))
	out.set(Accuracy, mean(Accuracy))
	if !slices.ContainsFunc(sites, func(s Scores) bool { // else densities are of different things
		return slices.ContainsFunc(e.Plan.Views, func(v study.View) bool {
			return !s.has(ErrorTest+"/"+v.Name) && out.has(ErrorTest+"/"+v.Name)
		})
	}) {
		out.set(LogLik, mean(LogLik))
	}
	return out
}

func (s Scores) has(name string) bool { _, ok := s[name]; return ok }

// get returns NaN for what is absent.
func (s Scores) get(name string) float64 {
	if x, ok := s[name]; ok {
		return x
	}
	return math.NaN()
}

// count returns the number of observed values of each view.
func count(ctx context.Context, src dataset.Source) ([]float64, error) {
	n := make([]float64, len(src.Schema().Views))
	some := false
	for row, err := range src.Rows(ctx) {
		if err != nil {
			return nil, err
		}
		for k, x := range row.Views {
			for _, v := range x {
				if !math.IsNaN(v) {
					n[k]++
					some = true
				}
			}
		}
	}
	if !some {
		return nil, errors.New("those held out have no values")
	}
	return n, nil
}
