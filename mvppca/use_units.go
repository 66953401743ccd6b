package mvppca

import (
	"fmt"
	"math"
	"strings"

	"parley/method"
	"parley/problem"
)

// unitCheck notices features that seem to be in other units, or scaled by
// somebody else, by comparing new values with the population that the model
// describes. It needs nothing from the sites but the model.
type unitCheck struct {
	model    *Model
	features []*ModelFeature
	view     []string
	n        []float64
	mean, ss []float64 // of scaled values, and squared deviations from it
}

func newUnitCheck(m *Model) *unitCheck {
	u := &unitCheck{model: m}
	for k := range m.Views {
		v := &m.Views[k]
		for i := range v.Features {
			u.features, u.view = append(u.features, &v.Features[i]), append(u.view, v.Name)
		}
	}
	d := len(u.features)
	u.n, u.mean, u.ss = make([]float64, d), make([]float64, d), make([]float64, d)
	return u
}

// add takes in one subject's scaled values (Welford 1962).
func (u *unitCheck) add(observed []int, values []float64) {
	for i, j := range observed {
		u.n[j]++
		delta := values[i] - u.mean[j]
		u.mean[j] += delta / u.n[j]
		u.ss[j] += delta * (values[i] - u.mean[j])
	}
}

// Limits of what passes without a word: a site whose mean is more than five
// of the population's standard deviations away, or whose own standard
// deviation is ten times as large or as small, is hardly in the same units.
const (
	farMean      = 5.0
	wideSpread   = 10.0
	enoughValues = 10 // for a standard deviation
)

// notes names the features that look wrong, view by view.
func (u *unitCheck) notes() (notes method.Notes) {
	type found struct{ far, all, scaled int }
	byView := map[string]*found{}
	var names []string
	reasons := map[string][]string{}
	for j, f := range u.features {
		if u.n[j] == 0 {
			continue
		}
		v := byView[u.view[j]]
		if v == nil {
			v = &found{}
			byView[u.view[j]] = v
			names = append(names, u.view[j])
		}
		v.all++
		sd := f.total()
		off := (u.mean[j] - f.Mean) / sd
		ratio := math.Sqrt(u.ss[j]/max(1, u.n[j]-1)) / sd
		wide := u.n[j] >= enoughValues && (ratio > wideSpread || ratio < 1/wideSpread)
		if math.Abs(off) <= farMean && !wide {
			continue
		}
		v.far++
		here, there := u.mean[j]/f.Factor+f.Shift, f.Mean/f.Factor+f.Shift
		// Read as scaled values, would they fit?
		scaledSD := ratio * sd / f.Factor
		if math.Abs(here-f.Mean) < 3*sd && (u.n[j] < enoughValues || scaledSD > sd/3 && scaledSD < 3*sd) {
			v.scaled++
		}
		reasons[u.view[j]] = append(reasons[u.view[j]], fmt.Sprintf("%s (mean %.4g, in the fit %.4g ± %.3g%s)", f.Name, here, there, sd/f.Factor, power(here, there)))
	}
	for _, name := range names {
		v := byView[name]
		if v.far == 0 {
			continue
		}
		const shown = 8
		list := reasons[name]
		text := strings.Join(list[:min(shown, len(list))], ", ")
		if more := len(list) - shown; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		hint := "are they in the units of the fit? check units, codes for missing values and mixed-up columns"
		if 2*v.scaled > v.far {
			hint = "they look as if they had been scaled already: give every feature in its own unit, the model scales it"
		}
		notes.Add(problem.Problem{Where: "view " + name, What: fmt.Sprintf("%d of %d features are far from all subjects of the fit: %s", v.far, v.all, text), Hint: hint})
	}
	return notes
}

// power says so if one value is about a power of ten times the other, as with
// grams for kilograms.
func power(here, there float64) string {
	if here == 0 || there == 0 || here*there < 0 {
		return ""
	}
	p := math.Log10(here / there)
	if n := math.Round(p); n != 0 && math.Abs(p-n) < 0.1 {
		return fmt.Sprintf(": a factor of about 10^%.0f", n)
	}
	return ""
}
