//go:build long

package regression_test

import (
	"math/rand/v2"
	"testing"

	"parley/engine/local"
)

// An effect that changes sign is always told, and one that is the same in all periods hardly ever: of 60
// studies at .01 more than 4 are once in 1000 runs. A weaker change is told in larger studies.
func TestEffectsThatChangeOverTime(t *testing.T) {
	const words = "changes over time"
	same := func(options string) func(r *rand.Rand) local.Config {
		return func(r *rand.Rand) local.Config {
			s := timed{periods: 2 + r.IntN(7), n: 150 + r.IntN(1200), base: -4 + 3*r.Float64(), arm: 0.05 + 0.45*r.Float64(), options: options}
			for range 4 {
				s.effects = append(s.effects, 0.5*r.NormFloat64())
			}
			_, c := s.draw(t, r)
			return c
		}
	}
	flips := func(options string) func(r *rand.Rand) local.Config {
		return func(r *rand.Rand) local.Config {
			_, c := timed{periods: 4, n: 1200, base: -1.5, arm: 0.5, effects: []float64{0.3, 0, 0, 0}, options: options, change: func(k int, x []float64) float64 {
				if k < 2 {
					return 0.96 * x[3]
				}
				return -0.96 * x[3]
			}}.draw(t, r)
			return c
		}
	}
	if n := said(t, 60, 3, words, same("")); n > 4 {
		t.Errorf("%d of 60 studies whose effects stay the same", n)
	}
	for _, options := range []string{"", ", site_effects: random"} {
		if n := said(t, 5, 4, "The effect of arm=1 (falls) changes over time", flips(options)); n < 5 {
			t.Errorf("%q: %d of 5 studies whose effect changes its sign", options, n)
		}
	}
}
