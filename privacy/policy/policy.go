// Package policy is what a site allows, as a person writes it: [Load] reads and checks a
// file, [Default] is what a site has without one, and [Default] as such a file is
// [DefaultText]. Package privacy holds every request against it; here nothing is granted.
package policy

import (
	"fmt"
	"math"
	"slices"

	"parley/privacy/account"
	"parley/problem"
	"parley/study"
)

// Demand says whether a site takes part in studies without privacy.
type Demand string

const (
	Required Demand = "required" // differential privacy or nothing; so does the empty Demand
	Optional Demand = "optional"
)

// FilterName names the rule by which charges that were not fixed beforehand
// add up over a site's lifetime.
type FilterName string

const (
	RenyiFilter    FilterName = "renyi"    // see [account.RenyiFilter]; so does the empty name
	GaussianFilter FilterName = "gaussian" // see [account.GaussianFilter]
)

// Policy is what a site allows; it outranks every plan. The zero Policy demands
// differential privacy, with the default limit on δ, and sets no further limit.
// [Load] reads one from YAML.
type Policy struct {
	Version    int               `json:"policy"`              // of the format; 1 in a file
	Site       string            `json:"site,omitempty"`      // whose policy it is; empty: any site's
	Protection Demand            `json:"protection"`          // default required
	Adjacency  account.Adjacency `json:"adjacency,omitempty"` // that guarantees must be stated in; empty for either
	// largest guarantee, and loss of single subjects by all protected releases, of one study; nil for any
	Study *account.Budget `json:"study,omitempty"`
	// of all that the site releases with protection; nil for any
	Lifetime *Lifetime `json:"lifetime,omitempty"`
	MaxDelta float64   `json:"max_delta,omitempty"` // largest δ of a guarantee; 0 for min(10⁻⁵, 1/(100 n))
	// about how many subjects the site has, which others may learn; 0 if it names no such number
	Size    int      `json:"size,omitempty"`
	Minimum Minimum  `json:"minimum,omitempty"`
	Methods []string `json:"methods,omitempty"` // allowed; empty for all
	// noised sums may be released under plans that guarantee no total
	PerRelease bool `json:"per_release,omitempty"`
	// PreApproval approves some studies without a person; nil if a person is asked
	// about each.
	PreApproval *PreApproval `json:"pre_approval,omitempty"`
}

// Lifetime limits the sum of all charges of a site for its subjects, over every
// study, however each was chosen after the answers before it. Under a policy
// that names no adjacency it holds under both. Releases without protection
// have no bound and are not in it.
type Lifetime struct {
	Epsilon float64    `json:"epsilon"`
	Delta   float64    `json:"delta"`
	Filter  FilterName `json:"filter,omitempty"` // default renyi
}

// Minimum are numbers below which a site does not take part; 0 for any. That a
// site stays away tells the coordinator so much, and nothing more.
type Minimum struct {
	Subjects int `json:"subjects,omitempty"` // at the site
	// subjects of a pattern of present views with numbers of its own
	PatternSubjects int `json:"pattern_subjects,omitempty"`
	// sites whose contributions a round needs: the plan's quorum
	Sites int `json:"sites,omitempty"`
	// Collusion is how many sites may work together with the coordinator, at least, and the noise of a secure sum
	// still be what the plan promises; the least number of sites in a total is Sites.
	Collusion int `json:"collusion,omitempty"`
}

// Default is what a site has that sets no policy of its own: strict.
func Default() Policy {
	return Policy{
		Version:    version,
		Protection: Required,
		Study:      &account.Budget{Epsilon: 3, Delta: 1e-5},
		Lifetime:   &Lifetime{Epsilon: 10, Delta: 1e-5, Filter: RenyiFilter},
		Minimum:    Minimum{Subjects: 50, PatternSubjects: 10, Sites: 3},
	}
}

// Validate reports what is wrong with a policy as such.
func (p Policy) Validate() error {
	var wrong problem.List
	p.check(func(key, what, hint string) { wrong.Add(problem.Problem{Where: key, What: what, Hint: hint}) })
	return wrong.Err()
}

const budgetHint = "such as {epsilon: 3, delta: 1e-5}"

