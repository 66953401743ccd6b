package mixture_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"parley/dataset"
	"parley/engine/local"
	"parley/study"
)

// toyStudy is the toy of section 4.2 as a study: a mode for each of three sites.
func toyStudy(tb testing.TB, options string, rows int, seed uint64) (*study.Plan, map[string]dataset.Source) {
	tb.Helper()
	p := parse(tb, fmt.Sprintf(`parley: 1
name: toy
seed: %d
sites: [west, south, east]
views:
  - {name: v, features: [{name: x, range: [-12, 12]}, {name: "y", range: [-12, 12]}]}
method: {name: graffl, components: 3, %s}
privacy: {protection: none}
`, seed, options))
	r := rand.New(rand.NewPCG(seed, 1))
	data := map[string]dataset.Source{}
	for _, s := range exampleMeans {
		table := make([]dataset.Row, rows)
		for i := range table {
			table[i] = dataset.Row{ID: fmt.Sprintf("%06d", i), Views: [][]float64{{s.mean[0] + r.NormFloat64(), s.mean[1] + r.NormFloat64()}}}
		}
		source, err := dataset.NewTable(p.Schema(), table)
		if err != nil {
			tb.Fatal(err)
		}
		data[s.site] = source
	}
	return p, data
}

// BenchmarkPublishedStudy is Algorithm 2 through the engine, in memory and with
// checkpoints and stores on disk: the time of a proposal should not grow with their
// number.
func BenchmarkPublishedStudy(b *testing.B) {
	for _, place := range []string{"memory", "disk"} {
		for _, rounds := range []int{10, 100, 1000} {
			proposals := 9000 * rounds
			b.Run(fmt.Sprintf("%s/%d", place, proposals), func(b *testing.B) {
				p, data := toyStudy(b, fmt.Sprintf("variant: published, published: {rounds: %d}", rounds), 3000, 1)
				b.ReportAllocs()
				for b.Loop() {
					c := local.Config{Plan: p, Methods: methods, Data: data}
					if place == "disk" {
						c.Dir = b.TempDir()
					}
					run(b, c)
				}
				b.ReportMetric(float64(proposals)*float64(b.N)/b.Elapsed().Seconds(), "proposals/s")
			})
		}
	}
}
