package fedmvppca

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"parley/figure"
	"parley/judge/evaluate"
	"parley/papers/experiment"
)

// Bins of a histogram of scaled values.
const (
	bins          = 24
	lowest, above = -0.2, 1.2
)

// lackedBy is the view that a site lacks in scenario G/K, by the site from 1.
var lackedBy = map[int]string{2: "immune", 3: "metabolic"}

// latentSpace is Figures 5 and 8: the fit of one fold in scenario G/K.
func latentSpace() experiment.Experiment {
	c := condition{data: adcsf, scenario: evaluate.GK, sites: 3}
	return experiment.Experiment{Name: "fedmvppca-figure-5", Data: adcsf.needs(),
		Cells: func(bool) (cells experiment.Cells) {
			c.repeated(&cells, "fit", 1, c.picture)
			return cells
		},
		Conclude: func(o experiment.Outcomes) experiment.Conclusion { return conclude5(o[nth("fit", 0)]) },
	}
}

// picture fits the default, and measures what is to be drawn.
func (c condition) picture(ctx context.Context, d *division, seed uint64) (experiment.Values, error) {
	m, out, err := run(ctx, c, d, seed, byDefault)
	if err != nil {
		return nil, err
	}
	v := experiment.Values{}
	if err := predicted(ctx, m, out, d, v); err != nil {
		return nil, err
	}
	for i, site := range d.sites {
		s, err := evaluate.Project(ctx, m, site, "group")
		if err != nil {
			return nil, err
		}
		var x, y []float64
		for _, p := range s.Latent {
			x, y = append(x, p[0]), append(y, p[1])
		}
		mx, vx := stat.MeanVariance(x, nil)
		my, vy := stat.MeanVariance(y, nil)
		v[fmt.Sprintf("latent %d", i+1)] = []float64{mx, my, vx, stat.Covariance(x, y, nil), vy}
	}
	for _, view := range []int{1, 2} {
		if err := hidden(ctx, m.(evaluate.Predictive), view, d, v); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// hidden hides a view from the rows held out, and counts what was hidden beside what the
// model expects, feature by feature.
func hidden(ctx context.Context, m evaluate.Predictive, view int, d *division, v experiment.Values) error {
	s := d.held.Schema()
	unit, err := evaluate.FitMinMax(ctx, d.whole)
	if err != nil {
		return err
	}
	without := evaluate.Select(unit.Apply(d.held), func(string) ([]int, bool) { return []int{view}, true })
	var post evaluate.Posterior
	sd := make([][]float64, len(s.Views))
	for k := range sd {
		sd[k] = make([]float64, len(s.Views[k].Columns))
	}
	key := func(what string, j int) string {
		return fmt.Sprintf("%s %s %s", what, s.Views[view].Name, s.Views[view].Columns[j].Name)
	}
	width := (above - lowest) / bins
	count := func(what string, j, bin int, by float64) {
		if v[key(what, j)] == nil {
			v[key(what, j)] = make([]float64, bins)
		}
		v[key(what, j)][min(max(bin, 0), bins-1)] += by
	}
	for row, err := range without.Rows(ctx) {
		if err != nil {
			return err
		}
		if err := m.Predict(row, &post, sd); err != nil {
			return err
		}
		for j, mean := range post.Mean[view] {
			law := distuv.Normal{Mu: mean, Sigma: sd[view][j]}
			for b := range bins {
				left := lowest + width*float64(b)
				count("expected", j, b, law.CDF(left+width)-law.CDF(left))
			}
		}
	}
	for row, err := range unit.Apply(d.held).Rows(ctx) {
		if err != nil {
			return err
		}
		for j, x := range row.Views[view] {
			if !math.IsNaN(x) {
				count("observed", j, int(math.Floor((x-lowest)/width)), 1)
			}
		}
	}
	return nil
}

func conclude5(v experiment.Values) experiment.Conclusion {
	out := experiment.Conclusion{}
	var scatter figure.Scatter
	scatter.X.Label, scatter.Y.Label = "factor 1", "factor 2"
	for i, name := range []string{"site 1", "site 2", "site 3"} {
		if x := v[fmt.Sprintf("latent %d", i+1)]; len(x) == 5 {
			scatter.Groups = append(scatter.Groups, figure.Group{Name: name, Mean: x[:2], Cov: x[2:]})
		}
	}
	out.Figures = append(out.Figures, figure.Figure{ID: "latent-space", Title: "Sites in latent space",
		Caption: "Figure 5 (a): the first two factors. Site 1 has both groups and all views, " +
			"sites 2 and 3 have one group each and lack a view.",
		Alt: "Ellipses of three sites in the plane of the first two factors.", Chart: scatter})
	for _, view := range shownViews {
		for site := 1; site <= 3; site++ {
			out.Figures = append(out.Figures, againstReal(v, view, site))
		}
	}
	edges := make(figure.Numbers, bins+1)
	for i := range edges {
		edges[i] = lowest + (above-lowest)*float64(i)/bins
	}
	for _, site := range slices.Sorted(maps.Keys(lackedBy)) {
		out.Figures = append(out.Figures, missing(v, lackedBy[site], site, edges))
	}
	return out
}

// missing draws every feature of a view that some sites lack.
func missing(v experiment.Values, view string, site int, edges figure.Numbers) figure.Figure {
	const columns = 6
	var names []string
	for _, key := range slices.Sorted(maps.Keys(v)) {
		if name, ok := strings.CutPrefix(key, "observed "+view+" "); ok {
			names = append(names, name)
		}
	}
	chart := figure.Histograms{X: figure.Axis{Label: "scaled value"}, Edges: edges, Columns: make([]string, columns),
		Filled: "observed", Outline: "expected"}
	for i, name := range names {
		if i%columns == 0 {
			chart.Rows = append(chart.Rows, "")
		}
		chart.Cells = append(chart.Cells, figure.Histogram{Filled: v["observed "+view+" "+name],
			Outline: v["expected "+view+" "+name], Note: strings.ReplaceAll(name, "_", " ")})
	}
	return figure.Figure{ID: "missing-" + view, Title: "Features of view " + view,
		Caption: fmt.Sprintf("Figures 5 (c) and 8: every feature of the view that site %d lacks, "+
			"of subjects held out from whom it was hidden: filled as observed, outlined as expected.", site),
		Alt: "Histograms of observed values with the expected distribution over them.", Chart: chart}
}
