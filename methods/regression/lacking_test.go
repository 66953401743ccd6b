package regression_test

import (
	"math"
	"testing"

	"parley/internal/testkit"
	"parley/judge/evaluate"
	"parley/methods/regression"
)

// A fit to all rows in one place predicts subjects who lack a category as that to sites does: by the shares
// that its levels have.
func TestCentralFitsKnowShares(t *testing.T) {
	p := stayPlan(t, "outcome: {column: died, levels: [\"no\", \"yes\"]}")
	rows := stays(41, 400, func(age, dose, sex float64) float64 { return sex })
	for i := range rows {
		if i%5 > 0 {
			rows[i].Views[0][2] = 1
		}
	}
	_, out := run(t, among(t, p, rows))
	at := rows[0]
	at.Views = [][]float64{{60, 2, math.NaN()}}
	sites := testkit.Get(regression.Method{}.Evaluator(p, out.Result.Files, false))(t)
	central := testkit.Get(regression.Method{}.Central(t.Context(), p, tableOf(t, p, rows)))(t)
	var want, got evaluate.Posterior
	testkit.Do(t, sites.Infer(&at, &want))
	if err := central.Infer(&at, &got); err != nil || math.Abs(got.Outcome.LogP[1]-want.Outcome.LogP[1]) > 1e-4 {
		t.Errorf("in one place %v, of sites %v, %v", got.Outcome.LogP, want.Outcome.LogP, err)
	}
}
