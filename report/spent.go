package report

import (
	"fmt"
	"math"

	"parley/figure"
	"parley/privacy/account"
	"parley/privacy/ledger"
)

// figure shows what each site has spent, beside what was promised or claimed.
func (p *privacyRecord) figure() *figure.Figure {
	budget := p.claim()
	bars := figure.Bars{X: figure.Axis{Label: fmt.Sprintf("ε spent by the site, for one %s, %s, at δ %s", p.Unit, p.Adjacency, number(budget.Delta))}}
	f := &figure.Figure{ID: "privacy-budget", Title: "Privacy budget spent at each site"}
	if p.Total != nil {
		bars.Mark = "promised in total: ε " + number(budget.Epsilon)
		f.Caption = "A bar that ends at the stroke has spent all of the promise; what lies between them is left of it, and goes unused."
		f.Alt = "For each site, the privacy loss of all its releases as a bar, and the promised total as a stroke."
	} else {
		bars.Mark = fmt.Sprintf("claimed, for each noised sum alone: ε %s", number(budget.Epsilon))
		f.Caption = "The bar is what all noised sums of the site come to together; the stroke is what the plan claims for each of them as if it were the only one."
		f.Alt = "For each site, the privacy loss of all its noised sums as a bar, and what is claimed for each of them as a stroke."
	}
	for _, s := range p.Sites {
		bars.Labels, bars.Values, bars.Marks = append(bars.Labels, s.Site), append(bars.Values, p.bounded(s, p.Adjacency)), append(bars.Marks, budget.Epsilon)
	}
	f.Chart = bars
	return f
}

// bounded is the ε of everything that a site released; NaN if there is none.
func (p *privacyRecord) bounded(s SitePrivacy, a account.Adjacency) float64 {
	for _, l := range s.Losses {
		if l.Adjacency == a && l.Epsilon != nil && s.Unprotected == 0 {
			return *l.Epsilon
		}
	}
	return math.NaN()
}

func (p *privacyRecord) siteTable() *figure.Table {
	counts := func(name string) figure.Column {
		return figure.Column{Name: name, Format: figure.Count, Numbers: figure.Numbers{}}
	}
	promised := "ε promised"
	if p.Total == nil {
		promised = "ε claimed, for each sum alone"
	}
	t := &figure.Table{ID: "privacy-sites", Title: "What each site has spent",
		Caption: fmt.Sprintf("For one %s, at δ %s; the plan counts under %s. “No bound”: something left without noise, or with noise that does not protect a %s. "+
			"Charges of computations that did not finish are in the site's own ledger.", p.Unit, number(p.claim().Delta), p.Adjacency, p.Unit),
		Columns: []figure.Column{{Name: "site"}, counts("releases"), counts("noised sums"), counts("without noise"),
			{Name: "ε add-remove"}, {Name: "ε replace-one"}, {Name: promised}, {Name: "ε left"}}}
	for _, s := range p.Sites {
		left := "–"
		if e := p.bounded(s, p.Adjacency); p.Total != nil && !math.IsNaN(e) {
			left = ledger.Remaining(p.Total.Epsilon, &e)
		}
		t.Add(s.Site, s.Releases, s.Sums, s.Unprotected, spent(p.bounded(s, account.AddRemove)), spent(p.bounded(s, account.ReplaceOne)), number(p.claim().Epsilon), left)
	}
	return t
}

func spent(epsilon float64) string {
	if math.IsNaN(epsilon) {
		return "no bound"
	}
	return ledger.Spent(&epsilon)
}

func (p *privacyRecord) releaseTable() *figure.Table {
	t := &figure.Table{ID: "privacy-releases", Title: "Every kind of release",
		Caption: "Times are over all rounds and sites. A charge is what a site's sums of this kind come to by themselves; charges of several kinds do not simply add up. " +
			"Bytes are of the releases that held it, with whatever else they held. rounds.jsonl has each release by itself.",
		Columns: []figure.Column{{Name: "task"}, {Name: "what was released"}, {Name: "noise"}, {Name: "clipped to", Numbers: figure.Numbers{}},
			{Name: "numbers", Format: figure.Count, Numbers: figure.Numbers{}}, {Name: "times", Format: figure.Count, Numbers: figure.Numbers{}},
			{Name: "charge: ε of a site"}, {Name: "sent", Unit: "bytes", Format: figure.Count, Numbers: figure.Numbers{}}}}
	for _, k := range p.Releases {
		what, noise, bound, charge := "exact numbers", "none", math.NaN(), "no bound"
		if k.Sum != nil {
			what, noise, bound = fmt.Sprintf("%s (one record: a %s)", k.Sum.Name, k.Sum.Unit), ledger.NoiseOf(*k.Sum), k.Sum.Bound
			if k.Epsilon != nil {
				charge = ledger.Spent(k.Epsilon)
			}
		}
		t.Add(k.Task, what, noise, bound, float64(k.Entries), float64(k.Times), charge, float64(k.Bytes))
	}
	return t
}
