//go:build long

package selection

import (
	"testing"

	"parley/methods/factors/factorstest"
)

func TestSelectFindsTheTruth(t *testing.T) {
	for _, options := range []string{"scaling: view", "noise: feature", "scaling: none"} {
		set, data := choosing(t, options, 2, 60)
		out := factorstest.Must(Select(t.Context(), set, data, upToFive))(t)
		if len(out.Choices) != 5 {
			t.Errorf("%s: %d choices, want one of each rule", options, len(out.Choices))
		}
		for _, c := range out.Choices {
			if c.Value != 2 {
				t.Errorf("%s: %s: %d, the truth is 2", options, c.Rule, c.Value)
			}
		}
		if len(out.Warnings) > 0 {
			t.Errorf("%s: %v", options, out.Warnings)
		}
		checkDrawn(t, out.Result)
	}
}
