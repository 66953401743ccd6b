package fitted

import (
	"fmt"

	"parley/method"
	"parley/problem"
)

// A view whose features are typically two standard deviations away, but within one if they are
// read as scaled values, has been scaled already.
const (
	farView    = 2.0
	nearScaled = 1.0
)

// oddUnits names features that seem to be in other units, or scaled by somebody else, view by view: their values are
// compared with the population that the model describes, that of all sites or of one. That needs nothing from the sites
// but the model.
func (r *newcomers) oddUnits() (notes method.Notes) {
	_, md := r.predictor.Model()
	lo := 0
	for k := range r.model.Views {
		view := &r.model.Views[k]
		var all, far []string
		away, awayIfScaled := 0.0, 0.0
		for i := range view.Features {
			v, f, centre := &r.values[lo+i], &view.Features[i], md.Mu[lo+i]
			if v.N == 0 {
				continue
			}
			sd := f.overall()
			if r.oneSite {
				sd = f.total()
			}
			here, there := v.Mean/f.Factor+f.Shift, centre/f.Factor+f.Shift
			off, offIfScaled := (v.Mean-centre)/sd, (here-centre)/sd
			away, awayIfScaled = away+off*off, awayIfScaled+offIfScaled*offIfScaled
			all = append(all, method.CompareMeans(f.Name, here, there, sd/f.Factor))
			if v.Odd(centre, sd) {
				far = append(far, all[len(all)-1])
			}
		}
		lo += len(view.Features)
		n := float64(len(all))
		hint := "are they in the units of the fit? check units, codes for missing values and mixed-up columns"
		if away > n*farView*farView && awayIfScaled < n*nearScaled*nearScaled {
			far, hint = all, "they look as if they had been scaled already: give every feature in its own unit, the "+
				"model scales it"
		}
		if len(far) > 0 {
			what := fmt.Sprintf("%d of %d features are far from all subjects of the fit: %s", len(far), len(all),
				problem.Names(far))
			notes.Add(problem.Problem{Where: "view " + view.Name, What: what, Hint: hint})
		}
	}
	return notes
}
