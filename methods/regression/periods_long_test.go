//go:build long

package regression_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"parley/dataset"
	"parley/engine/local"
	"parley/study"
)

// An effect that changes sign is always told, and one that is the same in all periods hardly ever: of 60
// studies at .01 more than 4 are once in 1000 runs. A weaker change is told in larger studies.
func TestEffectsThatChangeOverTime(t *testing.T) {
	const words = "changes over time"
	same := func(options string) func(r *rand.Rand) local.Config {
		return func(r *rand.Rand) local.Config {
			s := timed{periods: 2 + r.IntN(7), n: 150 + r.IntN(1200), base: -4 + 3*r.Float64(),
				arm: 0.05 + 0.45*r.Float64(), options: options}
			for range 4 {
				s.effects = append(s.effects, 0.5*r.NormFloat64())
			}
			_, c := s.draw(t, r)
			return c
		}
	}
	flips := func(options string) func(r *rand.Rand) local.Config {
		return func(r *rand.Rand) local.Config {
			_, c := timed{periods: 4, n: 1200, base: -1.5, arm: 0.5, effects: []float64{0.3, 0, 0, 0}, options: options,
				change: func(k int, x []float64) float64 {
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

// timed is a study of times until an event at four sites: a normal number, another that goes with it,
// a skewed one, and a category of two levels, a rare one in some draws.
type timed struct {
	periods int
	n       int
	base    float64                          // log-odds of the hazard
	effects []float64                        // of dose, age, load and arm
	arm     float64                          // the share of its second level
	change  func(k int, x []float64) float64 // what effects add in period k
	options string
}

func (s timed) draw(t testing.TB, r *rand.Rand) (*study.Plan, local.Config) {
	t.Helper()
	var cuts []string
	for k := range s.periods {
		cuts = append(cuts, strconv.Itoa(k+1))
	}
	p := parse(t, fmt.Sprintf(`{parley: 1, name: timed, sites: [a, b, c, d], subjects: [time, died],
		views: [{name: v, features: [dose, age, load, {name: arm, kind: category, levels: ["0", "1"]}]}],
		method: {name: regression, outcome: {column: time, event: died, levels: ["no", "yes"], cuts: [%s]}, references: [{feature: arm, level: "0"}]%s}, privacy: {protection: none}}`, strings.Join(cuts, ", "), s.options))
	sites := map[string][]dataset.Row{}
	shift := map[string]float64{}
	for _, site := range p.Sites {
		if s.options != "" {
			shift[site] = 0.7 * r.NormFloat64()
		}
	}
	for i := range s.n {
		site := p.Sites[i%4]
		dose := r.NormFloat64()
		x := []float64{dose, 0.6*dose + 0.8*r.NormFloat64(), math.Exp(0.7 * r.NormFloat64()), 0}
		if r.Float64() < s.arm {
			x[3] = 1
		}
		time, died, censored := float64(s.periods)+1, "no", 2*float64(s.periods)*r.Float64()
		for k := range s.periods {
			f := s.base + shift[site]
			for j, w := range s.effects {
				f += w * x[j]
			}
			if s.change != nil {
				f += s.change(k, x)
			}
			if r.Float64() < 1/(1+math.Exp(-f)) {
				time, died = float64(k)+0.9, "yes"
				break
			}
		}
		if time > censored {
			time, died = censored, "no"
		}
		sites[site] = append(sites[site], dataset.Row{ID: fmt.Sprintf("%06d", i), Views: [][]float64{x},
			Subject: []string{fmt.Sprint(time), died}})
	}
	c := local.Config{Plan: p, Methods: methods, Data: map[string]dataset.Source{}}
	for site, rows := range sites {
		c.Data[site] = tableOf(t, p, rows)
	}
	return p, c
}

// said counts studies with a verdict that has the words.
func said(t testing.TB, studies int, seed uint64, words string, draw func(r *rand.Rand) local.Config) (count int) {
	t.Helper()
	for i := range studies {
		_, out := run(t, draw(rand.New(rand.NewPCG(uint64(i), seed))))
		if strings.Contains(strings.Join(out.Result.Verdicts(), "\n"), words) {
			count++
		}
	}
	return count
}
