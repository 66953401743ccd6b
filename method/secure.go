package method

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"parley/dataset"
	"parley/figure"
	"parley/internal/wire"
	"parley/privacy"
	"parley/privacy/masks"
	"parley/study"
)

// Cohort is the name of the one site that a method's halves know of where the plan has a secure sum.
const Cohort = "all-sites"

// Additive is a method whose exact answers are sums over subjects, or follow from such sums, so that a secure
// sum can carry them. Its plans are those that [ForPlan] hands to its halves: of one site, [Cohort].
type Additive interface {
	Method
	// Totals declares the sums of an answer to a task of this kind, with the grid that holds them.
	Totals(p *study.Plan, kind string) ([]privacy.Total, error)
	// Numbers are the sums of one site's answer, by their names: those of two sites add up to those of both.
	Numbers(p *study.Plan, t Task, body []byte) (map[string][]float64, error)
	// Answer is the body that the coordinator's half takes, as one site with all subjects would have sent it.
	Answer(p *study.Plan, kind string, sums map[string][]float64) ([]byte, error)
}

// ForPlan returns the method as it serves a plan. Where the plan has a secure sum the coordinator's half is told of
// one site, whose answers are totals over all: each round of the method is then two of the study, in which sites send
// masked sums, and the plan's openers take the masks away (package masks). Everything else of the method stays as it is.
func ForPlan(m Method, p *study.Plan) Method {
	if !p.Privacy.Secure() {
		return m
	}
	return secureMethod{m}
}

type secureMethod struct{ Method }

// kindOpen is the task of an opener.
const kindOpen = "open"

// cohortPlan is a plan as the method's halves see it.
func cohortPlan(p *study.Plan) *study.Plan {
	q := *p
	q.Sites, q.Quorum, q.Local = []string{Cohort}, 1, nil
	q.Privacy.Openers, q.Privacy.Collusion, q.Privacy.Keys = nil, nil, nil
	return &q
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
	if err != nil || !slices.Contains(p.Privacy.Openers, site) {
		return list, err
	}
	open := privacy.Listed{Kind: kindOpen, Request: privacy.Request{Protection: privacy.Differential}}
	for _, l := range list {
		open.Times += l.Times
		open.Request.Opens = max(open.Request.Opens, l.Request.Shape().Words())
	}
	open.Request.Contents = []privacy.Content{{
		What: "sum of this site's masks over the sites in a total, by which the total opens; nothing of it depends on the rows of this site", Values: open.Request.Opens,
	}}
	return append(list, open), nil
}

// masked are the method's own requests, as masked sums.
func (m secureMethod) masked(p *study.Plan) ([]privacy.Listed, error) {
	one := cohortPlan(p)
	additive, err := m.additive(p)
	if err != nil {
		return nil, err
	}
	list, err := m.Method.Requests(one, Cohort)
	if err != nil {
		return nil, err
	}
	for i := range list {
		r := &list[i].Request
		r.Masked = true
		if additive != nil {
			if r.Totals, err = additive.Totals(one, list[i].Kind); err != nil {
				return nil, err
			}
			r.Contents = nil
			for _, t := range r.Totals {
				r.Contents = append(r.Contents, privacy.Content{What: t.Name, Values: t.Numbers})
			}
			continue
		}
		r.Sums = slices.Clone(r.Sums)
		for j := range r.Sums {
			r.Sums[j].Honest = p.Honest()
		}
	}
	return list, nil
}

// Site implements [Method].
func (m secureMethod) Site(p *study.Plan, site string) (Site, error) {
	additive, err := m.additive(p)
	if err != nil {
		return nil, err
	}
	one := cohortPlan(p)
	half, err := m.Method.Site(one, Cohort)
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
	t.Site = Cohort
	a, err := h.Site.Run(ctx, t, s)
	if err != nil {
		return Answer{}, err
	}
	if h.additive == nil {
		if len(a.Body) > 0 {
			return Answer{}, fmt.Errorf("the answer to %q has a body beside its noised sums, which no secure sum carries", t.Kind)
		}
		return a, nil
	}
	numbers, err := h.additive.Numbers(h.plan, t, a.Body)
	if err != nil {
		return Answer{}, err
	}
	for name, list := range numbers {
		if err := s.Total(name, list); err != nil {
			return Answer{}, err
		}
	}
	return Answer{State: a.State}, nil
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
	c := secureCoordinator{plan: p, one: cohortPlan(p), additive: additive}
	if c.inner, err = m.Method.Coordinator(c.one); err != nil {
		return nil, err
	}
	if c.group, err = GroupOf(p); err != nil {
		return nil, err
	}
	list, err := m.masked(p)
	c.requests = list
	return c, err
}

