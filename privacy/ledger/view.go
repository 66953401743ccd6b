package ledger

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"parley/figure"
	"parley/privacy"
	"parley/privacy/account"
	"parley/privacy/policy"
)

// View is a site's ledger as its people read it: every charge, what they add up
// to, and what a policy leaves of it.
type View struct {
	Ledger
	Account *Account     `json:"account"`
	Studies []StudyLimit `json:"study_limits,omitempty"` // of a policy that has one
	Limits  []Spending   `json:"lifetime,omitempty"`     // of a policy that has one
}

// StudyLimit is how much a study has used of what a policy allows each study,
// for single subjects, under an adjacency for which the policy's limit holds.
type StudyLimit struct {
	Study     string            `json:"study"`
	Adjacency account.Adjacency `json:"adjacency"`
	Limit     account.Budget    `json:"limit"`
	Epsilon   *float64          `json:"epsilon,omitempty"` // spent at the limit's δ; absent where there is no bound
	Left      float64           `json:"left"`              // of the limit's ε; 0 if nothing
	// Unprotected releases are in no limit: nothing bounds what they tell.
	Unprotected int `json:"unprotected"`
}

// Look adds up a ledger, at delta where no guarantee says at which δ. policy
// may be nil.
func (l *Ledger) Look(delta float64, rules *policy.Policy) (*View, error) {
	v := &View{Ledger: *l}
	var err error
	if v.Account, err = l.Account(delta); err != nil || rules == nil {
		return v, err
	}
	if v.Limits, err = l.Against(*rules); err != nil || rules.Study == nil {
		return v, err
	}
	for _, s := range v.Account.Studies {
		var requests []privacy.Request
		for _, e := range l.Entries {
			if e.Study == s.Study {
				requests = append(requests, e.Request)
			}
		}
		losses, err := Losses(requests, rules.Study.Delta, privacy.Subject)
		if err != nil {
			return nil, err
		}
		for _, loss := range losses {
			// As the gate does: under the adjacency of the plan's guarantee, and
			// without one under every adjacency that the policy takes.
			if g := s.Guarantee; g != nil && loss.Adjacency != g.Adjacency || g == nil &&
				!slices.Contains(rules.Adjacencies(), loss.Adjacency) {
				continue
			}
			limit := StudyLimit{Study: s.Study, Adjacency: loss.Adjacency, Limit: *rules.Study, Epsilon: loss.Epsilon,
				Unprotected: s.Unprotected}
			if loss.Epsilon != nil {
				limit.Left = max(0, rules.Study.Epsilon-*loss.Epsilon)
			}
			v.Studies = append(v.Studies, limit)
		}
	}
	return v, nil
}

// Text writes the view for a terminal.
func (v *View) Text(w io.Writer) error {
	for i, t := range append([]figure.Table{v.entries()}, v.Summaries()...) {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if err := t.Text(w); err != nil {
			return err
		}
	}
	return nil
}

// Summaries are the view's tables, but for the single charges.
func (v *View) Summaries() []figure.Table {
	tables := []figure.Table{v.studies()}
	if len(v.Studies) > 0 {
		tables = append(tables, v.studyLimits())
	}
	if len(v.Limits) > 0 {
		tables = append(tables, lifetimeTable(v.Limits))
	}
	return tables
}

// newRows is a table with columns of words.
func newRows(names ...string) (t figure.Table) {
	for _, n := range names {
		t.Columns = append(t.Columns, figure.Column{Name: n})
	}
	return t
}

func (v *View) entries() figure.Table {
	r := newRows("line", "time", "study", "round", "task", "attempt", "noised sums")
	for _, e := range v.Entries {
		sums := []string{"none: without protection"}
		switch {
		case e.Request.Opens > 0:
			sums = []string{fmt.Sprintf("none: opens the total of round %d", e.Opens)}
		case e.Request.Protection == privacy.Differential:
			sums = nil
		}
		for _, s := range e.Request.Sums {
			text := fmt.Sprintf("%d × %s: %s", s.Mechanism.Count, s.Name, NoiseOf(s))
			if e.Seeded {
				text += ", FROM A SEED"
			}
			sums = append(sums, text)
		}
		if e.Trust != nil {
			text := fmt.Sprintf("masked: %s open totals of %d sites or more together, and could together see this "+
				"site's own sums", strings.Join(e.Trust.Openers, ", "), e.Trust.Quorum)
			if e.Trust.Spare != "" {
				text += ", or with " + e.Trust.Spare + " in the place of one of them"
			}
			if t := e.Trust.Collusion; t >= 0 {
				text += "; the noise is enough while the coordinator works together with at most " +
					figure.Plural(t, "site")
			}
			sums = append(sums, text)
		}
		r.Add(fmt.Sprint(e.Line), e.At, short12(e.Study), fmt.Sprint(roundOf(e.Release)), e.Kind,
			fmt.Sprint(e.Attempt), sums[0])
		for _, text := range sums[1:] {
			r.Add("", "", "", "", "", "", text)
		}
	}
	return figure.Table{ID: "ledger-charges", Title: "Charges", Columns: r.Columns}
}

