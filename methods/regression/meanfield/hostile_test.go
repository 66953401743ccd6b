package meanfield

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"parley/internal/wire"
	"parley/method"
	"parley/method/methodtest"
	"parley/methods/regression/options"
	"parley/methods/regression/predict"
	"parley/methods/regression/report"
	"parley/privacy"
)

const noisedPlan = `
parley: 1
name: hostile
sites: [a, b]
views:
  - {name: v, features: [{name: x0, range: [0, 1]}, {name: x1, range: [0, 1]}]}
subjects: [y]
method: {name: pvi, outcome: {column: y, levels: [no, yes]}, rounds: 3, clip: 1}
privacy: {protection: differential, unit: subject, adjacency: add-remove, diagnostics: 0.1, total: {epsilon: 1, delta: 1e-5}}
`

// given are noised sums of a contribution.
type given map[string][]*privacy.Noised

// noised is a noised sum with chosen integers, as it comes out of a release.
func noisedSum(t testing.TB, s privacy.Sum, block []int64) *privacy.Noised {
	t.Helper()
	return noisedBy(t, s, block, 0.25)
}

func noisedBy(t testing.TB, s privacy.Sum, block []int64, step float64) *privacy.Noised {
	t.Helper()
	data, err := json.Marshal(map[string]any{"blocks": [][]int64{block}, "step": step, "sd": s.Bound * s.Mechanism.Noise})
	if err != nil {
		t.Fatal(err)
	}
	n := new(privacy.Noised)
	if err := json.Unmarshal(data, n); err != nil {
		t.Fatal(err)
	}
	return n
}

// Whatever another organisation sends comes back as an error that says what is
// wrong, or leaves a posterior that is a density.
func TestHostileSumsAreRefused(t *testing.T) {
	s, err := options.New(methodtest.Plan(t, options.Name, options.Default(), noisedPlan))
	if err != nil {
		t.Fatal(err)
	}
	half, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	c := half.(coordinator)
	sum, quality := c.noised.update, c.noised.quality
	exact := predict.NewAssessment()
	exact.Rows = 1
	change := options.UpdateAnswer{Change: options.Gaussian{Eta: slices.Repeat(wire.Vector{1}, 3), Lambda: slices.Repeat(wire.Vector{1}, 3)}}
	for name, x := range map[string]struct {
		kind    string
		body    any
		fine    bool
		problem string
	}{
		"noised sum":           {options.TaskUpdate, given{sum.Name: {noisedSum(t, sum, make([]int64, 6))}}, true, ""},
		"noised quality":       {options.TaskAssess, given{quality.Name: {noisedSum(t, *quality, make([]int64, quality.Blocks[0]))}}, true, ""},
		"noised sum, infinite": {options.TaskUpdate, given{sum.Name: {noisedBy(t, sum, slices.Repeat([]int64{math.MaxInt64}, 6), 1e300)}}, true, ""},
		"quality, infinite":    {options.TaskAssess, given{quality.Name: {noisedBy(t, *quality, slices.Repeat([]int64{math.MaxInt64}, quality.Blocks[0]), 1e300)}}, true, ""},
		"no sum":               {options.TaskUpdate, given{}, false, "0 sums"},
		"two sums":             {options.TaskUpdate, given{sum.Name: {noisedSum(t, sum, make([]int64, 6)), noisedSum(t, sum, make([]int64, 6))}}, false, "2 sums"},
		"another sum":          {options.TaskUpdate, given{sum.Name: {noisedSum(t, sum, []int64{1})}}, false, "1 numbers"},
		"another quality":      {options.TaskAssess, given{quality.Name: {noisedSum(t, *quality, []int64{1})}}, false, "1 numbers"},
		"exact, where private": {options.TaskUpdate, change, false, "beside its noised sum"},
		"exact quality":        {options.TaskAssess, exact, false, "beside its noised sum"},
	} {
		init, err := c.Init()
		if err != nil {
			t.Fatal(err)
		}
		s := init.(*report.Factors)
		s.Phase = x.kind
		for _, r := range s.Sites {
			r.Ask(nil, c.Prior)
		}
		in := method.Contribution{Site: "a", Kind: x.kind}
		if noised, ok := x.body.(given); ok {
			in.Sums = noised
		} else if in.Body, err = wire.Marshal(x.body); err != nil {
			t.Fatal(err)
		}
		_, err = c.Fold(s, in)
		if x.fine != (err == nil) || err != nil && !strings.Contains(err.Error(), x.problem) {
			t.Errorf("%s: got %v, want %q", name, err, x.problem)
		}
		if _, err := c.posterior(s); x.fine && err != nil {
			t.Errorf("%s: the posterior after it: %v", name, err)
		}
	}
}