// GroupOf is what all sites of a plan with a secure sum know of each other. In a plan without keys, of a simulation, they
// are ones that anybody can work out.
func GroupOf(p *study.Plan) (*masks.Group, error) {
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
	return g, nil
}

// secureCoordinator is the coordinator's half of a study whose sums are secure.
type secureCoordinator struct {
	inner     Coordinator
	plan, one *study.Plan
	group     *masks.Group
	additive  Additive
	requests  []privacy.Listed
}

// secureState is what it carries. Phase is "", the kind of the sum that is being made, or kindOpen.
type secureState struct {
	Inner    []byte         `cbor:"inner"`
	Phase    string         `cbor:"phase"`
	Kind     string         `cbor:"kind"`     // of the sum
	Sum      *masks.Sum     `cbor:"sum"`      // which sum it is; nil before the first answer
	Set      []masks.Signed `cbor:"set"`      // whose vectors are in Total, in the plan's order
	Total    []byte         `cbor:"total"`    // of masked vectors, less what openers have answered
	Waiting  []string       `cbor:"waiting"`  // openers who have not answered
	Left     []string       `cbor:"left"`     // sites
	Everyone []int          `cbor:"everyone"` // sites of the first exact total, and of all that follow
	Exchange int            `cbor:"exchange"` // sums asked for

	live State
}

// MarshalBinary implements [State].
func (s *secureState) MarshalBinary() (b []byte, err error) {
	if s.Inner, err = s.live.MarshalBinary(); err != nil {
		return nil, err
	}
	return wire.Marshal(s)
}

// Init implements [Coordinator].
func (c secureCoordinator) Init() (State, error) {
	live, err := c.inner.Init()
	return &secureState{live: live}, err
}

// Restore implements [Coordinator].
func (c secureCoordinator) Restore(data []byte) (State, error) {
	s := new(secureState)
	if err := wire.Unmarshal(data, s); err != nil {
		return nil, err
	}
	if err := KnownPhase(s.Phase, slices.Concat(s.Left, s.Waiting), c.plan.Sites, s.Kind, kindOpen); err != nil {
		return nil, err
	}
	if s.Phase != "" {
		r, err := c.request(s.Kind)
		if err != nil {
			return nil, err
		}
		if len(s.Set) > 0 {
			if s.Sum == nil || !s.Sum.Same(masks.Sum{Study: s.Sum.Study, Round: s.Sum.Round, Task: s.Sum.Task, Shape: r.Shape()}) {
				return nil, errors.New("the state's sum is none of the plan's")
			}
			if _, err := s.Sum.Shape.Vector(s.Total); err != nil {
				return nil, fmt.Errorf("the state's total: %w", err)
			}
		}
		if s.Phase == kindOpen {
			if s.Sum == nil {
				return nil, errors.New("the state opens a sum that is not there")
			}
			if err := c.group.CheckSet(*s.Sum, s.Set); err != nil {
				return nil, fmt.Errorf("the state's set: %w", err)
			}
		}
	}
	for _, i := range s.Everyone {
		if i < 0 || i >= len(c.plan.Sites) {
			return nil, fmt.Errorf("the state has a site %d, and the plan has %d", i+1, len(c.plan.Sites))
		}
	}
	var err error
	s.live, err = c.inner.Restore(s.Inner)
	return s, err
}

func (c secureCoordinator) request(kind string) (privacy.Request, error) {
	for _, l := range c.requests {
		if l.Kind == kind {
			return l.Request, nil
		}
	}
	return privacy.Request{}, fmt.Errorf("the plan has no task %q", kind)
}

// Next implements [Coordinator].
func (c secureCoordinator) Next(ms State) (Step, error) {
	s := ms.(*secureState)
	if s.Phase != "" && s.Phase != kindOpen {
		return c.open(s)
	}
	if s.Phase == kindOpen {
		if err := c.take(s); err != nil {
			return Step{}, err
		}
	}
	step, err := c.inner.Next(s.live)
	if err != nil {
		return step, err
	}
	s.live, step.State = step.State, s
	step.Progress, step.Of = 2*step.Progress, 2*step.Of
	if len(step.Tasks) == 0 {
		return step, nil
	}
	if len(step.Tasks) != 1 || step.Wait != All {
		return step, fmt.Errorf("a step of %d tasks, where a secure sum has one for all sites", len(step.Tasks))
	}
	t := step.Tasks[0]
	s.Phase, s.Kind, s.Sum, s.Set, s.Total = t.Kind, t.Kind, nil, nil, nil
	s.Exchange++
	step.Tasks = nil
	for _, site := range Staying(c.plan.Sites, s.Left) {
		t.Site, t.Optional = site, false
		step.Tasks = append(step.Tasks, t)
	}
	return step, nil
}

