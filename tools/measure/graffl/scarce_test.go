package graffl

import (
	"math/rand/v2"
	"strings"
	"testing"

	experiments "parley/experiment/graffl"
	"parley/methods/graffl/options"
	"parley/study"
)

func TestScarceTable(t *testing.T) {
	row := func(raw, synthetic, kept float64) map[string]float64 {
		return map[string]float64{"auc/raw": raw, "auc/oversampling": raw, "auc/SMOTE": raw, "auc/synthetic rows": synthetic, "kept": kept,
			"auc/" + experiments.RidgeAtSite: raw + 0.1, "auc/" + experiments.PVIOverSites: 0.9, "auc/" + experiments.RidgeAllRows: 0.8,
			"f1/raw": 0, "f1/oversampling": 0.25, "f1/SMOTE": 0.25, "f1/synthetic rows": 0.25}
	}
	x := &scarceTable{sites: []string{"a"}, metrics: map[string][]map[string]float64{"a": {row(0.5, 0.7, 1), row(0.6, 0.7, 0), row(0.7, 0.7, 0)}}}
	// Differences .2, .1 and 0: mean .1, standard deviation .1, error .1/√3. Nobody lent a classifier.
	want := `| AUC, held | ridge at the site | pvi over all sites | ridge on all rows | raw | oversampling | SMOTE | synthetic rows | difference | kept |
|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|
| a | 0.700 | 0.900 | 0.800 | 0.600 | 0.600 | 0.600 | 0.700 | +0.100 ± 0.058 | 1 of 3 |

| F1 at ½, held | raw | oversampling | SMOTE | synthetic rows |
|---|---:|---:|---:|---:|
| a | 0.00 | 0.25 | 0.25 | 0.25 |
`
	if got := x.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// The plans of the example can be changed as the flags say.
func TestScarcePlans(t *testing.T) {
	p, err := scarcePlan{path: "../../../examples/icu/plan.yaml", reconstruction: 0.3}.load(7)
	if err != nil {
		t.Fatal(err)
	}
	e := p.Method.Options.(*options.Options).Encoder
	if p.Seed != 7 || e.Reconstruction != 0.3 {
		t.Errorf("seed %d, encoder %+v", p.Seed, e)
	}
	if p, err = (scarcePlan{path: "../../../examples/icu/private.yaml", open: true}).load(1); err != nil || p.Privacy.Protection != study.ProtectionNone {
		t.Errorf("without privacy: %v, %v", p, err)
	}
	if _, err := (scarcePlan{path: "../../../examples/icu/private.yaml", reconstruction: 0.3}).load(1); err == nil || !strings.Contains(err.Error(), "no encoder") {
		t.Errorf("no encoder to change: %v", err)
	}
	if _, err := (scarcePlan{path: "../../../examples/income/plan.yaml"}).load(1); err == nil {
		t.Error("a plan of another method was taken")
	}
}

// The wards' scarce class lies 0.8 from the other, with variances of 0.36 and, in every second
// column, 1.69 times that: means and variances of 20 000 rows, to five standard errors.
func TestWardsHaveTheirLaw(t *testing.T) {
	const n = 20000
	l := ward(n, n, 2, rand.New(rand.NewPCG(1, 0)))
	for class, scarce := range []bool{false, true} {
		for j := range 2 {
			sum, squares := 0.0, 0.0
			for i, row := range l.Rows {
				if l.Labels[i] == scarce {
					sum, squares = sum+row[j], squares+row[j]*row[j]
				}
			}
			mean := sum / n
			variance := squares/n - mean*mean
			wantMean, wantVariance := 0.0, 0.36
			if scarce {
				wantMean = 0.8 / 1.4142135623730951
				if j == 1 {
					wantVariance *= 1.69
				}
			}
			if d := (mean - wantMean) / 0.0056; d*d > 25 { // 0.78/√20000 at most
				t.Errorf("class %d, column %d: mean %v, want %v", class, j, mean, wantMean)
			}
			if d := (variance/wantVariance - 1) / 0.01; d*d > 25 { // √(2/20000)
				t.Errorf("class %d, column %d: variance %v, want %v", class, j, variance, wantVariance)
			}
		}
	}
}
