//go:build long

package private

import "testing"

// The same of each number of sites and each ε, with 4000 and 40 000 subjects. At least .85 of 90 % intervals hold: .90
// of 780 and of 325 are taken for less by chance in one cell of 1000, and of 30 (standard errors .014 and .025; seeds
// are fixed). What is lost of the log-likelihood is at most .005 where noise does not hide most scales.
func TestRangesServeAsWellAsConstantsEverywhere(t *testing.T) {
	for n, seeds := range map[int]uint64{4000: 12, 40_000: 5} {
		for _, sites := range []int{3, 10, 34} {
			for _, epsilon := range []float64{0.5, 1, 3, 8} {
				c := cell{n: n, sites: sites, epsilon: epsilon}
				hidden := n == 4000 && sites == 34 && epsilon == 0.5
				if c.fill(t, seeds); c.cover(0) < 0.85 || !hidden && c.lost > 0.005 || hidden && 2*c.said < c.studies {
					t.Errorf("%+v", c)
				}
			}
		}
	}
}

// The same of outcomes of three classes: .90 of 520 and of 195 are taken for less than .85 in one cell of 1000, and of
// 30.
func TestIntervalsOfThreeClassesEverywhere(t *testing.T) {
	for n, seeds := range map[int]uint64{4000: 8, 40_000: 3} {
		for _, sites := range []int{3, 10} {
			for _, epsilon := range []float64{1, 3} {
				c := classCell{n: n, sites: sites, epsilon: epsilon}
				c.fill(t, clinical, seeds)
				c.hold(t)
			}
		}
	}
}
