package local_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"parley/dataset"
	"parley/engine/local"
	"parley/internal/testkit"
	"parley/method"
	"parley/methods/factors"
	"parley/methods/mixture"
	"parley/methods/regression"
	"parley/study"
)

var ours = method.Registry{factors.Method{}, regression.Method{}, mixture.Method{}}

// totalsPlan is a plan of five sites, with or without a secure sum.
func totalsPlan(t testing.TB, what, privacy string) *study.Plan {
	t.Helper()
	var features []string
	for j := range 5 {
		features = append(features, fmt.Sprintf("{name: x%d, range: [-8, 8]}", j))
	}
	text := "parley: 1\nname: totals\nsites: [a, b, c, d, e]\nquorum: 4\nviews: [{name: v, features: [" + strings.Join(features, ", ") + "]}]\n" + what + "\nprivacy: {" + privacy + "}\n"
	return testkit.Get(study.Parse("plan.yaml", []byte(text), ours))(t)
}

const (
	exactPlain  = "protection: none"
	exactSecure = "protection: none, sum: secure"
	noised      = "protection: differential, unit: subject, adjacency: add-remove, total: {epsilon: 8, delta: 1e-5}"
)

// totalsData are rows of five unlike sites that fit the plan. Missing is the share of cells that are not there.
func totalsData(t testing.TB, p *study.Plan, missing float64) map[string]dataset.Source {
	t.Helper()
	data := map[string]dataset.Source{}
	for s, site := range p.Sites {
		rng := rand.New(rand.NewPCG(uint64(s), 7))
		var rows []dataset.Row
		for i := range 60 + 30*s {
			f, g, v := rng.NormFloat64(), rng.NormFloat64(), make([]float64, 5)
			for j := range v {
				v[j] = f*float64(j-2)/2 + g*float64(j%2) + 0.6*rng.NormFloat64()
				if rng.Float64() < missing {
					v[j] = math.NaN()
				}
			}
			row := dataset.Row{ID: fmt.Sprintf("%s%03d", site, i), Views: [][]float64{v}}
			for range p.Subjects {
				row.Subject = append(row.Subject, map[bool]string{true: "yes", false: "no"}[f+0.7*rng.NormFloat64() > 0.3])
			}
			rows = append(rows, row)
		}
		data[site] = testkit.Get(dataset.NewTable(p.Schema(), rows))(t)
	}
	return data
}

const (
	ofFactors    = "method: {name: mvppca, latent: 2, site_means: pooled, outliers: keep}"
	ofRegression = "subjects: [ill]\nmethod: {name: pvi, outcome: {column: ill, levels: [no, yes]}}"
	ofMixture    = "method: {name: graffl, components: 2, draws: 64}"
)

// closeTo says whether two files of numbers say the same, each number to a share of the largest beside it.
func closeTo(a, b any, share float64) error {
	switch x := a.(type) {
	case map[string]any:
		y, _ := b.(map[string]any)
		for k := range x {
			if err := closeTo(x[k], y[k], share); err != nil {
				return fmt.Errorf("%s: %w", k, err)
			}
		}
	case []any:
		y, _ := b.([]any)
		if len(x) != len(y) {
			return fmt.Errorf("%d entries, not %d", len(x), len(y))
		}
		for i := range x {
			if err := closeTo(x[i], y[i], share); err != nil {
				return err
			}
		}
	case float64:
		if y, _ := b.(float64); math.Abs(x-y) > share*max(1, math.Abs(x)) {
			return fmt.Errorf("%v and %v", x, y)
		}
	}
	return nil
}

// A whole study of exact totals says what the same study says that learns each site's sums, to nine digits: of factors the
// likelihood, since a likelihood that is the same to its last digit leaves loadings eight.
func TestExactTotalsGiveTheSameStudy(t *testing.T) {
	const file = "model/model.json"
	for what, share := range map[string]float64{ofFactors: 1e-6, ofRegression: 1e-9, ofMixture: 1e-9} {
		var found []map[string]any
		var logLik []float64
		for _, privacy := range []string{exactPlain, exactSecure} {
			p := totalsPlan(t, what, privacy)
			out := testkit.Get(local.Run(t.Context(), local.Config{Plan: p, Methods: ours, Data: totalsData(t, p, 0)}))(t)
			i := slices.IndexFunc(out.Result.Files, func(f method.File) bool { return f.Name == file })
			if i < 0 {
				t.Fatalf("%s: no %s", what, file)
			}
			var x map[string]any
			if err := json.Unmarshal(out.Result.Files[i].Data, &x); err != nil {
				t.Fatal(err)
			}
			found = append(found, x)
			logLik = append(logLik, out.Result.Metrics["log_likelihood_per_subject"])
			for _, r := range out.Rounds {
				for _, s := range r.Sites {
					if privacy == exactSecure && !s.Request.Masked && s.Request.Opens == 0 {
						t.Errorf("%s: %q left site %s without a mask", what, s.Kind, s.Site)
					}
				}
			}
		}
		// What is of the plan, of single sites, or of how sites differ, is another matter.
		of := func(m map[string]any) any {
			kept := map[string]any{}
			for _, k := range []string{"factors", "loadings", "views", "coefficients", "weights", "components", "mean", "covariance"} {
				if v, ok := m[k]; ok {
					kept[k] = strip(v)
				}
			}
			if len(kept) == 0 {
				t.Fatalf("%s: nothing to compare in %v", what, slices.Sorted(maps.Keys(m)))
			}
			return kept
		}
		if err := closeTo(of(found[0]), of(found[1]), share); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if !(math.Abs(logLik[0]-logLik[1]) <= 1e-9) {
			t.Errorf("%s: log-likelihoods of %v and %v", what, logLik[0], logLik[1])
		}
	}
}

// strip takes out what rests on sites' own sums, or on assessments by rows.
func strip(v any) any {
	switch x := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, y := range x {
			if !strings.Contains(k, "between") && !strings.Contains(k, "sd") && !strings.Contains(k, "r2") && !strings.Contains(k, "held_out") && !strings.Contains(k, "predicted") && !strings.Contains(k, "values") {
				out[k] = strip(y)
			}
		}
		return out
	case []any:
		out := make([]any, len(x))
		for i := range x {
			out[i] = strip(x[i])
		}
		return out
	}
	return v
}

// Where cells are missing, sites fill them and answer again, and the fit ends where the plain one does.
func TestTotalsOfGapsSettleWhereThePlainFitDoes(t *testing.T) {
	var logLik []float64
	for _, privacy := range []string{exactPlain, exactSecure} {
		p := totalsPlan(t, ofFactors, privacy)
		out := testkit.Get(local.Run(t.Context(), local.Config{Plan: p, Methods: ours, Data: totalsData(t, p, 0.1)}))(t)
		logLik = append(logLik, out.Result.Metrics["log_likelihood_per_subject"])
	}
	if math.Abs(logLik[0]-logLik[1]) > 2e-4 {
		t.Errorf("log-likelihoods of %v and %v nats a subject", logLik[0], logLik[1])
	}
}
