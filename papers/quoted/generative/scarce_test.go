package generative

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"parley/figure"
	"parley/papers/experiment"
	"parley/papers/graffl"
)

// Differences .2, .1 and 0: mean .1, standard deviation .1, error .1/√3. Nobody lent a classifier.
func TestScarceTables(t *testing.T) {
	var all []experiment.Values
	for i, raw := range []float64{0.5, 0.6, 0.7} {
		v := experiment.Values{}
		for _, site := range units {
			for metric, x := range map[string]float64{"auc/raw": raw, "auc/oversampling": raw, "auc/synthetic rows": 0.7, "kept": float64(i % 2),
				"auc/" + graffl.RidgeAtSite: raw + 0.1, "auc/" + graffl.PVIOverSites: 0.9, "auc/" + graffl.RidgeAllRows: 0.8,
				"f1/raw": 0, "f1/oversampling": 0.25, "f1/synthetic rows": 0.25} {
				v[named(site, metric)] = []float64{x}
			}
		}
		all = append(all, v)
	}
	p := scarcePlans[0]
	for table, want := range map[string][][]string{
		"auc": {{"unit", "medical"}, {"ridge at the site", "0.700"}, {"pvi over all sites", "0.900"}, {"ridge on all rows", "0.800"}, {"raw", "0.600"}, {"oversampling", "0.600"},
			{"synthetic rows", "0.700"}, {"difference", "+0.100 ± 0.058"}, {"kept", "1 of 3"}},
		"f1": {{"unit", "medical"}, {"raw", "0.00"}, {"oversampling", "0.25"}, {"synthetic rows", "0.25"}},
	} {
		got := p.aucs(all)
		if table == "f1" {
			got = p.f1s(all)
		}
		if !slices.EqualFunc(got.Columns, want, func(c figure.Column, w []string) bool { return c.Name == w[0] && c.Text[0] == w[1] }) {
			t.Errorf("%s: got %s, want %s", table, fmt.Sprint(got.Columns), fmt.Sprint(want))
		}
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
