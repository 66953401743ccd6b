package predict

import (
	"math/rand/v2"
	"slices"
	"testing"

	"parley/internal/testkit"
	"parley/methods/regression/glm"
)

// That outcomes of rows that follow each other go together is said of visits and families, and hardly
// ever of rows that know nothing of each other, in whatever order: that of outcomes, cases before
// controls or by turns, with a few far off; sites have other means. 3 sites of 150 rows or 12 of 60,
// fitted by least squares; of 500 sets at .001 more than four come by chance once in 5000 runs.
func TestRowsThatFollowEachOther(t *testing.T) {
	byOutcome := func(a, b ordered) int {
		if a.y < b.y {
			return -1
		}
		return 1
	}
	byTurns := func(rows []ordered) {
		slices.SortFunc(rows, byOutcome)
		for i := range rows {
			if j := len(rows) - 1 - i; i%2 == 0 && i < j {
				rows[i], rows[j] = rows[j], rows[i]
			}
		}
	}
	sorted := func(rows []ordered) { slices.SortFunc(rows, byOutcome) }
	for name, c := range map[string]struct {
		sites, rows int
		cluster     int     // rows that share
		shared      float64 // standard deviation of what they do
		classes     bool    // outcomes are 0 and 1
		far         float64 // added to one outcome in fifty
		order       func(rows []ordered)
		said        bool
	}{
		"of chance":         {sites: 3, rows: 150, cluster: 1},
		"far off":           {sites: 3, rows: 150, cluster: 1, far: 30},
		"classes":           {sites: 12, rows: 60, cluster: 1, classes: true},
		"by outcome":        {sites: 3, rows: 150, cluster: 1, order: sorted},
		"small, by outcome": {sites: 12, rows: 60, cluster: 1, order: sorted},
		"cases first":       {sites: 12, rows: 60, cluster: 1, classes: true, order: sorted},
		"by turns":          {sites: 3, rows: 150, cluster: 1, classes: true, order: byTurns},
		"two visits":        {sites: 3, rows: 250, cluster: 2, shared: 1, said: true},
		"families":          {sites: 12, rows: 60, cluster: 4, shared: 0.7, said: true},
	} {
		said, sets := 0, 500
		if c.said {
			sets = 40
		}
		for set := range sets {
			r := rand.New(rand.NewPCG(uint64(set), 46))
			var designs [][][]float64
			var ys [][]float64
			for s := range c.sites {
				rows, together := make([]ordered, c.rows), 0.0
				for i := range rows {
					if i%c.cluster == 0 {
						together = c.shared * r.NormFloat64()
					}
					x := []float64{r.NormFloat64(), r.NormFloat64(), 1}
					y := x[0] - x[1] + float64(s%3-1)/2 + together + r.NormFloat64()
					if c.far > 0 && r.IntN(50) == 0 {
						y += c.far
					}
					if c.classes {
						y = map[bool]float64{true: 1}[y > 0]
					}
					rows[i] = ordered{x, y}
				}
				if c.order != nil {
					c.order(rows)
				}
				var design [][]float64
				var outcomes []float64
				for _, row := range rows {
					design, outcomes = append(design, row.x), append(outcomes, row.y)
				}
				designs, ys = append(designs, design), append(ys, outcomes)
			}
			q, variance := leastSquares(t, designs, ys)
			var sites []*Residuals
			for i, rows := range designs {
				d := glm.NewDesign(3)
				for k, row := range rows {
					testkit.Do(t, d.AppendDense(row, ys[i][k]))
				}
				sites = append(sites, ResidualsOf(glm.Linear{Variance: variance}, q, nil, d, false))
			}
			if pool(sites).SerialCorrelation(1) > 0 {
				said++
			}
		}
		t.Logf("%s: said of %d of %d", name, said, sets)
		if !c.said && said > 4 || c.said && said < sets*8/10 {
			t.Errorf("%s: said of %d of %d", name, said, sets)
		}
	}
}

// ordered is a row whose place among others may change.
type ordered struct {
	x []float64
	y float64
}
