package factors

import (
	"bytes"
	"math"
	"slices"
	"strings"
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

func TestModelReadsBackToItsBytes(t *testing.T) {
	for _, options := range []string{federatedOptions, "  latent: 2\n  noise: feature\n  rounds: 0\n"} {
		data := fitOf(t, options)
		m := factorstest.Must(fitted.LoadModel(data))(t)
		if again := factorstest.Must(m.Encode())(t); !bytes.Equal(again, data) {
			t.Errorf("%s: the model is written differently once it was read", options)
		}
	}
}

func TestModelsThatCannotBeAreRefused(t *testing.T) {
	data := string(fitOf(t, federatedOptions))
	for name, change := range map[string]func(string) string{
		"nothing":        func(string) string { return "" },
		"another format": func(s string) string { return strings.Replace(s, fitted.ModelFormat, "other/model/1", 1) },
		"a later version": func(s string) string {
			return strings.Replace(s, fitted.ModelFormat, fitted.ModelFormat[:len(fitted.ModelFormat)-1]+"9", 1)
		},
		"truncated":           func(s string) string { return s[:len(s)/2] },
		"a negative variance": func(s string) string { return strings.ReplaceAll(s, `"noise_variance": `, `"noise_variance": -`) },
		"a factor of zero":    func(s string) string { return strings.Replace(s, `"factor": `, `"factor": 0e1, "x": `, 1) },
		"a loading too many":  func(s string) string { return strings.Replace(s, `"loadings": [`, `"loadings": [1,`, 1) },
		"a factor too many": func(s string) string {
			return strings.Replace(s, `"factor_strengths": [`, `"factor_strengths": [1e9,`, 1)
		},
		"a number beyond size": func(s string) string { return strings.Replace(s, `"mean": `, `"mean": 1e200, "x": `, 1) },
		"no views":             func(s string) string { return strings.Replace(s, `"views": [`, `"views": [], "x": [`, 1) },
	} {
		changed := change(data)
		if changed == data {
			t.Errorf("%s: the change did not change the file", name)
		}
		if _, err := fitted.LoadModel([]byte(changed)); err == nil {
			t.Errorf("%s: the model was accepted", name)
		}
	}
	_, err := fitted.LoadModel([]byte(strings.Replace(data, fitted.ModelFormat, "other/model/1", 1)))
	if err == nil || !strings.Contains(err.Error(), "other/model/1") || !strings.Contains(err.Error(), fitted.ModelFormat) {
		t.Errorf("another format is refused without naming both: %v", err)
	}
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
