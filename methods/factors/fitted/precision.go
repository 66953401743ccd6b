package fitted

import (
	"fmt"
	"math"
	"strings"

	"parley/figure"
	"parley/methods/factors/assess"
	"parley/methods/factors/ppca"
)

// MaximumLikelihood says whether the model is the likeliest for subjects of whom it knows
// the number: then the sampling of subjects is what its errors come from.
func (m *Model) MaximumLikelihood() bool {
	return len(m.Sites) > 0 && m.Options != nil && m.Options.MaximumLikelihood()
}

// samplingTimes lists what the sampling of subjects multiplies the variance of predictions of
// each view by; nil where that is not known.
func (m *Model) samplingTimes() (times []float64) {
	for _, v := range m.Views {
		if v.SamplingTimes == 0 {
			return nil
		}
		times = append(times, v.SamplingTimes)
	}
	return times
}

// precision says how far the sampling of subjects moves the loadings of the fit's own axes;
// nil if other things do, or if others are shown.
func (m *Model) precision() *assess.Precision {
	l, err := m.Layout()
	if err != nil || !m.MaximumLikelihood() || m.Rotation != nil {
		return nil
	}
	out, err := assess.PrecisionOf(l, m.params(), m.Factors, m.Fourths, m.patterns(l))
	if err != nil {
		return nil
	}
	return out
}

// scoreErrors says how far the sampling of subjects moves scores on the axes that are shown; nil where that is
// not known.
func (m *Model) scoreErrors() assess.Scores {
	l, err := m.Layout()
	if err != nil || !m.MaximumLikelihood() {
		return nil
	}
	return assess.NewScores(l, m.params(), m.Factors, m.Fourths, m.patterns(l), !m.Separate(), m.turned())
}

// turned finds T of rotated axes from standardised loadings; nil for those of the fit.
func (m *Model) turned() func(standardised []float64) ([]float64, error) {
	if m.Rotation == nil {
		return nil
	}
	return func(a []float64) ([]float64, error) { return rotate(m.Rotation.Method, a, len(m.Factors)) }
}

// loadingErrors are standard errors of the loadings that are shown, d × q; nil as for
// precision, and where a factor has hardly any loadings.
func (m *Model) loadingErrors() []float64 {
	l, err := m.Layout()
	if err != nil || !m.MaximumLikelihood() {
		return nil
	}
	if m.Rotation == nil {
		if e := m.precision(); e != nil {
			return e.Loading
		}
		return nil
	}
	out, err := assess.Rotated(l, m.params(), m.Factors, m.Fourths, m.patterns(l), m.turned())
	if err != nil {
		return nil
	}
	return out
}

// patterns counts the subjects of all sites who have the same features.
func (m *Model) patterns(l ppca.Layout) (patterns []assess.Pattern) {
	known := map[string]int{} // by views: sites share them
	for _, s := range m.Sites {
		for _, t := range s.Patterns {
			key := strings.Join(t.Views, "\x00")
			if at, ok := known[key]; ok {
				patterns[at].Subjects += float64(t.Subjects)
				continue
			}
			known[key] = len(patterns)
			n := assess.Pattern{Subjects: float64(t.Subjects)}
			for _, name := range t.Views {
				for k, v := range m.Views {
					first, _ := l.View(k)
					for j := range v.Features {
						if v.Name == name && v.Features[j].Noise != 0 {
							n.Features = append(n.Features, first+j)
						}
					}
				}
			}
			patterns = append(patterns, n)
		}
	}
	return patterns
}

// R2Interval returns intervals of 90 % for the share r2 of variance that all factors explain
// of view k, found in samples of so many subjects; fitted is how many have the view of those
// that the model was fitted to, of whom it explains more than of others. See
// [assess.Interval].
func (m *Model) R2Interval() func(k int, fitted float64) func(r2, subjects float64) (low, high float64) {
	l, err := m.Layout()
	var fit []float64
	if err == nil && m.MaximumLikelihood() {
		fit = assess.Fit(l, m.params(), m.Factors, m.Fourths, m.patterns(l))
	}
	return func(k int, fitted float64) func(r2, subjects float64) (low, high float64) {
		variance, of := math.NaN(), math.NaN()
		if err == nil {
			_, variance = assess.R2(l, m.params(), m.Factors, m.Fourths, k)
		}
		if fit != nil {
			of = fit[k]
		}
		return assess.Interval(variance, of, len(m.Factors), fitted)
	}
}

// Unstable numbers the factors, from 1, whose loadings another sample of subjects would not
// show again, because another factor is about as strong: see [assess.Stable].
func (m *Model) Unstable() (factors []int) {
	e := m.precision()
	if e == nil {
		return nil
	}
	for a, turn := range e.Turn {
		if turn > assess.Stable {
			factors = append(factors, a+1)
		}
	}
	return factors
}

// unstableNote warns of factors that are not stable; nil if all are.
func (m *Model) unstableNote() *figure.Note {
	var names []string
	for _, a := range m.Unstable() {
		names = append(names, fmt.Sprint(a))
	}
	if len(names) == 0 {
		return nil
	}
	which := "Factor " + names[0] + " is"
	if len(names) > 1 {
		which = "Factors " + strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1] + " are"
	}
	return &figure.Note{Title: which + " not stable", Warning: true,
		Text: "Another factor is about as strong, and these subjects are too few to tell the two apart: another sample of subjects would show other loadings, turned among these factors by more than 30° as a rule. What the factors explain together, and what they predict, is not touched by that. Do not read such a factor's loadings by themselves; a larger study, or fewer factors, may settle them."}
}
