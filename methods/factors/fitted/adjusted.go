package fitted

import (
	"fmt"
	"math"
	"slices"

	"parley/figure"
	"parley/internal/wire"
	"parley/methods/factors/options"
)

// adjustedFormat is that of a model of adjusted features: a program that does not know of
// covariates cannot use it.
const adjustedFormat = "parley/mvppca-model/2"

// ModelFormats lists the formats that [LoadModel] reads.
func ModelFormats() []string { return []string{ModelFormat, adjustedFormat} }

// PutAdjusted puts in what the features are adjusted for.
func (m *Model) PutAdjusted(of []options.Covariate, e *options.Estimates) {
	m.Format, m.AdjustedSubjects, m.LackingCovariates = adjustedFormat, int(e.Subjects), int(e.Lacking)
	at := 0
	for _, c := range of {
		next := at + len(options.Terms([]options.Covariate{c}))
		m.Covariates = append(m.Covariates, modelCovariate{c, e.Effects.Centre[at:next]})
		at = next
	}
	for j, f := range m.features() {
		for _, b := range e.Effects.Slopes.Data[j*at:][:at] {
			if b == 0 { // could not be told
				b = math.NaN()
			}
			f.Effects = append(f.Effects, b)
		}
	}
}

// Adjusts says whether the model is of adjusted features.
func (m *Model) Adjusts() bool { return len(m.Covariates) > 0 }

// adjustedFor are the covariates as a plan names them.
func (m *Model) adjustedFor() (of []options.Covariate) {
	for _, c := range m.Covariates {
		of = append(of, c.Covariate)
	}
	return of
}

// effects are what the covariates add to the features; nil where there are none.
func (m *Model) effects() *options.Effects {
	if !m.Adjusts() {
		return nil
	}
	e := &options.Effects{}
	for _, c := range m.Covariates {
		e.Centre = append(e.Centre, c.Mean...)
	}
	for _, f := range m.features() {
		for _, b := range f.Effects {
			if math.IsNaN(b) { // could not be told
				b = 0
			}
			e.Slopes.Data = append(e.Slopes.Data, b)
		}
		e.Slopes.Rows++
	}
	e.Slopes = wire.Matrix{Rows: e.Slopes.Rows, Cols: len(e.Centre), Data: e.Slopes.Data}
	return e
}

// checkAdjusted says what is wrong with the covariates of a model that came from elsewhere.
func (m *Model) checkAdjusted(d int) error {
	if (m.Format == adjustedFormat) != m.Adjusts() {
		return fmt.Errorf("a model of format %q with %d covariates", m.Format, len(m.Covariates))
	}
	p := len(options.Terms(m.adjustedFor()))
	for i, c := range m.Covariates {
		if own := len(options.Terms(m.adjustedFor()[i : i+1])); c.Column == "" || own == 0 || len(c.Mean) != own {
			return fmt.Errorf("covariate %q: %d means for %d terms", c.Column, len(c.Mean), own)
		}
	}
	for _, f := range m.features() {
		if len(f.Effects) != p {
			return fmt.Errorf("feature %s: %d effects of %d covariates", f.Name, len(f.Effects), p)
		}
	}
	if e := m.effects(); e != nil {
		return e.Check(d, p)
	}
	return nil
}

// AdjustmentVerdicts say which covariates could not be adjusted for, and whether many subjects lack one.
func (m *Model) AdjustmentVerdicts() (list []Verdict) {
	var none Found
	for t, name := range options.Terms(m.adjustedFor()) {
		if !slices.ContainsFunc(m.features(), func(f feature) bool { return !math.IsNaN(f.Effects[t]) }) {
			none.Add(name)
		}
	}
	list = append(list, none.Verdict(OnAdjustment, "It does not vary among the subjects of any one site, or follows "+
		"from the other covariates, so no slope can be told. Factors may be differences in it. What separates whole "+
		"sites is for site_means; a covariate that says what another says can be left out of adjust.",
		"the features could not be adjusted for %s"))
	if all := m.AdjustedSubjects + m.LackingCovariates; float64(m.LackingCovariates) > muchLacking*float64(all) {
		list = append(list, Verdict{Kind: OnAdjustment,
			Says: fmt.Sprintf("%d of %d subjects took no part, because a covariate of theirs is not known",
				m.LackingCovariates, all),
			Advice: "The model is of the others. If covariates are not known of a certain kind of subject, it does " +
				"not describe that kind."})
	}
	return list
}

// muchLacking is the share of subjects who lack a covariate of which a verdict speaks.
const muchLacking = 0.1

// AdjustedSection says what the factors are adjusted for.
func (m *Model) AdjustedSection() figure.Section {
	names := options.AdjustedFor(m.adjustedFor())
	lead := fmt.Sprintf("The plan adjusts the features for %s. A linear regression within sites, over %s, was taken "+
		"out of them, and the factors describe what is left. So no factor rises or falls in proportion to a covariate "+
		"among the subjects of one site. A relation that is not linear, such as one that begins at some age, is left "+
		"in. model/model.json has the effects, and the means of the covariates.",
		names, figure.Plural(m.AdjustedSubjects, "subject"))
	if m.LackingCovariates > 0 {
		lead += fmt.Sprintf(" Of %d more one of these is not known, so they took no part.", m.LackingCovariates)
	}
	return figure.Section{ID: "adjusted", Title: "What the factors are adjusted for", Lead: lead}
}
