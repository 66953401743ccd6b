package ledger

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"

	"parley/privacy"
	"parley/privacy/account"
	"parley/problem"
	"parley/study"
)

// Cost is what a plan promises, and what everything that it may ask of its
// sites comes to. It follows from the plan alone, before anybody touches data.
type Cost struct {
	Protection string       `json:"protection"`
	Unit       privacy.Unit `json:"unit,omitempty"`
	// column that identifies a person; "" if every row is another
	Person    string            `json:"person,omitempty"`
	Adjacency account.Adjacency `json:"adjacency,omitempty"`
	Total     *account.Budget   `json:"total,omitempty"` // promised; nil if nothing is
	// claimed for each noised sum as if it were the only one; no promise
	PerRelease *account.Budget `json:"per_release,omitempty"`
	Sites      []SiteCost      `json:"sites,omitempty"` // in the plan's order; empty without protection
	// Honest, of a plan with a secure sum, is how many sites' shares make up the noise of a total at least; 0 of any
	// other.
	Honest int `json:"honest,omitempty"`

	openers string // how many of them have to be honest, in words
}

// SiteCost is what one site would release, and what that reveals.
type SiteCost struct {
	Site        string `json:"site"`
	Releases    int    `json:"releases"`
	Unprotected int    `json:"unprotected"` // of them, without noise; if there is one, nothing bounds what all reveal
	Sums        int    `json:"noised_sums"` // each counted as often as it is granted
	// Mechanisms are the noised sums as they protect the plan's unit, equal ones
	// counted together; nil if what one of them protects is no such unit.
	Mechanisms []account.Mechanism `json:"mechanisms"`
	// Losses are of all noised sums together, for the plan's unit, at the plan's
	// δ, under both adjacencies.
	Losses []Loss `json:"losses"`

	// IfOpened is the loss, as Losses count it for the plan's adjacency, if all openers of a secure sum worked together
	// with the coordinator, who would then know every site's own sums, with that site's share of the noise; nil without
	// such a sum, or where nothing bounds it.
	IfOpened *float64 `json:"epsilon_if_all_openers_collude,omitempty"`

	rows, whole account.Tally // of Mechanisms: of sums over rows, and of those that hide the whole site
}

// CostOf adds up what charges lists for each site of a plan. It is an error if
// that breaks the plan's promise: a release without noise under a total, or
// more than the total.
func CostOf(p *study.Plan, charges func(site string) ([]privacy.Request, error)) (*Cost, error) {
	c := &Cost{Protection: p.Privacy.Protection}
	if !p.Privacy.Differential() {
		return c, nil
	}
	c.Unit, c.Person, c.Adjacency, c.Total, c.PerRelease = privacy.Unit(p.Privacy.Unit), p.Privacy.Person,
		p.Privacy.Adjacency, p.Privacy.Total, p.Privacy.PerRelease
	if p.Privacy.Secure() {
		c.Honest, c.openers = p.Honest(), p.Privacy.HonestOpeners()
	}
	var seen [][]privacy.Request // of the sites so far, most of which are alike
	for _, site := range p.Sites {
		requests, err := charges(site)
		if err != nil {
			return nil, fmt.Errorf("site %s: %w", site, err)
		}
		s := SiteCost{}
		if i := slices.IndexFunc(seen, func(other []privacy.Request) bool {
			return reflect.DeepEqual(other, requests)
		}); i >= 0 {
			s = c.Sites[i]
		} else if s, err = c.add(requests); err != nil {
			return nil, fmt.Errorf("site %s: %w", site, err)
		}
		s.Site = site
		seen, c.Sites = append(seen, requests), append(c.Sites, s)
	}
	return c, nil
}

// claim is the budget that the noise was chosen for.
func (c *Cost) claim() account.Budget {
	if c.Total != nil {
		return *c.Total
	}
	return *c.PerRelease
}

// Delta is the δ at which a plan's losses are counted: that of its promise or
// claim, and 10⁻⁵ where it has none.
func (c *Cost) Delta() float64 {
	if c.Total == nil && c.PerRelease == nil {
		return 1e-5
	}
	return c.claim().Delta
}

