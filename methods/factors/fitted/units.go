package fitted

import (
	"fmt"
	"strings"

	"parley/method"
	"parley/problem"
)

// unitCheck notices features that seem to be in other units, or scaled by
// somebody else, by comparing new values with the population that the model
// describes. It needs nothing from the sites but the model.
type unitCheck struct {
	features []feature
	centre   []float64                   // of the population, scaled
	sd       func(*ModelFeature) float64 // in it
	values   []method.Values             // scaled
}

// newUnitCheck compares with a population that has these means of the features, scaled: that
// of one site, or of all.
func newUnitCheck(m *Model, centre []float64, oneSite bool) *unitCheck {
	u := &unitCheck{centre: centre, sd: (*ModelFeature).overall}
	if oneSite {
		u.sd = (*ModelFeature).total
	}
	u.features = m.features()
	u.values = make([]method.Values, len(u.features))
	return u
}

// add takes in one subject's scaled values.
func (u *unitCheck) add(observed []int, values []float64) {
	for i, j := range observed {
		u.values[j].Add(values[i])
	}
}

// A view whose features are typically two standard deviations away, but within one if they are
// read as scaled values, has been scaled already.
const (
	farView    = 2.0
	nearScaled = 1.0
)

// notes names the features that look wrong, view by view.
func (u *unitCheck) notes() (notes method.Notes) {
	for lo := 0; lo < len(u.features); {
		hi := lo
		for hi < len(u.features) && u.features[hi].view == u.features[lo].view {
			hi++
		}
		if p, wrong := u.look(lo, hi); wrong {
			notes.Add(p)
		}
		lo = hi
	}
	return notes
}

// look compares the features of one view.
func (u *unitCheck) look(lo, hi int) (p problem.Problem, wrong bool) {
	var all, far []string
	away, awayIfScaled := 0.0, 0.0
	for j := lo; j < hi; j++ {
		v := &u.values[j]
		if v.N == 0 {
			continue
		}
		f, sd := u.features[j], u.sd(u.features[j].ModelFeature)
		here, there := v.Mean/f.Factor+f.Shift, u.centre[j]/f.Factor+f.Shift
		off, offIfScaled := (v.Mean-u.centre[j])/sd, (here-u.centre[j])/sd
		away, awayIfScaled = away+off*off, awayIfScaled+offIfScaled*offIfScaled
		text := method.CompareMeans(f.Name, here, there, sd/f.Factor)
		all = append(all, text)
		if v.Odd(u.centre[j], sd) {
			far = append(far, text)
		}
	}
	n := float64(len(all))
	hint := "are they in the units of the fit? check units, codes for missing values and mixed-up columns"
	if away > n*farView*farView && awayIfScaled < n*nearScaled*nearScaled {
		far = all
		hint = "they look as if they had been scaled already: give every feature in its own unit, the model scales it"
	}
	const shown = 8
	text := strings.Join(far[:min(shown, len(far))], ", ")
	if more := len(far) - shown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return problem.Problem{Where: "view " + u.features[lo].view,
		What: fmt.Sprintf("%d of %d features are far from all subjects of the fit: %s", len(far), len(all), text),
		Hint: hint}, len(far) > 0
}
