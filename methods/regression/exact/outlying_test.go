package exact

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// Of 300 drawn studies in which all intercepts have one law, three get a verdict by its own rate, and
// more than ten once in 3000 runs. Sites are of very unequal size, and differ by less or more than
// their rows tell. A site that is 6 off where seven others are alike is named four times in five at least.
func TestStrayIntercepts(t *testing.T) {
	const draws = 300
	for _, sites := range []int{4, 8, 30} {
		var names []string
		for i := range sites {
			names = append(names, fmt.Sprintf("s%02d", i))
		}
		for _, tau := range []float64{0.1, 0.5, 2} {
			count, far, mild, others := 0, 0, 0, 0
			for draw := range uint64(draws) {
				r := rand.New(rand.NewPCG(draw, uint64(sites)))
				all := map[string]ownIntercept{}
				for _, name := range names {
					v := 0.02 * math.Exp(1.2*r.NormFloat64())
					all[name] = ownIntercept{tau*r.NormFloat64() + math.Sqrt(v)*r.NormFloat64(), v}
				}
				if len(stray(names, all)) > 0 {
					count++
				}
				first := all["s00"]
				for by, to := range map[float64]*int{2: &mild, 6: &far} {
					all["s00"] = ownIntercept{first.Estimate + by, first.Variance}
					says := strings.Join(stray(names, all), " ")
					if strings.Contains(says, "The intercept of s00 is far") {
						*to++
					}
					if strings.Contains(strings.ReplaceAll(says, "intercept of s00", ""), "The intercept of") {
						others++
					}
				}
			}
			t.Logf("%d sites that differ by %v: %d of %d false, %d with one 2 off, %d 6 off, %d others", sites, tau, count, draws, mild, far, others)
			if count > 10 || sites == 8 && tau <= 0.1 && far < draws*4/5 {
				t.Errorf("%d sites that differ by %v: %d of %d false, %d with one 6 off", sites, tau, count, draws, far)
			}
		}
	}
}
