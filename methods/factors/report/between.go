package report

import (
	"fmt"
	"slices"

	"gonum.org/v1/gonum/mathext"

	"parley/methods/factors/options"
)

// muchBetween is the share of a view's variance that lies between the sites' means from which
// on it matters: intervals of a model that leaves it out, or takes it for factors, are a
// twentieth too narrow or too wide.
const muchBetween = 0.1

// viewsAtOneSite speaks of views that one of several sites has alone. Nothing tells how sites differ there.
// Where the data were to decide whether sites have means of their own, such a view is why
// they have none (package offsets), though their means may differ elsewhere.
func (v *verdicts) viewsAtOneSite() {
	var alone []string
	for k, view := range v.m.Views {
		if having := slices.DeleteFunc(slices.Clone(v.sites), func(s Site) bool { return s.Cells[k] == 0 }); len(having) == 1 && len(v.sites) > 1 {
			alone = append(alone, view.Name)
		}
	}
	switch {
	case len(alone) == 0:
	case v.m.Separate():
		v.add(alone, "Subjects of other sites are given these values as if they were of the one site that has them: their intervals do not hold by how much sites differ there, and are too narrow if they do.",
			"Sites' means differ, and only one site has %s", shortened(alone))
	case v.set.Options.SiteMeans == options.MeansAuto:
		var where []string
		for k, view := range v.m.Views {
			if share, sure := v.between(k); sure && share > muchBetween {
				where = append(where, fmt.Sprintf("%s (%.0f %% of its variance)", view.Name, 100*share))
			}
		}
		if len(where) > 0 {
			v.add(v.views(), "With such a view the data cannot tell whether sites measure otherwise or see other patients, so the fit took all for one population: factors can be differences between sites. If they are not to be, write site_means: separate in the plan, or leave the view out. If sites see other patients on purpose, write site_means: pooled.",
				"Sites' means differ in %s, but have no place in the model, because only one site has %s", shortened(where), shortened(alone))
		}
	}
}

// between is the share of view k's variance that lies between the sites' means, and whether it
// is beyond chance, by Dempster's test with the correlations of the model. Sites are left out
// where subjects have the view alone, because their squares about the study's mean are not known.
func (v *verdicts) between(k int) (share float64, sure bool) {
	lo, hi := v.set.Layout.View(k)
	sites, rows, between, within := 0.0, 0.0, 0.0, 0.0
	for _, s := range v.sites {
		if s.Cells[k] > 0 && s.LeftOut.Cells[k] == s.Cells[k] {
			sites, rows = sites+1, rows+s.Cells[k]/float64(hi-lo)
			between, within = between+max(s.LeftOut.Squares[k]-s.Total[k], 0), within+s.Total[k]
		}
	}
	f1, f2 := sites-1, rows-sites
	if !(f1 > 0 && f2 > 0 && within > 0) {
		return 0, false
	}
	// Σ c_jj and Σ c_ij² over the view's covariance C = W Wᵀ + Ψ.
	_, md := v.predictor.Model()
	trace, squares, gram := 0.0, 0.0, make([]float64, md.Q*md.Q)
	for j := lo; j < hi; j++ {
		w, strength := md.W[j*md.LD:][:md.Q], 0.0
		for a, x := range w {
			strength += x * x
			for b, y := range w {
				gram[a*md.Q+b] += x * y
			}
		}
		trace, squares = trace+strength+md.Psi[j], squares+md.Psi[j]*(2*strength+md.Psi[j])
	}
	for _, x := range gram {
		squares += x * x
	}
	ratio := between / f1 / (within / f2)
	share = max(between-f1*within/f2, 0) / (between + within)
	f1 *= trace * trace / squares
	return share, mathext.RegIncBeta(f2/2, f1/2, f2/(f2+f1*ratio)) < falseVerdict/float64(len(v.m.Views))
}
