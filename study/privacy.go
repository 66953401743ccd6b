package study

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"parley/privacy/account"
	"parley/problem"
)

// The protections that a plan may name.
const (
	// ProtectionNone lets contributions pass the release gate without noise.
	// They are stored and marked, whoever reads them may learn about single
	// subjects, and results say so.
	ProtectionNone = "none"
	// ProtectionDifferential lets nothing leave a site but noised sums, each
	// charged to the site's ledger before its data are touched.
	ProtectionDifferential = "differential"
)

// The units that a guarantee may speak of: what neighbouring data sets differ by.
const (
	UnitSubject = "subject" // one person: a row, or all rows with the same [Privacy.Person]
	UnitSite    = "site"    // everything that one site holds
)

// Privacy says how releases are protected. Protection, and what a differential
// guarantee consists of, has no default: nobody is to promise by omission.
// Everything but Protection belongs to [ProtectionDifferential] alone.
type Privacy struct {
	Protection string `json:"protection"`

	// Unit is whom the guarantee protects: UnitSubject or UnitSite.
	Unit string `json:"unit,omitempty"`
	// Person is the column of the subjects table that identifies a person, for UnitSubject: all rows of
	// one are a single contribution, and a row without one counts as nothing. Empty states that
	// every row is another person.
	Person string `json:"person,omitempty"`
	// Adjacency says whether two neighbouring data sets differ by a unit more or
	// by an exchanged one.
	Adjacency account.Adjacency `json:"adjacency,omitempty"`
	// Total bounds what everything that a site releases in the study reveals,
	// together: a promise, which each site's gate keeps.
	Total *account.Budget `json:"total,omitempty"`
	// PerRelease is the published way: noise as if each noised sum were the only
	// one. It promises nothing for the study, whose true total is computed and
	// reported beside it. Exactly one of Total and PerRelease is there.
	PerRelease *account.Budget `json:"per_release,omitempty"`
	// Diagnostics is the share of Total, in [0, 1), that is spent on what only
	// the report shows. 0, the default, leaves it out.
	Diagnostics float64 `json:"diagnostics,omitempty"`
	// AnswerAfter is the least time between a task and its noised answer, so that
	// how long computing took does not show; empty for none. In a simulation
	// nobody waits.
	AnswerAfter Duration `json:"answer_after,omitempty"`

	// Sum is secure where the coordinator is to learn of every sum only its total over the sites,
	// and empty where it learns each site's.
	Sum string `json:"sum,omitempty"`
	// Openers are the sites that open totals together; who works with all of them can see each
	// site's own sums. All sites by default, and the first five of more.
	Openers []string `json:"openers,omitempty"`
	// Spare is a site that takes the place of one opener that leaves the study; the sum that nobody can open then is
	// asked for once more, and Total has room for that. Empty, the default, for none; without noise it has no meaning.
	Spare string `json:"spare,omitempty"`
	// Collusion is how many sites may work together with the coordinator and the noise still be
	// what the total promises: of a quorum Q of sites, each adds 1/(Q − Collusion) of the variance. By
	// default all openers but one. Without differential privacy it has no meaning.
	Collusion *int `json:"collusion,omitempty"`
	// Keys are the public keys of the sites, in their order, as masks.Member has them. Whoever submits
	// the plan to sites fills them in; in a simulation there are none.
	Keys []string `json:"keys,omitempty"`
}

// What a coordinator may learn of sums: those of each site, or totals over sites.
const (
	sumPlain  = "plain" // the default, which a plan need not name
	sumSecure = "secure"
)

// Scale is the factor by which the noise of all releases of a site meets the total, as [account.Scale] has it: with a
// spare, of the costliest release once more.
func (p Privacy) Scale(ms []account.Mechanism) (float64, error) {
	if p.Spare != "" {
		cost := func(m account.Mechanism) float64 {
			m.Count = 1
			mu, _ := account.Mu([]account.Mechanism{m}, p.Adjacency)
			return mu
		}
		again := slices.MaxFunc(ms, func(a, b account.Mechanism) int { return cmp.Compare(cost(a), cost(b)) })
		again.Count = 1
		ms = append(slices.Clip(ms), again)
	}
	return account.Scale(ms, p.Adjacency, *p.Total)
}

// HonestOpeners says how many of those who open totals have to be honest.
func (p Privacy) HonestOpeners() string {
	if p.Spare == "" {
		return "one opener of the totals is honest"
	}
	return "two of the openers of the totals and their spare, " + p.Spare + ", are honest"
}

// Secure says whether of every sum only its total over the sites is learned.
func (p Privacy) Secure() bool { return p.Sum == sumSecure }

// Honest is Q − t: how many sites' shares make up the noise of a total at least. It is 1 where
// every site adds all of it.
func (p *Plan) Honest() int {
	if !p.Privacy.Secure() || p.Privacy.Collusion == nil {
		return 1
	}
	return max(p.Quorum-*p.Privacy.Collusion, 1)
}

// Summable is implemented by options of methods whose sites answer with sums alone, so that a secure
// sum can carry them. Summable reports what of the plan's options needs a site's own sums; the plan
// names secure.
type Summable interface{ Summable(p *Plan, report Report) }

// Differential says whether releases are noised.
func (p Privacy) Differential() bool { return p.Protection == ProtectionDifferential }

const (
	protectionHint = "protection: differential, with unit, adjacency and a total: nothing but noised sums leaves a " +
		"site\nprotection: none: contributions are stored and marked unprotected, and whoever reads them may learn " +
		"about single subjects"
	budgetHint = "such as {epsilon: 3, delta: 1e-5}"
)

