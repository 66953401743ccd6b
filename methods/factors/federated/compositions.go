package federated

import (
	"strings"

	"parley/methods/factors/fitted"
	"parley/methods/factors/ppca"
)

// constantSum is the share of the variances of a view's features, in their own units, that the variance of their
// sum may have for the sum to be a constant: what rounding leaves.
const constantSum = 1e-4

// compositions lists views whose features add up to the same in every subject of a site: Σ u_j u_k S_jk, with
// u the units of the features in that of their values, beside Σ u_j² S_jj. Filled cells follow a model, which knows
// no such rule: sets with any are passed over.
func compositions(l ppca.Layout, scale *ppca.Scale, sites [][]ppca.Block) (views []int) {
	for k := range l.Views() {
		lo, hi := l.View(k)
		together, apart := 0.0, 0.0
		for _, blocks := range sites {
			for i := range blocks {
				b := &blocks[i]
				p := len(b.Features)
				unit, squares := make([]float64, p), make([]float64, p)
				n := 0
				for a, j := range b.Features {
					if j >= lo && j < hi {
						unit[a] = 1 / scale.Factor[j]
						n++
					}
				}
				if n < max(hi-lo, 3) || b.Filled != nil {
					continue
				}
				b.Squares(squares)
				for a, u := range unit {
					apart += u * u * squares[a]
				}
				together += b.Quadratic(unit)
			}
		}
		if apart > 0 && together < constantSum*apart {
			views = append(views, k)
		}
	}
	return views
}

// compositionVerdict names views that are compositions; nil if there are none.
func compositionVerdict(m *fitted.Model, views []int) *fitted.Verdict {
	if len(views) == 0 {
		return nil
	}
	var names []string
	for _, k := range views {
		names = append(names, m.Views[k].Name)
	}
	return &fitted.Verdict{Views: names, Says: "The features of a view add up to the same in every subject: " + strings.Join(names, ", "),
		Advice: "They are shares of a whole, so that one rises only where others fall, and factors show that rather than what " +
			"drives them. Give the plan the logarithms of each share over the geometric mean of the subject's shares, or leave one out."}
}
