package privacy_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"parley/dataset"
	"parley/internal/testkit"
	"parley/privacy"
	"parley/privacy/account"
	"parley/privacy/ledger"
	"parley/privacy/privacytest"
)

// draw is one noised sum that was made: for a release, the first or second of
// its sums, from so many rows.
type draw struct {
	release   string
	use, rows int
}

// auditor sees everything: what was asked, drawn at the site, and sent.
type auditor struct {
	granted map[string][]privacy.Ask // of each study, in order
	drawn   map[draw][]int64         // the noise
	made    map[string][][]int64     // the sums of the last computation of a release
	sent    map[string][]byte        // by release
	now     draw                     // what is being made
}

func name(a privacy.Ask) string { return fmt.Sprintf("%s/%s/%d", a.Study, a.Site, a.Round) }

// pair is a request for two sums of 8 numbers each.
func pair() privacy.Request {
	return privacy.Request{Protection: privacy.Differential, Sums: []privacy.Sum{{
		Name: "values", Unit: privacy.Subject, Form: privacy.Vectors, Blocks: []int{8}, Bound: 4,
		Mechanism: account.Mechanism{Kind: account.Gaussian, Noise: 6, Rate: 1, Diameter: 2, Count: 2},
	}}}
}

// plan lists what both studies of a history ask for. It costs ε 1.9 at 10⁻⁵.
func plan() []privacy.Listed {
	once := pair()
	once.Contents = []privacy.Content{{What: "a last look", Values: 8}}
	return []privacy.Listed{{Kind: "fit", Times: 3, Request: pair()}, {Kind: "look", Times: 1, Request: once}}
}

var promise = privacy.Guarantee{Unit: privacy.Subject, Adjacency: account.AddRemove,
	Budget: account.Budget{Epsilon: 2, Delta: 1e-5}}

// grants says what must become of a task: nil, ErrRefused or ErrConflict.
func (a *auditor) grants(ask privacy.Ask) error {
	last, n := 0, 0
	for _, g := range a.granted[ask.Study] {
		if g.Round == ask.Round && g.Task != ask.Task {
			return privacy.ErrConflict
		}
		if g.Round == ask.Round {
			return nil
		}
		last = max(last, g.Round)
		if g.Kind == ask.Kind {
			n++
		}
	}
	i := slices.IndexFunc(plan(), func(l privacy.Listed) bool { return l.Kind == ask.Kind })
	if i < 0 || n >= plan()[i].Times || ask.Round <= last {
		return privacy.ErrRefused
	}
	return nil
}

// handle is what a site does with a task, as the engine does it.
func (a *auditor) handle(t testing.TB, g *privacy.Gate, j *fragile, ask privacy.Ask) error {
	r, ok, err := g.Stored(ask)
	if err != nil {
		return err
	}
	if !ok {
		session, err := g.Admit(ask)
		if err != nil {
			return err
		}
		defer session.Close()
		a.made[name(ask)] = nil
		for use := range 2 {
			a.now = draw{name(ask), use, j.rows}
			j.at("computing")
			n, err := session.Sum(t.Context(), "values", func(_ *dataset.Row, v []float64) int {
				v[0] = 1
				return 0
			})
			if err != nil {
				return err
			}
			made := n.Integers()[0]
			noise := slices.Clone(made)
			noise[0] -= int64(math.Round(float64(j.rows) / pair().Sums[0].Step()))
			if before, again := a.drawn[a.now]; again && !slices.Equal(before, noise) {
				return fmt.Errorf("sum %d of release %s was noised anew", a.now.use, a.now.release)
			}
			for d, other := range a.drawn {
				if d != a.now && slices.Equal(noise, other) {
					return fmt.Errorf("the noise of %+v was used before, for %+v", a.now, d)
				}
			}
			a.drawn[a.now] = noise
			a.made[name(ask)] = append(a.made[name(ask)], made)
		}
		if r, err = session.Seal(fmt.Appendf(nil, "state was %q", session.State()),
			fmt.Appendf(nil, "round %d", ask.Round)); err != nil {
			return err
		}
	}
	j.at("before sending")
	if before, again := a.sent[name(ask)]; again && !bytes.Equal(before, r.Bytes()) {
		return fmt.Errorf("release %s was sent in different words", name(ask))
	}
	a.sent[name(ask)] = r.Bytes()
	j.at("after sending")
	return nil
}

