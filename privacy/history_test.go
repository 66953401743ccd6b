package privacy_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"parley/dataset"
	"parley/privacy"
	"parley/privacy/account"
	"parley/privacy/internal/noise"
	"parley/sitestore"
)

// crash is what kills the process in these tests, by a panic: whatever was not
// in the journal is lost.
type crash struct{}

// fragile is a journal in a process that may die before or after any of its
// operations, and nowhere else (sending is an operation, too).
type fragile struct {
	privacy.Journal
	die func(at string) bool

	forgetsRetries bool // planted: a second attempt is not charged
}

func (f *fragile) at(step string) {
	if f.die(step) {
		panic(crash{})
	}
}

func (f *fragile) Release(id string) (sitestore.Release, bool, error) {
	f.at("looking up")
	return f.Journal.Release(id)
}

func (f *fragile) Reserve(r sitestore.Reservation) error {
	f.at("before reserving")
	defer f.at("after reserving")
	if _, ok, _ := f.Journal.Release(r.Release); ok && f.forgetsRetries {
		return nil
	}
	return f.Journal.Reserve(r)
}

func (f *fragile) Commit(release string, sealed, state []byte) error {
	f.at("before storing")
	defer f.at("after storing")
	return f.Journal.Commit(release, sealed, state)
}

// auditor sees everything: what was drawn at the site and what was sent.
type auditor struct {
	journal privacy.LedgerReader
	drawn   map[string]int    // noised sums that were made, by study
	sent    map[string][]byte // by release
	inside  map[string]int    // noised sums in what was sent, by study
	noise   [][]int64         // every vector of noise that was drawn
}

