//go:build long

package moments

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"parley/internal/testkit"
	"parley/methods/factors/factorstest"
	"parley/methods/factors/ppca"
)

// Whatever the noise, there is a model, it is finite, and the same again.
func TestRepairNeverBreaks(t *testing.T) {
	for i, c := range []struct {
		dims     []int
		subjects int
		mu       float64
		lacking  []int
		noise    ppca.Noise
	}{
		{[]int{1, 1}, 3, 0.03, nil, ppca.NoisePerView},
		{[]int{2}, 500, 1, nil, ppca.NoisePerFeature},
		{[]int{1, 1, 1, 1, 1, 1}, 40, 0.3, []int{4}, ppca.NoisePerView},
		{[]int{7, 41}, 0, 0.03, nil, ppca.NoisePerView},
		{[]int{7, 41, 5}, 60, 0.3, []int{0, 2}, ppca.NoisePerFeature},
		{[]int{3, 4, 5}, 2000, 50, []int{1}, ppca.NoisePerView},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(i), 7))
			l := factorstest.Shape(t, c.noise, c.dims...)
			tr := factorstest.NewTruth(r, l, 1, 0.1)
			s := factorstest.Must(NewStatistics(l, make2(l.Features()), whole(l, c.lacking...)))(t)
			var sites [][][][]float64
			for site := range 3 {
				rows := factorstest.Hole(r, tr.Subjects(r, c.subjects), 0.1)
				for _, row := range rows {
					row[0] = 0.7 // constant
				}
				if site == 1 {
					rows = factorstest.Lacking(l, rows, c.lacking...)
				}
				sites = append(sites, factorstest.SplitAll(l, rows))
			}
			released := testRelease(t, r, s, c.mu, sites...)
			var first []float64
			for range 2 {
				re := factorstest.Must(Project(l, released, 9))(t)
				fit := factorstest.Must(re.Fit(1))(t)
				testkit.Do(t, fit.Params.Check(l))
				if len(fit.Features) != l.Features() {
					t.Fatalf("the model describes %d of %d features", len(fit.Features), l.Features())
				}
				extra := factorstest.Must(re.Uncertainty(fit))(t)
				for j, x := range extra {
					if !(x >= 0 && x <= 0.25) {
						t.Errorf("feature %d has an added variance of %v", j, x)
					}
				}
				now := slices.Concat(fit.W, fit.Mu, fit.Params.Noise, extra)
				if first != nil && !slices.Equal(first, now) {
					t.Error("the same releases and seed gave another model")
				}
				first = now
			}
		})
	}
}
