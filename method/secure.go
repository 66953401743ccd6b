package method

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"parley/dataset"
	"parley/figure"
	"parley/internal/wire"
	"parley/privacy"
	"parley/privacy/account"
	"parley/privacy/ledger"
	"parley/privacy/masks"
	"parley/study"
)

// cohort is the name of the one site that a method's halves know of where the plan has a secure sum.
const cohort = "all sites"

// Additive is a method whose exact answers are sums over subjects, or follow from such sums, so that a secure
// sum can carry them. Its plans are those that [ForPlan] hands to its halves: of one site, "all sites".
type Additive interface {
	Method
	// Sums says how an answer to a task of this kind is a sum over subjects.
	Sums(p *study.Plan, kind string) (Sums, error)
}

// Sums are what answers to a task add up in: a total, with the grid that holds it.
type Sums struct {
	privacy.Total
	// Numbers are those of one site's answer: those of two sites add up to those of both.
	Numbers func(t Task, body []byte) ([]float64, error)
	// Answer is the body that the coordinator's half takes, as one site with all subjects would have answered the task.
	Answer func(t Task, numbers []float64) ([]byte, error)
}

// summer is an answer that is brought to sums over subjects, and back.
type summer interface {
	Sum()
	Centre()
}

// Summed are the sums of an answer whose fields add up over subjects, where it has a method Sum once that has made them
// so, which Centre takes back. A form has everything that an answer may have, all 0: see [Flatten].
func Summed(name string, grid masks.Grid, form func() any) (Sums, error) {
	numbers, err := Flatten(form(), form())
	return Sums{Total: privacy.Total{Name: name, Numbers: len(numbers), Grid: grid},
		Numbers: func(_ Task, body []byte) ([]float64, error) {
			answer := form()
			if err := wire.Unmarshal(body, answer); err != nil {
				return nil, err
			}
			if a, ok := answer.(summer); ok {
				a.Sum()
			}
			return Flatten(form(), answer)
		},
		Answer: func(_ Task, numbers []float64) ([]byte, error) {
			answer := form()
			if err := Unflatten(answer, numbers); err != nil {
				return nil, err
			}
			if a, ok := answer.(summer); ok {
				a.Centre()
			}
			return wire.Marshal(answer)
		}}, err
}

// ForPlan returns the method as it serves a plan. Where the plan has a secure sum the coordinator's half is told of one
// site, whose answers are totals over all: each round of the method is then two of the study, in which sites send
// masked sums, and the plan's openers take the masks away (package masks). Everything else of the method stays as it
// is.
func ForPlan(m Method, p *study.Plan) Method {
	if !p.Privacy.Secure() {
		return m
	}
	return secureMethod{m}
}

type secureMethod struct{ Method }

// kindOpen is the task of an opener.
const kindOpen = "open"

// HalfPlan is a plan as its method's halves see it, and what reads their files: of one site, where the plan has a
// secure sum.
func HalfPlan(p *study.Plan) *study.Plan {
	if !p.Privacy.Secure() {
		return p
	}
	return p.Cohort(cohort)
}

// additive is the method's way with exact sums; nil where noised sums are all that leaves.
func (m secureMethod) additive(p *study.Plan) (Additive, error) {
	if p.Privacy.Differential() {
		return nil, nil
	}
	if a, ok := m.Method.(Additive); ok {
		return a, nil
	}
	return nil, fmt.Errorf("method %s has no exact sums over subjects: its plans cannot have sum: secure", m.Name())
}

// Requests implements [Method].
func (m secureMethod) Requests(p *study.Plan, site string) ([]privacy.Listed, error) {
	list, err := m.masked(p)
	if err != nil || site != p.Privacy.Spare && !slices.Contains(p.Privacy.Openers, site) {
		return list, err
	}
	open := privacy.Listed{Kind: kindOpen, Times: len(privacy.Requests(list)),
		Request: privacy.Request{Protection: privacy.Differential}}
	numbers := 0
	for _, l := range list {
		open.Request.Opens = max(open.Request.Opens, l.Request.Shape().Words())
		numbers = max(numbers, ledger.NumbersOf(l.Request))
	}
	open.Request.Contents = []privacy.Content{{
		What: "sum of this site's masks over the sites in a total, by which the total opens; nothing of it depends " +
			"on the rows of this site", Values: numbers,
	}}
	return append(list, open), nil
}