// verdict says what has gone wrong, if anything has.
func (a *auditor) verdict() error {
	ledger, err := privacy.ReadLedger(a.journal)
	if err != nil {
		return err
	}
	charged := map[string]int{}
	for _, e := range ledger.Entries {
		for _, s := range e.Request.Sums {
			charged[e.Study] += s.Mechanism.Count
		}
	}
	for study, n := range a.drawn {
		if n > charged[study] || a.inside[study] > n {
			return fmt.Errorf("study %s: %d sums sent, %d drawn, %d charged", study, a.inside[study], n, charged[study])
		}
	}
	for i, v := range a.noise {
		if slices.ContainsFunc(a.noise[:i], func(w []int64) bool { return slices.Equal(v, w) }) {
			return fmt.Errorf("the noise of draw %d was used before", i)
		}
	}
	account, err := ledger.Account(1e-5)
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

// twice is a request for two sums of 8 numbers each.
func twice() privacy.Request {
	return privacy.Request{Protection: privacy.Differential, Sums: []privacy.Sum{{
		Name: "values", Unit: privacy.Subject, Form: privacy.Vectors, Blocks: []int{8}, Bound: 4,
		Mechanism: account.Mechanism{Kind: account.Gaussian, Noise: 6, Rate: 1, Diameter: 2, Count: 2},
	}}}
}

var promise = privacy.Guarantee{Unit: privacy.Subject, Adjacency: account.AddRemove, Budget: account.Budget{Epsilon: 2, Delta: 1e-5}}

// handle is what a site does with a task, as the engine does it.
func (a *auditor) handle(t testing.TB, g *privacy.Gate, j *fragile, ask privacy.Ask) error {
	r, ok, err := g.Stored(ask)
	if err != nil {
		return err
	}
	if !ok {
		session, err := g.Admit(ask, twice())
		if err != nil {
			return err
		}
		var body []byte
		for range 2 {
			j.at("computing")
			n, err := session.Sum(t.Context(), "values", func(_ *dataset.Row, v []float64) int {
				v[0] = 1
				return 0
			})
			if err != nil {
				return err
			}
			a.drawn[ask.Study]++
			drawn := slices.Clone(n.Blocks[0])
			drawn[0] -= int64(math.Round(5 / n.Step)) // five rows
			a.noise = append(a.noise, drawn)
			body = fmt.Append(body, n.Blocks)
		}
		if r, err = session.Seal(body, nil); err != nil {
			return err
		}
	}
	j.at("before sending")
	id := fmt.Sprint(ask.Study, ask.Round)
	if before, again := a.sent[id]; !again {
		a.sent[id] = r.Bytes()
		a.inside[ask.Study] += 2
	} else if !bytes.Equal(before, r.Bytes()) {
		return fmt.Errorf("release %s was sent in different words", id)
	}
	j.at("after sending")
	return nil
}

// history is a random life of one site: two studies, tasks in any order, late
// and duplicate ones, a clock that jumps, and crashes anywhere.
// restart gives the journal as a new process finds it.
func history(t testing.TB, rt *rapid.T, restart func() privacy.Journal, plant func(*fragile), options ...privacy.Option) error {
	a := &auditor{drawn: map[string]int{}, sent: map[string][]byte{}, inside: map[string]int{}}
	deaths := 0
	j := &fragile{Journal: restart(), die: func(string) bool {
		if deaths < 12 && rapid.IntRange(0, 9).Draw(rt, "dies") == 0 {
			deaths++
			return true
		}
		return false
	}}
	plant(j)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := privacy.Clock(func() time.Time {
		now = now.Add(time.Duration(rapid.IntRange(-1000, 1000).Draw(rt, "hours")) * time.Hour)
		return now
	})
	gates := map[string]*privacy.Gate{}
	for range rapid.IntRange(1, 25).Draw(rt, "tasks") {
		s := rapid.SampledFrom([]string{"one", "two"}).Draw(rt, "study")
		ask := privacy.Ask{Study: s, Site: "north", Round: rapid.IntRange(1, 5).Draw(rt, "round"), Kind: "fit"}
		ask.Task[0] = byte(rapid.IntRange(0, 9).Draw(rt, "task") / 9) // now and then another task under the same name
		err := func() (err error) {
			defer func() {
				if r := recover(); r != nil {
					if _, ok := r.(crash); !ok {
						panic(r)
					}
					clear(gates) // the process begins anew
					j.Journal = restart()
				}
			}()
			if gates[s] == nil {
				g := promise
				gates[s] = privacy.NewGate(privacy.Study{Digest: s, Site: "north", Guarantee: &g}, privacy.SimulationPolicy(), j, subjects(5), append(options, clock)...)
			}
			return a.handle(t, gates[s], j, ask)
		}()
		if err != nil && !errors.Is(err, privacy.ErrRefused) && !errors.Is(err, privacy.ErrConflict) {
			return err
		}
		a.journal = j
		if err := a.verdict(); err != nil {
			return err
		}
	}
	return nil
}

func nothing(*fragile) {}

// inMemory is a journal that survives restarts, until the test ends.
func inMemory() func() privacy.Journal {
	m := sitestore.NewMemory()
	return func() privacy.Journal { return m }
}

// onDisk is the store that sites use, opened anew at every restart.
func onDisk(t testing.TB) func() privacy.Journal {
	path := filepath.Join(t.TempDir(), "site.db")
	var s *sitestore.Store
	return func() privacy.Journal {
		if s != nil {
			s.Close()
		}
		var err error
		if s, err = sitestore.Open(path); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
}

// In every history, what was charged is no less than what was drawn, and that
// no less than what was sent; a release is the same bytes whenever it is sent;
// no noise serves twice; and the guarantee holds.
func TestChargedIsAtLeastWhatIsSentInEveryHistory(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		if err := history(t, rt, inMemory(), nothing); err != nil {
			rt.Fatal(err)
		}
	})
}

// The same with the file that sites have. (What of it survives a process that
// is killed while it writes is SQLite's promise; runs that are killed for good
// are tested with the engine.)
func TestHistoriesOnDisk(t *testing.T) {
	for seed := range 6 {
		if err := rapid.Custom(func(rt *rapid.T) error { return history(t, rt, onDisk(t), nothing) }).Example(seed); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// The property above is able to fail.
func TestHistoriesCatchPlantedFaults(t *testing.T) {
	for name, c := range map[string]struct {
		plant   func(*fragile)
		options []privacy.Option
		want    string
	}{
		"re-noised retry charged once": {func(f *fragile) { f.forgetsRetries = true }, nil, "charged"},
		"reused noise":                 {nothing, []privacy.Option{privacy.Noise(func(string) noise.Source { return noise.Seeded([32]byte{}) })}, "used before"},
	} {
		caught := 0
		for seed := range 60 {
			err := rapid.Custom(func(rt *rapid.T) error { return history(t, rt, inMemory(), c.plant, c.options...) }).Example(seed)
			if err == nil {
				continue
			}
			if !bytes.Contains([]byte(err.Error()), []byte(c.want)) {
				t.Fatalf("%s: %v", name, err)
			}
			caught++
		}
		if caught == 0 {
			t.Errorf("%s: caught in none of 60 histories", name)
		}
	}
}
