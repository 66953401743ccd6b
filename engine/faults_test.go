package engine_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/dataset"
	"parley/engine"
	"parley/engine/enginetest"
	"parley/internal/testkit"
	"parley/internal/wire"
	"parley/method"
	"parley/privacy"
	"parley/privacy/account"
	"parley/privacy/ledger"
	"parley/sitestore"
)

func enc(t testing.TB, v any) []byte {
	t.Helper()
	return testkit.Get(wire.Marshal(v))(t)
}

// forge makes a task for north, and the past that leads to it.
func forge(t testing.TB, round int, kind, body string, records ...engine.Record) ([]byte, engine.Past) {
	t.Helper()
	var head [32]byte
	past := engine.Past{}
	for _, r := range records {
		data := enc(t, r)
		head = sitestore.Next(head, data)
		past.Records = append(past.Records, data)
	}
	task := testkit.Get(enginetest.Task(toyStudy, "north", 0, round, kind, []byte(body), head))(t)
	return task, past
}

// slow is a site that counts and waits to be let go.
type slow struct {
	toySite
	computed chan struct{}
	gate     chan struct{}
}

func (h slow) Run(ctx context.Context, _ method.Task, s *privacy.Session) (method.Answer, error) {
	if h.computed != nil {
		h.computed <- struct{}{}
		<-h.gate
	}
	_, err := s.Sum(ctx, "a sum", func(_ *dataset.Row, v []float64) int { v[0] = 1; return 0 })
	return method.Answer{}, err
}

func ledgerOf(t testing.TB, s ledger.Reader) int {
	t.Helper()
	lines := testkit.Get(s.Reservations(0))(t)
	return len(lines)
}

func siteOn(j engine.Store, half method.Site, g *privacy.Guarantee, list []privacy.Listed) *engine.Site {
	gate := privacy.NewGate(privacy.Study{Digest: toyStudy, Site: "north", Requests: list, Guarantee: g},
		privacy.SimulationPolicy(), j, rows(100))
	return engine.NewSite(engine.Site{Name: "north", Study: toyStudy, Sites: sites, Half: half, Gate: gate, Store: j})
}

// A task that is delivered again while it is computed is computed and charged
// once, and everybody who asked gets the same bytes.
func TestRedeliveryWhileComputingIsChargedOnce(t *testing.T) {
	synctest.Test(t, redeliver)
}

func redeliver(t *testing.T) {
	store := sitestore.NewMemory()
	half := slow{computed: make(chan struct{}, 10), gate: make(chan struct{})}
	site := siteOn(store, half, nil, listing(10, noisedSum))
	task, past := forge(t, 1, "sum", "0")
	var wg sync.WaitGroup
	answers := make([][]byte, 8)
	for i := range answers {
		wg.Go(func() {
			a, err := site.Handle(t.Context(), task, past)
			if err != nil {
				t.Errorf("delivery %d: %v", i, err)
			}
			answers[i] = a.Release.Bytes()
		})
	}
	synctest.Wait() // until all have come as far as they can
	<-half.computed
	close(half.gate)
	wg.Wait()
	for i, a := range answers {
		if len(a) == 0 || !bytes.Equal(a, answers[0]) {
			t.Errorf("delivery %d was answered otherwise than the first", i)
		}
	}
	if n, computed := ledgerOf(t, store), 1+len(half.computed); n != 1 || computed != 1 {
		t.Errorf("%d charges, %d computations", n, computed)
	}
}

// crashing is a store whose operations fail where a test wants them to.
type crashing struct {
	*sitestore.Memory
	room, commit func() error
}

func (c crashing) Free(n int64) error {
	if c.room != nil {
		return c.room()
	}
	return nil
}

func (c crashing) Commit(release string, sealed, state []byte) error {
	if c.commit != nil {
		if err := c.commit(); err != nil {
			return err
		}
	}
	return c.Memory.Commit(release, sealed, state)
}

