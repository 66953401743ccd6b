package evaluate_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"parley/dataset"
	"parley/internal/testkit"
	"parley/judge/evaluate"
)

// sure expects the constant with one standard deviation for everything.
type sure struct {
	constant
	sd float64
}

func (s sure) Predict(row *dataset.Row, dst *evaluate.Posterior, sd [][]float64) error {
	for k := range sd {
		for j := range sd[k] {
			if row.Views[k] == nil {
				sd[k][j] = s.sd
			}
		}
	}
	return s.Infer(row, dst)
}

func TestImputeHidesEachViewFromThoseWhoHaveAnother(t *testing.T) {
	// Subject 2 has one view only. The others: v is (1, 10) and (5, 30), w is 5 and 5.
	m := sure{constant{[][]float64{{2, 20}, {5}}, 0}, 4}
	got := testkit.Get(evaluate.Impute(ctx, nil, m, small(t, nil), 0.9))(t)
	// Inside 1.645 × 4 = 6.58: both of a, neither of b, both of c.
	if got.MAE != 24.0/6 || !slices.Equal(got.ViewMAE, []float64{6, 0}) || got.Coverage != 4.0/6 || !slices.Equal(got.ViewCoverage, []float64{0.5, 1}) {
		t.Errorf("got %+v", got)
	}
	unit := testkit.Get(evaluate.FitMinMax(ctx, small(t, nil)))(t)
	// In parts of the ranges 4 and 20: ¼ + ¾ + ½ + ½ over four, and a constant.
	if got, err := evaluate.Impute(ctx, unit, m, small(t, nil), 0.9); err != nil || got.ViewMAE[0] != 0.5 || got.Coverage != 4.0/6 {
		t.Errorf("scaled: got %+v (%v)", got, err)
	}
	if got, err := evaluate.Impute(ctx, nil, m.constant, small(t, nil), 0.9); err != nil || !math.IsNaN(got.Coverage) || got.MAE != 4 {
		t.Errorf("not predictive: got %+v (%v)", got, err)
	}
}

func TestImputeSeesNothingOfWhatItHides(t *testing.T) {
	pca := testkit.Get(evaluate.FitMean(ctx, small(t, nil)))(t)
	got, err := evaluate.Impute(ctx, nil, pca, small(t, nil), 0.9)
	// Means 3, 20 and 5.
	if err != nil || got.ViewMAE[0] != (2+10+2+10)/4.0 || got.ViewMAE[1] != 0 {
		t.Errorf("got %+v (%v)", got, err)
	}
	bad := constant{mean: [][]float64{{math.NaN(), 0}, {0}}}
	if _, err := evaluate.Impute(ctx, nil, bad, small(t, nil), 0.9); err == nil || !strings.Contains(err.Error(), "subject 1: the model expects NaN for a, where 1 was hidden") {
		t.Errorf("a model that says NaN: %v", err)
	}
	if _, err := evaluate.Impute(ctx, nil, pca, small(t, nil), 1); err == nil {
		t.Error("intervals of level 1 were accepted")
	}
}

func TestEvaluateInUnitsIsEvaluateOfScaledRows(t *testing.T) {
	data := small(t, nil)
	unit := &evaluate.Scaling{Shift: [][]float64{{1, 10}, {2}}, Factor: [][]float64{{0.25, 0.05}, {3}}}
	scaled := constant{[][]float64{{0.5, 0.1}, {1}}, -2}
	raw := constant{[][]float64{{3, 12}, {2 + 1.0/3}}, -2}
	want := testkit.Get(evaluate.Evaluate(ctx, scaled, unit.Apply(data)))(t)
	got := testkit.Get(evaluate.EvaluateIn(ctx, unit, raw, data))(t)
	// A density of the values as they are becomes one of the scaled values.
	jacobian := -(5*math.Log(1) + 3*math.Log(0.25) + 2*math.Log(0.05) + 2*math.Log(3)) / 3
	if math.Abs(got.MAE-want.MAE) > 1e-14 || math.Abs(got.LogLik-(want.LogLik+jacobian)) > 1e-14 {
		t.Errorf("got %+v, want %+v with the density moved by %v", got, want, jacobian)
	}
}

func TestFoldsOfOneRepeatAreThoseOfAll(t *testing.T) {
	var subjects []evaluate.Subject
	for _, id := range "abcdefghijk" {
		subjects = append(subjects, evaluate.Subject{ID: string(id), Group: string('x' + id%2)})
	}
	all := testkit.Get(evaluate.Folds(subjects, 3, 4, 7))(t)
	one := testkit.Get(evaluate.FoldsOf(subjects, 3, 2, 7))(t)
	for i := range one {
		if one[i].Repeat != 2 || !slices.Equal(one[i].Test, all[6+i].Test) {
			t.Errorf("fold %d: %v, want %v", i, one[i], all[6+i])
		}
	}
}
