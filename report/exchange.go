package report

import (
	"fmt"
	"math"
	"slices"

	"parley/engine"
	"parley/figure"
	"parley/privacy"
	"parley/privacy/account"
	"parley/privacy/ledger"
	"parley/privacy/policy"
	"parley/study"
)

// exchangeSection lists what passed between the coordinator and each site: what
// each task asks for, then how much of it there was.
func exchangeSection(sites []string, rounds []engine.Round) figure.Section {
	type key struct{ site, kind string }
	messages, bytes, declared := map[key]float64{}, map[key][2]float64{}, map[string][]privacy.Content{}
	var kinds []string
	for _, r := range rounds {
		for _, x := range r.Sites {
			if _, seen := declared[x.Kind]; !seen {
				kinds = append(kinds, x.Kind)
			}
			if len(declared[x.Kind]) == 0 { // a site that left declared nothing
				declared[x.Kind] = x.Request.Contents
			}
			k := key{x.Site, x.Kind}
			messages[k]++
			bytes[k] = [2]float64{bytes[k][0] + float64(x.Up), bytes[k][1] + float64(x.Down)}
		}
	}
	contents := figure.Table{ID: "tasks-table", Title: "What each task makes leave a site",
		Caption: "As declared from the plan alone; the numbers are the most that a site with all views would send " +
			"each time.",
		Columns: []figure.Column{{Name: "task"}, {Name: "what leaves"}, {Name: "numbers, at most", Format: figure.Count,
			Numbers: figure.Numbers{}}}}
	for _, kind := range kinds {
		for i, c := range declared[kind] {
			name := kind
			if i > 0 {
				name = ""
			}
			contents.Add(name, c.What, c.Values)
		}
	}
	passed := figure.Table{ID: "exchange-table", Title: "Tasks and releases",
		Caption: "Every message of the study, summed over rounds. Nothing else left a site; rounds.jsonl has each " +
			"release with its SHA-256.",
		Columns: []figure.Column{{Name: "site"}, {Name: "task"},
			{Name: "times", Format: figure.Count, Numbers: figure.Numbers{}},
			{Name: "sent", Unit: "bytes", Format: figure.Count, Numbers: figure.Numbers{}},
			{Name: "received", Unit: "bytes", Format: figure.Count, Numbers: figure.Numbers{}}}}
	for _, site := range sites {
		for _, kind := range kinds {
			if k := (key{site, kind}); messages[k] > 0 {
				passed.Add(site, kind, messages[k], bytes[k][0], bytes[k][1])
			}
		}
	}
	section := figure.Section{ID: "exchange", Title: "What passed between the sites and the coordinator"}
	if contents.Len() > 0 { // releases that are noised sums alone are listed under privacy
		section.Items = append(section.Items, figure.Item{Table: &contents})
	}
	section.Items = append(section.Items, figure.Item{Table: &passed})
	return section
}

// siteSpending is what a site's own ledger says after a private study:
// privacy.json of the site.
type siteSpending struct {
	Study   ledger.StudyAccount `json:"study"`
	Account *ledger.Account     `json:"account"`
	Studies []ledger.StudyLimit `json:"study_limits,omitempty"` // of the site's policy, if it has one
	Limits  []ledger.Spending   `json:"lifetime,omitempty"`     // of the site's policy, if it has one
	tables  []figure.Table
}

// spending says what a study has used of what is allowed, by a site's ledger; nil
// if the study is not private, or the ledger has nothing of it.
func spending(p *study.Plan, digest string, charged *ledger.Ledger, rules *policy.Policy) (*siteSpending, error) {
	if !p.Privacy.Differential() || charged == nil {
		return nil, nil
	}
	delta := 1e-5
	if t := p.Privacy.Total; t != nil {
		delta = t.Delta
	}
	view, err := charged.Look(delta, rules)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(view.Account.Studies, func(a ledger.StudyAccount) bool { return a.Study == digest })
	if i < 0 {
		return nil, nil
	}
	return &siteSpending{Study: view.Account.Studies[i], Account: view.Account, Studies: view.Studies,
		Limits: view.Limits, tables: view.Summaries()}, nil
}

