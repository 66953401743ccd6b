package factors

import (
	"math"
	"slices"
	"testing"

	"parley/judge/evaluate"
	"parley/methods/factors/factorstest"
	"parley/methods/factors/fitted"
	"parley/methods/factors/options"
)

// fitted is the model file of a small study.
func fitOf(t testing.TB, options string) []byte {
	t.Helper()
	r, err := newPlay(t, threeSites(t, options)).run()
	if err != nil {
		t.Fatal(err)
	}
	return r.Files[0].Data
}

// A model expects the values that it was fitted to, in their own units.
func TestEvaluatorAnswersInTheUnitsOfTheData(t *testing.T) {
	for _, scaling := range options.Scalings[:5] {
		s := threeSites(t, "  latent: 2\n  scaling: "+scaling+"\n")
		r, err := newPlay(t, s).run()
		if err != nil {
			t.Fatal(err)
		}
		model := factorstest.Must(factorstest.Must(fitted.LoadModel(r.Files[0].Data))(t).Evaluator())(t)
		var got evaluate.Posterior
		worstMean := 0.0
		for row, err := range s.data["site-0"].Rows(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if err := model.Infer(row, &got); err != nil {
				t.Fatal(err)
			}
			if len(got.Latent) != 2 || math.IsNaN(got.LogLik) {
				t.Fatalf("%s: %+v", scaling, got)
			}
			for k, mean := range got.Mean {
				if len(mean) != len(s.plan.Views[k].Features) || slices.ContainsFunc(mean, math.IsNaN) {
					t.Fatalf("%s: view %d is expected to be %v", scaling, k, mean)
				}
				for j, x := range mean {
					if row.Views[k] != nil && !math.IsNaN(row.Views[k][j]) {
						worstMean = max(worstMean, math.Abs(x-row.Views[k][j]))
					}
				}
			}
		}
		if worstMean == 0 || worstMean > 3.5 { // noise has a standard deviation of at most 0.8
			t.Errorf("%s: the worst reconstruction is off by %v", scaling, worstMean)
		}
	}
}

func FuzzLoadModel(f *testing.F) {
	for _, options := range []string{federatedOptions} {
		f.Add(fitOf(f, options))
	}
	f.Add([]byte(`{"format":"` + fitted.ModelFormat + `","views":[{"name":"v","features":[{"name":"a"}]}],"factor_strengths":[1]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := fitted.LoadModel(data)
		if err != nil {
			return
		}
		if _, err := m.Encode(); err != nil {
			t.Fatalf("a model that was read cannot be written: %v", err)
		}
		if _, err := m.Evaluator(); err != nil {
			t.Fatalf("a model that was read cannot be used: %v", err)
		}
	})
}