// add adds up the requests of one site, and holds them to the total.
func (c *Cost) add(requests []privacy.Request) (s SiteCost, err error) {
	s.Releases = len(requests)
	all, bounded := account.Tally(nil), true
	for _, r := range requests {
		if err := r.Check(); err != nil {
			return s, err
		}
		if r.Protection == privacy.Unprotected {
			s.Unprotected++
			continue
		}
		ms, err := r.Mechanisms(c.Unit)
		all, bounded = all.With(1, ms...), bounded && err == nil // Losses says what is wrong
		for i, sum := range r.Sums {
			s.Sums = account.AddCounts(s.Sums, sum.Mechanism.Count)
			switch {
			case err != nil:
			case sum.Unit == privacy.WholeSite:
				s.whole = s.whole.With(1, ms[i])
			default:
				s.rows = s.rows.With(1, ms[i])
			}
		}
	}
	if s.Sums == 0 && s.Unprotected > 0 {
		return s, problem.Problem{Where: "privacy.protection",
			What: "the method has no differentially private form: it releases nothing but exact numbers",
			Hint: "another method, or protection: none"}
	}
	if bounded {
		s.Mechanisms = all
	}
	if s.Losses, err = Losses(requests, c.claim().Delta, c.Unit); err != nil || c.Total == nil {
		return s, err
	}
	if s.IfOpened, err = c.ifOpened(requests); err != nil {
		return s, err
	}
	what := ""
	switch loss := s.loss(c.Adjacency); {
	case s.Unprotected > 0:
		what = fmt.Sprintf("%d of the %d releases of a site would have no noise", s.Unprotected, s.Releases)
	case loss.Epsilon == nil:
		what = loss.Unbounded
	case *loss.Epsilon > c.Total.Epsilon:
		what = fmt.Sprintf("the releases of a site would come to ε %s, and the plan promises %s",
			account.Upward(*loss.Epsilon), account.Number(c.Total.Epsilon))
	default:
		return s, nil
	}
	return s, problem.Problem{Where: "privacy.total", What: what,
		Hint: "options of the method that keep the total, or per_release, which promises nothing"}
}

// ifOpened is [SiteCost.IfOpened].
func (c *Cost) ifOpened(requests []privacy.Request) (*float64, error) {
	own, masked := slices.Clone(requests), false
	for i, r := range own {
		own[i].Sums = slices.Clone(r.Sums)
		for j, s := range r.Sums {
			masked = masked || r.Masked
			own[i].Sums[j].Mechanism.Noise /= math.Sqrt(float64(max(s.Honest, 1)))
		}
	}
	if !masked {
		return nil, nil
	}
	losses, err := Losses(own, c.claim().Delta, c.Unit)
	if err != nil {
		return nil, err
	}
	return SiteCost{Losses: losses}.loss(c.Adjacency).Epsilon, nil
}

// loss is that under an adjacency.
func (s SiteCost) loss(a account.Adjacency) Loss {
	return s.Losses[slices.IndexFunc(s.Losses, func(l Loss) bool { return l.Adjacency == a })]
}

// Lines says it to people.
func (c *Cost) Lines() []string {
	lines := c.promise()
	if n := len(c.Sites); c.Honest > 0 && n > 0 {
		lines = append(lines, fmt.Sprintf("the noise of a total over all %d sites deviates by %.2f times that of one "+
			"party; with one noise at each site it would by %.2f times",
			n, math.Sqrt(float64(n)/float64(c.Honest)), math.Sqrt(float64(n))))
	}
	if len(c.Sites) > 0 && c.Sites[0].IfOpened != nil {
		lines = append(lines, fmt.Sprintf("that holds as long as %s, and no more "+
			"sites work together with the coordinator than the plan's collusion: if all openers did, a site's own "+
			"sums would show, at %s",
			c.openers, account.Words(*c.Sites[0].IfOpened, c.claim().Delta)))
	}
	switch {
	case c.Unit != privacy.Subject:
	case c.Person != "":
		lines = append(lines, fmt.Sprintf("a subject is a person: all rows with the same %s together, and rows "+
			"without one count as nothing", c.Person))
	default:
		lines = append(lines, "a subject is a row: the plan states that every row is another person")
	}
	return lines
}