// exactly is a guarantee that a number of the toy's noised sums uses up.
func exactly(t testing.TB, sums int) *privacy.Guarantee {
	t.Helper()
	m := noisedSum.Sums[0].Mechanism
	m.Count = sums
	epsilon := testkit.Get(account.Epsilon([]account.Mechanism{m}, account.AddRemove, 1e-5))(t)
	return &privacy.Guarantee{Unit: privacy.Subject, Adjacency: account.AddRemove,
		Budget: account.Budget{Epsilon: epsilon * 1.0001, Delta: 1e-5}}
}

// A crash between charge and release forfeits nothing, under a total that is used
// up exactly; a retry gives the bytes that the first try would have given.
func TestCrashBetweenTheCommitsForfeitsNothing(t *testing.T) {
	memory := sitestore.NewMemory()
	var first []byte
	dying := crashing{Memory: memory, commit: func() error { return errors.New("kill -9") }}
	task, past := forge(t, 1, "sum", "0")
	for range 3 {
		if _, err := siteOn(spy{dying, &first}, slow{}, exactly(t, 1), listing(1, noisedSum)).Handle(t.Context(), task,
			past); err == nil {
			t.Fatal("a release was stored in spite of the crash")
		}
	}
	a := testkit.Get(siteOn(memory, slow{}, exactly(t, 1), listing(1, noisedSum)).Handle(t.Context(), task, past))(t)
	if n := ledgerOf(t, memory); n != 1 {
		t.Errorf("%d charges", n)
	}
	if !bytes.Equal(first, a.Release.Bytes()) {
		t.Error("the retry drew other noise than the first try")
	}
}

// spy remembers what was to be stored first.
type spy struct {
	crashing
	first *[]byte
}

func (s spy) Commit(release string, sealed, state []byte) error {
	if *s.first == nil {
		*s.first = bytes.Clone(sealed)
	} else if !bytes.Equal(*s.first, sealed) {
		return errors.New("other bytes than at the first try")
	}
	return s.crashing.Commit(release, sealed, state)
}

