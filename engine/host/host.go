// Package host puts together one site's side of any study: plan, data, policy
// and store become a preview for people, an approval, a gate, and the loop that
// answers. A simulation has a host for every site; a site's own program has one.
package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/dataset"
	"parley/engine"
	"parley/internal/wire"
	"parley/method"
	"parley/privacy"
	"parley/privacy/ledger"
	"parley/privacy/masks"
	"parley/privacy/policy"
	"parley/problem"
	"parley/sitestore"
	"parley/study"
)

// Store is what a site keeps: [parley/sitestore.Store], or [parley/sitestore.Memory]
// where a simulation may forget.
type Store interface {
	engine.Store
	// Bind fails if the store belongs to another site.
	Bind(site string) error
	// Agree returns the terms of a study that are kept, after it has kept these if there were none
	// and they are not nil.
	Agree(study string, terms []byte) (kept []byte, err error)
	Decide(at time.Time, study, decision string) error
}

// Host is one site's side of studies. It reads all rows once, to check and count
// them: whoever wants to know whether the data are as they were asks a new Host.
type Host struct {
	Site    string
	Methods method.Registry
	Data    dataset.Source   // nil if there are none, or none that can be read
	Summary *dataset.Summary // of Data, if it is known already
	Faults  problem.List     // what is wrong with data that could not be opened, for a preview to show
	Store   Store
	Policy  policy.Policy
	Marks   engine.Marks     // nil if nobody keeps them
	Options []privacy.Option // of the gate; none but in tests and measuring tools
	// Keys are the site's own, for plans with a secure sum; nil in a simulation.
	Keys *masks.Keys
	// Rounds is that of the plan, where one process has all of its sites; 0 to count them.
	Rounds int

	mu      sync.Mutex      // of counted and halves
	counted *dataset.Census // once it was needed
	halves  map[string]method.Site
}

var errNoData = errors.New("the site has no data yet")

// census reads every row once, which checks every cell unless the data are read tolerantly:
// so what is wrong with them shows before anything is charged. An error stays here.
func (h *Host) census(ctx context.Context) (*dataset.Census, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.Summary != nil:
		return h.Summary.Census, nil
	case h.counted != nil:
		return h.counted, nil
	}
	if h.Data == nil {
		return nil, h.noData()
	}
	c, err := dataset.Count(ctx, h.Data)
	if err != nil {
		return nil, privacy.Unread(fmt.Errorf("reading the data: %w", err))
	}
	h.counted = c
	return c, nil
}

// Fingerprint is that of the site's rows, in hexadecimal. It stays at the site.
func (h *Host) Fingerprint(ctx context.Context) (string, error) {
	c, err := h.census(ctx)
	if err != nil {
		return "", err
	}
	return c.Hex(), nil
}

// Shown says, to the site's own people alone, what the rows have shown that nobody was asked
// about where a study does not look at them before it is charged: records that count as
// nothing, and fewer subjects than the policy wants. Empty if there is nothing.
func (h *Host) Shown() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var list problem.List
	if d, ok := h.Data.(interface{ LeftOut() problem.List }); ok && h.counted != nil {
		list = d.LeftOut()
	}
	if h.counted != nil && h.counted.Subjects < h.Policy.Minimum.Subjects {
		list.Add(problem.Problem{Where: "policy: minimum.subjects",
			What: fmt.Sprintf("there are %d subjects", h.counted.Subjects),
			Hint: "the policy names another size; the study goes on, and is told nothing"})
	}
	return strings.Join(list.Lines(), "; ")
}

// noData says why there are no data.
func (h *Host) noData() error {
	if err := h.Faults.Err(); err != nil {
		return err
	}
	return errNoData
}

// studyOf returns the method, what the gate must know, and the rules of the policy for
// it. Where everything that leaves is noised, and nobody looks at the rows for the site's
// own people, no row is read: the limits that depend on how many subjects there are
// are then held against the number that the policy names for others to know.
func (h *Host) studyOf(ctx context.Context, p *study.Plan,
	look bool) (method.Method, privacy.Study, policy.Policy, error) {
	rules := h.Policy
	m, s, err := h.planned(p)
	if err != nil {
		return nil, s, rules, err
	}
	s.Data = func() ([32]byte, error) {
		c, err := h.census(ctx)
		if err != nil {
			return [32]byte{}, err
		}
		return c.Fingerprint, nil
	}
	switch {
	case look || !s.Noised():
		c, err := h.census(ctx)
		if err != nil {
			return nil, s, rules, err
		}
		s.Subjects = c.Subjects
	case h.Data == nil:
		return nil, s, rules, h.noData()
	case rules.Size > 0:
		s.Subjects = rules.Size
	default:
		rules = rules.Uncounted()
	}
	return m, s, rules, nil
}

// Noised says whether everything that the site may send in a study is noised: see
// [privacy.Study.Noised].
func (h *Host) Noised(p *study.Plan) (bool, error) {
	_, s, err := h.planned(p)
	return s.Noised(), err
}