func (c *checker) privacy() {
	if !c.required("privacy", "how releases are protected has no default\n"+protectionHint) ||
		!c.required("privacy.protection", protectionHint) {
		return
	}
	switch p := c.p.Privacy; p.Protection {
	case ProtectionNone:
		c.unprotected(p)
	case ProtectionDifferential:
		c.differential(p)
	default:
		c.report("privacy.protection", fmt.Sprintf("unknown protection %q", p.Protection), protectionLike(p.Protection))
	}
	c.sum()
}

// protectionLike returns a hint at what was meant.
func protectionLike(name string) string {
	if lower := strings.ToLower(name); lower == "dp" || strings.HasPrefix(lower, ProtectionDifferential) {
		return "did you mean differential?"
	}
	return problem.DidYouMean(name, []string{ProtectionNone, ProtectionDifferential}, protectionHint)
}

// unprotected demands that nothing looks like a promise where there is none.
func (c *checker) unprotected(p Privacy) {
	for _, f := range []struct {
		key   string
		there bool
	}{
		{"unit", p.Unit != ""}, {"person", p.Person != ""}, {"adjacency", p.Adjacency != ""}, {"total", p.Total != nil},
		{"per_release", p.PerRelease != nil}, {"diagnostics", p.Diagnostics != 0},
		{"answer_after", p.AnswerAfter != ""},
	} {
		if f.there {
			c.report("privacy."+f.key, "means nothing with protection: none",
				"leave it out, or protection: differential")
		}
	}
}

func (c *checker) differential(p Privacy) {
	const unitHint = "subject: one person; or site: everything that a site holds"
	switch {
	case p.Unit == "":
		c.report("privacy.unit", "missing: a guarantee says whom it protects", unitHint)
	case p.Unit != UnitSubject && p.Unit != UnitSite:
		c.report("privacy.unit", fmt.Sprintf("unknown unit %q", p.Unit),
			problem.DidYouMean(p.Unit, []string{UnitSubject, UnitSite}, unitHint))
	}
	c.person(p)
	const adjacencyHint = "add-remove: neighbouring data have one more or one fewer; or replace-one: one is " +
		"exchanged for another"
	switch {
	case p.Adjacency == "":
		c.report("privacy.adjacency", "missing: a guarantee says which data it makes hard to tell apart", adjacencyHint)
	case p.Adjacency != account.AddRemove && p.Adjacency != account.ReplaceOne:
		c.report("privacy.adjacency", fmt.Sprintf("unknown adjacency %q", string(p.Adjacency)),
			problem.DidYouMean(string(p.Adjacency), []string{string(account.AddRemove), string(account.ReplaceOne)},
				adjacencyHint))
	}
	switch {
	case p.Total == nil && p.PerRelease == nil:
		c.report("privacy.total", "missing: what all releases of a site together may reveal",
			budgetHint+"\nper_release instead, to repeat the published way, which promises nothing for the study")
	case p.Total != nil && p.PerRelease != nil:
		c.report("privacy.per_release", "stands beside total",
			"either a total, which is a promise, or per_release, which is none")
	}
	c.duration("privacy.answer_after", p.AnswerAfter, time.Hour)
	c.budget("privacy.total", p.Total)
	c.budget("privacy.per_release", p.PerRelease)
	switch d := p.Diagnostics; {
	case !(d >= 0 && d < 1):
		c.report("privacy.diagnostics", fmt.Sprintf("%v of the total cannot be spent on diagnostics", d),
			"from 0, which leaves them out, to below 1")
	case d > 0 && p.Total == nil && p.PerRelease != nil:
		c.report("privacy.diagnostics", "is a share of the total, and there is none",
			"leave it out, or a total instead of per_release")
	}
}

// person checks the column that identifies a person: nothing else of a study may read it.
func (c *checker) person(p Privacy) {
	const path, hint = "privacy.person", "a column of the subjects table that the plan names nowhere else, with the " +
		"same cell in all rows of a person"
	switch {
	case p.Person == "":
	case p.Unit == UnitSite:
		c.report(path, "means nothing with unit: site, which protects all rows of a site together",
			"leave it out, or unit: subject")
	case p.Person == "id":
		c.report(path, "id differs in every row", "leave it out if every row is another person; else "+hint)
	case c.label(path, p.Person) && c.named(p.Person):
		c.report(path, fmt.Sprintf("%s is a column that the study reads", p.Person), hint)
	}
}

// named says whether the plan names a column as a feature, or under subjects.
func (c *checker) named(column string) bool {
	return slices.Contains(c.p.Subjects, column) || slices.ContainsFunc(c.p.Views, func(v View) bool {
		return slices.ContainsFunc(v.Features, func(f Feature) bool { return f.Name == column })
	})
}

func (c *checker) budget(path string, b *account.Budget) {
	if b == nil {
		return
	}
	if c.required(path+".epsilon", budgetHint) && !(b.Epsilon > 0 && !math.IsInf(b.Epsilon, 1)) {
		c.report(path+".epsilon", fmt.Sprintf("%v is not positive", b.Epsilon),
			"0.1 protects strongly, 1 to 3 are usual, 10 promises little")
	}
	if c.required(path+".delta", budgetHint) && !(b.Delta > 0 && b.Delta < 1) {
		c.report(path+".delta", fmt.Sprintf("%v is not between 0 and 1", b.Delta),
			"far below 1 divided by the number of subjects of a site, such as 1e-5")
	}
}
