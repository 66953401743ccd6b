package fitted

import (
	"fmt"
	"math"
	"strings"

	"gonum.org/v1/gonum/stat/distuv"

	"parley/figure"
	"parley/method"
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
	"parley/methods/regression/predict"
	"parley/study"
)

// Report is a site's assessment with its name.
type Report struct {
	Site string
	*predict.Assessment
}

// Subjects is how many a site has; not counted are rows, where only these are known.
func Subjects(o *options.Options, s Report) (n float64, counted bool) {
	if o.Unit() == "subject" {
		return float64(s.Rows), true
	}
	if s.Scatter != nil && o.Cluster == "" {
		return float64(s.Scatter.Clusters), true
	}
	return float64(s.Rows), false
}

// Data shows how many subjects each site has, as far as the sites said it; lacks says of a view that nobody there has
// a cell of it, and is nil where that is not known.
func Data(p *study.Plan, o *options.Options, sites []Report, lacks func(site string, view int) bool) figure.Section {
	var all []figure.SiteSubjects
	counted := false
	for _, s := range sites {
		var n float64
		n, counted = Subjects(o, s)
		one := method.Complete(p, s.Site, n, s.Noise)
		for k := range p.Views {
			one.Patterns[0].Present[k] = lacks == nil || !lacks(s.Site, k)
		}
		all = append(all, one)
	}
	section := method.Overview(p, all)
	if f := section.Items[0].Figure; !counted {
		f.Title, f.Alt = "Person-periods by site", "For every site, how many person-periods were used."
		f.Caption += " Here every period that a subject reached counts."
	}
	return section
}

// wording is how people speak of the effects of a model: what they are changes of, what they are on, such that up is
// more of it, and what their exponential is, "" where it is nothing that people use. [y] is the outcome's column,
// [level] the second of its levels, and [event] the column that says how a time ended.
type wording struct{ change, on, ratio string }

const cloglog = " " + options.LinkCloglog

var wordings = map[string]wording{ // by likelihood, and the link if it is not the usual one
	glm.LikelihoodLinear:             {"the expected [y]", "[y]", ""},
	glm.LikelihoodPoisson:            {"the logarithm of the rate of [y]", "[y]", "rate ratio"},
	glm.LikelihoodSoftmax:            {"a class's log-odds against the geometric mean of all classes", "[y]", ""},
	glm.LikelihoodLogistic:           {"the log-odds of [level]", "[y] = [level]", "odds ratio"},
	glm.LikelihoodLogistic + cloglog: {"ln(−ln(1 − p)), p of [level]", "[y] = [level]", "hazard ratio"},
	glm.LikelihoodHazard: {"the log-odds of [event] = [level] in a period that was reached without",
		"the hazard of [event] = [level]", "odds ratio"},
	glm.LikelihoodHazard + cloglog: {"the logarithm of the hazard of [event] = [level]",
		"the hazard of [event] = [level]", "hazard ratio"},
}

// wordingOf fills in the words of a plan.
func wordingOf(o *options.Options) wording {
	key, level := o.Likelihood, ""
	if o.Link == options.LinkCloglog {
		key += cloglog
	}
	if levels := o.Outcome.Levels; len(levels) > 1 {
		level = levels[1]
	}
	r := strings.NewReplacer("[y]", o.Outcome.Column, "[level]", level, "[event]", o.Outcome.Event)
	w := wordings[key]
	return wording{"change of " + r.Replace(w.change), r.Replace(w.on), w.ratio}
}

// termsCaption says how effects of splines and interactions are to be read.
func termsCaption(o *options.Options) string {
	var text string
	if len(o.Splines) > 0 {
		text += " The functions of a spline, marked ', belong together: no single one of them is the feature's effect."
	}
	if len(o.Interactions) > 0 {
		text += " Where features interact (×), the effect of each alone holds where the other one is at its centre, " +
			"if it is a number, and at its reference or unknown, if it is a category."
	}
	if text != "" {
		text += " Intercepts and periods are those where numbers with a spline or an interaction are at their " +
			"centres, in the scaling, and other numbers 0."
	}
	return text
}

// Prediction shows how well outcomes are predicted.
func Prediction(o *options.Options, sites []Report, pooled *predict.Assessment) figure.Section {
	rows := append([]Report{{"All sites", pooled}}, sites...)
	lead := "The sites predicted their own subjects, who took part in the fit: new subjects are predicted a little " +
		"worse."
	if pooled.Noise > 0 {
		lead += fmt.Sprintf("\n\nThese numbers were released with noise of their own, paid for by the plan's share "+
			"for diagnostics: on every count of a site with a standard deviation of %.0f subjects, and %.0f on those "+
			"of all sites together. Where a site or a bin has few subjects they say little. A log-likelihood below "+
			"−%v counts as that much.", sites[0].Noise, pooled.Noise, predict.Worst)
	}
	section := figure.Section{ID: "prediction", Title: "How well outcomes are predicted",
		Lead:  lead,
		Items: []figure.Item{{Table: scoreTable(o, rows)}}}
	if worse, by := worseThanBase(sites, o.Unit()); len(worse) > 0 {
		section.Items = append([]figure.Item{
			{Note: &figure.Note{Title: "The model predicts worse than the share of cases does at " +
				strings.Join(worse, ", "), Warning: true,
				Text: "Giving everybody at the site its own share of cases would have predicted better there: " +
					strings.Join(by, ", ") + ". Do not use the model there without finding out why."}}},
			section.Items...)
	}
	if !o.Numeric() {
		section.Items = append(section.Items, figure.Item{Figure: calibration(pooled)})
	}
	return section
}

