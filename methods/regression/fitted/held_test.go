package fitted

import (
	"strings"
	"testing"

	"parley/internal/testkit"
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
)

// A weight is held back where it is far out for the prior and not well known, by itself or with
// another that it goes together with.
func TestWeightsThatThePriorHoldsBackAreNamed(t *testing.T) {
	for name, c := range map[string]struct {
		mean, variance []float64
		covariance     []float64
		want           string
	}{
		"usual":              {[]float64{1, 0.5}, []float64{0.25, 0.25}, nil, ""},
		"far out, and known": {[]float64{3, 0.5}, []float64{0.01, 0.01}, nil, ""},
		"unknown":            {[]float64{1.5, 0}, []float64{0.9, 0.9}, nil, ""},
		"held":               {[]float64{3, 0.5}, []float64{0.25, 0.01}, nil, "age."},
		"held together":      {[]float64{2.1, 2.1}, []float64{0.04, 0.04}, []float64{0.04, 0.036, 0.04}, "age, sex."},
		"apart":              {[]float64{2.1, -2.1}, []float64{0.04, 0.04}, []float64{0.04, 0.036, 0.04}, ""},
	} {
		q := testkit.Get(glm.FromMoments(c.mean, c.variance))(t)
		m := &Model{Options: options.Default(), Prior: glm.Isotropic(2, 0, 1), Posterior: q, Covariance: c.covariance,
			Effects: []outcomeEffect{{Effect: glm.Effect{Feature: "age"}}, {Effect: glm.Effect{Feature: "sex"}}}}
		says := strings.Join(m.HeldBack(), "\n")
		if (says == "") != (c.want == "") || says != "" && !strings.Contains(says, ": "+c.want) {
			t.Errorf("%s: %q, want %q", name, says, c.want)
		}
	}
}
