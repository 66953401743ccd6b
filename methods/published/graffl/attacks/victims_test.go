package attacks

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"parley/dataset"
	"parley/method"
	"parley/methods/mixture/gmm"
	"parley/methods/mixture/landmark"
	"parley/methods/mixture/mixturetest"
	"parley/methods/mixture/options"
	"parley/methods/published/graffl/set"
	"parley/study"
)

func TestTwoDigits(t *testing.T) {
	for x, want := range map[float64]float64{1234: 1200, 0.0678: 0.068, 99.6: 100, 5: 5, 0: 0} {
		if got := twoDigits(x); math.Abs(got-want) > 1e-12 {
			t.Errorf("%v is rounded to %v, want %v", x, got, want)
		}
	}
}

// Scores are in standard deviations within sites: guesses of a site's mean have an
// error of 1, rows themselves none.
func TestScoresAreInStandardDeviations(t *testing.T) {
	v, err := example(mixturetest.Method{}, 3)
	if err != nil {
		t.Fatal(err)
	}
	var means []float64
	for _, rows := range v.sites {
		mean := make([]float64, 2)
		n := float64(len(rows) / 2)
		for i, x := range rows {
			mean[i%2] += x / n
		}
		for range len(rows) / 2 {
			means = append(means, mean...)
		}
	}
	if r := v.score(v.all(), means, 0.1); math.Abs(r.RMSE-1) > 1e-12 || r.Rows != 300 || r.Found > 30 || math.Abs(r.SD-1) > 0.1 {
		t.Errorf("guessing means: %+v", r)
	}
	if r := v.closest(v.all(), v.all(), 0.1); r.RMSE != 0 || r.Found != 300 {
		t.Errorf("the rows themselves: %+v", r)
	}
}

// A scan's set is a single point, whatever the plan's prior.
func TestTightSetsAreOnePoint(t *testing.T) {
	v, err := example(mixturetest.Method{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	p, err := v.study(options.VariantSet, noProtection, func(o *options.Options) { o.Set.Rows = 5 })
	if err != nil {
		t.Fatal(err)
	}
	s, err := options.New(p)
	if err != nil {
		t.Fatal(err)
	}
	want := []float64{3.25, -7.5}
	set.Each(s, 0, [][]float64{point(s, want)}, func(_ int, set []float64) {
		for k := 0; k < len(set); k += 2 {
			if e := math.Sqrt(gmm.SquaredDistance(set[k:k+2], want)); e > 1e-9 {
				t.Errorf("row %d of the set is %v", k/2, set[k:k+2])
			}
		}
		if len(set) != 10 {
			t.Errorf("a set of %d numbers", len(set))
		}
	})
}

// Whatever a plan says of variants, classes and codes, it is its features that are
// attacked, in studies that can be run.
func TestVictimsOfAnyPlan(t *testing.T) {
	const sick = ", scarce: {outcome: {column: sick, levels: [no, yes]}}"
	for text, privacy := range map[string]string{
		"components: 2, landmarks: {scattered: 7, bandwidth: 0.2}":               "{protection: none}",
		"components: 2, variant: set":                                            "{protection: none}",
		"components: 2, variant: published, prior: {freedom: 9}":                 "{protection: none}",
		"components: 2" + sick:                                                   "{protection: none}",
		"encoder: {dimension: 1}" + sick:                                         "{protection: none}",
		"encoder: {kind: projection, dimension: 1, box: 2}, prior: {freedom: 3}": "{protection: differential, unit: subject, adjacency: add-remove, total: {epsilon: 5, delta: 1e-5}}",
	} {
		plan := fmt.Sprintf("parley: 1\nname: any\nsites: [a]\nviews: [{name: v, features: [{name: x, range: [-8, 8]}, {name: y, range: [0, 1]}, {name: z, range: [0, 1]}]}]\nsubjects: [sick]\nmethod: {name: graffl, %s}\nprivacy: %s\n", text, privacy)
		p, err := study.Parse("plan.yaml", []byte(plan), method.Registry{mixturetest.Method{}})
		if err != nil {
			t.Fatal(err)
		}
		rows := []dataset.Row{{ID: "1", Views: [][]float64{{1, 0, 1}}, Subject: []string{"no"}}, {ID: "2", Views: [][]float64{{3, 1, 0}}, Subject: []string{"yes"}}}
		data, err := dataset.NewTable(p.Schema(), rows)
		if err != nil {
			t.Fatal(err)
		}
		v, err := readVictims(t.Context(), method.Target{Plan: p, Data: map[string]dataset.Source{"a": data}})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if _, err := v.data(); err != nil || !slices.Equal(v.all(), []float64{1, 0, 1, 3, 1, 0}) {
			t.Errorf("%s: rows %v, %v", text, v.all(), err)
		}
		for _, variant := range []string{options.VariantLandmark, options.VariantPublished, options.VariantSet} {
			q, err := v.study(variant, noProtection, func(*options.Options) {})
			if err != nil {
				t.Errorf("%s: %v", text, err)
				continue
			}
			s, err := options.New(q)
			if err != nil || s.Prior.Dim() != 3 {
				t.Errorf("%s: %v", text, err)
			}
			given := p.Method.Options.(*options.Options)
			if given.Encoder != nil {
				continue
			}
			if s.Prior.Nu != given.Prior.Freedom {
				t.Errorf("%s: ν is %v, want %v", text, s.Prior.Nu, given.Prior.Freedom)
			}
			if l := given.Landmarks; variant == options.VariantLandmark && l != nil {
				if own, err := landmark.New(s); err != nil || own.Marks.Len() != l.Scattered {
					t.Errorf("%s: %+v, %v: want %d landmarks", text, own, err, l.Scattered)
				}
			}
		}
	}
}
