package landmark

import (
	"fmt"
	"strings"

	"parley/figure"
	"parley/methods/graffl/report"
)

// doubt collects what speaks against the posterior: the components by themselves, the predictive
// check, how precise means are beside what the rows would tell, and the effective sample size.
func (v *view) doubt() (all []string) {
	all = report.Doubts(v.Posterior)
	if v.misfits() {
		all = append(all, "what the sites released is further from what the mixture expects than chance and noise explain (“Does the mixture fit?”)")
	}
	if says := report.Imprecise(v.imprecision); says != "" {
		all = append(all, says)
	}
	if v.Posterior.Size < report.FewDraws {
		all = append(all, fmt.Sprintf("the sample is worth %.0f independent draws only", v.Posterior.Size))
	}
	return all
}

// doubtsNote stands above a mixture that should not be relied on; nil over others.
func (v *view) doubtsNote() *figure.Note {
	all := v.doubts
	if len(all) == 0 {
		return nil
	}
	if v.merelyImprecise() {
		return &figure.Note{Warning: true, Title: "This mixture is less precise than its rows would allow",
			Text: fmt.Sprintf("Nothing speaks against where its components are, but %s. Intervals say how uncertain they are. More rows, a larger ε, fewer features or fewer components would help.", all[0])}
	}
	return &figure.Note{Warning: true, Title: "Do not rely on this mixture",
		Text: fmt.Sprintf("Against it speaks that %s. Components may lie elsewhere than this report says, by more than its intervals do. More rows, a larger ε, fewer features or another number of components may help.", strings.Join(all, "; that "))}
}

// merelyImprecise says whether nothing but precision speaks against a mixture.
func (v *view) merelyImprecise() bool {
	return len(v.doubts) == 1 && v.doubts[0] == report.Imprecise(v.imprecision)
}