// Ten deliveries at a full disk are no charge if it is full before, and one if it
// fills up in between.
func TestFullDiskIsNotChargedAgainAndAgain(t *testing.T) {
	for name, c := range map[string]struct {
		store   crashing
		charges int
	}{
		"before the charge": {crashing{Memory: sitestore.NewMemory(), room: func() error { return sitestore.ErrFull }},
			0},
		"after the charge": {crashing{Memory: sitestore.NewMemory(), commit: func() error {
			return sitestore.ErrFull
		}}, 1},
	} {
		site := siteOn(c.store, slow{}, nil, listing(10, noisedSum))
		task, past := forge(t, 1, "sum", "0")
		for range 10 {
			if _, err := site.Handle(t.Context(), task, past); !errors.Is(err, sitestore.ErrFull) {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if n := ledgerOf(t, c.store); n != c.charges {
			t.Errorf("%s: %d charges", name, n)
		}
	}
}

// A site grants what the plan lists, as often, exact requests too, in rounds that
// rise; and whatever a coordinator makes up has no lasting effect.
func TestSiteGrantsWhatThePlanLists(t *testing.T) {
	store := sitestore.NewMemory()
	site := siteOn(store, toySite{}, nil, listing(3, counted)[:1])
	granted := 0
	var others []engine.Record // a site of which the coordinator says that it has answered
	for i := range 6 {
		others = append(others, engine.Record{Round: i + 1, Sites: []int{1}, Releases: make([]byte, 32)})
	}
	for _, round := range []int{2, 1 << 40, 1, 0, -7, 6, 5, 5, 3, 1 << 40, 6, 7} {
		task, past := forge(t, round, "sum", fmt.Sprint("state ", round, granted), others[:max(0, min(round, 6)-1)]...)
		if round == 2 || round == 6 && granted == 1 { // a round too high for its history
			task, past = forge(t, round, "sum", "early", others[:round-2]...)
		}
		if _, err := site.Handle(t.Context(), task, past); err == nil {
			granted++
		} else if refusal, forked := (*engine.Refusal)(nil), (*engine.ForkedError)(nil); !errors.As(err, &refusal) &&
			!errors.As(err, &forked) {
			t.Errorf("round %d: %v is no refusal", round, err)
		}
	}
	if n := ledgerOf(t, store); granted != 3 || n != 3 {
		t.Errorf("%d tasks granted, %d charges", granted, n)
	}
	task, past := forge(t, 7, "step", "another kind", others...)
	if _, err := site.Handle(t.Context(), task, past); !errors.Is(err, privacy.ErrRefused) {
		t.Errorf("a kind that the plan does not list: %v", err)
	}
}

// What a task claims of the past is verified before anything is kept: histories
// that do not fit the task, the plan's sites, this site's outbox, or what it was
// told before leave no trace, and the honest study goes on.
func TestForgedHistoriesHaveNoEffect(t *testing.T) {
	digest := bytes.Repeat([]byte{7}, 32)
	all := engine.Record{Round: 1, All: true, Releases: digest}
	others := engine.Record{Round: 1, Sites: []int{1, 2}, Releases: digest}
	for name, c := range map[string]struct {
		records []engine.Record
		change  func(*engine.Past)
		want    string
	}{
		"a release of this site that it never made": {[]engine.Record{all}, func(p *engine.Past) {
			p.Own = []engine.Claim{{Round: 1, Digest: digest}}
		}, "older or other copy"},
		"a release that is not named": {[]engine.Record{all}, nil, "counts 1 releases"},
		"a site that is not in the plan": {[]engine.Record{{Round: 1, Sites: []int{7}, Releases: digest}},
			nil, "makes no sense"},
		"a site that contributes twice": {
			[]engine.Record{{Round: 1, Sites: []int{1, 1}, Releases: digest}}, nil, "makes no sense"},
		"a site that contributes after it left": {[]engine.Record{{Round: 1, Left: []int{1}},
			{Round: 2, Sites: []int{1}, Releases: digest}}, nil, "makes no sense"},
		"an empty record": {[]engine.Record{{Round: 1}}, nil, "makes no sense"},
		"20 000 departures of sites not in the plan": {[]engine.Record{{Round: 1, Left: make([]int, 20000)}}, nil,
			"makes no sense"},
		"this site left": {[]engine.Record{{Round: 1, Left: []int{0}}}, nil, "has left"},
		"records that do not lead to the head": {[]engine.Record{others}, func(p *engine.Past) {
			p.Records = nil
		}, "does not lead"},
		"a ledger that was longer": {nil, func(p *engine.Past) {
			p.Ledger = engine.Mark{Lines: 3, Hash: digest}
		}, "older or other copy"},
		"bytes that are no record": {nil, func(p *engine.Past) { p.Records = [][]byte{{0xff}} },
			"makes no sense"},
	} {
		w := enginetest.New(sites...)
		m := toy{sites: sites, rounds: 3}
		c0 := process(w, m, "", 3, nil)
		site := c0.Links["north"].(enginetest.Link).Site
		task, past := forge(t, 2, "sum", "forged", c.records...)
		if c.change != nil {
			c.change(&past)
		}
		_, err := site.Handle(t.Context(), task, past)
		if err == nil {
			t.Errorf("%s: answered", name)
			continue
		}
		if refusal := (*engine.Refusal)(nil); !strings.Contains(err.Error(), c.want) &&
			(!errors.As(err, &refusal) || !strings.Contains(refusal.Public, c.want)) {
			t.Errorf("%s: %v", name, err)
		}
		if n, _, _ := w.Stores["north"].Head(toyStudy); n != 0 || ledgerOf(t, w.Stores["north"]) != 0 {
			t.Errorf("%s: %d records and %d charges were kept", name, n, ledgerOf(t, w.Stores["north"]))
		}
		if _, err := c0.Run(t.Context()); err != nil {
			t.Errorf("%s: the honest study afterwards: %v", name, err)
		}
	}
}

// A site's policy counts whom the history shows to be left.
func TestMinimumOfSitesCountsTheHistory(t *testing.T) {
	alone := []engine.Record{}
	for round := range 2 {
		alone = append(alone, engine.Record{Round: round + 1, Sites: []int{0}, Releases: make([]byte, 32)})
	}
	lonely := engine.NewSite(engine.Site{Name: "north", Study: toyStudy, Sites: sites, Minimum: 3, Half: toySite{},
		Store: sitestore.NewMemory(),
		Gate: privacy.NewGate(privacy.Study{Digest: toyStudy, Site: "north", Requests: listing(9, counted)},
			privacy.SimulationPolicy(), sitestore.NewMemory(), rows(3))})
	third, past := forge(t, 3, "sum", "2", alone...)
	if _, err := lonely.Handle(t.Context(), third, past); err == nil ||
		!strings.Contains(err.Error(), "only 1 sites have contributed") {
		t.Errorf("nobody else contributes: %v", err)
	}
	store := sitestore.NewMemory()
	gate := privacy.NewGate(privacy.Study{Digest: toyStudy, Site: "north", Requests: listing(9, counted)},
		privacy.SimulationPolicy(), store, rows(3))
	site := engine.NewSite(engine.Site{Name: "north", Study: toyStudy, Sites: sites, Minimum: 3, Half: toySite{},
		Gate: gate, Store: store})
	task, past := forge(t, 2, "sum", "1", engine.Record{Round: 1, Left: []int{2}})
	if _, err := site.Handle(t.Context(), task, past); err == nil ||
		!strings.Contains(err.Error(), "only 2 sites are left") {
		t.Errorf("got %v", err)
	}
}

// An answer with protection leaves no earlier than the plan says, the stored one too.
func TestAnswersLeaveOnASchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := sitestore.NewMemory()
		gate := privacy.NewGate(privacy.Study{Digest: toyStudy, Site: "north", Requests: listing(9, noisedSum)},
			privacy.SimulationPolicy(), store, rows(3))
		site := engine.NewSite(engine.Site{Name: "north", Study: toyStudy, Sites: sites, AnswerAfter: time.Minute,
			Half: slow{}, Gate: gate, Store: store})
		task, past := forge(t, 1, "sum", "0")
		for range 2 {
			began := time.Now()
			testkit.Get(site.Handle(t.Context(), task, past))(t)
			if took := time.Since(began); took != time.Minute {
				t.Errorf("answered after %v", took)
			}
		}
	})
}

