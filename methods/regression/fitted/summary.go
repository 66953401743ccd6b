package fitted

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"parley/figure"
	"parley/method"
	"parley/methods/regression/options"
)

// Summary implements [method.Summariser]: the effects that are surest to be there.
func (m *Model) Summary(top int) (*method.Account, error) {
	ranked := slices.Clone(m.Effects)
	slices.SortStableFunc(ranked, func(a, b outcomeEffect) int {
		return cmp.Compare(math.Abs(b.Mean)/b.SD, math.Abs(a.Mean)/a.SD)
	})
	ranked = ranked[:min(top, len(ranked))]
	surest := figure.Table{Title: "Surest effects, in the features' own units", Columns: []figure.Column{{Name: "feature"}, {Name: "mean"}, {Name: "sd"}}}
	for _, e := range ranked {
		surest.Add(e.Label(), e.Mean, e.SD)
	}
	sites := figure.Table{Title: "Sites", Columns: []figure.Column{{Name: "site"}, {Name: "updates", Format: figure.Count}, {Name: "information"}}}
	for _, s := range m.Sites {
		sites.Add(s.Name, s.Updates, s.Information)
	}
	if m.Covariance != nil { // of a joint fit, no part is a site's
		sites.Columns = sites.Columns[:2]
		sites.Columns[1].Name = "exchanges"
	}
	protection := "none: fitted from exact releases"
	if m.Private {
		protection = "differential: fitted from noised releases"
	}
	facts := []figure.Fact{{Name: "study", Value: m.Study}}
	if m.Converged != nil && !*m.Converged {
		facts = append(facts, figure.Fact{Name: "converged", Value: "no: do not rely on the estimates"})
	}
	if m.Site != nil {
		facts = append(facts, figure.Fact{Name: "of the subjects of", Value: fmt.Sprintf("%s: its own intercept is %.3g ± %.2g", m.Site.Name, m.Site.Mean, m.Site.SD(m.Weights()))})
	}
	return &method.Account{
		Notes: m.Cautions(),
		Facts: append(facts, []figure.Fact{{Name: "method", Value: m.Method()}, {Name: "outcome", Value: m.Options.Outcome.Column},
			{Name: "likelihood", Value: m.Options.Likelihood}, {Name: "weights", Value: strconv.Itoa(len(m.Effects))}, {Name: "privacy", Value: protection}, {Name: "plan", Value: m.Plan}}...),
		Tables: []figure.Table{surest, sites},
		Value: struct {
			Format  string           `json:"format"`
			Study   string           `json:"study"`
			Plan    string           `json:"plan_sha256"`
			Options *options.Options `json:"options"`
			Private bool             `json:"private"`
			Effects []outcomeEffect  `json:"effects"` // the surest first
		}{m.Format, m.Study, m.Plan, m.Options, m.Private, ranked},
	}, nil
}
