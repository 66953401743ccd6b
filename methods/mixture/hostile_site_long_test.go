//go:build long

package mixture

import (
	"math"
	"math/rand/v2"
	"testing"

	"parley/method"
	"parley/methods/mixture/options"
	"parley/privacy/privacytest"
)

// Answers that pass every check, and that no rows give.
func TestTheStudyEndsOnAnswersThatNoRowsGive(t *testing.T) {
	for name, x := range map[string]struct {
		plan string
		body func(n int) any
	}{
		"all at every frequency":      {taskFrequencies, func(n int) any { return landmarkAnswer{constant(n, options.MaxRows), options.MaxRows} }},
		"no row at any frequency":     {taskFrequencies, func(n int) any { return landmarkAnswer{constant(n, 0), 0} }},
		"every row at every landmark": {taskLandmarks, func(n int) any { return landmarkAnswer{constant(n, options.MaxRows), options.MaxRows} }},
		"many rows at none":           {taskLandmarks, func(n int) any { return landmarkAnswer{constant(n, 0), options.MaxRows} }},
		"many rows at one": {taskLandmarks, func(n int) any {
			a := landmarkAnswer{constant(n, 0), options.MaxRows}
			a.Sums[n/2] = options.MaxRows
			return a
		}},
		"many rows at every other": {taskLandmarks, func(n int) any {
			a := landmarkAnswer{constant(n, 0), options.MaxRows}
			for i := 0; i < n; i += 2 {
				a.Sums[i] = options.MaxRows
			}
			return a
		}},
		"a steep classifier": {"classes alone", func(int) any {
			return linearAnswer{Weights: constant(2, maxLinear), Intercept: -maxLinear, Scarce: options.MaxRows, Other: 1}
		}},
	} {
		p := parsePlan(t, studied()[x.plan])
		got, err := play(t, p, everySite(t, p, rowsOf(t, p)), func(step int, in method.Contribution) []method.Contribution {
			if step > 0 {
				return nil
			}
			in.Body = pack(t, x.body(landmarksOf(t, p)))
			return []method.Contribution{in}
		})
		if err != nil || !got.taken {
			t.Errorf("%s: taken %v, %v", name, got.taken, err)
		}
	}
}

// Noised sums of an honest site can be anything, as noise has no end: the study ends.
func TestTheStudyEndsWhateverNoiseIs(t *testing.T) {
	const huge = 1 << 62
	for name, text := range privatePlans() {
		p := parsePlan(t, text)
		data := rowsOf(t, p)
		for try := range triesOf(name, 20) {
			r := rand.New(rand.NewPCG(uint64(try), 12))
			forced := func(_ string, exact [][]int64) [][]int64 {
				out := make([][]int64, len(exact))
				for i, block := range exact {
					same, all := pickOne(r, []int64{0, 1, -1, huge, -huge, math.MaxInt64, -math.MaxInt64, 1 << 40, -1 << 40}), r.IntN(2) == 0
					for range block {
						x := same
						if !all {
							x = int64(math.Copysign(math.Exp2(62*r.Float64()), r.Float64()-0.5))
						}
						out[i] = append(out[i], x)
					}
				}
				return out
			}
			if _, err := play(t, p, everySite(t, p, data, privacytest.Replaced(forced)), honest); err != nil {
				t.Fatalf("%s, try %d: %v", name, try, err)
			}
		}
	}
}
