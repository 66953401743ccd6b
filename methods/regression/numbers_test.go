package regression_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"parley/dataset"
	"parley/engine/local"
	"parley/internal/testkit"
	"parley/methods/regression/fitted"
)

// days are a private study of a number at three sites, of which one adds so much to it, all in another unit, and what
// it says first.
func days(t *testing.T, seed uint64, more, times float64) (*fitted.Model, string) {
	t.Helper()
	p := parse(t, `parley: 1
name: days
sites: [a, b, c]
views: [{name: v, features: [{name: age, range: [0, 110]}, {name: crp, range: [0, 500]}]}]
subjects: [days]
method: {name: regression, outcome: {column: days, range: [0, 60]}}
privacy: {protection: differential, unit: subject, adjacency: add-remove, total: {epsilon: 8, delta: 1e-6}}
`)
	r := rand.New(rand.NewPCG(seed, 12))
	data := map[string]dataset.Source{}
	for k, site := range p.Sites {
		var rows []dataset.Row
		for i := range 800 {
			age, crp := 60+12*r.NormFloat64(), 40+15*r.NormFloat64()
			y := 10 + 0.1*(age-60) + 0.05*(crp-40) + 2*r.NormFloat64()
			if k == 2 {
				y += more
			}
			rows = append(rows, dataset.Row{ID: fmt.Sprintf("%03d", i), Views: [][]float64{{age, crp}},
				Subject: []string{fmt.Sprint(y * times)}})
		}
		data[site] = testkit.Get(dataset.NewTable(p.Schema(), rows))(t)
	}
	m, _ := run(t, local.Config{Plan: p, Methods: methods, Data: data})
	var says []string
	for _, f := range m.Verdicts {
		says = append(says, f.String())
	}
	return m, strings.Join(says, "\n")
}

// A site whose numbers are higher by half a standard deviation is named. Of 20 studies of sites that are alike, each of
// which has a verdict with a probability of .002, more than two have one in a run of a hundred million (noise is new in
// each run). Effects are in the outcome's unit, as is what is left.
func TestSitesWithOtherNumbers(t *testing.T) {
	said := 0
	for seed := range uint64(20) {
		m, says := days(t, seed, 0, 1)
		if says != "" {
			said++
		}
		if *m.Options.NoiseVariance < 3.2 || *m.Options.NoiseVariance > 5 || !(m.Free > 50) ||
			m.Effects[0].Mean < 0.07 || m.Effects[0].Mean > 0.13 {
			t.Errorf("%v %v %v", *m.Options.NoiseVariance, m.Free, m.Effects)
		}
		if _, says = days(t, seed, 1.2, 1); !strings.Contains(says, "At c the mean of days is about ") {
			t.Errorf("a site that adds 1.2: %q", says)
		}
	}
	if said > 2 {
		t.Errorf("%d of 20 have a verdict", said)
	}
	if _, says := days(t, 1, 0, 24); !strings.Contains(says, "Outcomes are not distributed as the fit supposes") {
		t.Errorf("hours for days: %q", says)
	}
}