// open asks the openers to open the sum that all sites have answered.
func (c secureCoordinator) open(s *secureState) (Step, error) {
	if n := len(s.Set); n < c.plan.Quorum {
		return Step{}, fmt.Errorf("%d sites have answered %q, and the plan's quorum is %d: the total stays shut", n, s.Kind, c.plan.Quorum)
	}
	if c.additive != nil && s.Everyone == nil {
		for _, m := range s.Set {
			s.Everyone = append(s.Everyone, m.Site)
		}
	}
	body, err := wire.Marshal(privacy.Opening{Sum: *s.Sum, Set: s.Set})
	if err != nil {
		return Step{}, err
	}
	step := Step{State: s, Progress: 2*s.Exchange - 1, Of: 2 * s.Exchange}
	for _, site := range c.plan.Privacy.Openers {
		if slices.Contains(s.Left, site) {
			return Step{}, c.shut(s, site)
		}
		step.Tasks = append(step.Tasks, Task{Site: site, Kind: kindOpen, Body: body})
	}
	s.Phase, s.Waiting = kindOpen, slices.Clone(c.plan.Privacy.Openers)
	return step, nil
}

func (c secureCoordinator) shut(s *secureState, site string) error {
	return fmt.Errorf("opener %s has left before the total of %q was opened: nobody can open it, and the study ends here", site, s.Kind)
}

// take gives the method the total that has been opened.
func (c secureCoordinator) take(s *secureState) error {
	if len(s.Waiting) > 0 {
		return fmt.Errorf("the total of %q waits for %s", s.Kind, strings.Join(s.Waiting, ", "))
	}
	r, err := c.request(s.Kind)
	if err != nil {
		return err
	}
	v, err := s.Sum.Shape.Vector(s.Total)
	if err != nil {
		return err
	}
	in := Contribution{Site: Cohort, Kind: s.Kind}
	sums, numbers, err := r.Unmasked(v, len(s.Set))
	if err == nil && c.additive != nil {
		in.Body, err = c.additive.Answer(c.one, s.Kind, numbers)
	}
	if err == nil {
		in.Sums = sums
		s.live, err = c.inner.Fold(s.live, in)
	}
	if err != nil {
		return fmt.Errorf("the total of %q over %d sites: %w\n  hint: a site or an opener has sent something else than its own sums, which a secure sum does not tell apart", s.Kind, len(s.Set), err)
	}
	s.Phase, s.Total = "", nil
	return nil
}

// Fold implements [Coordinator].
func (c secureCoordinator) Fold(ms State, in Contribution) (State, error) {
	s := ms.(*secureState)
	if err := Expect(in, c.plan.Sites, s.Phase); err != nil {
		return nil, err
	}
	if s.Phase == kindOpen {
		i := slices.Index(s.Waiting, in.Site)
		if i < 0 {
			return nil, fmt.Errorf("site %s was not asked to open the sum, or has answered", in.Site)
		}
		opening, err := s.Sum.Shape.Vector(in.Body)
		if err != nil {
			return nil, fmt.Errorf("what opens the sum: %w", err)
		}
		return s, c.add(s, opening, s.Sum.Shape.Subtract, func() { s.Waiting = slices.Delete(s.Waiting, i, i+1) })
	}
	m := in.Masked
	at := slices.Index(c.plan.Sites, in.Site)
	switch {
	case m == nil:
		return nil, fmt.Errorf("the answer to %q is not masked", in.Kind)
	case m.Signed.Site != at:
		return nil, fmt.Errorf("its masked vector is that of another site")
	case s.Sum != nil && !s.Sum.Same(m.Sum):
		return nil, fmt.Errorf("its masked vector is part of another sum")
	case len(s.Set) > 0 && s.Set[len(s.Set)-1].Site >= at:
		return nil, fmt.Errorf("site %s has already answered", in.Site)
	}
	if err := c.group.Verify(m.Sum, m.Signed); err != nil {
		return nil, err
	}
	if s.Sum == nil {
		s.Sum, s.Total = &m.Sum, make(masks.Vector, m.Sum.Shape.Words()).Bytes()
	}
	return s, c.add(s, m.Vector, m.Sum.Shape.Add, func() { s.Set = append(s.Set, m.Signed) })
}

// add brings a vector into the total.
func (c secureCoordinator) add(s *secureState, v masks.Vector, op func(to, from masks.Vector), then func()) error {
	total, err := s.Sum.Shape.Vector(s.Total)
	if err != nil {
		return err
	}
	op(total, v)
	s.Total = total.Bytes()
	then()
	return nil
}

