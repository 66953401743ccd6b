package privacy_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"parley/privacy"
	"parley/sitestore"
)

// crash is what kills the process in these tests, by a panic: whatever was not
// in the journal is lost.
type crash struct{}

// fragile is a journal in a process that may die before or after any of its
// operations, and nowhere else (sending is an operation, too).
type fragile struct {
	privacy.Journal
	die     func(at string) bool
	keys    map[string][32]byte // of each release that was charged, as the gate handed it over
	offered map[string][]byte   // what was to be stored, by release and rows of the site
	rows    int                 // that the site has in this process
	files   func() [][]byte     // the journal's files as they are; none in memory
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

func (f *fragile) Reservations(after int) ([]sitestore.Reservation, error) {
	f.at("reading the ledger")
	return f.Journal.Reservations(after)
}

func (f *fragile) State(study string) ([]byte, error) {
	f.at("reading the state")
	return f.Journal.State(study)
}

func (f *fragile) Free(n int64) error {
	f.at("asking for room")
	return f.Journal.Free(n)
}

func (f *fragile) Reserve(r sitestore.Reservation, key [32]byte) error {
	f.at("before reserving")
	defer f.at("after reserving")
	f.keys[r.Release] = key
	return f.Journal.Reserve(r, key)
}

func (f *fragile) Commit(release string, sealed, state []byte) error {
	f.at("before storing")
	defer f.at("after storing")
	id := fmt.Sprintf("%s of %d rows", release, f.rows)
	if before, again := f.offered[id]; again && !bytes.Equal(before, sealed) {
		return fmt.Errorf("release %s was computed again from the same rows, to other bytes", id)
	}
	f.offered[id] = sealed
	return f.Journal.Commit(release, sealed, state)
}

// place is where a journal survives restarts.
type place struct {
	open  func() privacy.Journal // as a new process finds it
	files func() [][]byte
}

// inMemory survives until the test ends.
func inMemory(testing.TB) place {
	m := sitestore.NewMemory()
	return place{func() privacy.Journal { return m }, func() [][]byte { return nil }}
}

// onDisk is the store that sites use.
func onDisk(t testing.TB) place {
	path := filepath.Join(t.TempDir(), "site.db")
	var s *sitestore.Store
	reopen := func() privacy.Journal {
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
	return place{reopen, func() (files [][]byte) {
		for _, suffix := range []string{"", "-journal", "-wal"} {
			content, err := os.ReadFile(path + suffix)
			if err != nil && (suffix == "" || !errors.Is(err, os.ErrNotExist)) {
				t.Fatal(err)
			}
			files = append(files, content)
		}
		return files
	}}
}

func newFragile(p place, die func(string) bool) *fragile {
	return &fragile{Journal: p.open(), die: die, keys: map[string][32]byte{}, offered: map[string][]byte{}, rows: 5,
		files: p.files}
}

// survives calls do, and says whether the process died of it.
func survives(do func() error) (died bool, err error) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(crash); !ok {
				panic(r)
			}
			died = true
		}
	}()
	return false, do()
}
