package main

import (
	"slices"
	"testing"

	"parley/method"
	factors "parley/methods/factors/fitted"
	"parley/methods/mixture"
	"parley/methods/regression/fitted"
)

// Who asks a model for what it cannot do is told what it can.
func TestUsesOfModels(t *testing.T) {
	for _, c := range []struct {
		model method.Model
		want  []string
	}{
		{&mixture.Model{}, []string{"summary", "transform"}},
		{&fitted.Model{}, []string{"summary", "predict", "contrast"}},
		{&factors.Model{}, []string{"summary", "transform", "impute", "sample", "export", "rotate", "associate"}},
	} {
		if got := usesOf(c.model); !slices.Equal(got, c.want) {
			t.Errorf("%T: %v, want %v", c.model, got, c.want)
		}
	}
}
