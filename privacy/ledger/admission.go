package ledger

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"parley/figure"
	"parley/privacy"
	"parley/privacy/account"
	"parley/privacy/policy"
	"parley/problem"
)

// Admission says whether a site would take part in a study, and what that
// would cost it.
type Admission struct {
	Site     string   `json:"site"`
	Subjects int      `json:"subjects"`          // rows at the site; 0 if nobody has counted
	Admitted bool     `json:"admitted"`          // every request of the study would be granted
	Reasons  []Reason `json:"reasons,omitempty"` // for which it would not, all of them
	// the ledger has charges of this study: it was agreed to, and its gate sees to the rest
	Begun  bool       `json:"begun,omitempty"`
	Charge []Loss     `json:"charge"`           // of the whole study for one subject, under both adjacencies
	Exact  int        `json:"unprotected"`      // releases without noise: nothing bounds what they tell
	Before []Spending `json:"before,omitempty"` // of the policy's lifetime, as the ledger stands
	After  []Spending `json:"after,omitempty"`  // and with this study
}

// Reason is one thing for which a policy refuses.
type Reason struct {
	Where string `json:"where,omitempty"` // key of the policy
	What  string `json:"what"`
	Hint  string `json:"hint,omitempty"`
}

// Admits says what would become of the requests of a whole study under a policy,
// after everything in the ledger. The charge is counted at delta. An error is
// one of the policy, the study, or a request that makes no sense.
func (l *Ledger) Admits(p policy.Policy, s privacy.Study, delta float64,
	requests ...privacy.Request) (*Admission, error) {
	a := &Admission{Site: s.Site, Subjects: s.Subjects, Admitted: true}
	a.Begun = slices.ContainsFunc(l.Entries, func(e Entry) bool { return e.Study == s.Digest })
	after := &Ledger{Entries: slices.Clone(l.Entries)}
	for _, r := range requests {
		if r.Protection == privacy.Unprotected {
			a.Exact++
		}
		if !a.Begun { // its charges stand in the ledger, or will as they were agreed to
			after.Entries = append(after.Entries, Entry{Study: s.Digest, Request: r})
		}
	}
	check := l.Check
	if a.Begun {
		check = (&Ledger{}).Check
	}
	refusal := (*privacy.RefusalError)(nil)
	if err := check(p, s, requests...); errors.As(err, &refusal) {
		a.Admitted = false
		for _, r := range refusal.Reasons {
			// rounds are refused alike
			if reason := (Reason{r.Where, r.What, r.Hint}); !slices.Contains(a.Reasons, reason) {
				a.Reasons = append(a.Reasons, reason)
			}
		}
	} else if err != nil {
		return nil, err
	}
	var err error
	if a.Charge, err = Losses(requests, delta, privacy.Subject); err != nil {
		return nil, err
	}
	if a.Before, err = l.Against(p); err != nil {
		return nil, err
	}
	a.After, err = after.Against(p)
	return a, err
}

// Refusal is the reasons as a [*privacy.RefusalError], or nil if the site would
// take part.
func (a *Admission) Refusal() error {
	no := &privacy.RefusalError{}
	for _, r := range a.Reasons {
		no.Reasons.Add(problem.Problem{Where: r.Where, What: r.What, Hint: r.Hint})
	}
	if len(no.Reasons) == 0 {
		return nil
	}
	return no
}

// Lines says to people what the study would cost one subject of the site, and
// what it leaves of the policy's lifetime.
func (a *Admission) Lines() (lines []string) {
	for _, l := range a.Charge {
		if a.Exact == 0 || l.Epsilon == nil || *l.Epsilon > 0 {
			lines = append(lines, fmt.Sprintf("all noised sums of the study together cost one subject ε %s at δ %s "+
				"(%s)", Spent(l.Epsilon), account.Number(l.Delta), l.Adjacency))
		}
	}
	if a.Exact > 0 {
		lines = append(lines, fmt.Sprintf("releases without noise: at most %d, and nothing bounds what they tell",
			a.Exact))
	}
	for i, b := range a.Before {
		text := fmt.Sprintf("of the policy's lifetime of %s (%s), %s is left",
			account.Words(b.Limit.Epsilon, b.Limit.Delta), b.Adjacency, b.left())
		if a.Admitted && !a.Begun && i < len(a.After) {
			text += ", and after this study " + a.After[i].left()
		}
		lines = append(lines, text)
	}
	if len(a.Before) == 0 {
		lines = append(lines, "the policy sets no limit for the site's lifetime")
	}
	return lines
}

// Problems are the reasons as a list of problems of a policy in file.
func (a *Admission) Problems(file string) problem.List {
	var list problem.List
	for _, r := range a.Reasons {
		list.Add(problem.Problem{File: file, Where: strings.TrimSuffix("site "+a.Site+": "+r.Where, ": "), What: r.What,
			Hint: r.Hint})
	}
	return list
}

// PrintAdmissions writes them as a table for a terminal.
func PrintAdmissions(w io.Writer, list []*Admission) error {
	r := newRows("site", "takes part", "subjects", "charge: adjacency", "ε", "at δ",
		"lifetime left before", "and after")
	for _, a := range list {
		site, part, subjects := a.Site, "yes", "not counted"
		switch {
		case !a.Admitted:
			part = "no"
		case a.Begun:
			part = "yes, has begun"
		}
		if a.Subjects > 0 {
			subjects = fmt.Sprint(a.Subjects)
		}
		for _, l := range a.Charge {
			before, after := share(a.Before, l), share(a.After, l)
			if !a.Admitted {
				after = "–"
			}
			r.Add(site, part, subjects, string(l.Adjacency), a.epsilon(l), account.Number(l.Delta), before, after)
			site, part, subjects = "", "", ""
		}
	}
	return figure.Table{Columns: r.Columns}.Text(w)
}

func (a *Admission) epsilon(l Loss) string {
	if a.Exact > 0 {
		return fmt.Sprintf("no bound: %d releases without noise", a.Exact)
	}
	return Spent(l.Epsilon)
}

// share says what is left of a lifetime under a loss's adjacency.
func share(list []Spending, l Loss) string {
	i := slices.IndexFunc(list, func(s Spending) bool { return s.Adjacency == l.Adjacency })
	if i < 0 {
		return "no limit"
	}
	return list[i].left()
}
