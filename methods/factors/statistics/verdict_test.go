package statistics

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/dataset"
	"parley/methods/factors/assess"
	"parley/methods/factors/factorstest"
	"parley/methods/factors/halves"
)

// A model that predicts a view worse than its mean does never goes without a warning on
// top, from next to no subjects to many, at one site and at many; and one that has learned much goes without. Gains are counted without noise
// over the subjects of the fit. With 20 seeds of each, 111 views were worse, none of them
// without a warning, and of 222 that gained more than half 25 were warned of.
func TestWorseThanTheMeanIsSaidFirst(t *testing.T) {
	worse, silent, good, alarmed := 0, 0, 0, 0
	for _, c := range []struct {
		sites, subjects int
		epsilon         string
	}{{2, 40, "1"}, {2, 200, "1"}, {12, 120, "1"}, {12, 240, "1"}, {2, 1000, "3"}} {
		for seed := range uint64(6) {
			plan, subjects := wide(t, 300+seed, c.subjects)
			var names []string
			for i := range c.sites {
				names = append(names, fmt.Sprintf("s%02d", i))
			}
			plan = strings.Replace(plan, "[north, south]", "["+strings.Join(names, ", ")+"]", 1)
			plan = strings.Replace(plan, "epsilon: 3", "epsilon: "+c.epsilon, 1)
			p := newPlay(t, plan)
			data := map[string]*dataset.Table{}
			for i, site := range names {
				var mine []dataset.Row
				for k := i; k < len(subjects); k += len(names) {
					mine = append(mine, dataset.Row{ID: fmt.Sprintf("%05d", k), Views: subjects[k]})
				}
				data[site] = factorstest.Must(dataset.NewTable(p.Plan.Schema(), mine))(t)
			}
			p.behindGates(data, seed)
			state, result := p.run()
			first := ""
			if result.Sections[0].ID == "verdicts" {
				first = result.Sections[0].Items[0].Note.Text
				if len(result.Verdicts()) == 0 || result.Verdicts()[0] != result.Sections[0].Items[0].Note.Title {
					t.Errorf("the report begins with %q, and the metrics with %q", result.Sections[0].Items[0].Note.Title, result.Verdicts())
				}
			}
			for k, gain := range p.gains(state, subjects) {
				warned := strings.Contains(first, "any view") || strings.Contains(first, p.Plan.Views[k].Name)
				switch {
				case gain < -0.02:
					if worse++; !warned {
						silent++
						t.Logf("%+v, seed %d: view %d has gain %.2f, metric %.2f", c, seed, k, gain, result.Metrics["gain_over_mean/"+p.Plan.Views[k].Name])
					}
				case gain > 0.5:
					if good++; warned {
						alarmed++
					}
				}
			}
		}
	}
	if worse < 20 || silent > 1 || good < 40 || alarmed > good/4 {
		t.Errorf("too few views to tell, or a verdict that is wrong")
	}
	t.Logf("%d views were worse, %d of them silently; %d good ones, %d of them warned of", worse, silent, good, alarmed)
}

// gains are what predicting each view from the others gains over the subjects' own mean.
func (p *play) gains(s *halves.State, subjects [][][]float64) (gains []float64) {
	p.t.Helper()
	model, scale := factorstest.Must(s.Model.Params.Unpack(p.Layout))(p.t), p.RangeScale()
	others := assess.New(p.Layout, model)
	n, d := float64(len(subjects)), p.Layout.Features()
	sum, squares, missed := make([]float64, d), make([]float64, d), make([]float64, d)
	x := make([]float64, d)
	for _, row := range subjects {
		for j, v := range slices.Concat(row...) {
			x[j] = (v - scale.Shift[j]) * scale.Factor[j]
			sum[j], squares[j] = sum[j]+x[j], squares[j]+x[j]*x[j]
		}
		if err := others.Read(p.Layout.AllFeatures(), x); err != nil {
			p.t.Fatal(err)
		}
		for j, k := range p.Layout.ViewOf() {
			mean, _ := others.Predict(k, j)
			missed[j] += (x[j] - mean) * (x[j] - mean)
		}
	}
	for k := range p.Layout.Views() {
		left, whole := 0.0, 0.0
		for lo, hi := p.Layout.View(k); lo < hi; lo++ {
			left, whole = left+missed[lo], whole+squares[lo]-sum[lo]*sum[lo]/n
		}
		gains = append(gains, 1-left/whole)
	}
	return gains
}
