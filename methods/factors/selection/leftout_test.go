package selection

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"parley/dataset"
	"parley/method"
	"parley/method/methodtest"
	"parley/methods/factors/factorstest"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
)

// choosing is a study of three sites with two views of 6 and 5 features.
func choosing(t testing.TB, opts string, q, rows int) (options.Setup, map[string]dataset.Source) {
	t.Helper()
	text := `{parley: 1, name: choosing, seed: 7, sites: [a, b, c], privacy: {protection: none},
		views: [{name: v, features: [v1, v2, v3, v4, v5, v6]}, {name: w, features: [w1, w2, w3, w4, w5]}],
		method: {name: mvppca, latent: 1, ` + opts + `}}`
	set := factorstest.Must(options.SetUp(methodtest.Plan(t, "mvppca", options.Defaults(), text)))(t)
	r := rand.New(rand.NewPCG(3, uint64(q)))
	tr := factorstest.NewTruth(r, factorstest.Shape(t, ppca.NoisePerView, 6, 5), q, 0.5)
	data := map[string]dataset.Source{}
	for _, site := range set.Plan.Sites {
		some := make([]dataset.Row, rows)
		for i := range some {
			row := tr.Subject(r)
			some[i] = dataset.Row{ID: fmt.Sprintf("%s%03d", site, i), Views: [][]float64{row[:6], row[6:]}}
			if i%9 == 4 {
				some[i].Views[1] = nil
			}
			if i%7 == 2 {
				row[i%6] = math.NaN()
			}
		}
		data[site] = factorstest.Must(dataset.NewTable(set.Plan.Schema(), some))(t)
	}
	return set, data
}

var upToFive = method.SelectConfig{Values: []int{1, 2, 3, 4, 5}}

// The two factors of the data are found; sites whose means differ are no factors.
func TestSelectFindsTheTruth(t *testing.T) {
	for _, options := range []string{"scaling: view", "noise: feature", "scaling: none", "site_means: pooled"} {
		set, data := choosing(t, options, 2, 100)
		r := rand.New(rand.NewPCG(5, 5))
		for _, site := range set.Plan.Sites {
			shift := make([]float64, set.Layout.Features())
			for j := range shift {
				shift[j] = r.NormFloat64()
			}
			table := data[site].(*dataset.Table)
			for i := range table.Len() {
				j := 0
				for k, view := range table.Row(i).Views {
					for c := range view {
						view[c] += shift[j+c]
					}
					j += set.Layout.Dims[k]
				}
			}
		}
		s := factorstest.Must(Select(t.Context(), set, data, upToFive))(t)
		if s.Recommended != 2 || s.Choices[0].Value != 2 || len(s.Choices) != 3 || len(s.Warnings) > 0 {
			t.Errorf("%s: %d recommended, choices %v, warnings %v", options, s.Recommended, s.Choices, s.Warnings)
		}
		showable(t, s.Result)
	}
}

func TestSelectRefuses(t *testing.T) {
	set, data := choosing(t, "scaling: view", 1, 20)
	for want, values := range map[string][]int{
		"latent: 11 factors for 11 features\n  hint: fewer factors than features: 1 to 10": {3, 11}, "not ascending": {2, 1},
	} {
		if _, err := Select(t.Context(), set, data, method.SelectConfig{Values: values}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", values, err, want)
		}
	}
	few, rows := choosing(t, "scaling: view", 1, 1)
	if _, err := Select(t.Context(), few, rows, upToFive); err == nil || !strings.Contains(err.Error(), "nobody can be left out of so few subjects") {
		t.Errorf("one subject at each site: %v", err)
	}
	delete(data, "b")
	if _, err := Select(t.Context(), set, data, upToFive); err == nil || err.Error() != "site b has no data" {
		t.Errorf("a site without data: %v", err)
	}
}

func TestSelectIsCancelled(t *testing.T) {
	set, data := choosing(t, "scaling: view", 1, 30)
	ctx, cancel := context.WithCancel(t.Context())
	c := upToFive
	last := 0.0
	c.Progress = func(done, of float64) {
		if done <= last || done > of {
			t.Errorf("progress from %v to %v of %v", last, done, of)
		}
		if last = done; done > of/2 {
			cancel()
		}
	}
	if _, err := Select(ctx, set, data, c); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that it was cancelled", err)
	}
}

func TestScalingThatDefeatsSelection(t *testing.T) {
	for _, c := range []struct {
		scaling, noise string
		defeats        bool
	}{
		{options.ScaleStandard, "view", true}, {options.ScaleMinMax, "view", true}, {options.ScaleRange, "view", true},
		{options.ScaleView, "view", false}, {options.ScaleNone, "view", false},
		{options.ScaleStandard, "feature", false}, {options.ScaleMinMax, "feature", false}, {options.ScaleRange, "feature", false},
	} {
		why, mend := defeatsSelection(&options.Options{Scaling: c.scaling, Noise: c.noise})
		if (why != "") != c.defeats || (mend != "") != c.defeats {
			t.Errorf("%s, noise per %s: %q, %q", c.scaling, c.noise, why, mend)
		}
	}
}
