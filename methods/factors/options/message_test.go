package options

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"parley/methods/factors/ppca"
)

func TestRunsAreTheirOwnInverse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := ppca.Layout{Dims: []int{rapid.IntRange(1, 40).Draw(t, "features")}}
		list := slices.DeleteFunc(l.AllFeatures(), func(int) bool { return rapid.Bool().Draw(t, "absent") })
		back, err := FeaturesOf(runsOf(list), l)
		if len(list) == 0 {
			if err == nil {
				t.Fatal("no features were accepted")
			}
			return
		}
		if err != nil || !slices.Equal(back, list) {
			t.Fatalf("%v became %v (%v)", list, back, err)
		}
	})
	for _, wrong := range [][][2]int{{{0, 0}}, {{-1, 1}}, {{0, 4}}, {{1, 2}, {0, 1}}, {{0, 1}, {1, 2}}, {{0, math.MaxInt}}} {
		if list, err := FeaturesOf(wrong, ppca.Layout{Dims: []int{3}}); err == nil {
			t.Errorf("%v was accepted as %v", wrong, list)
		}
	}
}