// planned is studyOf by plan alone.
func (h *Host) planned(p *study.Plan) (method.Method, privacy.Study, error) {
	m, ok := h.Methods.Lookup(p.Method.Name)
	if !ok {
		return nil, privacy.Study{}, fmt.Errorf("method %q is not known", p.Method.Name)
	}
	list, err := method.ForPlan(m, p).Requests(p, h.Site)
	if err != nil {
		return nil, privacy.Study{}, err
	}
	s, err := privacy.StudyOf(p, h.Site, list)
	if err == nil {
		s.Party, err = method.PartyOf(p, h.Site, h.Keys)
	}
	return m, s, err
}

// Rounds is what the plan comes to if each round has one task of one site; it notes what each is asked for.
func Rounds(m method.Method, p *study.Plan, requests map[string][]privacy.Listed) (n int, err error) {
	for _, site := range p.Sites {
		if requests[site], err = method.ForPlan(m, p).Requests(p, site); err != nil {
			return 0, fmt.Errorf("site %s: %w", site, err)
		}
		for _, l := range requests[site] {
			n += l.Times
		}
	}
	return n, nil
}

// Admits says what rules and ledger make of a study, and whether the site has files for it.
func (h *Host) Admits(charged *ledger.Ledger, p *study.Plan, s privacy.Study, rules policy.Policy,
	cost *ledger.Cost) (*ledger.Admission, error) {
	a, err := charged.Admits(rules, s, cost.Delta(), privacy.Requests(s.Requests)...)
	if err != nil || a.Begun {
		return a, err
	}
	no := &privacy.RefusalError{}
	if err := h.lacking(p, s); errors.As(err, &no) {
		a.Admitted = false
		for _, r := range no.Reasons {
			a.Reasons = append(a.Reasons, ledger.Reason{Where: r.Where, What: r.What, Hint: r.Hint})
		}
	} else if err != nil {
		return nil, err
	}
	return a, nil
}

// lacking refuses a private study in which no subject of the site can count, because each set of views that the plan
// states for it has one of which the site has no file. Which files there are says nothing of a person. How many
// subjects would count does, so it refuses nothing: a preview tells the site's people.
func (h *Host) lacking(p *study.Plan, s privacy.Study) error {
	m, _ := h.Methods.Lookup(p.Method.Name)
	selective, ok := m.(method.Selective)
	d, files := h.Data.(interface{ Held() []bool })
	if !ok || !files || !s.Noised() {
		return nil
	}
	var lacks []string
	views := make([][]float64, len(p.Views))
	for k, held := range d.Held() {
		if !held {
			lacks = append(lacks, p.Views[k].Name)
		} else {
			views[k] = []float64{}
		}
	}
	if lacks == nil {
		return nil
	}
	if counts, err := selective.Counts(method.HalfPlan(p), h.Site, views); err != nil || counts {
		return err
	}
	return &privacy.RefusalError{Reasons: problem.List{{Where: "method.patterns",
		What: "no subject of this site could count: there is no file of " + strings.Join(lacks, ", ") +
			", and the plan states no set of views without",
		Hint: "ask for a plan that states what this site has, before anything is charged"}}}
}

// terms are what a site agrees to, beside the plan itself, which names the study.
type terms struct {
	Version  int    `cbor:"version"`
	Method   string `cbor:"method"`
	Revision int    `cbor:"revision"`
	Data     []byte `cbor:"data"` // fingerprint
}

// Open takes part in a study: it returns the loop that answers its tasks. What
// policy and ledger would refuse in the end is refused now, before the first
// charge, by an error that wraps [privacy.ErrRefused]; engine.ErrChanged is returned if
// the study was begun with other data, or another revision of the method.
func (h *Host) Open(ctx context.Context, p *study.Plan) (*engine.Site, error) {
	m, s, rules, err := h.studyOf(ctx, p, false)
	if err != nil {
		return nil, err
	}
	if s.Rounds = h.Rounds; s.Rounds == 0 {
		if s.Rounds, err = Rounds(m, p, map[string][]privacy.Listed{}); err != nil {
			return nil, err
		}
	}
	if err := h.Store.Bind(h.Site); err != nil {
		return nil, err
	}
	begun, err := h.agree(m, s, rules, !s.Noised())
	if err == nil && !begun {
		err = h.lacking(p, s)
	}
	if err != nil {
		return nil, err
	}
	half, err := h.half(m, p, s.Digest)
	if err != nil {
		return nil, err
	}
	return engine.NewSite(engine.Site{
		Name: h.Site, Study: s.Digest, Revision: m.Revision(), Sites: p.Sites, Minimum: h.Policy.Minimum.Sites,
		AnswerAfter: p.Privacy.AnswerAfter.Duration(),
		Half:        half, Gate: h.gate(m, s, rules), Store: h.Store, Marks: h.Marks,
	}), nil
}