// verdict says what has gone wrong, if anything has.
func (a *auditor) verdict(j *fragile) error {
	lines, err := ledger.Read(j.Journal)
	if err != nil {
		return err
	}
	charged := map[string][]ledger.Entry{}
	for _, e := range lines.Entries {
		charged[e.Study] = append(charged[e.Study], e)
	}
	for study, asks := range a.granted {
		if len(charged[study]) != len(asks) {
			return fmt.Errorf("study %s: %d charges for %d tasks", study, len(charged[study]), len(asks))
		}
		for i, ask := range asks {
			e := charged[study][i]
			l := plan()[slices.IndexFunc(plan(), func(l privacy.Listed) bool { return l.Kind == ask.Kind })]
			if e.Release != name(ask) || e.Attempt != 1 || e.Kind != ask.Kind ||
				fmt.Sprint(e.Request) != fmt.Sprint(l.Request) {
				return fmt.Errorf("study %s: charge %d reads %+v, and %+v was asked", study, i, e, ask)
			}
			if err := a.stored(j, name(ask), l.Request); err != nil {
				return err
			}
		}
	}
	for d := range a.drawn {
		if _, ok := j.keys[d.release]; !ok {
			return fmt.Errorf("%+v was drawn without a charge", d)
		}
	}
	account, err := lines.Account(1e-5)
	if err != nil {
		return err
	}
	for _, s := range account.Studies {
		if l := s.Losses[0]; l.Epsilon == nil || *l.Epsilon > s.Guarantee.Epsilon {
			return fmt.Errorf("study %s has charged %+v, more than its guarantee", s.Study, l)
		}
	}
	return nil
}

// stored holds what is kept of a release against what was made, and looks for
// its key. A key that is gone is not in the bytes of the store's file, nor in
// a journal beside it. What this does not cover are blocks that the file system
// has freed: the rollback journal that had the page with the key is removed,
// not overwritten, and a disk may keep old copies of anything.
func (a *auditor) stored(j *fragile, release string, request privacy.Request) error {
	r, ok, err := j.Journal.Release(release)
	switch {
	case err != nil || !ok:
		return fmt.Errorf("release %s was charged and is not there: %w", release, err)
	case r.Sealed == nil:
		return nil
	case r.Key != nil:
		return fmt.Errorf("release %s is stored, and its key is kept", release)
	}
	for _, file := range j.files() {
		if bytes.Contains(file, keyOf(j, release)) {
			return fmt.Errorf("release %s is stored, and its key is still in the file", release)
		}
	}
	o, err := privacy.Open(r.Sealed, request)
	if err != nil {
		return err
	}
	var inside [][]int64
	for _, n := range o.Sums["values"] {
		inside = append(inside, n.Integers()...)
	}
	if !reflect.DeepEqual(inside, a.made[release]) {
		return fmt.Errorf("release %s holds %v, and %v was made", release, inside, a.made[release])
	}
	return nil
}

func keyOf(j *fragile, release string) []byte {
	key := j.keys[release]
	return key[:]
}

func newAuditor() *auditor {
	return &auditor{granted: map[string][]privacy.Ask{}, drawn: map[draw][]int64{}, made: map[string][][]int64{},
		sent: map[string][]byte{}}
}