// section is for the site's own people: what this study, and all studies of
// this site, have used of what is allowed.
func (s *siteSpending) section() figure.Section {
	bars := figure.Bars{X: figure.Axis{Label: "used, in % of what is allowed"}, Mark: "all of it"}
	add := func(label string, used float64) {
		bars.Labels, bars.Values, bars.Marks = append(bars.Labels, label), append(bars.Values, 100*used),
			append(bars.Marks, 100)
	}
	if g := s.Study.Guarantee; g != nil && s.Study.Unprotected == 0 {
		for _, l := range s.Study.Losses {
			if l.Unit == g.Unit && l.Adjacency == g.Adjacency && l.Epsilon != nil {
				add(fmt.Sprintf("the plan's promise, ε %s", number(g.Epsilon)), *l.Epsilon/g.Epsilon)
			}
		}
	}
	for _, l := range s.Studies {
		if l.Study == s.Study.Study && l.Epsilon != nil && l.Unprotected == 0 {
			add(fmt.Sprintf("one study, ε %s, %s", number(l.Limit.Epsilon), l.Adjacency), *l.Epsilon/l.Limit.Epsilon)
		}
	}
	for _, l := range s.Limits {
		add(fmt.Sprintf("all time, ε %s, %s", number(l.Limit.Epsilon), l.Adjacency), 1-l.Left)
	}
	section := figure.Section{ID: "ledger", Title: "What this site's ledger says",
		Lead: fmt.Sprintf("Everything that this site was ever charged stands in its own ledger: %s in %s.",
			figure.Plural(s.Account.Charges, "charge"), studies(len(s.Account.Studies)))}
	if len(bars.Labels) > 0 {
		section.Items = append(section.Items, figure.Item{Figure: &figure.Figure{ID: "ledger-budget",
			Title: "Privacy budget used and left",
			Caption: "What lies between a bar and its stroke is left. The first bar is of what the plan promises, " +
				"the others of what this site's policy allows one study, and all studies for all time. Bars are " +
				"shares of ε; for all time, of what the policy's filter adds up.",
			Alt: "The used share of this study's promise and of the policy's limits, as bars.", Chart: bars}})
	} else {
		section.Items = append(section.Items, figure.Item{
			Note: &figure.Note{Title: "Nothing limits what this site spends", Warning: true,
				Text: "The study promises no total, and this site has no policy with a limit."}})
	}
	for _, t := range s.tables {
		section.Items = append(section.Items, figure.Item{Table: &t})
	}
	return section
}

func studies(n int) string {
	if n == 1 {
		return "1 study"
	}
	return fmt.Sprintf("%d studies", n)
}

// figure shows what each site has spent, beside what was promised or claimed.
func (p *privacyRecord) figure() *figure.Figure {
	budget := p.claim()
	bars := figure.Bars{X: figure.Axis{Label: fmt.Sprintf("ε spent by the site, for one %s, %s, at δ %s", p.Unit,
		p.Adjacency, number(budget.Delta))}}
	f := &figure.Figure{ID: "privacy-budget", Title: "Privacy budget spent at each site"}
	if p.Total != nil {
		bars.Mark = "promised in total: ε " + number(budget.Epsilon)
		f.Caption = "A bar that ends at the stroke has spent all of the promise; what lies between them is left of " +
			"it, and goes unused."
		f.Alt = "For each site, the privacy loss of all its releases as a bar, and the promised total as a stroke."
	} else {
		bars.Mark = fmt.Sprintf("claimed, for each noised sum alone: ε %s", number(budget.Epsilon))
		f.Caption = "The bar is what all noised sums of the site come to together; the stroke is what the plan " +
			"claims for each of them as if it were the only one."
		f.Alt = "For each site, the privacy loss of all its noised sums as a bar, and what is claimed for each of " +
			"them as a stroke."
	}
	for _, s := range p.Sites {
		bars.Labels, bars.Values, bars.Marks = append(bars.Labels, s.Site),
			append(bars.Values, p.bounded(s, p.Adjacency)), append(bars.Marks, budget.Epsilon)
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
		Caption: fmt.Sprintf("For one %s, at δ %s; the plan counts under %s. “No bound”: something left without "+
			"noise, or with noise that does not protect a %s. Charges of computations that did not finish are in the "+
			"site's own ledger.", p.Unit,
			number(p.claim().Delta), p.Adjacency, p.Unit),
		Columns: []figure.Column{{Name: "site"}, counts("releases"), counts("noised sums"), counts("without noise"),
			{Name: "ε add-remove"}, {Name: "ε replace-one"}, {Name: promised}, {Name: "ε left"}}}
	for _, s := range p.Sites {
		left := "–"
		if e := p.bounded(s, p.Adjacency); p.Total != nil && !math.IsNaN(e) {
			left = ledger.Remaining(p.Total.Epsilon, &e)
		}
		t.Add(s.Site, s.Releases, s.Sums, s.Unprotected, spent(p.bounded(s, account.AddRemove)),
			spent(p.bounded(s, account.ReplaceOne)), number(p.claim().Epsilon), left)
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
		Caption: "Times are over all rounds and sites. A charge is what a site's sums of this kind come to by " +
			"themselves; charges of several kinds do not simply add up. Bytes are of the releases that held it, with " +
			"whatever else they held. rounds.jsonl has each release by itself.",
		Columns: []figure.Column{{Name: "task"}, {Name: "what was released"}, {Name: "noise"},
			{Name: "clipped to", Numbers: figure.Numbers{}},
			{Name: "numbers", Format: figure.Count, Numbers: figure.Numbers{}},
			{Name: "times", Format: figure.Count, Numbers: figure.Numbers{}},
			{Name: "charge: ε of a site"}, {Name: "sent", Unit: "bytes", Format: figure.Count,
				Numbers: figure.Numbers{}}}}
	for _, k := range p.Releases {
		what, noise, bound, charge := "exact numbers", "none", math.NaN(), "no bound"
		if k.Sum != nil {
			what, noise, bound = fmt.Sprintf("%s (one record: a %s)", k.Sum.Name, k.Sum.Unit),
				ledger.NoiseOf(*k.Sum), k.Sum.Bound
			if k.Epsilon != nil {
				charge = ledger.Spent(k.Epsilon)
			}
		}
		t.Add(k.Task, what, noise, bound, float64(k.Entries), float64(k.Times), charge, float64(k.Bytes))
	}
	return t
}