// check reports each wrong value under its key.
func (p Policy) check(report func(key, what, hint string)) {
	if p.Protection != "" && p.Protection != Required && p.Protection != Optional {
		words := []string{string(Required), string(Optional)}
		report("protection", fmt.Sprintf("unknown demand %q", string(p.Protection)),
			problem.DidYouMean(string(p.Protection), words, "required: differential privacy or nothing; or optional"))
	}
	if p.Adjacency != "" && p.Adjacency.Check() != nil {
		words := []string{string(account.AddRemove), string(account.ReplaceOne)}
		report("adjacency", fmt.Sprintf("unknown adjacency %q", string(p.Adjacency)),
			problem.DidYouMean(string(p.Adjacency), words, "add-remove or replace-one; leave it out to take either"))
	}
	if b := p.Study; b != nil {
		checkBudget(report, "study", b.Epsilon, b.Delta)
	}
	if l := p.Lifetime; l != nil {
		good := checkBudget(report, "lifetime", l.Epsilon, l.Delta)
		if l.Filter != "" && l.Filter != RenyiFilter && l.Filter != GaussianFilter {
			words := []string{string(RenyiFilter), string(GaussianFilter)}
			report("lifetime.filter", fmt.Sprintf("unknown filter %q", string(l.Filter)),
				problem.DidYouMean(string(l.Filter), words, "renyi for any noise, or gaussian, which is exact where "+
					"all noise is"))
		} else if _, err := l.FilterFor(account.AddRemove); good && err != nil {
			report("lifetime", err.Error(), "a larger epsilon or delta, or filter: gaussian")
		}
	}
	if !(p.MaxDelta >= 0 && p.MaxDelta <= 1) {
		report("max_delta", fmt.Sprintf("%v is no probability", p.MaxDelta),
			"far below 1 divided by the number of subjects; leave it out for min(1e-5, 1/(100 n))")
	}
	for _, m := range []struct {
		key   string
		value int
	}{{"size", p.Size}, {"minimum.subjects", p.Minimum.Subjects},
		{"minimum.pattern_subjects", p.Minimum.PatternSubjects}, {"minimum.sites", p.Minimum.Sites},
		{"minimum.collusion", p.Minimum.Collusion}} {
		if m.value < 0 {
			report(m.key, fmt.Sprintf("%d is no number to have at least", m.value), "0, or leave it out, for any")
		}
	}
	checkNames(report, "methods", "name each method that is allowed once", p.Methods)
	p.checkPreApproval(report)
}

func checkNames(report func(key, what, hint string), key, hint string, names []string) {
	for i, n := range names {
		if n == "" || slices.Contains(names[:i], n) {
			report(fmt.Sprintf("%s[%d]", key, i), fmt.Sprintf("%q is empty or stands twice", n), hint)
		}
		if now := study.Renamed(n); now != "" {
			report(fmt.Sprintf("%s[%d]", key, i), fmt.Sprintf("%q has another name now", n), now)
		}
	}
}

func checkBudget(report func(key, what, hint string), key string, epsilon, delta float64) (good bool) {
	good = true
	if !(epsilon > 0) || math.IsInf(epsilon, 1) {
		good = false
		report(key+".epsilon", fmt.Sprintf("%v is not positive", epsilon), budgetHint)
	}
	if !(delta > 0 && delta < 1) {
		good = false
		report(key+".delta", fmt.Sprintf("%v is not between 0 and 1", delta), budgetHint)
	}
	return good
}

// Adjacencies are those under which the policy's own limits hold.
func (p Policy) Adjacencies() []account.Adjacency {
	if p.Adjacency != "" {
		return []account.Adjacency{p.Adjacency}
	}
	return []account.Adjacency{account.AddRemove, account.ReplaceOne}
}

// Allows says whether studies by a method may take place here.
func (p Policy) Allows(method string) bool {
	return len(p.Methods) == 0 || slices.Contains(p.Methods, method)
}

// LargestDelta is the largest δ of a guarantee at a site with n subjects; 0 if it
// depends on n, and nobody knows n.
func (p Policy) LargestDelta(n int) float64 {
	switch {
	case p.MaxDelta > 0:
		return p.MaxDelta
	case n == 0:
		return 0
	}
	return min(largestDelta, 1/(100*float64(n)))
}

// largestDelta is the largest δ of a guarantee at a site with few subjects.
const largestDelta = 1e-5

// CountsSubjects says whether a limit of the policy depends on how many subjects the
// site has.
func (p Policy) CountsSubjects() bool { return p.Minimum.Subjects > 0 || p.MaxDelta == 0 }

// Uncounted is the policy without these limits: those under differential privacy at a
// site whose policy names no Size, where a person has held them against the count.
func (p Policy) Uncounted() Policy {
	p.Minimum.Subjects = 0
	if p.MaxDelta == 0 {
		p.MaxDelta = largestDelta
	}
	return p
}

// FilterFor returns the rule by which charges add up to the lifetime, under an
// adjacency. An error says that the rule cannot keep a budget as small.
func (l Lifetime) FilterFor(a account.Adjacency) (account.Filter, error) {
	b := account.Budget{Epsilon: l.Epsilon, Delta: l.Delta}
	if l.Filter == GaussianFilter {
		return account.NewGaussianFilter(b, a)
	}
	return account.NewRenyiFilter(b, a)
}
