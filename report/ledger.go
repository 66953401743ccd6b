package report

import (
	"fmt"
	"slices"

	"parley/figure"
	"parley/privacy/ledger"
	"parley/privacy/policy"
	"parley/study"
)

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
	return &siteSpending{Study: view.Account.Studies[i], Account: view.Account, Studies: view.Studies, Limits: view.Limits, tables: view.Summaries()}, nil
}

// section is for the site's own people: what this study, and all studies of
// this site, have used of what is allowed.
func (s *siteSpending) section() figure.Section {
	bars := figure.Bars{X: figure.Axis{Label: "used, in % of what is allowed"}, Mark: "all of it"}
	add := func(label string, used float64) {
		bars.Labels, bars.Values, bars.Marks = append(bars.Labels, label), append(bars.Values, 100*used), append(bars.Marks, 100)
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
	section := figure.Section{ID: "ledger", Title: "What this site's ledger says", Lead: fmt.Sprintf("Everything that this site was ever charged stands in its own ledger: %s in %s.",
		figure.Plural(s.Account.Charges, "charge"), studies(len(s.Account.Studies)))}
	if len(bars.Labels) > 0 {
		section.Items = append(section.Items, figure.Item{Figure: &figure.Figure{ID: "ledger-budget", Title: "Privacy budget used and left",
			Caption: "What lies between a bar and its stroke is left. The first bar is of what the plan promises, the others of what this site's policy allows one study, and all studies for all time. Bars are shares of ε; for all time, of what the policy's filter adds up.",
			Alt:     "The used share of this study's promise and of the policy's limits, as bars.", Chart: bars}})
	} else {
		section.Items = append(section.Items, figure.Item{Note: &figure.Note{Title: "Nothing limits what this site spends", Warning: true,
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
