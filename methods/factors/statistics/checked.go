package statistics

import (
	"fmt"
	"math"
	"strings"

	"gonum.org/v1/gonum/floats"

	"parley/figure"
	"parley/methods/factors/halves"
	"parley/methods/factors/moments"
)

// checkOf is what the diagnostics say of one site, or of all: of every view.
type checkOf struct {
	name  string
	views []moments.ViewCheck
}

// checks reads the diagnostics: of all sites together and then of each, or of
// the only one; none if no site answered.
func (c way) checks(s *halves.State) ([]checkOf, error) {
	model, err := s.Model.Params.Unpack(c.Layout)
	if err != nil {
		return nil, err
	}
	checker, err := moments.NewChecker(c.Layout, c.RangeScale(), model, s.Doubt)
	if err != nil {
		return nil, err
	}
	read := func(name string, sum []float64, sd float64) checkOf {
		out := checkOf{name: name}
		for k := range c.Layout.Views() {
			out.views = append(out.views, checker.Read(k, sum, sd))
		}
		return out
	}
	var out []checkOf
	pooled := make([]float64, moments.CheckEntries*c.Layout.Views())
	variance := 0.0
	for _, name := range c.Plan.Sites {
		checked := own(s).Checked[name]
		if checked == nil {
			continue
		}
		n := &checked.Sum
		if err := n.Check(*c.noised[name].check); err != nil {
			return nil, fmt.Errorf("site %s: %w", name, err)
		}
		out = append(out, read(name, n.Floats(0), n.SD()))
		floats.Add(pooled, n.Floats(0))
		variance += n.SD() * n.SD()
	}
	if len(out) > 1 {
		out = append([]checkOf{read("All sites", pooled, math.Sqrt(variance))}, out...)
	}
	return out, nil
}

// checkMetrics are what neither noise hides nor limits cut: of view v under "…/v", of view v at
// site s under "…/v/s", and the standard deviation of the noise in each.
func (c way) checkMetrics(checks []checkOf, metrics map[string]float64) {
	for i, at := range checks {
		for k, n := range at.views {
			where := "/" + c.Plan.Views[k].Name
			if i > 0 || len(checks) == 1 {
				where += "/" + at.name
			}
			put := func(name string, x, sd float64) {
				if !math.IsNaN(x) && !math.IsNaN(sd) {
					metrics["left_out_"+name+where] = x
					metrics["left_out_"+name+"_noise_sd"+where] = sd
				}
			}
			if !n.Cut {
				put("mean_absolute_error", n.Error, n.ErrorSD)
				put("r2", n.Gain, n.GainSD)
			}
			for q, share := range moments.Nominal {
				put(fmt.Sprintf("coverage_%.0f", 100*share), n.Coverage[q], n.CoverageSD[q])
			}
		}
	}
}

// checkSection shows the diagnostics, or says why there are none.
func (c way) checkSection(s *halves.State, checks []checkOf) figure.Section {
	sec := figure.Section{ID: "diagnostics", Title: "If a view were not measured",
		Lead: "Where subjects have a view and another, each site let the shared model predict the view from the others, as if it had never been measured, and released one noised sum of how that went. It was paid for with " +
			figure.Percent.Text(c.Plan.Privacy.Diagnostics) + " of the plan's total. The same subjects took part in the fit, so a site that took no part should expect a little less.\n\n" +
			"± is two standard deviations of the privacy noise, which is known exactly; how few or many subjects there are is not in it. What it hides is not shown."}
	var silent []string
	for _, name := range c.Plan.Sites {
		if own(s).Checked[name] == nil {
			silent = append(silent, name)
		}
	}
	if len(silent) > 0 {
		sec.Items = append(sec.Items, figure.Item{Note: &figure.Note{Title: "Not all sites said how well the model predicts", Warning: true,
			Text: "Nothing came from " + strings.Join(silent, ", ") + ". The model does not rest on it and stands."}})
	}
	if len(checks) == 0 {
		return sec
	}
	if f := c.coverageFigure(checks[0]); f != nil {
		sec.Items = append(sec.Items, figure.Item{Figure: f})
	} else {
		sec.Items = append(sec.Items, figure.Item{Note: &figure.Note{Title: "Noise hides how many values the intervals hold", Warning: true,
			Text: "At this total, with this share of it and so few subjects, the noise in every count of values inside an interval is larger than what could be learned from it. A larger privacy.diagnostics, or more subjects, would show it; at sites, too."}})
	}
	sec.Items = append(sec.Items, figure.Item{Table: c.checkTable(checks)})
	return sec
}

