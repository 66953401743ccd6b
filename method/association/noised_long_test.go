//go:build long

package association

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// Where privacy noise is much of the standard error, intervals hold the truth as often as they
// say, and a common effect is estimated without much bias. 300 draws of a probability of .95
// lie outside .90 to .99 once in ten thousand times.
func TestCoverageOfNoisedAssociations(t *testing.T) {
	const draws, slope = 300, 0.03
	p := protocolOf(t, ageAndSex)
	rng := rand.New(rand.NewPCG(2, 14))
	common, random, level, error, exact := 0, 0, 0, 0.0, 0.0
	for draw := range draws {
		var tables []*Table
		var names []string
		for s := range 3 {
			names = append(names, fmt.Sprint("site", s))
			tables = append(tables, released(t, p, names[s], uint64(10*draw+s), site(rng, 1500, slope, 0.2)))
		}
		list, _, err := Combine(names, tables)
		if err != nil || len(list) != 3 {
			t.Fatalf("%d effects: %v", len(list), err)
		}
		for _, c := range list {
			holds := func(e estimate, truth float64) (n int) {
				if e.Low < truth && truth < e.High {
					n = 1
				}
				return n
			}
			if c.Column == "age" {
				common, random, error = common+holds(c.Common, slope), random+holds(c.Random, slope), error+(c.Common.Estimate-slope)/draws
				exact += 0.7 / math.Sqrt(4500*91) / c.Common.SE / draws
			} else {
				level += holds(c.Common, 0)
			}
		}
	}
	for what, rate := range map[string]float64{"common effect": float64(common) / draws, "random effects": float64(random) / draws, "levels": float64(level) / draws / 2} {
		if rate < 0.9 || what != "random effects" && rate > 0.99 {
			t.Errorf("%s: intervals of 95 %% hold %v", what, rate)
		}
	}
	if exact > 0.8 || math.Abs(error) > 0.05*slope {
		t.Errorf("without noise the standard error is %v of what it is, and the bias is %v of a slope of %v", exact, error, slope)
	}
}