// Worth returns what says how little the promise is worth for a person with so many rows, and what to do; nil
// where it does not depend on that.
func (c *Cost) Worth() func(rows int64) string {
	if c.Unit != privacy.Subject || c.Person != "" ||
		!slices.ContainsFunc(c.Sites, func(s SiteCost) bool { return len(s.rows) > 0 }) {
		return nil
	}
	return func(rows int64) string {
		worth := "nothing bounds what is learned of"
		if e, ok := c.ForRows(rows); ok {
			worth = fmt.Sprintf("it is ε %s, at the same δ, for", account.Upward(e))
		}
		return fmt.Sprintf("the plan states that every row is another person, and promises %s for one row: %s a "+
			"person with %d rows. Name the column that identifies a person in the plan (privacy: {person: COLUMN}), "+
			"or keep one row of each person",
			account.Words(c.claim().Epsilon, c.claim().Delta), worth, rows)
	}
}

// ForRows is the ε of all noised sums for so many rows together, at the site where it is largest: they move a sum
// by at most so many times what one row does, which is as if its noise were as many times smaller; one that hides the
// whole site, by no more than is charged. In a sample all of them count as there if one is. Not ok: nothing bounds it.
func (c *Cost) ForRows(rows int64) (epsilon float64, ok bool) {
	for i, s := range c.Sites {
		if len(s.Mechanisms) == 0 || s.Unprotected > 0 {
			return 0, false
		}
		if i > 0 && reflect.DeepEqual(s.rows, c.Sites[i-1].rows) && reflect.DeepEqual(s.whole, c.Sites[i-1].whole) {
			continue
		}
		group := slices.Clone(s.rows)
		for i := range group {
			group[i].Noise /= float64(rows)
			group[i].Rate = -math.Expm1(float64(rows) * math.Log1p(-group[i].Rate))
		}
		e, err := account.Epsilon(slices.Concat(group, s.whole), c.Adjacency, c.claim().Delta)
		if err != nil || math.IsInf(e, 1) {
			return 0, false
		}
		epsilon = max(epsilon, e)
	}
	return epsilon, true
}

// promise says what is promised, or what is not.
func (c *Cost) promise() []string {
	switch {
	case c.Protection != study.ProtectionDifferential:
		return []string{"no differential privacy: releases are exact, and whoever reads them may learn about single " +
			"subjects"}
	case c.Total != nil:
		return []string{fmt.Sprintf("%s in total, for one %s, %s; %s per site",
			account.Words(c.Total.Epsilon, c.Total.Delta), c.Unit, c.Adjacency, c.sums())}
	}
	lines := []string{fmt.Sprintf("nothing is promised in total: %s is meant for each noised sum alone, for one %s, %s",
		account.Words(c.PerRelease.Epsilon, c.PerRelease.Delta), c.Unit, c.Adjacency)}
	epsilon := func(s SiteCost) float64 {
		if e := s.loss(c.Adjacency).Epsilon; e != nil {
			return *e
		}
		return math.Inf(1)
	}
	worst := slices.MaxFunc(c.Sites, func(a, b SiteCost) int {
		return cmp.Or(cmp.Compare(a.Unprotected, b.Unprotected), cmp.Compare(epsilon(a), epsilon(b)))
	})
	if worst.Unprotected > 0 {
		lines = append(lines, fmt.Sprintf("nothing bounds the total: of the %d releases of a site, %d without noise",
			worst.Releases, worst.Unprotected))
	}
	if loss := worst.loss(c.Adjacency); loss.Epsilon == nil {
		return append(lines, "nothing bounds the noised sums: "+loss.Unbounded)
	}
	return append(lines, fmt.Sprintf("losses add up: %s per site together cost %s", c.sums(),
		account.Words(epsilon(worst), c.PerRelease.Delta)))
}

// sums says how many noised sums a site gives.
func (c *Cost) sums() string {
	low, high := math.MaxInt, 0
	for _, s := range c.Sites {
		low, high = min(low, s.Sums), max(high, s.Sums)
	}
	switch {
	case low < high:
		return fmt.Sprintf("%d to %d noised sums", low, high)
	case high == 1:
		return "1 noised sum"
	}
	return fmt.Sprintf("%d noised sums", high)
}
