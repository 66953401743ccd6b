package fitted

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"parley/figure"
	"parley/methods/factors/options"
)

// covariateEffect is what a covariate adds to a feature.
type covariateEffect struct {
	term, view string
	number     bool // a slope, and not the difference of a level from the first
	feature    *ModelFeature
	b, half    float64 // in the feature's unit, and half an interval of 90 %
	size       float64 // b in standard deviations: of the feature, for one of the covariate or for a level
}

// covariateEffects lists the effects that could be told of a term, the largest first.
func (m *Model) covariateEffects(term int, name string, number bool, sd float64) (list []covariateEffect) {
	for k := range m.Views {
		for i := range m.Views[k].Features {
			f := &m.Views[k].Features[i]
			if math.IsNaN(f.Effects[term]) || f.BeforeSD == 0 {
				continue
			}
			t := distuv.StudentsT{Sigma: 1, Nu: f.EffectDF}.Quantile(0.95)
			x := covariateEffect{name, m.Views[k].Name, number, f, f.Effects[term], t * f.EffectSE[term], f.Effects[term] / f.BeforeSD}
			if number {
				x.size *= sd
			}
			list = append(list, x)
		}
	}
	slices.SortStableFunc(list, func(a, b covariateEffect) int { return cmp.Compare(math.Abs(b.size), math.Abs(a.size)) })
	return list
}

// effectsByTerm lists the effects of every term.
func (m *Model) effectsByTerm() (all [][]covariateEffect) {
	term := 0
	for i, c := range m.Covariates {
		for k, name := range options.Terms(m.adjustedFor()[i : i+1]) {
			all = append(all, m.covariateEffects(term, name, len(c.Levels) == 0, c.WithinSD[k]))
			term++
		}
	}
	return all
}

// effectTableOf has effects in the features' own units, with intervals of 90 %.
func effectTableOf(list []covariateEffect) figure.Table {
	t := figure.Table{ID: "covariate-effects", Columns: []figure.Column{{Name: "covariate"}, {Name: "view"}, {Name: "feature"}, {Name: "unit"}}}
	for _, name := range []string{"effect", "low", "high", "standardised"} {
		t.Columns = append(t.Columns, figure.Column{Name: name, Numbers: figure.Numbers{}})
	}
	for _, x := range list {
		for i, text := range []string{x.term, x.view, x.feature.Name, x.feature.Unit} {
			t.Columns[i].Text = append(t.Columns[i].Text, text)
		}
		for i, y := range []float64{x.b, x.b - x.half, x.b + x.half, x.size} {
			t.Columns[4+i].Numbers = append(t.Columns[4+i].Numbers, y)
		}
	}
	return t
}

// EffectsCSV is what every covariate adds to every feature as a table for other programs;
// nil where the model is not adjusted for any.
func (m *Model) EffectsCSV() ([]byte, error) {
	if !m.Adjusts() {
		return nil, nil
	}
	var b bytes.Buffer
	t := effectTableOf(slices.Concat(m.effectsByTerm()...))
	err := t.CSV(&b)
	return b.Bytes(), err
}

// shownEffects is how many effects of a covariate the report lists.
const shownEffects = 15

// AdjustedSection says what the factors are adjusted for, and shows the largest effects.
func (m *Model) AdjustedSection() figure.Section {
	names := options.AdjustedFor(m.adjustedFor())
	lead := fmt.Sprintf("The plan adjusts the features for %s. A linear regression within sites, over %s, was taken out of them, and the factors describe what is left. So no factor rises or falls in proportion to a covariate among the subjects of one site. A relation that is not linear, such as one that begins at some age, is left in.",
		names, figure.Plural(m.AdjustedSubjects, "subject"))
	if m.LackingCovariates > 0 {
		lead += fmt.Sprintf(" Of %d more one of these is not known, so they took no part.", m.LackingCovariates)
	}
	sec := figure.Section{ID: "adjusted", Title: "What the factors are adjusted for", Lead: lead}
	about := figure.Table{ID: "covariates", Title: "The covariates", Caption: "Of a level, the mean is the share of subjects who have it. Means that nobody can have, or far too large standard deviations, come from codes for missing values or wrong units, and spoil the adjustment.",
		Columns: []figure.Column{{Name: "covariate"}, {Name: "compared with"}, {Name: "mean", Numbers: figure.Numbers{}}, {Name: "sd within sites", Numbers: figure.Numbers{}}}}
	for i, c := range m.Covariates {
		with := ""
		if len(c.Levels) > 0 {
			with = c.Levels[0]
		}
		for k, name := range options.Terms(m.adjustedFor()[i : i+1]) {
			about.Columns[0].Text, about.Columns[1].Text = append(about.Columns[0].Text, name), append(about.Columns[1].Text, with)
			about.Columns[2].Numbers, about.Columns[3].Numbers = append(about.Columns[2].Numbers, c.Mean[k]), append(about.Columns[3].Numbers, c.WithinSD[k])
		}
	}
	sec.Items = append(sec.Items, figure.Item{Table: &about})
	if len(m.Sites) == 0 { // else it is said first
		for _, v := range m.AdjustmentVerdicts() {
			sec.Items = append(sec.Items, figure.Item{Note: &figure.Note{Title: v.Says, Text: v.Advice, Warning: true}})
		}
	}
	sec.Items = append(sec.Items, m.untoldEffects()...)
	var shown []covariateEffect
	for _, list := range m.effectsByTerm() {
		shown = append(shown, list[:min(shownEffects, len(list))]...)
	}
	if len(shown) > 0 {
		t := effectTableOf(shown)
		t.Title = "The largest effects in the features' own units"
		t.Caption = "Of a number, the effect is for one more of its units; of a level, the difference from the level that it is compared with. Intervals are of 90 % and by ordinary least squares within sites. Standardised is in the feature's standard deviations within sites, for one standard deviation of a number or for a level. model/covariate-effects.csv has all."
		sec.Items = append(sec.Items, figure.Item{Table: &t})
	}
	return sec
}

// untoldEffects says of how many features the effect of a covariate could not be told that
// could be of others.
func (m *Model) untoldEffects() (items []figure.Item) {
	for t, name := range options.Terms(m.adjustedFor()) {
		untold, all := 0, 0
		for _, v := range m.Views {
			for _, f := range v.Features {
				if all++; math.IsNaN(f.Effects[t]) {
					untold++
				}
			}
		}
		if 0 < untold && untold < all {
			items = append(items, figure.Item{Note: &figure.Note{Title: fmt.Sprintf("%d of %d features could not be adjusted for %s", untold, all, name), Warning: true,
				Text: "Among the subjects of one site who have these features it does not vary, or follows from the other covariates, or they are too few. Its effect on them was taken as 0."}})
		}
	}
	return items
}
