package fitted

import (
	"fmt"

	"parley/method"
	"parley/problem"
)

// oddUnits names features that seem to be in other units, view by view: their values are
// compared with the population that the model describes, that of all sites or of one. That needs nothing from the sites
// but the model.
func (r *newcomers) oddUnits() (notes method.Notes) {
	_, md := r.predictor.Model()
	lo := 0
	for k := range r.model.Views {
		view := &r.model.Views[k]
		var far []string
		all := 0
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
			if all++; v.Odd(centre, sd) {
				far = append(far, method.CompareMeans(f.Name, here, there, sd/f.Factor))
			}
		}
		lo += len(view.Features)
		if len(far) > 0 {
			notes.Add(problem.Problem{Where: "view " + view.Name,
				What: fmt.Sprintf("%d of %d features are far from all subjects of the fit: %s", len(far), all,
					problem.Names(far)),
				Hint: "are they in the units of the fit, and not scaled? check units, codes for missing values and " +
					"mixed-up columns"})
		}
	}
	return notes
}
