package factors

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"

	"parley/dataset"
	"parley/internal/testkit"
	"parley/judge/evaluate"
	"parley/method"
)

var (
	_ method.Evaluable   = Method{}
	_ method.Centraliser = Method{}
)

// measured is a study of two sites with the subjects of [oneFactor], whose values are multiplied by unit.
func measured(t *testing.T, unit float64, options string) *small {
	t.Helper()
	rows := make([][]dataset.Row, 2)
	for i := range rows {
		for n, views := range oneFactor(uint64(i), 60) {
			for _, v := range views {
				floats.Scale(unit, v)
			}
			rows[i] = append(rows[i], dataset.Row{ID: fmt.Sprintf("%d-%03d", i, n), Views: views})
		}
	}
	return ofRows(t, "", "latent: 1, "+options, viewsNamed(3, 2), rows)
}

// The units in which values were measured are those of what is predicted: in
// units a hundred times smaller errors are a hundred times larger, and the
// density of each of 3 values (5 for two subjects in three) falls by ln 100.
func TestEvaluationIsInMeasuredUnits(t *testing.T) {
	var got [2][]float64 // errors and likelihood; errors and coverage of hidden values; central likelihood
	for i, unit := range []float64{1, 100} {
		study := measured(t, unit, "scaling: standard")
		rows, files := study.all(t), testkit.Get(newPlay(t, study).run())(t).Files
		m := testkit.Get(Method{}.Evaluator(study.plan, files, false))(t)
		s := testkit.Get(evaluate.EvaluateIn(t.Context(), nil, m, rows))(t)
		h := testkit.Get(evaluate.Impute(t.Context(), nil, m, rows, 0.9))(t)
		central := testkit.Get(Method{}.Central(t.Context(), study.plan, rows))(t)
		c := testkit.Get(evaluate.EvaluateIn(t.Context(), nil, central, rows))(t)
		got[i] = []float64{s.MAE / unit, s.LogLik + (3+2*2.0/3)*math.Log(unit), h.MAE / unit, h.Coverage,
			c.LogLik + (3+2*2.0/3)*math.Log(unit)}
		// The noise has standard deviation 0.1, and two subjects in three have
		// both views: the mean error of a hidden value is √(2/π)·0.1·√(1 + w²/p),
		// about 0.09.
		if h.Coverage < 0.86 || h.Coverage > 0.94 || got[i][2] < 0.08 || got[i][2] > 0.11 {
			t.Errorf("unit %v: hidden views: %+v", unit, h)
		}
		// The central fit is the maximum of the likelihood.
		if c.LogLik < s.LogLik-1e-6 || c.LogLik > s.LogLik+0.2 {
			t.Errorf("unit %v: log-likelihood %v, central %v", unit, s.LogLik, c.LogLik)
		}
	}
	for i, x := range got[0] {
		if math.Abs(x-got[1][i]) > 1e-9*math.Abs(x) {
			t.Errorf("number %d depends on the unit: %v and %v", i, x, got[1][i])
		}
	}
}

func TestANewSiteIsLessCertain(t *testing.T) {
	s := measured(t, 1, "scaling: none")
	files := testkit.Get(newPlay(t, s).run())(t).Files
	var model map[string]any
	testkit.Do(t, json.Unmarshal(files[0].Data, &model))
	for _, v := range model["views"].([]any) {
		v.(map[string]any)["loading_sd_between_sites"], v.(map[string]any)["mean_sd_between_sites"] = 0.2, 0.3
	}
	files[0].Data = testkit.Get(json.Marshal(model))(t)
	row := dataset.Row{ID: "x", Views: [][]float64{{1, 2, 0.5}, nil}}
	sd := func(newSite bool) []float64 {
		m := testkit.Get(Method{}.Evaluator(s.plan, files, newSite))(t)
		var post evaluate.Posterior
		out := [][]float64{{-1, -1, -1}, {-1, -1}}
		testkit.Do(t, m.(evaluate.Predictive).Predict(&row, &post, out))
		if !slices.Equal(out[0], []float64{-1, -1, -1}) {
			t.Errorf("deviations of observed values were written: %v", out[0])
		}
		return out[1]
	}
	known, unknown := sd(false), sd(true)
	for j := range known {
		// (v_μ + q v_W)·2/C = (0.09 + 0.04)·2/2 is added to the noise; the factor is
		// less certain too, as the view that was seen is noisier.
		if grown := unknown[j]*unknown[j] - known[j]*known[j]; grown < 0.13 || grown > 0.2 {
			t.Errorf("feature %d: variance grew by %v", j, grown)
		}
	}
}

func TestCentralFitsHaveTheScaleOfThePlan(t *testing.T) {
	for _, options := range []string{"scaling: min-max", "scaling: view", "scaling: none"} {
		s := measured(t, 1, options)
		if _, err := (Method{}).Central(t.Context(), s.plan, s.all(t)); err != nil {
			t.Errorf("%s: %v", options, err)
		}
		if _, err := (Method{}).Evaluator(s.plan, nil, false); err == nil {
			t.Error("no files made a model")
		}
	}
}

// oneFactor draws subjects of one factor seen in two views: the second view is
// lacking for every third subject.
func oneFactor(seed uint64, n int) [][][]float64 {
	r := rand.New(rand.NewPCG(seed, 1))
	subjects := make([][][]float64, n)
	for i := range subjects {
		x := r.NormFloat64()
		noise := func() float64 { return 0.1 * r.NormFloat64() }
		subjects[i] = [][]float64{
			{1 + x + noise(), 2 - x + noise(), 2*x + noise()},
			{3 + x + noise(), -x + noise()},
		}
		if i%3 == 0 {
			subjects[i][1] = nil
		}
	}
	return subjects
}
