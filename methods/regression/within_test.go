package regression_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"parley/dataset"
	"parley/engine/local"
	"parley/methods/regression/fitted"
)

// endogenous fits ten sites of 20 subjects, whose outcomes fall with x within sites. Their intercepts
// go with the sites' means of x by so much. The plan has that mean as a feature where adjusted.
func endogenous(t *testing.T, seed uint64, by, apart float64, adjusted bool, effects string) *fitted.Model {
	t.Helper()
	var names []string
	for i := range 10 {
		names = append(names, fmt.Sprintf("s%d", i))
	}
	features := "x, z"
	if adjusted {
		features += ", mean"
	}
	p := parse(t, fmt.Sprintf(`{parley: 1, name: within, sites: [%s], subjects: [y], views: [{name: v, features: [%s]}],
		method: {name: pvi, outcome: {column: y, levels: ["no", "yes"]}, site_effects: %s}, privacy: {protection: none}}`, strings.Join(names, ", "), features, effects))
	r := rand.New(rand.NewPCG(seed, 77))
	c := local.Config{Plan: p, Methods: methods, Data: map[string]dataset.Source{}}
	for _, site := range names {
		mu := r.NormFloat64()
		b := apart*r.NormFloat64() + by*mu
		var rows []dataset.Row
		for k := range 20 {
			x := []float64{mu + 0.5*r.NormFloat64(), r.NormFloat64(), mu}
			y := []string{"no", "yes"}[int(r.Float64()+1/(1+math.Exp(x[0]-0.3*x[1]-b)))]
			rows = append(rows, dataset.Row{ID: fmt.Sprintf("%02d", k), Views: [][]float64{x[:2+strings.Count(features, "mean")]}, Subject: []string{y}})
		}
		c.Data[site] = tableOf(t, p, rows)
	}
	m, _ := run(t, c)
	return m
}
