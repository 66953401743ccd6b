package generative

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"parley/figure"
	"parley/methods/mixture/scarce"
	"parley/papers/experiment"
)

// gateSite is how many rows simulated sites have, and of how many columns.
type gateSite struct{ scarce, other, dim int }

var gateSites = []gateSite{{5, 80, 5}, {8, 80, 5}, {20, 150, 5}, {5, 80, 24}, {8, 80, 24}, {20, 150, 24}}

const (
	gateHeld   = 2000 // held rows of each class, to tell what rows are really worth
	gateExtent = 0.6  // standard deviation of the commoner class in every column
	gateShift  = 0.8  // distance of the class's means
)

// gateGenerators make rows for a site: nothing to do with the class, and its very law.
var gateGenerators = []struct {
	name string
	draw func(n, dim int, r *rand.Rand) [][]float64
}{
	{"a cloud at a random place", func(n, dim int, r *rand.Rand) [][]float64 {
		at, rows := ward(0, 1, dim, r).Rows[0], ward(0, n, dim, r).Rows
		for _, row := range rows {
			for j := range row {
				row[j] += at[j]
			}
		}
		return rows
	}},
	{"the other class's law", func(n, dim int, r *rand.Rand) [][]float64 { return ward(0, n, dim, r).Rows }},
	{"the class's own law", func(n, dim int, r *rand.Rand) [][]float64 { return ward(n, 0, dim, r).Rows }},
}

// ward draws rows of two classes, both normal; the scarce one is wider in every second
// column.
func ward(scarce, other, dim int, r *rand.Rand) (l scarce.Labelled) {
	for i := range scarce + other {
		row := make([]float64, dim)
		for j := range row {
			row[j] = gateExtent * r.NormFloat64()
			if i < scarce {
				row[j] = row[j]*(1+0.3*float64(j%2)) + gateShift/math.Sqrt(float64(dim))
			}
		}
		l.Rows, l.Labels = append(l.Rows, row), append(l.Labels, i < scarce)
	}
	return l
}

const gateSitesEach = 200 // simulated sites of each kind

func (s gateSite) id(generator int) string {
	return experiment.Slug(fmt.Sprintf("%d of %d in %d, %s", s.scarce, s.other, s.dim, gateGenerators[generator].name))
}

// verdicts measures how often sites keep rows that help, and rows that do not.
func verdicts() experiment.Experiment {
	const gain = "gain"
	return experiment.Experiment{Name: "parley-verdict", Paper: "parley", Item: "The verdict on synthetic rows",
		About: "Simulated sites judge rows of three generators by cross-validation, as they do in a study.",
		Cells: func(quick bool) (cells []experiment.Cell) {
			sites, kinds := gateSitesEach, gateSites
			if quick {
				sites, kinds = 1, gateSites[:1]
			}
			for _, s := range kinds {
				for g := range gateGenerators {
					cells = append(cells, experiment.Cell{ID: s.id(g), Run: func(ctx context.Context, _ experiment.Data) (experiment.Values, error) {
						share, raised, err := s.judge(ctx, g, sites)
						return experiment.Values{kept: {share}, gain: {raised}}, err
					}})
				}
			}
			return cells
		},
		Conclude: func(o experiment.Outcomes) experiment.Conclusion {
			t := figure.Table{ID: "kept", Title: "Share of sites that keep the rows", Caption: fmt.Sprintf("Of %d sites. In brackets: by how much the rows raise the AUC on held rows, over all sites.", gateSitesEach),
				Columns: figure.TextColumns("rows of the class", "others", "columns")}
			for _, g := range gateGenerators {
				t.Columns = append(t.Columns, figure.Column{Name: g.name})
			}
			for _, s := range gateSites {
				row := []any{fmt.Sprint(s.scarce), fmt.Sprint(s.other), fmt.Sprint(s.dim)}
				for g := range gateGenerators {
					if v := o[s.id(g)]; v != nil {
						row = append(row, strings.ReplaceAll(fmt.Sprintf("%.0f %% (%+.3f)", 100*v[kept][0], v[gain][0]), "-", "−"))
					}
				}
				if len(row) > 3 {
					t.Add(row...)
				}
			}
			return experiment.Conclusion{Tables: []figure.Table{t}}
		},
	}
}

// judge returns the share of sites that keep a generator's rows, and what these do to
// the AUC, on average.
func (s gateSite) judge(ctx context.Context, generator, sites int) (kept, gain float64, err error) {
	each := 1 / float64(sites)
	for seed := range uint64(sites) {
		if err := ctx.Err(); err != nil {
			return 0, 0, err
		}
		r := rand.New(rand.NewPCG(seed+1, 7))
		own, held := ward(s.scarce, s.other, s.dim, r), ward(gateHeld, gateHeld, s.dim, r)
		c, err := scarce.Compare(own, held, gateGenerators[generator].draw(s.other-s.scarce, s.dim, r), seed+1)
		if err != nil {
			return 0, 0, err
		}
		if c.Kept {
			kept += each
		}
		for _, r := range c.Results {
			switch r.Arm {
			case scarce.Raw:
				gain -= each * r.Held
			case scarce.Generated:
				gain += each * r.Held
			}
		}
	}
	return kept, gain, nil
}
