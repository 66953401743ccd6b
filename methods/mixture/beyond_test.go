package mixture

import (
	"slices"
	"testing"

	"parley/dataset"
	"parley/methods/mixture/mixturetest"
	"parley/methods/mixture/options"
	"parley/study"
)

// What is said of values beyond a range is what sums make of them, with noise and without: where they
// count as its ends, they add what the ends do, and elsewhere something else.
func TestWhatIsSaidOfValuesBeyondARangeIsSo(t *testing.T) {
	const private = "{protection: differential, unit: subject, adjacency: add-remove, total: {epsilon: 5, delta: 1e-5}}"
	for opts, want := range map[string]string{
		"components: 2": study.RangeAsIs,
		"components: 2, encoder: {kind: projection, dimension: 2}": study.RangeEnds,
	} {
		for _, privacy := range []string{"{protection: none}", private} {
			s := known(mixturetest.Text(3, opts, privacy))
			if got := s.Plan.Schema().BeyondRange; got != want {
				t.Errorf("%s, %s: it is said of values %q, want %q", opts, privacy, got, want)
			}
			site := &options.Site{Setup: s.Setup, Name: "a"}
			adds := func(values ...float64) []float64 {
				x, phi := make([]float64, len(s.Names)), make([]float64, s.Of.Len())
				if !site.Read(&dataset.Row{Views: [][]float64{values}}, x) {
					t.Fatalf("%s: a complete row takes no part", opts)
				}
				s.Of.Features(phi, x)
				return phi
			}
			if same := slices.Equal(adds(8, 1, -8), adds(9, 1, -8.5)); same != (want == study.RangeEnds) {
				t.Errorf("%s, %s: values beyond the range add what its ends do: %t", opts, privacy, same)
			}
		}
	}
}