// history is a random life of one site: two studies, tasks in any order, late
// and duplicate ones, tasks that no plan lists, a clock that jumps, and crashes
// anywhere, after which the site may have another row.
func history(t testing.TB, rt *rapid.T, p place, plant func(*auditor, privacy.Journal) (privacy.Journal,
	[]privacy.Option)) error {
	a := newAuditor()
	deaths := 0
	j := newFragile(p, func(at string) bool {
		most := 11
		if at == "before storing" { // the whole computation is lost
			most = 3
		}
		if deaths < 12 && rapid.IntRange(0, most).Draw(rt, "dies") == 0 {
			deaths++
			return true
		}
		return false
	})
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	options := []privacy.Option{privacy.Clock(func() time.Time {
		now = now.Add(time.Duration(rapid.IntRange(-1000, 1000).Draw(rt, "hours")) * time.Hour)
		return now
	})}
	restart := func(base privacy.Journal) {
		j.Journal = base
		if plant != nil {
			var more []privacy.Option
			j.Journal, more = plant(a, base)
			options = append(options[:1], more...)
		}
	}
	restart(j.Journal)
	gates := map[string]*privacy.Gate{}
	var unanswered *privacy.Ask
	for range rapid.IntRange(1, 25).Draw(rt, "tasks") {
		ask := privacy.Ask{Study: rapid.SampledFrom([]string{"one", "two"}).Draw(rt, "study"), Site: "north",
			Round: rapid.IntRange(-1, 6).Draw(rt, "round")}
		ask.Kind = rapid.SampledFrom([]string{"fit", "fit", "fit", "look", "other"}).Draw(rt, "kind")
		copy(ask.Task[1:], ask.Kind)
		ask.Task[0] = byte(rapid.IntRange(0, 9).Draw(rt, "task") / 9) // now and then another task under the same name
		if unanswered != nil && rapid.IntRange(0, 3).Draw(rt, "asks again") > 0 {
			ask = *unanswered
		}
		unanswered = nil
		want := a.grants(ask)
		if ask.Round < 1 {
			want = privacy.ErrRefused
		}
		died, err := survives(func() error {
			if gates[ask.Study] == nil {
				g := promise
				gates[ask.Study] = privacy.NewGate(privacy.Study{Digest: ask.Study, Site: "north", Requests: plan(),
					Guarantee: &g}, privacy.SimulationPolicy(), j, subjects(j.rows), options...)
			}
			return a.handle(t, gates[ask.Study], j, ask)
		})
		if died {
			clear(gates) // the process begins anew
			unanswered = &ask
			j.rows = rapid.SampledFrom([]int{5, 5, 5, 6}).Draw(rt, "rows")
			restart(p.open())
		} else if want == nil && err != nil || want != nil && !errors.Is(err, want) {
			return fmt.Errorf("task %+v: %w, and it should have been %v", ask, err, want)
		}
		_, charged, err := j.Journal.Release(name(ask))
		if err != nil {
			return err
		}
		if charged && !slices.ContainsFunc(a.granted[ask.Study], func(g privacy.Ask) bool {
			return g.Round == ask.Round
		}) {
			if want != nil {
				return fmt.Errorf("task %+v was charged, and it should have been %v", ask, want)
			}
			a.granted[ask.Study] = append(a.granted[ask.Study], ask)
		}
		if err := a.verdict(j); err != nil {
			return err
		}
	}
	return nil
}

// In every history the gate grants what the plan lists, in rounds that rise,
// and nothing else; what was charged is what was listed for the tasks that were
// granted, each once; a task that is computed again from the same rows gives the
// same numbers, and from other rows other noise; a release is the same bytes
// whenever it is sent; and its key is gone.
func TestChargedIsWhatWasGrantedInEveryHistory(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		testkit.Do(rt, history(t, rt, inMemory(t), nil))
	})
}

