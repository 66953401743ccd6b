package local_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"parley/dataset"
	"parley/engine/local"
	"parley/internal/testkit"
	"parley/method"
	"parley/methods/factors"
	"parley/study"
)

type spy struct {
	factors.Method
	seen *[]map[string][]float64
}

func (s spy) Answer(p *study.Plan, kind string, sums map[string][]float64) ([]byte, error) {
	c := map[string][]float64{}
	for k, v := range sums {
		c[k] = append([]float64(nil), v...)
	}
	*s.seen = append(*s.seen, c)
	return s.Method.Answer(p, kind, sums)
}

func TestAdvPatterns(t *testing.T) {
	const frame = "parley: 1\nname: totals\nsites: [a, b, c]\nviews: [{name: v, features: [x, y, z]}, {name: w, features: [p, q]}]\n" +
		"method: {name: mvppca, latent: 1%s}\nprivacy: {protection: none, sum: secure}\n"
	p := testkit.Get(study.Parse("plan.yaml", fmt.Appendf(nil, frame, ", patterns: [{site: a, views: [v, w]}, {site: b, views: [v]}, {site: c, views: [v, w]}, {site: c, views: [w]}]"), ours))(t)
	data := map[string]dataset.Source{}
	n := map[string]int{}
	for s, site := range p.Sites {
		rng := rand.New(rand.NewPCG(uint64(s), 9))
		var rows []dataset.Row
		n[site] = 80 + 7*s
		for i := range n[site] {
			f := rng.NormFloat64()
			views := [][]float64{{f + rng.NormFloat64(), rng.NormFloat64() - f, 0.5*f + rng.NormFloat64()}, {f + rng.NormFloat64(), rng.NormFloat64()}}
			if site == "b" {
				views[1] = nil
			}
			rows = append(rows, dataset.Row{ID: fmt.Sprintf("%s%03d", site, i), Views: views})
		}
		data[site] = testkit.Get(dataset.NewTable(p.Schema(), rows))(t)
	}
	var seen []map[string][]float64
	testkit.Get(local.Run(t.Context(), local.Config{Plan: p, Methods: method.Registry{spy{factors.Method{}, &seen}}, Data: data}))(t)
	for _, m := range seen {
		for k, v := range m {
			t.Log(k, len(v), v[:min(len(v), 60)])
		}
	}
	t.Log(n)
}

func TestAdvGarbage(t *testing.T) {
	for _, what := range []string{ofFactors, ofRegression, ofMixture} {
		p := totalsPlan(t, what, exactSecure+", openers: [a, b]")
		for trial := range 5 {
			x := rehearse(t, p)
			rng := rand.New(rand.NewPCG(uint64(trial), 9))
			for step := 0; ; step++ {
				opening := x.tasks[0].Kind == "open"
				for _, task := range x.tasks {
					in := x.answer(task.Site)
					if opening && task.Site == "b" && step >= 1 {
						switch trial {
						case 0: // a little off
							in.Body[0] ^= 1
						case 1:
							in.Body[len(in.Body)-1] ^= 0x40
						case 2:
							for i := range in.Body {
								in.Body[i] = byte(rng.Uint32())
							}
						case 3: // last number alone
							for i := range 8 {
								in.Body[len(in.Body)-1-i] = byte(rng.Uint32())
							}
						case 4:
							i := rng.IntN(len(in.Body)/16) * 16
							in.Body[i+7] ^= 0x10
						}
					}
					x.fold(in)
				}
				if err := x.next(); err != nil {
					t.Logf("%.40s trial %d step %d: %v", what, trial, step, err)
					break
				}
				if len(x.tasks) == 0 {
					r, err := x.half.Result(x.state)
					if err != nil {
						t.Logf("%.40s trial %d step %d: END %v", what, trial, step, err)
					} else {
						t.Logf("%.40s trial %d step %d: END ok %v", what, trial, step, r.Metrics)
					}
					break
				}
			}
		}
	}
}
