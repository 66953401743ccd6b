package exact_test

import (
	"encoding/csv"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"parley/dataset"
	"parley/engine/local"
	"parley/methods/regression/exact"
	"parley/methods/regression/glm"
	"parley/study"
)

// referencePlan has two numbers that are scaled by the sites' rows, and a category.
func referencePlan(t *testing.T, outcome string) *study.Plan {
	t.Helper()
	p, err := study.Parse("plan.yaml", fmt.Appendf(nil, `{parley: 1, name: one, sites: [a], subjects: [event, stay],
		views: [{name: v, features: [age, dose, {name: ward, kind: category, levels: [A, B, C, D]}]}],
		method: {name: pvi, outcome: %s}, privacy: {protection: none}}`, outcome), methods)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The second implementation is papers/reference/regression.py, which made the files of
// testdata. Nobody is on ward D, so that its weight is the prior's.
func TestAgreesWithASecondImplementation(t *testing.T) {
	for name, outcome := range map[string]string{
		"logistic": "{column: event, levels: [no, yes]}",
		"linear":   "{column: stay}",
	} {
		t.Run(name, func(t *testing.T) {
			p := referencePlan(t, outcome)
			rows := referenceRows(t, p)
			fit, err := exact.Central(t.Context(), p, rows)
			if err != nil {
				t.Fatal(err)
			}
			mean, covariance := reference(t, name)
			q := fit.Model.Weights()
			if len(mean) != len(q.Mean) {
				t.Fatalf("%d weights, want %d", len(q.Mean), len(mean))
			}
			for i := range mean {
				sd := math.Sqrt(covariance[glm.Packed(i, i)])
				if off := math.Abs(q.Mean[i]-mean[i]) / sd; off > 1e-4 {
					t.Errorf("weight %d is %v, want %v: %v deviations off", i, q.Mean[i], mean[i], off)
				}
				for j := range i + 1 {
					want := covariance[glm.Packed(i, j)]
					scale := sd * math.Sqrt(covariance[glm.Packed(j, j)])
					if got := q.Covariance[glm.Packed(i, j)]; math.Abs(got-want) > 1e-5*scale {
						t.Errorf("the covariance of weights %d and %d is %v, want %v", j, i, got, want)
					}
				}
			}
		})
	}
}

// referenceRows are the rows of testdata.
func referenceRows(t *testing.T, p *study.Plan) *dataset.Table {
	t.Helper()
	schema := p.Schema()
	dir, err := dataset.Open(t.Context(), filepath.Join("testdata", "data"), dataset.Options{Schema: &schema})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := dataset.Collect(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// reference reads means, and the lower triangle of covariances.
func reference(t *testing.T, name string) (mean, covariance []float64) {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name+".csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.FieldsPerRecord = -1
	records, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, record := range records {
		for j, cell := range record[1:] {
			x, err := strconv.ParseFloat(cell, 64)
			if err != nil {
				t.Fatal(err)
			}
			if j == 0 {
				mean = append(mean, x)
			} else {
				covariance = append(covariance, x)
			}
		}
	}
	return mean, covariance
}

// A number far from 0, in a small unit, needs no more exchanges than one near it.
func TestUnitsOfTheOutcomeCostNoExchanges(t *testing.T) {
	p := plan(t, "outcome: {column: y}", "one")
	r := rand.New(rand.NewPCG(15, 1))
	rows, _ := drawn(r, 100, func(f float64) string { return fmt.Sprint(14000 + 900*f + 1500*r.NormFloat64()) })
	out, err := local.Run(t.Context(), local.Config{Plan: p, Methods: methods, Data: map[string]dataset.Source{"one": table(t, p, rows)}})
	if err != nil {
		t.Fatal(err)
	}
	if m := out.Result.Metrics; m["converged"] != 1 || m["exchanges"] > 10 {
		t.Errorf("converged %v in %v exchanges, want it within ten", m["converged"], m["exchanges"])
	}
}