// coverageFigure compares the intervals with what they promise, of all sites; nil
// if noise hides all of it.
func (c way) coverageFigure(at checkOf) *figure.Figure {
	promised := figure.Line{Name: "as promised", Reference: true}
	for _, share := range moments.Nominal {
		promised.X, promised.Y = append(promised.X, 100*share), append(promised.Y, 100*share)
	}
	lines := figure.Lines{X: figure.Axis{Label: "values that the interval should hold (%)"}, Y: figure.Axis{Label: "values that it held (%)"}}
	seen := false
	for k, n := range at.views {
		line := figure.Line{Name: c.Plan.Views[k].Name, X: promised.X}
		for q, share := range n.Coverage {
			by := 2 * n.CoverageSD[q]
			seen = seen || !math.IsNaN(share)
			line.Y, line.Low, line.High = append(line.Y, 100*share), append(line.Low, 100*max(0, share-by)), append(line.High, 100*min(1, share+by))
		}
		lines.Series = append(lines.Series, line)
	}
	if !seen {
		return nil
	}
	lines.Series = append(lines.Series, promised)
	return &figure.Figure{ID: "coverage", Title: "Do the intervals hold what they promise?", Chart: lines,
		Caption: "For each view, how many of its values lie in the central intervals of 50, 80, 90 and 95 % of their predictions, at " + where(at.name) + ". On the dashed line intervals are right, below it too narrow, above it too wide, which is the safer side. Bands are two standard deviations of the privacy noise; a point that noise took below 0 or above 100 % stands there. A view without a line is hidden by noise.",
		Alt:     "Lines of the share of values inside prediction intervals against the nominal share, one for each view, with bands for the privacy noise and a dashed line where the two are equal."}
}

func where(name string) string {
	if name == "All sites" {
		return "all sites together"
	}
	return "site " + name
}

// checkTable is all of the diagnostics in numbers.
func (c way) checkTable(checks []checkOf) *figure.Table {
	t := &figure.Table{ID: "left-out", Title: "Views predicted from the others, in numbers",
		Caption: "Subjects: those who have the view and another, at most so many where it says below. Error: mean absolute, in parts of a feature's range. R²: of the squared error made by giving everybody the model's mean, the share that the prediction takes away; 0 is no better than the mean, below 0 worse. " +
			"In 50 % and so on: of the view's values, those that lie in these central intervals of their predictions. R² and these are in %; a share that noise took beyond 0 or 100 stands there. \"noise\" stands for what privacy noise hides. Values count up to the ends of their ranges, and a subject's errors to twice what the model expects: where they are larger than that too often the model is wrong about itself, and the table says more or less than.",
		Columns: []figure.Column{{Name: "site"}, {Name: "view"}, {Name: "subjects"}, {Name: "error"}, {Name: "R²"}}}
	for _, share := range moments.Nominal {
		t.Columns = append(t.Columns, figure.Column{Name: fmt.Sprintf("in\u00a0%.0f\u00a0%%", 100*share)})
	}
	for _, at := range checks {
		for k, n := range at.views {
			cells := []string{strings.ReplaceAll(at.name, " ", "\u00a0"), c.Plan.Views[k].Name, countText(n.Subjects, n.SubjectsSD), errorText(n), plusMinus("%.0f", 100, n.Gain, n.GainSD)}
			if n.Cut && cells[4] != hiddenByNoise {
				cells[4] = "less\u00a0than " + cells[4]
			}
			for q, share := range n.Coverage {
				cells = append(cells, plusMinus("%.0f", 100, share, n.CoverageSD[q]))
			}
			for i, text := range cells {
				t.Columns[i].Text = append(t.Columns[i].Text, text)
			}
		}
	}
	return t
}

// countText writes a noised number of subjects; what noise hides as the most
// that is plausible.
func countText(n, sd float64) string {
	if n < moments.LeastSubjects*sd {
		return fmt.Sprintf("below\u00a0%.0f", math.Ceil(max(0, n)+2*sd))
	}
	return plusMinus("%.0f", 1, n, sd)
}

func errorText(n moments.ViewCheck) string {
	switch {
	case n.Cut:
		return "more\u00a0than " + plusMinus("%.3f", 1, n.Error, n.ErrorSD)
	case n.Error < 2*n.ErrorSD:
		return fmt.Sprintf("below\u00a0%.3f", n.Error+2*n.ErrorSD)
	}
	return plusMinus("%.3f", 1, n.Error, n.ErrorSD)
}

// hiddenByNoise stands where nothing can be said.
const hiddenByNoise = "noise"

// plusMinus writes a number with two standard deviations of the noise in it.
func plusMinus(format string, unit, x, sd float64) string {
	if math.IsNaN(x) {
		return hiddenByNoise
	}
	return fmt.Sprintf(format+"\u00a0±\u00a0"+format, unit*x, 2*unit*sd)
}