// Asynchronous answers are folded as they arrive, outside of simulations.
func TestAsynchronousAnswersFoldAsTheyArrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := enginetest.New(sites...)
		c := toyStudyOf(t, w, enginetest.ToyPlan(enginetest.ToyOptions{Rounds: 2, Async: true}, 3, sites...))
		for name, link := range c.Links {
			if name == "north" { // it is asked first, and is slow
				c.Links[name] = linkFunc(func(ctx context.Context, task []byte, past engine.History) (engine.Reply,
					error) {
					time.Sleep(time.Hour)
					return link.Exchange(ctx, task, past)
				})
			}
		}
		out := testkit.Get(c.Run(t.Context()))(t)
		if first := out.Rounds[0].Sites[0].Site; first == "north" {
			t.Errorf("%s was folded first", first)
		}
	})
}

// Both ends must compute with the same revision of the method.
func TestAnotherRevisionIsRefused(t *testing.T) {
	w := enginetest.New(sites...)
	m := toy{sites: sites, rounds: 1}
	c := process(w, m, "", 3, nil)
	c.Revision = 9
	if _, err := c.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "revision 9") ||
		!strings.Contains(err.Error(), "both need the same") {
		t.Errorf("got %v", err)
	}
}

// A state that could not be read again is not written.
func TestStateThatCannotBeLoadedIsNotSaved(t *testing.T) {
	w := enginetest.New(sites...)
	m := toy{sites: sites, rounds: 1}
	c := process(w, m, "", 3, nil)
	c.Method = hoarder{m}
	if _, err := c.Run(t.Context()); err == nil || w.Checkpoint != nil {
		t.Errorf("a checkpoint of %d bytes was saved: %v", len(w.Checkpoint), err)
	}
}