// Leave implements [Coordinator]. Exact totals are all over the same sites, so that a site that leaves ends the study;
// with noise the next totals are over those that stay.
func (c secureCoordinator) Leave(ms State, site string) (State, error) {
	s := ms.(*secureState)
	left, err := Leave(c.plan.Sites, s.Left, site)
	if err != nil {
		return nil, err
	}
	switch {
	case s.Phase == kindOpen && slices.Contains(s.Waiting, site):
		return nil, c.shut(s, site)
	case slices.Contains(s.Everyone, slices.Index(c.plan.Sites, site)):
		return nil, fmt.Errorf("site %s has left, and the exact totals of a study are all over the same sites: one over the others would tell its own sums", site)
	}
	s.Left = left
	return s, nil
}

// Result implements [Coordinator].
func (c secureCoordinator) Result(ms State) (*Result, error) {
	s := ms.(*secureState)
	r, err := c.inner.Result(s.live)
	if err != nil {
		return nil, err
	}
	sites := len(c.plan.Sites) - len(s.Left)
	for i, f := range r.Headline { // the method knows of one
		if f.Name == "sites" {
			r.Headline[i].Value = strconv.Itoa(sites)
		}
		r.Headline[i].Name = strings.Replace(f.Name, "at 1 site", "at "+figure.Plural(sites, "site"), 1)
	}
	r.Sections = append(r.Sections, figure.Section{ID: "secure-sum", Title: "Who could have seen a site's own sums",
		Items: []figure.Item{{Note: &figure.Note{Title: "The coordinator learned totals over sites", Text: strings.Join(SecureLines(c.plan), " ")}}}})
	return r, nil
}

// Share implements [Coordinator].
func (c secureCoordinator) Share(ms State, _ string) ([]byte, error) {
	return c.inner.Share(ms.(*secureState).live, Cohort)
}

// PartyOf is what a site brings to the secure sums of a plan; nil for any other plan. Its own keys are nil in a
// simulation, and elsewhere those that the plan names for it.
func PartyOf(p *study.Plan, site string, keys *masks.Keys) (*masks.Party, error) {
	if !p.Privacy.Secure() {
		return nil, nil
	}
	group, err := GroupOf(p)
	if err != nil {
		return nil, err
	}
	party := &masks.Party{Group: *group, Self: slices.Index(p.Sites, site)}
	switch named := len(p.Privacy.Keys) > 0; {
	case party.Self < 0:
		return nil, fmt.Errorf("%q is not a site of this study", site)
	case named != (keys != nil):
		return nil, errors.New("a plan with sum: secure names the keys of its sites when it is submitted to them, and only then: simulate it with parley run, or submit it")
	case named:
		if party.Keys = *keys; keys.Member(site).Text() != group.Members[party.Self].Text() {
			return nil, fmt.Errorf("the plan names keys of site %s that are not this site's: %s, which has %s", site, group.Members[party.Self].Fingerprint(), keys.Member(site).Fingerprint())
		}
		return party, nil
	}
	digest, err := p.Digest()
	if err == nil {
		party.Keys, err = masks.Simulated(digest.String(), site)
	}
	return party, err
}

// SecureLines says to people who would have to work together to see a site's own sums; nothing of a plan without a secure
// sum.
func SecureLines(p *study.Plan) []string {
	if !p.Privacy.Secure() {
		return nil
	}
	openers := strings.Join(p.Privacy.Openers, ", ")
	lines := []string{
		fmt.Sprintf("Sums leave each site masked, and %s take the masks away together, once for each total, which is of at least %d sites.", openers, p.Quorum),
		fmt.Sprintf("If one of %s is honest, nobody learns a site's own sums: the coordinator would have to work together with all of them.", openers),
	}
	if t := p.Privacy.Collusion; t != nil {
		lines = append(lines, fmt.Sprintf("Each site adds 1/%d of the variance of one party's noise, so that a total has all of it as long as at most %d sites work together with the coordinator, who counts as one that does. A site that somebody invents counts among them.", p.Honest(), *t))
	} else {
		lines = append(lines, "All totals are exact and of the same sites, since two totals that differ by a site would tell that site's sums: a site that leaves ends the study.")
	}
	return append(lines, "Nothing that compares sites is computed, and if an opener is gone for good the study ends: nobody else can open a total.")
}

// Fingerprints names the keys of a plan's sites, for comparing by telephone; nil in a simulation.
func Fingerprints(p *study.Plan) (list []string) {
	if len(p.Privacy.Keys) == 0 {
		return nil
	}
	g, err := GroupOf(p)
	if err != nil {
		return nil // of a plan that was not checked
	}
	for _, m := range g.Members {
		list = append(list, m.Name+" "+m.Fingerprint())
	}
	return list
}
