package private

import (
	"math"
	"math/rand/v2"
	"testing"
)

// An offset has a weight of 1, whatever the noise: of 90 % intervals of effects and intercepts beside it .85 hold at
// least (of 250; fewer by chance in one run of 200), and without it hardly one of the intercept would.
func TestOffsets(t *testing.T) {
	held, all, intercepts := 0, 0, 0
	for _, raw := range clinical[:3] {
		table, mean, _ := raw.perUnit()
		table.offset = &number{low: -1, high: 4, draw: func(r *rand.Rand) float64 {
			return math.Log(0.5 + 12*r.Float64())
		}}
		table.odds -= 1.5
		plan := table.common(t, 1, nil, nil)
		for seed := range uint64(10) {
			r := rand.New(rand.NewPCG(seed, 104))
			cells, y := table.rows(10_000, mean, r)
			o := plan.conduct(t, cells, y, 3, r)
			odds := table.odds
			for k, x := range table.numbers {
				odds -= x.effect * mean[k]
			}
			for j, effect := range append(table.truth(), odds) {
				all++
				if math.Abs(o.effects[j].Mean-effect) < 1.645*o.effects[j].SD {
					held++
					if j == len(o.effects)-1 {
						intercepts++
					}
				}
			}
		}
	}
	if float64(held) < 0.85*float64(all) || intercepts < 23 {
		t.Errorf("%d of %d held, %d of %d intercepts", held, all, intercepts, 30)
	}
}
