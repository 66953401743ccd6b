package exact_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"parley/dataset"
	"parley/study"
)

// A linear model whose noise is estimated is found in two exchanges, however many weights there are for
// the rows: the second moves nothing. Steps of the noise alone come nearer by the share of weights in
// rows only, and of 40 weights and 60 rows 25 were not enough. Rows may have weights.
func TestNoiseIsFoundAtOnce(t *testing.T) {
	for _, c := range []struct {
		features, rows int
		options        string
	}{{3, 300, ""}, {40, 60, ""}, {40, 60, ", weights: {column: w, as: counts}"}} {
		var names []string
		for j := range c.features {
			names = append(names, fmt.Sprintf("x%d", j))
		}
		p, err := study.Parse("plan", []byte(fmt.Sprintf(`{parley: 1, name: noise, sites: [one, two], subjects: [y, w], views: [{name: v, features: [%s]}],
			method: {name: regression, outcome: {column: y}%s}, privacy: {protection: none}}`, strings.Join(names, ", "), c.options)), methods)
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(11, 12))
		rows := make([][]dataset.Row, 2)
		for i := range c.rows {
			x, y := make([]float64, c.features), 100+r.NormFloat64()
			for j := range x {
				x[j] = r.NormFloat64()
				y += x[j] / 2
			}
			rows[i%2] = append(rows[i%2], dataset.Row{ID: fmt.Sprintf("%03d", i), Views: [][]float64{x},
				Subject: []string{fmt.Sprint(y), fmt.Sprint(1 + r.IntN(3))}})
		}
		m, result := ended(t, p, map[string]dataset.Source{"one": table(t, p, rows[0]), "two": table(t, p, rows[1])})
		if result.Metrics["converged"] != 1 || result.Metrics["exchanges"] != 2 {
			t.Errorf("%+v: converged %v in %v exchanges", c, result.Metrics["converged"], result.Metrics["exchanges"])
		}
		// The mean square of errors at the fit, with what is unsure of expectations, is the noise.
		q, groups := m.Weights(), m.Encoding.Groups()
		sum, n := 0.0, 0.0
		for _, row := range append(rows[0], rows[1]...) {
			w := 1.0
			if strings.Contains(c.options, "weight") {
				_, err = fmt.Sscan(row.Subject[1], &w)
			}
			y := 0.0
			if _, scan := fmt.Sscan(row.Subject[0], &y); scan != nil || err != nil {
				t.Fatal(scan, err)
			}
			z := make([]float64, len(groups))
			for j := range z {
				z[j] = 1
				if j < c.features {
					z[j] = (row.Views[0][j] - m.Encoding.Columns[j].Centre) / m.Encoding.Columns[j].Scale
				}
			}
			unsure := 0.0
			for j, a := range z {
				y -= a * q.Mean[j]
				for k, b := range z {
					unsure += a * b * q.Covariance[max(j, k)*(max(j, k)+1)/2+min(j, k)]
				}
			}
			sum, n = sum+w*(y*y+unsure), n+w
		}
		if got := *m.Options.NoiseVariance; math.Abs(got*n/sum-1) > 1e-8 {
			t.Errorf("%+v: noise %v, where errors have a mean square of %v", c, got, sum/n)
		}
	}
}
