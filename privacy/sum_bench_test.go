package privacy_test

import (
	"fmt"
	"testing"

	"parley/dataset"
	"parley/privacy"
	"parley/privacy/account"
	"parley/sitestore"
)

// BenchmarkSampledSum is one step of private stochastic gradients: a Poisson
// sample of a fiftieth of some thousand subjects, each with 216 numbers.
func BenchmarkSampledSum(b *testing.B) {
	const subjects, length = 3907, 216
	schema := dataset.Schema{Views: []dataset.View{{Name: "clinic", Columns: []dataset.Column{{Name: "age"}}}}}
	rows := make([]dataset.Row, subjects)
	for i := range rows {
		rows[i] = dataset.Row{ID: fmt.Sprintf("s%05d", i), Views: [][]float64{{float64(i)}}}
	}
	data, err := dataset.NewTable(schema, rows)
	if err != nil {
		b.Fatal(err)
	}
	study := privacy.Study{Digest: "3fa9", Site: "north", Method: "regression", Sites: 1, Quorum: 1, Subjects: subjects}
	gate := privacy.NewGate(study, privacy.SimulationPolicy(), sitestore.NewMemory(), data)
	session, err := gate.AdmitAny(privacy.Ask{Study: "3fa9", Site: "north", Round: 1, Kind: "update"}, privacy.Request{
		Protection: privacy.Differential,
		Sums: []privacy.Sum{{Name: "gradients", Unit: privacy.Subject, Form: privacy.Vectors,
			Blocks: []int{length}, Bound: 1,
			Mechanism: account.Mechanism{Kind: account.Gaussian, Noise: 5, Rate: 0.02, Diameter: 2, Count: 1 << 30}}},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := session.Sum(b.Context(), "gradients", func(row *dataset.Row, v []float64) int {
			for j := range v {
				v[j] = row.Views[0][0] / 1e6
			}
			return 0
		}); err != nil {
			b.Fatal(err)
		}
	}
}
