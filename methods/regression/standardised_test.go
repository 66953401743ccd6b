package regression_test

import (
	"math"
	"strings"
	"testing"

	"parley/dataset"
	"parley/engine/local"
)

// A site that has standardised its numbers by itself is named; nothing is said where none has.
func TestNumbersThatOneSiteStandardisedAreNamed(t *testing.T) {
	p := parse(t, "parley: 1\nname: small\nsites: [a, b, c]\nviews:\n  - {name: v, features: [x0, x1, x2]}\nsubjects: [y]\nmethod: {name: pvi, outcome: {column: y, levels: [no, yes]}}\nprivacy: {protection: none}\n")
	for _, standardised := range []bool{false, true} {
		c := local.Config{Plan: p, Methods: methods, Data: map[string]dataset.Source{}}
		for m, site := range p.Sites {
			s := drawn(5, 900, 3, yesNo)
			s.X, s.Y = s.X[300*m:][:300], s.Y[300*m:][:300]
			for j := range 3 {
				n, mean, squares := float64(len(s.X)), 0.0, 0.0
				for _, x := range s.X {
					mean += x[j] / n
				}
				for _, x := range s.X {
					squares += math.Pow(x[j]-mean, 2)
				}
				for _, x := range s.X {
					if standardised && site == "b" {
						x[j] = (x[j] - mean) / math.Sqrt(squares/n)
					} else {
						x[j] = 40 + 12*x[j]
					}
				}
			}
			c.Data[site] = s.Table(t, p, nil)
		}
		_, out := run(t, c)
		if said := strings.Contains(strings.Join(out.Result.Verdicts(), "\n"), "Numbers seem to have been standardised at b"); said != standardised {
			t.Errorf("standardised at b: %t; %q", standardised, out.Result.Verdicts())
		}
	}
}