// worseThanBase names the sites at which the base rate predicts better than the model, by more
// than chance. A model that says nothing beyond the true rate loses to the share that was
// observed by half of χ² with one degree of freedom; it is named with probability .001 over all sites.
func worseThanBase(sites []Report, unit string) (worse, by []string) {
	chance := distuv.ChiSquared{K: 1}.Quantile(1-0.001/float64(max(len(sites), 1))) / 2
	for _, s := range sites {
		if r := s.Ranking; r != nil {
			if base := r.Base(); s.LogLik < base*float64(s.Rows)-chance {
				worse, by = append(worse, s.Site), append(by, fmt.Sprintf("%s (%.3f per %s against %.3f)", s.Site,
					s.LogLik/float64(s.Rows), unit, base))
			}
		}
	}
	return worse, by
}

// scoreTable has a line for each site.
func scoreTable(o *options.Options, rows []Report) *figure.Table {
	number, ranked := o.Numeric(), !o.Numeric() && rows[0].Ranking != nil
	t := &figure.Table{ID: "prediction-by-site", Title: "By site",
		Caption: "The log-likelihood is the mean logarithm of the probability that was given to what happened: 0 " +
			"would be certainty.",
		Columns: []figure.Column{{Name: "site"}, {Name: o.Unit() + "s", Format: figure.Count},
			{Name: "log-likelihood per " + o.Unit()}, {Name: "root mean squared error"},
			{Name: "predicted correctly", Format: figure.Percent}, {Name: "calibration error", Format: figure.Score},
			{Name: "log-likelihood of the base rate"}, {Name: "area under ROC", Format: figure.Score}}}
	for _, r := range rows {
		k, cal, base, area := float64(r.Rows), r.Calibration(), math.NaN(), math.NaN() // what a site does not say
		if r.Ranking != nil {
			base, area = r.Ranking.Base(), r.Ranking.Area()
		}
		t.Add(r.Site, k, r.LogLik/k, math.Sqrt(r.Squares/k), float64(r.Correct)/k, cal.Error(), base, area)
	}
	leave(t, number, "root mean squared error")
	leave(t, !number, "predicted correctly", "calibration error")
	leave(t, ranked, "log-likelihood of the base rate", "area under ROC")
	return t
}

// calibration draws expected against observed frequencies.
func calibration(a *predict.Assessment) *figure.Figure {
	c := a.Calibration()
	line := figure.Line{Name: "this model"}
	for _, b := range c {
		x, y := b.Expected, b.Observed
		if b.Rows == 0 {
			x, y = math.NaN(), math.NaN()
		}
		line.X, line.Y = append(line.X, x), append(line.Y, y)
		if a.Noise > 0 { // on both what happened and what was counted
			half := Z90 * a.Noise * math.Hypot(1, y) / float64(b.Rows)
			line.Low, line.High = append(line.Low, max(y-half, 0)), append(line.High, min(y+half, 1))
		}
	}
	perfect := figure.Line{Name: "perfect", X: figure.Numbers{0, 1}, Y: figure.Numbers{0, 1}, Reference: true}
	caption := fmt.Sprintf("Predictions are sorted by their probability into ten bins. On the dashed line, what was "+
		"given a probability of 30 %% happened in 30 %% of cases; below it, predictions are too sure of it, above it "+
		"not sure enough. On average over predictions the distance is %.4f.", c.Error())
	if a.Noise > 0 {
		caption += " The band is where privacy noise alone leaves the true frequency with a probability of 90 %, and " +
			"the distance holds that noise."
	}
	return &figure.Figure{ID: "calibration", Title: "Do probabilities hold what they promise?", Caption: caption,
		Chart: figure.Lines{X: figure.Axis{Label: "probability given"}, Y: figure.Axis{Label: "how often it happened"},
			Series: []figure.Line{line, perfect}},
		Alt: "Observed against expected frequency in ten bins of the predicted probability."}
}

// own shows a site how its own subjects are predicted.
func own(o *options.Options, site string, a *predict.Assessment) figure.Section {
	section := figure.Section{ID: "own", Title: "Your subjects under the shared model",
		Lead:  "Made at this site from its own rows; it does not leave.",
		Items: []figure.Item{{Table: scoreTable(o, []Report{{site, a}})}}}
	if !o.Numeric() {
		section.Items = append(section.Items, figure.Item{Figure: calibration(a)})
	}
	return section
}