func short12(digest string) string { return digest[:min(len(digest), 12)] }

func (v *View) studies() figure.Table {
	r := newRows("study", "method", "charges", "exact", "for one", "adjacency", "ε spent", "at δ", "left of promise")
	add := func(study, method, charges string, losses []Loss, g *privacy.Guarantee, unprotected int) {
		exact := fmt.Sprint(unprotected)
		for _, l := range losses {
			left := "–"
			if g != nil && g.Unit == l.Unit && g.Adjacency == l.Adjacency {
				left = Remaining(g.Epsilon, l.Epsilon) + " of " + account.Number(g.Epsilon)
			}
			r.Add(study, method, charges, exact, string(l.Unit), string(l.Adjacency), Spent(l.Epsilon),
				figure.General.Text(l.Delta), left)
			study, method, charges, exact = "", "", "", ""
		}
	}
	for _, s := range v.Account.Studies {
		charges := fmt.Sprint(s.Charges)
		if s.Forfeited > 0 {
			charges += fmt.Sprintf(" (%d made again)", s.Forfeited)
		}
		if s.Seeded > 0 {
			charges += fmt.Sprintf(" (%d FROM A SEED)", s.Seeded)
		}
		add(short12(s.Study), s.Method, charges, s.Losses, s.Guarantee, s.Unprotected)
	}
	add("all", "", fmt.Sprint(v.Account.Charges), v.Account.Lifetime, nil, v.Account.Unprotected)
	return figure.Table{ID: "ledger-studies", Title: "What the studies have cost", Columns: r.Columns,
		Caption: "Each ε is of the noised sums alone: nothing bounds what exact releases tell."}
}

func (v *View) studyLimits() figure.Table {
	r := newRows("study", "exact", "adjacency", "ε spent", "at δ", "ε allowed", "left")
	for _, s := range v.Studies {
		r.Add(short12(s.Study), fmt.Sprint(s.Unprotected), string(s.Adjacency), Spent(s.Epsilon),
			figure.General.Text(s.Limit.Delta), account.Number(s.Limit.Epsilon), Remaining(s.Limit.Epsilon, s.Epsilon))
	}
	return figure.Table{ID: "ledger-study-limits", Title: "Against the policy's limit for one study",
		Columns: r.Columns}
}

func lifetimeTable(limits []Spending) figure.Table {
	r := newRows("adjacency", "ε allowed", "δ", "filter", "left")
	for _, s := range limits {
		r.Add(string(s.Adjacency), account.Number(s.Limit.Epsilon), figure.General.Text(s.Limit.Delta),
			string(s.Filter), s.left())
	}
	return figure.Table{ID: "ledger-lifetime", Title: "Against the policy's lifetime, over all studies",
		Columns: r.Columns,
		Caption: "Shares are of what the filter adds up, which is not ε."}
}

// left writes the share that is left, never above what it is.
func (s Spending) left() string {
	return strconv.FormatFloat(math.Floor(1000*s.Left)/10, 'f', 1, 64) + " %"
}

// Spent writes a loss for people, with four digits and never below what it is.
func Spent(epsilon *float64) string {
	if epsilon == nil {
		return "no bound"
	}
	if *epsilon == 0 {
		return "0"
	}
	return account.Upward(*epsilon)
}

// Remaining writes what is left of a budget's ε for people, never above what
// it is, and so that it adds up with [Spent].
func Remaining(budget float64, spent *float64) string {
	if spent == nil {
		return "nothing"
	}
	shown, _ := strconv.ParseFloat(Spent(spent), 64)
	left := budget - shown
	if left < 1e-9*budget { // or only what subtraction leaves
		return "0"
	}
	return strconv.FormatFloat(left, 'g', 4, 64)
}

// NoiseOf says in words what noise a sum has each time, and how often it is made:
// Gaussian noise by its standard deviation, Laplace noise by its scale.
func NoiseOf(s privacy.Sum) string {
	m := s.Mechanism
	unit := "the bound"
	if s.Form == privacy.Moments {
		unit = "the squared bound"
	}
	var text string
	switch m.Kind {
	case account.Gaussian:
		text = fmt.Sprintf("Gaussian, sd %.4g × %s", m.Noise, unit)
	case account.Laplace:
		text = fmt.Sprintf("Laplace, scale %.4g × %s", m.Noise, unit)
	default: // the kind's own word, which misleads nobody
		text = fmt.Sprintf("%s, %.4g × %s", m.Kind, m.Noise, unit)
	}
	if m.Rate < 1 {
		text += fmt.Sprintf(", of a Poisson sample at rate %.4g", m.Rate)
	}
	if s.Honest > 1 {
		text += fmt.Sprintf(", on the total; each site adds 1/%d of the variance", s.Honest)
	}
	return text
}
