package fedmvppca

import (
	"fmt"
	"math"
	"testing"

	"parley/internal/testkit"
	"parley/judge/evaluate"
	"parley/papers/experiment"
)

var clone = experiment.Data{Clone: "../.."}

// fold is the first fold of the first repeat.
func fold(t *testing.T, c condition) *division {
	t.Helper()
	return testkit.Get(c.first(t.Context(), clone, 0))(t)
}

// What the notes of Figure 6 say: noise alone makes the spread grow or fall, by a factor
// that its size gives.
func TestSpreadGrowsAsNoiseAloneWouldHaveIt(t *testing.T) {
	c := condition{data: adcsf, scenario: evaluate.IID, sites: 3, own: true}
	for _, s := range []setting{{10, 1}, {1, 1}, {1, 0.2}} {
		v := testkit.Get(c.growth(t.Context(), fold(t, c), 0, s))(t)
		want := s.relative() * math.Sqrt(2.0/3)
		for _, name := range largest {
			if got := v[name][0]; math.Abs(got/want-1) > 0.25 {
				t.Errorf("%+v, %s: the spread grows by %.2f a round, want about %.2f", s, name, got, want)
			}
		}
	}
}

// What the notes of Table 5 say: WAIC finds the five dimensions of the synthetic data with a
// noise variance for each feature, and more with one for each view.
func TestDimensionIsFoundWithNoiseByFeature(t *testing.T) {
	c, o := condition{data: synthetic, scenario: evaluate.IID, sites: 3}, experiment.Outcomes{}
	for _, noise := range noiseOf {
		v := testkit.Get(waicOf(t.Context(), c, fold(t, c), 0, latentSources[0].largest, noise.key))(t)
		o[noise.prefix+"sd-01"] = v
	}
	if got := latentSources[0].smallest(o, "waic-"); got != "7" {
		t.Errorf("one variance for each view: %s", got)
	}
	if got := latentSources[0].smallest(o, "waic-by-feature-"); got != "5" {
		t.Errorf("one variance for each feature: %s", got)
	}
}

// The covariances of Figure 5 (b) have the variances with which the model predicts.
func TestPredictedCovarianceIsThatOfPredictions(t *testing.T) {
	c := condition{data: adcsf, scenario: evaluate.GK, sites: 3}
	d := fold(t, c)
	m, out, err := run(t.Context(), c, d, 0, byDefault)
	if err != nil {
		t.Fatal(err)
	}
	model, err := modelOf(out)
	if err != nil {
		t.Fatal(err)
	}
	const site = 1 // lacks a view
	lacks := d.lacking[site][0]
	cov, err := uncertain(model, d.lacking[site])
	if err != nil {
		t.Fatal(err)
	}
	var post evaluate.Posterior
	sd := make([][]float64, len(model.Views))
	for k, v := range model.Views {
		sd[k] = make([]float64, len(v.Features))
	}
	for row, err := range d.sites[site].Rows(t.Context()) {
		if err == nil {
			err = m.(evaluate.Predictive).Predict(row, &post, sd)
		}
		if err != nil {
			t.Fatal(err)
		}
		break
	}
	for i, j := range []int{0, 2} {
		if got, want := math.Sqrt(cov[lacks][j]), sd[lacks][i]; math.Abs(got/want-1) > 1e-6 {
			t.Errorf("feature %d: %v, want %v", i+1, got, want)
		}
	}
	if c := cov[lacks]; c[1]*c[1] >= c[0]*c[2] {
		t.Errorf("%v is no covariance", c)
	}
}

// What the notes of Figure 10 say: the clip of the noise variance holds it back. What is watched of a
// study in clear is what its model says.
func TestTheClipHoldsTheNoiseVarianceBack(t *testing.T) {
	for _, x := range explanations() {
		above := map[string]bool{"as published": false, "noise variance as sites have it": true}
		want, ok := above[x.name]
		if !ok {
			continue
		}
		v := testkit.Get(x.compare(t.Context(), fold(t, x.condition()), 0, false))(t)
		for k, view := range shownViews[1:] {
			key := fmt.Sprintf(" last %d", k+1)
			if with, without := v[paperDP.name+key][0], v[paperFit.name+key][0]; (with > 1.1*without) != want {
				t.Errorf("%s: noise variance of %s is %v with privacy and %v without", x.name, view, with, without)
			}
		}
	}
	c := condition{data: adcsf, scenario: evaluate.IID, sites: 3, own: true}
	d := testkit.Get(c.first(t.Context(), clone, 0))(t)
	all := testkit.Get(globals(t.Context(), c, d, 0, published))(t)
	_, out, err := run(t.Context(), c, d, 0, published)
	if err != nil {
		t.Fatal(err)
	}
	model := testkit.Get(modelOf(out))(t)
	for k, view := range model.Views {
		if got, want := all[len(all)-1].Params.Noise[k], view.Features[0].Noise; len(all) != 100 || got != want {
			t.Errorf("round %d, %s: noise variance %v, want %v", len(all), view.Name, got, want)
		}
	}
}

// Subspace iteration at sites finds the components of all rows, with gaps and without.
func TestSubspaceIterationFindsPooledComponents(t *testing.T) {
	for _, sc := range []evaluate.Scenario{evaluate.IID, evaluate.K} {
		c := condition{data: synthetic, scenario: sc, sites: 3}
		d := fold(t, c)
		got, rounds, err := iterate(t.Context(), c.data.factors, d.sites, 1)
		if err != nil {
			t.Fatal(err)
		}
		want := testkit.Get(evaluate.FitPCA(t.Context(), c.data.factors, d.sites...))(t)
		for _, name := range []string{trainError, testError} {
			own, pooled := experiment.Values{}, experiment.Values{}
			testkit.Do(t, score(t.Context(), got, d, own))
			testkit.Do(t, score(t.Context(), want, d, pooled))
			if math.Abs(own[name][0]-pooled[name][0]) > 1e-6 || rounds < 3 {
				t.Errorf("%v: %s after %d rounds is %v, want %v", sc, name, rounds, own[name][0], pooled[name][0])
			}
		}
	}
}

// The 19 rows of IPMI's Table 2 stand beside MELBA's, which contradict them on who classifies best.
func TestBothVersionsOfTable2StandBesideEachOther(t *testing.T) {
	tables := before(experiment.Outcomes{})
	if got := tables[0].Len(); got != 19*3 {
		t.Errorf("%d lines, want 19 × 3", got)
	}
	if got := fmt.Sprint(tables[1].Columns[0].Text, tables[1].Columns[1].Text,
		tables[1].Columns[4].Text); got != "[IID IID IID] [1 3 6] [mc-VAE mc-VAE mc-VAE]" {
		t.Errorf("they differ over %s", got)
	}
}

// A quick run of every experiment with mfeat needs no data but the excerpt.
func TestQuickRunsHaveAnExcerpt(t *testing.T) {
	at := clone
	if _, err := mfeat.open(t.Context(), at, 0); err == nil {
		t.Error("a whole run takes the excerpt")
	}
	at.Quick = true
	rows := testkit.Get(mfeat.open(t.Context(), at, 0))(t)
	if rows.Len() != 60 || len(rows.Schema().Views) != 6 {
		t.Errorf("%d rows of %d views", rows.Len(), len(rows.Schema().Views))
	}
}