// The same with the file that sites have. (What of it survives a process that
// is killed while it writes is SQLite's promise; runs that are killed for good
// are tested with the engine.)
func TestHistoriesOnDisk(t *testing.T) {
	for seed := range 6 {
		if err := rapid.Custom(func(rt *rapid.T) error { return history(t, rt, onDisk(t), nil) }).Example(
			seed); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// A task that is computed again after its rows have changed has its key still,
// and the noise of its sums is another: their difference is not that of the
// exact sums, in the entry that has changed; where both are the same, in seven
// other entries, they differ none the less.
func TestOtherRowsUnderTheSameKeyMeetOtherNoise(t *testing.T) {
	g := promise
	s := privacy.Study{Digest: "one", Site: "north", Requests: plan(), Guarantee: &g}
	for name, p := range map[string]place{"in memory": inMemory(t), "on disk": onDisk(t)} {
		var keys [][32]byte
		noise := map[int][]int64{}
		for _, rows := range []int{5, 6, 5} { // nothing is ever sealed: each is a process that died
			session := testkit.Get(privacy.NewGate(s, open, p.open(), subjects(rows)).Admit(at("one", 1)))(t)
			keys = append(keys, session.Key())
			n, err := session.Sum(t.Context(), "values", func(_ *dataset.Row, v []float64) int {
				v[0] = 1
				return 0
			})
			if err != nil {
				t.Fatal(err)
			}
			drawn := slices.Clone(n.Integers()[0])
			drawn[0] -= int64(float64(rows) / pair().Sums[0].Step())
			if before, again := noise[rows]; again && !slices.Equal(before, drawn) {
				t.Errorf("%s: the same rows met the noise %v, then %v", name, before, drawn)
			}
			noise[rows] = drawn
		}
		if keys[0] == [32]byte{} || keys[0] != keys[1] || keys[0] != keys[2] {
			t.Fatalf("%s: keys %x", name, keys)
		}
		for i := range noise[5] {
			if noise[5][i] == noise[6][i] {
				t.Errorf("%s: entry %d has the same noise with five rows and with six", name, i)
			}
		}
	}
}

// A task whose computation dies at any step, or at any two, one after the
// other, ends with the bytes that it would have had without.
func TestTaskThatDiesAnywhereEndsWithTheSameBytes(t *testing.T) {
	g := promise
	s := privacy.Study{Digest: "one", Site: "north", Requests: plan(), Guarantee: &g}
	run := func(p place, deaths ...int) (steps []string, sent []byte) {
		t.Helper()
		a := newAuditor()
		j := newFragile(p, func(at string) bool {
			steps = append(steps, at)
			return slices.Contains(deaths, len(steps))
		})
		a.granted["one"] = []privacy.Ask{at("one", 1), at("one", 2)}
		for _, ask := range a.granted["one"] {
			for {
				died, err := survives(func() error {
					return a.handle(t, privacy.NewGate(s, open, j, subjects(5), privacytest.Seeded(1)), j, ask)
				})
				if err != nil {
					t.Fatalf("deaths at %v: %v", deaths, err)
				}
				if !died {
					break
				}
				j.Journal = p.open()
			}
		}
		if err := a.verdict(j); err != nil {
			t.Fatalf("deaths at %v: %v", deaths, err)
		}
		for _, id := range slices.Sorted(maps.Keys(a.sent)) {
			sent = append(sent, a.sent[id]...)
		}
		return steps, sent
	}
	steps, want := run(inMemory(t))
	if len(steps) < 20 {
		t.Fatalf("only the steps %v", steps)
	}
	for first := 1; first <= len(steps); first++ {
		if _, got := run(onDisk(t), first); !bytes.Equal(got, want) {
			t.Errorf("on disk, a death %s: other bytes", steps[first-1])
		}
		for second := first; second <= first+len(steps)/2+1; second++ {
			if _, got := run(inMemory(t), first, second); !bytes.Equal(got, want) {
				t.Errorf("a death %s, and one %d steps later: other bytes", steps[first-1], second-first)
			}
		}
	}
}