// masked are the method's own requests, as masked sums.
func (m secureMethod) masked(p *study.Plan) ([]privacy.Listed, error) {
	one := HalfPlan(p)
	additive, err := m.additive(p)
	if err != nil {
		return nil, err
	}
	list, err := m.Method.Requests(one, cohort)
	if err != nil {
		return nil, err
	}
	for i := range list {
		r := &list[i].Request
		r.Masked = true
		if additive != nil {
			sums, err := additive.Sums(one, list[i].Kind)
			if err != nil {
				return nil, err
			}
			r.Totals = []privacy.Total{sums.Total}
			r.Contents = []privacy.Content{{What: sums.Name, Values: sums.Total.Numbers}}
			continue
		}
		r.Sums = slices.Clone(r.Sums)
		for j := range r.Sums {
			r.Sums[j].Honest = p.Honest()
		}
	}
	if p.Privacy.Spare == "" {
		return list, nil
	}
	return repeated(list, p.Privacy.Adjacency)
}

// repeated adds to a list of noised sums one more of each, the costliest first.
func repeated(list []privacy.Listed, a account.Adjacency) ([]privacy.Listed, error) {
	cost := map[string]float64{}
	var more []privacy.Listed
	for _, l := range list {
		ms, err := l.Request.Mechanisms(privacy.Subject)
		if err != nil {
			return nil, err
		}
		cost[l.Kind+again], _ = account.Mu(ms, a)
		more = append(more, privacy.Listed{Kind: l.Kind + again, Times: 1, Request: l.Request, Again: true})
	}
	slices.SortStableFunc(more, func(a, b privacy.Listed) int { return cmp.Compare(cost[b.Kind], cost[a.Kind]) })
	return append(list, more...), nil
}

// again ends the kind of a task that repeats one whose total nobody can open, since an opener has left.
const again = ", once more"

// staffed is the body of a task in a plan with a spare.
type staffed struct {
	Openers []int  `cbor:"openers"` // of the total, as places among the plan's sites
	Body    []byte `cbor:"body"`
}

// Site implements [Method].
func (m secureMethod) Site(p *study.Plan, site string) (Site, error) {
	additive, err := m.additive(p)
	if err != nil {
		return nil, err
	}
	one := HalfPlan(p)
	half, err := m.Method.Site(one, cohort)
	return maskedSite{half, one, additive}, err
}

type maskedSite struct {
	Site
	plan     *study.Plan
	additive Additive
}

// Run implements [Site].
func (h maskedSite) Run(ctx context.Context, t Task, s *privacy.Session) (Answer, error) {
	if t.Kind == kindOpen {
		v, err := s.Unmask(t.Body)
		return Answer{Body: v, State: s.State()}, err
	}
	t.Site, t.Kind = cohort, strings.TrimSuffix(t.Kind, again)
	if h.plan.Privacy.Spare != "" {
		var by staffed
		if err := wire.Unmarshal(t.Body, &by); err != nil {
			return Answer{}, err
		}
		if err := s.MaskFor(by.Openers); err != nil {
			return Answer{}, err
		}
		t.Body = by.Body
	}
	a, err := h.Site.Run(ctx, t, s)
	if err != nil {
		return Answer{}, err
	}
	if h.additive == nil {
		if len(a.Body) > 0 {
			return Answer{}, fmt.Errorf("the answer to %q has a body beside its noised sums, which no secure sum "+
				"carries", t.Kind)
		}
		return a, nil
	}
	sums, err := h.additive.Sums(h.plan, t.Kind)
	if err != nil {
		return Answer{}, err
	}
	numbers, err := sums.Numbers(t, a.Body)
	if err != nil {
		return Answer{}, err
	}
	return Answer{State: a.State}, s.Total(sums.Name, numbers)
}

// Report implements [Site].
func (h maskedSite) Report(ctx context.Context, shared []byte, data dataset.Source) (*Result, error) {
	return h.Site.Report(ctx, shared, data)
}

// Coordinator implements [Method].
func (m secureMethod) Coordinator(p *study.Plan) (Coordinator, error) {
	additive, err := m.additive(p)
	if err != nil {
		return nil, err
	}
	c := secureCoordinator{plan: p, one: HalfPlan(p), additive: additive}
	if c.inner, err = m.Method.Coordinator(c.one); err != nil {
		return nil, err
	}
	if c.group, err = groupOf(p); err != nil {
		return nil, err
	}
	list, err := m.masked(p)
	c.requests = list
	return c, err
}