// hoarder has a state with more entries than a decoder takes.
type hoarder struct{ toy }

func (h hoarder) Init() (method.State, error) { return hoard{}, nil }

func (h hoarder) Next(s method.State) (method.Step, error) { return method.Step{State: s}, nil }

type hoard struct{}

func (hoard) MarshalBinary() ([]byte, error) {
	m := map[string]int{}
	for i := range 5000 {
		m[fmt.Sprint(i)] = i
	}
	return wire.Marshal(m)
}

// A broadcast body stands once in a checkpoint, however many sites get it.
func TestBroadcastBodiesAreStoredOnce(t *testing.T) {
	var names []string
	for i := range 100 {
		names = append(names, fmt.Sprintf("site-%02d", i))
	}
	w := enginetest.New(names...)
	m := toy{sites: names, rounds: 1}
	c := process(w, m, "", 100, nil)
	c.Method = shouting{m}
	w.Start(2) // to after the checkpoint of the lonely step
	largest := 0
	for range 5 {
		w.Start(4)
		c.Run(t.Context())
		largest = max(largest, len(w.Checkpoint))
	}
	if largest < 1<<16 || largest > 2<<16 {
		t.Errorf("a checkpoint has %d bytes, with a body of %d", largest, 1<<16)
	}
}

type shouting struct{ toy }

func (m shouting) Next(s method.State) (method.Step, error) {
	step, err := m.toy.Next(s)
	for i := range step.Tasks {
		step.Tasks[i].Body = make([]byte, 1<<16)
	}
	return step, err
}

// marks are what was noted outside of a store.
type marks struct{ known engine.Mark }

func (m *marks) Load() (engine.Mark, error) { return m.known, nil }
func (m *marks) Keep(k engine.Mark) error   { m.known = k; return nil }

// Of two copies of a store that go on beside each other, one is not the site that the
// history tells of: a person must decide, once for all that shows it.
func TestClonedStoreIsNotTheSiteOfTheHistory(t *testing.T) {
	task, past := forge(t, 1, "sum", "0")
	var releases [][]byte
	var clones []*engine.Site
	for range 2 {
		site := siteOn(sitestore.NewMemory(), slow{}, nil, listing(9, noisedSum))
		a := testkit.Get(site.Handle(t.Context(), task, past))(t)
		releases, clones = append(releases, a.Release.Bytes()), append(clones, site)
	}
	if bytes.Equal(releases[0], releases[1]) {
		t.Fatal("two sites drew the same noise")
	}
	digest := sha256.Sum256(releases[0])
	next, past := forge(t, 2, "sum", "1", engine.Record{Round: 1, Sites: []int{0}, Releases: digest[:]})
	past.Own = []engine.Claim{{Round: 1, Digest: digest[:]}}
	if _, err := clones[0].Handle(t.Context(), next, past); err != nil {
		t.Errorf("the site of the history: %v", err)
	}
	clones[1].Marks = &marks{engine.Mark{Lines: 3, Hash: make([]byte, 32)}}
	past.Ledger = engine.Mark{Lines: 2, Hash: make([]byte, 32)}
	e := (*engine.RolledBackError)(nil)
	if _, err := clones[1].Handle(t.Context(), next, past); !errors.As(err, &e) || e.Round != 1 || e.Shown.Lines != 3 ||
		e.Told.Lines != 2 {
		t.Fatalf("its clone: %v", err)
	}
	testkit.Do(t, clones[1].Store.(*sitestore.Memory).Decide(time.Now(), clones[1].Study, e.Decision()))
	if _, err := clones[1].Handle(t.Context(), next, past); err != nil {
		t.Errorf("its clone, after a person's decision: %v", err)
	}
}