// agree holds everything that the study will ask for against policy and ledger, and says whether it has
// begun. If so, its terms are compared instead; whether its rows are the same shows when a task is charged,
// unless they may be looked at now.
func (h *Host) agree(m method.Method, s privacy.Study, rules policy.Policy, look bool) (begun bool, err error) {
	charged, err := ledger.Read(h.Store)
	if err != nil {
		return false, err
	}
	begun = slices.ContainsFunc(charged.Entries, func(e ledger.Entry) bool { return e.Study == s.Digest })
	if err := h.keep(m, s, look, begun); err != nil || begun {
		return begun, err
	}
	return false, charged.Check(rules, s, privacy.Requests(s.Requests)...)
}

// gate is the gate of a study, whose first charge makes its terms final: until then
// the data may change, and the study may be approved again.
func (h *Host) gate(m method.Method, s privacy.Study, rules policy.Policy) *privacy.Gate {
	return privacy.NewGate(s, rules, binding{h.Store, func() error { return h.keep(m, s, true, true) }}, h.Data,
		h.Options...)
}

// binding keeps a study's terms before it is charged.
type binding struct {
	Store
	keep func() error
}

// Release fails if what was charged is not stored yet, and the terms are others: it would be made of
// other data than the charge was for.
func (b binding) Release(id string) (sitestore.Release, bool, error) {
	r, charged, err := b.Store.Release(id)
	if err == nil && charged && r.Sealed == nil {
		err = b.keep()
	}
	return r, charged, err
}

// Reserve fails if the terms that are kept are others.
func (b binding) Reserve(r sitestore.Reservation, key [32]byte) error {
	if err := b.keep(); err != nil {
		return err
	}
	return b.Store.Reserve(r, key)
}

// keep compares the terms of a study with those that are kept, its data only if rows may be
// looked at. If none are kept, it keeps them if they are final now.
func (h *Host) keep(m method.Method, s privacy.Study, look, final bool) error {
	kept, err := h.Store.Agree(s.Digest, nil)
	if err != nil || kept == nil && !final {
		return err
	}
	var old terms
	if kept != nil {
		if err := wire.Unmarshal(kept, &old); err != nil {
			return fmt.Errorf("the terms of study %.12s in the store: %w", s.Digest, err)
		}
		if now := m.Revision(); old.Revision != now {
			return fmt.Errorf("%w: method %s had revision %d, and this program has %d\n  hint: go on with the parley "+
				"that began the study", engine.ErrChanged, m.Name(), old.Revision, now)
		}
	}
	if !look {
		return nil
	}
	data, err := s.Data()
	if err != nil {
		return err
	}
	now, err := wire.Marshal(terms{Version: 1, Method: m.Name(), Revision: m.Revision(), Data: data[:]})
	if err != nil {
		return err
	}
	if kept == nil {
		if kept, err = h.Store.Agree(s.Digest, now); err != nil {
			return err
		}
	}
	if string(kept) != string(now) {
		return fmt.Errorf("%w: its data are others\n  hint: put the data back as they were; new data are for a new "+
			"study", engine.ErrChanged)
	}
	return nil
}

// GoOn is a person's decision to go on after a loss that stopped the site.
func (h *Host) GoOn(studyDigest string, after *engine.RolledBackError) error {
	return h.Store.Decide(time.Now(), studyDigest, after.Decision())
}

// Report makes what the site's own people may see, from what the coordinator
// shared and the site's own rows. It opens with what these rows show that should be looked at.
func (h *Host) Report(ctx context.Context, p *study.Plan, shared []byte) (*method.Result, error) {
	m, ok := h.Methods.Lookup(p.Method.Name)
	if !ok {
		return nil, fmt.Errorf("method %q is not known", p.Method.Name)
	}
	if h.Data == nil {
		return nil, h.noData()
	}
	digest, err := p.Digest()
	if err != nil {
		return nil, err
	}
	half, err := h.half(m, p, digest.String())
	if err != nil {
		return nil, err
	}
	r, err := half.Report(ctx, shared, h.Data)
	if err != nil {
		return nil, err
	}
	cost, err := h.Methods.Cost(p)
	if err != nil {
		return nil, err
	}
	doubts, err := h.doubts(ctx, cost)
	if err != nil {
		return nil, err
	}
	r.Sections = append(doubts, r.Sections...)
	return r, nil
}

// half is the site's half of a study, the same one from its first task to its report: it
// may remember what one more reading of the rows would give again.
func (h *Host) half(m method.Method, p *study.Plan, digest string) (method.Site, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if kept := h.halves[digest]; kept != nil {
		return kept, nil
	}
	half, err := method.ForPlan(m, p).Site(p, h.Site)
	if err != nil {
		return nil, err
	}
	if h.halves == nil {
		h.halves = map[string]method.Site{}
	}
	h.halves[digest] = half
	return half, nil
}