// groupOf is what all sites of a plan with a secure sum know of each other. In a plan without keys, of a simulation,
// they are ones that anybody can work out.
func groupOf(p *study.Plan) (*masks.Group, error) {
	g := &masks.Group{Quorum: p.Quorum}
	digest, err := p.Digest()
	if err != nil {
		return nil, err
	}
	for i, site := range p.Sites {
		var member masks.Member
		if len(p.Privacy.Keys) > 0 {
			member, err = masks.ParseMember(site, p.Privacy.Keys[i])
		} else {
			var keys masks.Keys
			keys, err = masks.Simulated(digest.String(), site)
			member = keys.Member(site)
		}
		if err != nil {
			return nil, err
		}
		g.Members = append(g.Members, member)
	}
	for _, site := range p.Privacy.Openers {
		g.Openers = append(g.Openers, slices.Index(p.Sites, site))
	}
	if i := slices.Index(p.Sites, p.Privacy.Spare); i >= 0 {
		g.Spares = []int{i}
	}
	return g, nil
}

// PartyOf is what a site brings to the secure sums of a plan; nil for any other plan. Its own keys are nil in a
// simulation, and elsewhere those that the plan names for it.
func PartyOf(p *study.Plan, site string, keys *masks.Keys) (*masks.Party, error) {
	if !p.Privacy.Secure() {
		return nil, nil
	}
	group, err := groupOf(p)
	if err != nil {
		return nil, err
	}
	party := &masks.Party{Group: *group, Self: slices.Index(p.Sites, site)}
	switch named := len(p.Privacy.Keys) > 0; {
	case party.Self < 0:
		return nil, fmt.Errorf("%q is not a site of this study", site)
	case named != (keys != nil):
		return nil, errors.New("a plan with sum: secure names the keys of its sites when it is submitted to them, " +
			"and only then: simulate it with parley run, or submit it")
	case named:
		if party.Keys = *keys; keys.Member(site).Text() != group.Members[party.Self].Text() {
			return nil, fmt.Errorf("the plan names keys of site %s that are not this site's: %s, which has %s", site,
				group.Members[party.Self].Fingerprint(), keys.Member(site).Fingerprint())
		}
		return party, nil
	}
	digest, err := p.Digest()
	if err == nil {
		party.Keys, err = masks.Simulated(digest.String(), site)
	}
	return party, err
}

// SecureLines says to people who would have to work together to see a site's own sums; nothing of a plan without a
// secure sum.
func SecureLines(p *study.Plan) []string {
	if !p.Privacy.Secure() {
		return nil
	}
	openers := strings.Join(p.Privacy.Openers, ", ")
	honest := "one of " + openers + " is honest"
	gone := "if an opener is gone for good the study ends: nobody else can open a total"
	if spare := p.Privacy.Spare; spare != "" {
		honest = "two of " + openers + ", " + spare + " are honest"
		gone = fmt.Sprintf("if one opener is gone for good, or the coordinator says so, %s takes its place, and the "+
			"sum that nobody can open is made once more, which the total has room for", spare)
	}
	lines := []string{
		fmt.Sprintf("Sums leave each site masked, and %s take the masks away together, once for each total, which is "+
			"of at least %d sites.", openers, p.Quorum),
		fmt.Sprintf("If %s, nobody learns a site's own sums: the coordinator would have to work together with all who "+
			"open a total, or with all other sites of it, which may be no more than %d.",
			honest, p.Quorum-1),
	}
	if t := p.Privacy.Collusion; t != nil {
		lines = append(lines, fmt.Sprintf("Each site adds 1/%d of the variance of one party's noise, so that a total "+
			"has all of it as long as the coordinator, who is taken for one that would, works together with at most "+
			"%s. A site that somebody invents counts among them.", p.Honest(), figure.Plural(*t, "site")))
	} else {
		lines = append(lines, "All totals are exact and of the same sites, since two totals that differ by a site "+
			"would tell that site's sums: a site that leaves ends the study.",
			"Of what one site has alone or nearly so, such as a view, or a level of a category, the total is that "+
				"site's own. And exact totals can tell of single persons, most of all to a coordinator that asks "+
				"other questions than the method does.")
	}
	return append(lines, "Nothing that compares sites is computed, and "+gone+".")
}

// Fingerprints names the keys of a plan's sites, for comparing by telephone; nil in a simulation.
func Fingerprints(p *study.Plan) (list []string) {
	if len(p.Privacy.Keys) == 0 {
		return nil
	}
	g, err := groupOf(p)
	if err != nil {
		return nil // of a plan that was not checked
	}
	for _, m := range g.Members {
		list = append(list, m.Name+" "+m.Fingerprint())
	}
	return list
}
