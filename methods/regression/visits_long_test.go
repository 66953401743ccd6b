//go:build long

package regression_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"parley/dataset"
	"parley/engine/local"
)

// Times of stays of the same people, whose ids follow each other, go together over all periods that
// each was seen in. That is said of most studies with a frailty of 1.6, and of 150 studies of strangers
// of none, though ids follow times or events in some: each says so with a probability of .001 at most,
// two of 50 once in 800 runs.
func TestTimesOfTheSamePeople(t *testing.T) {
	p := stayPlan(t, "outcome: {column: days, event: died, levels: [\"no\", \"yes\"], cuts: [30, 60, 90]}")
	days := func(r dataset.Row) float64 { x, _ := strconv.ParseFloat(r.Subject[0], 64); return x }
	for name, c := range map[string]struct {
		frailty float64
		order   func(a, b dataset.Row) int
		said    bool
	}{
		"strangers":    {},
		"by time":      {order: func(a, b dataset.Row) int { return int(math.Copysign(1, days(a)-days(b))) }},
		"events first": {order: func(a, b dataset.Row) int { return -strings.Compare(a.Subject[1], b.Subject[1]) }},
		"four stays":   {frailty: 1.6, said: true},
	} {
		said, studies := 0, 50
		for study := range studies {
			r := rand.New(rand.NewPCG(uint64(study), 38))
			shared := 0.0
			var i int
			rows := stays(uint64(study), 600, func(age, dose, sex float64) float64 {
				if i++; i%4 == 1 {
					shared = c.frailty * r.NormFloat64()
				}
				return 0.5*age + shared
			})
			if c.order != nil {
				slices.SortStableFunc(rows, c.order)
			}
			config := local.Config{Plan: p, Methods: methods, Data: map[string]dataset.Source{}}
			for m, site := range p.Sites {
				own := slices.Clone(rows[200*m : 200*(m+1)])
				if c.order != nil { // each site has its share of all
					for k := range own {
						own[k] = rows[3*k+m]
					}
				}
				for k := range own {
					own[k].ID = fmt.Sprintf("%06d", k)
				}
				config.Data[site] = tableOf(t, p, own)
			}
			_, out := run(t, config)
			if strings.Contains(strings.Join(out.Result.Verdicts(), "\n"), "ids follow each other") {
				said++
			}
		}
		t.Logf("%s: said of %d of %d", name, said, studies)
		if !c.said && said > 1 || c.said && said < 40 {
			t.Errorf("%s: said of %d of %d", name, said, studies)
		}
	}
}
