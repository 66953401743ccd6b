package method

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"parley/figure"
	"parley/internal/wire"
	"parley/privacy"
	"parley/privacy/masks"
	"parley/study"
)

// secureCoordinator is the coordinator's half of a study whose sums are secure.
type secureCoordinator struct {
	inner     Coordinator
	plan, one *study.Plan
	group     *masks.Group
	additive  Additive
	requests  []privacy.Listed
}

// secureState is what it carries. Phase is "", the kind of the task for the sum that is being made, or kindOpen.
type secureState struct {
	Inner    []byte         `cbor:"inner"`
	Phase    string         `cbor:"phase"`
	Kind     string         `cbor:"kind"`     // of the sum
	Sum      *masks.Sum     `cbor:"sum"`      // which sum it is; nil before the first answer
	Set      []masks.Signed `cbor:"set"`      // whose vectors are in Total, in the plan's order
	Total    []byte         `cbor:"total"`    // of masked vectors, less what openers have answered
	Waiting  []string       `cbor:"waiting"`  // openers who have not answered
	Left     []string       `cbor:"left"`     // sites
	Openers  []string       `cbor:"openers"`  // of totals; none as long as they are the plan's
	Body     []byte         `cbor:"body"`     // of the sum's task
	Everyone []int          `cbor:"everyone"` // sites of the first exact total, and of all that follow
	Exchange int            `cbor:"exchange"` // sums asked for

	live State
}

// MarshalBinary implements [State].
func (s *secureState) MarshalBinary() (b []byte, err error) {
	if s.Inner, err = s.live.MarshalBinary(); err != nil {
		return nil, err
	}
	return SealState(s)
}

// Init implements [Coordinator].
func (c secureCoordinator) Init() (State, error) {
	live, err := c.inner.Init()
	return &secureState{live: live}, err
}

// Restore implements [Coordinator].
func (c secureCoordinator) Restore(data []byte) (State, error) {
	s := new(secureState)
	err := OpenState(data, s)
	if err == nil {
		s.live, err = c.inner.Restore(s.Inner)
	}
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
	switch repeat, err := c.replace(s); {
	case err != nil:
		return Step{}, err
	case repeat:
		step := Step{State: s, Progress: 2*s.Exchange - 2, Of: 2 * s.Exchange}
		return c.ask(s, step, Task{Kind: s.Kind + again, Body: s.Body})
	case s.Phase == kindOpen:
		if err := c.take(s); err != nil {
			return Step{}, err
		}
	case s.Phase != "":
		return c.open(s)
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
	s.Kind, step.Tasks = t.Kind, nil
	s.Exchange++
	return c.ask(s, step, t)
}

// ask makes a step of one task for all sites that stay.
func (c secureCoordinator) ask(s *secureState, step Step, t Task) (_ Step, err error) {
	s.Phase, s.Sum, s.Set, s.Total, s.Waiting = "", nil, nil, nil, nil
	if _, err := c.replace(s); err != nil {
		return step, err
	}
	s.Phase, s.Body = t.Kind, t.Body
	if c.plan.Privacy.Spare != "" {
		if t.Body, err = wire.Marshal(staffed{c.places(s), s.Body}); err != nil {
			return step, err
		}
	}
	for _, site := range Staying(c.plan.Sites, s.Left) {
		t.Site, t.Optional = site, false
		step.Tasks = append(step.Tasks, t)
	}
	return step, nil
}

// openers are the sites that open totals now.
func (c secureCoordinator) openers(s *secureState) []string {
	if len(s.Openers) > 0 {
		return s.Openers
	}
	return c.plan.Privacy.Openers
}

// places are those of the openers among the plan's sites.
func (c secureCoordinator) places(s *secureState) (at []int) {
	for _, o := range c.openers(s) {
		at = append(at, slices.Index(c.plan.Sites, o))
	}
	return at
}

// replace puts the spare in the place of an opener that has left, and says whether the sum that is being made, which
// nobody can open any more, is to be made once more. It is an error if nobody can stand in.
func (c secureCoordinator) replace(s *secureState) (repeat bool, err error) {
	for i, o := range c.openers(s) {
		if !slices.Contains(s.Left, o) || s.Phase == kindOpen && !slices.Contains(s.Waiting, o) {
			continue // it has opened this total
		}
		if !c.replaceable(s, o) {
			return false, c.shut(s, o)
		}
		s.Openers = slices.Clone(c.openers(s))
		s.Openers[i], repeat = c.plan.Privacy.Spare, s.Phase != ""
	}
	return repeat, nil
}

// replaceable says whether the spare can take the place of an opener.
func (c secureCoordinator) replaceable(s *secureState, opener string) bool {
	spare := c.plan.Privacy.Spare
	return spare != "" && spare != opener && len(s.Openers) == 0 && !slices.Contains(s.Left, spare)
}

// open asks the openers to open the sum that all sites have answered.
func (c secureCoordinator) open(s *secureState) (Step, error) {
	if n := len(s.Set); n < c.plan.Quorum {
		return Step{}, fmt.Errorf("%d sites have answered %q, and the plan's quorum is %d: the total stays shut", n,
			s.Kind, c.plan.Quorum)
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
	for _, site := range c.openers(s) {
		step.Tasks = append(step.Tasks, Task{Site: site, Kind: kindOpen, Body: body})
	}
	s.Phase, s.Waiting = kindOpen, slices.Clone(c.openers(s))
	return step, nil
}

func (c secureCoordinator) shut(s *secureState, site string) error {
	return fmt.Errorf("opener %s has left before the total of %q was opened: nobody can open it, and the study ends "+
		"here", site, cmp.Or(s.Kind, "the first task"))
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
	in := Contribution{Site: cohort, Kind: s.Kind}
	sums, numbers, err := r.Unmasked(v, len(s.Set))
	if err == nil && c.additive != nil {
		var exact Sums
		if exact, err = c.additive.Sums(c.one, s.Kind); err == nil {
			in.Body, err = exact.Answer(Task{Site: cohort, Kind: s.Kind, Body: s.Body}, numbers[exact.Name])
		}
	}
	if err == nil {
		in.Sums = sums
		s.live, err = c.inner.Fold(s.live, in)
	}
	if err != nil {
		return fmt.Errorf("the total of %q over %d sites: %w\n  hint: a site or an opener has sent something else "+
			"than its own sums, which a secure sum does not tell apart", s.Kind, len(s.Set), err)
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
	case s.Phase == kindOpen && slices.Contains(s.Waiting, site) && !c.replaceable(s, site):
		return nil, c.shut(s, site)
	case slices.Contains(s.Everyone, slices.Index(c.plan.Sites, site)):
		return nil, fmt.Errorf("site %s has left, and the exact totals of a study are all over the same sites: one "+
			"over the others would tell its own sums", site)
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
	lines := SecureLines(c.plan)
	if len(s.Openers) > 0 {
		lines = append(lines, fmt.Sprintf("An opener has left: the last totals were opened by %s.",
			strings.Join(s.Openers, ", ")))
	}
	r.Sections = append(r.Sections, figure.Section{ID: "secure-sum", Title: "Who could have seen a site's own sums",
		Items: []figure.Item{{Note: &figure.Note{Title: "The coordinator learned totals over sites",
			Text: strings.Join(lines, " ")}}}})
	return r, nil
}

// Share implements [Coordinator].
func (c secureCoordinator) Share(ms State, _ string) ([]byte, error) {
	return c.inner.Share(ms.(*secureState).live, cohort)
}
