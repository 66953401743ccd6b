package sitestore

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/internal/testkit"
)

// folder reads every file of a folder.
func folder(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	entries := testkit.Get(os.ReadDir(dir))(t)
	for _, e := range entries {
		all[e.Name()] = testkit.Get(os.ReadFile(filepath.Join(dir, e.Name())))(t)
	}
	return all
}

func unchanged(t *testing.T, dir string, before map[string][]byte) {
	t.Helper()
	after := folder(t, dir)
	for name := range after {
		if old, ok := before[name]; !ok || !bytes.Equal(old, after[name]) {
			t.Errorf("%s has changed, or is new", name)
		}
	}
	if len(before) != len(after) {
		t.Errorf("%d files became %d", len(before), len(after))
	}
}

// lines are the releases of the ledger that Look sees.
func looked(t *testing.T, path string) (releases []string) {
	t.Helper()
	err := Look(path, func(s *Store) error {
		lines, err := s.Reservations(0)
		for _, l := range lines {
			releases = append(releases, l.Release)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return releases
}

func TestLookingChangesNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "site.db")
	s := durable(t, path)
	testkit.Do(t, errors.Join(s.Reserve(reservation("one"), key(1)), s.Commit("one", []byte("bytes"), nil)))
	before := folder(t, dir)
	if got := looked(t, path); !slices.Equal(got, []string{"one"}) {
		t.Errorf("beside its writer: %v", got)
	}
	unchanged(t, dir, before)
	testkit.Do(t, s.Close())
	before = folder(t, dir)
	if got := looked(t, path); !slices.Equal(got, []string{"one"}) {
		t.Errorf("got %v", got)
	}
	if err := Look(path, func(s *Store) error { return s.Reserve(reservation("two"), key(2)) }); err == nil {
		t.Error("a store that is only read was written to")
	}
	unchanged(t, dir, before)
}

// Whoever approves a study again compares its terms beside the daemon.
func TestTermsAreComparedWhileLooking(t *testing.T) {
	path := filepath.Join(t.TempDir(), "site.db")
	s := durable(t, path)
	defer s.Close()
	testkit.Get(s.Agree("study", []byte("first")))(t)
	err := Look(path, func(s *Store) error {
		kept, err := s.Agree("study", []byte("second"))
		if err == nil && string(kept) != "first" {
			err = fmt.Errorf("kept %q", kept)
		}
		if _, fresh := s.Agree("other", []byte("x")); fresh == nil {
			err = errors.Join(err, errors.New("a store that is only read was written to"))
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// Somebody looks while a study runs: what is seen is the store after one of the
// commits, whole, and nothing of it changes while it is being looked at. The
// writer goes on as soon as the reader is done.
func TestLookingBesideTheWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "site.db")
	s := durable(t, path)
	const releases = 40
	written := make(chan error, 1)
	go func() {
		for i := range releases {
			id := fmt.Sprint(i)
			if err := errors.Join(s.Reserve(reservation(id), key(byte(i))),
				s.Commit(id, []byte(id), []byte(id))); err != nil {
				written <- err
				return
			}
		}
		written <- nil
	}()
	last := 0
	for done := false; !done || last < releases; {
		if _, err := Open(path); !errors.Is(err, errLocked) {
			t.Fatalf("a second writer: %v", err)
		}
		err := Look(path, func(s *Store) error {
			first, err := s.Reservations(0)
			if err != nil {
				return err
			}
			again, err := s.Reservations(0)
			if err != nil || len(first) != len(again) || len(first) < last {
				return fmt.Errorf("%d lines, then %d, and %d before; %w", len(first), len(again), last, err)
			}
			last = len(first)
			return s.Verify()
		})
		if err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-written:
			if done = true; err != nil {
				t.Fatal(err)
			}
		default:
		}
	}
}

// A commit waits until nobody looks any more: all that a reader sees is of one
// moment. (A writer that does not wait, as here, fails, and loses nothing.)
func TestCommitWaitsForReaders(t *testing.T) {
	path := filepath.Join(t.TempDir(), "site.db")
	s := open(t, path)
	testkit.Get(s.db.Exec(`PRAGMA busy_timeout = 0`))(t)
	if err := Look(path, func(*Store) error {
		if err := s.Reserve(reservation("one"), key(1)); err == nil || !strings.Contains(err.Error(), "locked") {
			t.Errorf("a charge was written while somebody was looking: %v", err)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	testkit.Do(t, s.Reserve(reservation("one"), key(1)))
	if got := looked(t, path); !slices.Equal(got, []string{"one"}) {
		t.Errorf("got %v", got)
	}
}

// spilled makes a store whose writer is in the middle of a commit: part of it
// is in the file already, and how to undo it is in the journal beside. It
// returns where a copy of both is, as they would be after the writer was killed.
func spilled(t *testing.T) (killed string) {
	path := filepath.Join(t.TempDir(), "site.db")
	s := open(t, path)
	testkit.Do(t, errors.Join(s.Reserve(reservation("one"), key(1)), s.Commit("one", []byte("bytes"), nil)))
	before := testkit.Get(os.ReadFile(path))(t)
	testkit.Get(s.db.Exec(`PRAGMA cache_size = 1; PRAGMA cache_spill = 1`))(t)
	tx := testkit.Get(s.db.Begin())(t)
	defer tx.Rollback()
	for i := range 200 {
		if _, err := tx.Exec(`INSERT INTO ledger (release, study, task, request, hash) VALUES (?, 'study', `+
			`zeroblob(32), zeroblob(900), zeroblob(32))`, fmt.Sprint("half ", i)); err != nil {
			t.Fatal(err)
		}
	}
	killed = filepath.Join(t.TempDir(), "site.db")
	for _, suffix := range []string{"", "-journal"} {
		content, err := os.ReadFile(path + suffix)
		if err != nil || len(content) == 0 {
			t.Fatalf("%q: %v", suffix, err)
		}
		if suffix == "" && (bytes.Equal(content, before) || !bytes.Contains(content, []byte("half "))) {
			t.Fatal("nothing of the commit is in the file, so nothing would be tested")
		}
		testkit.Do(t, os.WriteFile(killed+suffix, content, 0o600))
	}
	return killed
}

// A store whose writer was killed in the middle of a commit is not read as if
// nothing had happened, and the next writer brings it to the commit before.
func TestLookingAfterTheWriterWasKilled(t *testing.T) {
	killed := spilled(t)
	before := folder(t, filepath.Dir(killed))
	err := Look(killed, func(s *Store) error {
		t.Error("there was something to read")
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "was stopped in the middle: start it again") {
		t.Errorf("got %v", err)
	}
	unchanged(t, filepath.Dir(killed), before)
	open(t, killed).Close()
	if got := looked(t, killed); !slices.Equal(got, []string{"one"}) {
		t.Errorf("after its program was started again: %v", got)
	}
}

// After each commit the file alone holds everything: a copy of it, made while
// the store is open, is a store with every charge.
func TestCopyOfTheFileAloneIsComplete(t *testing.T) {
	path := filepath.Join(t.TempDir(), "site.db")
	s := durable(t, path)
	copies := t.TempDir()
	n := 0
	check := func(what string, err error, lines, records int, state string) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		content := testkit.Get(os.ReadFile(path))(t)
		n++
		other := filepath.Join(copies, fmt.Sprint(n), "site.db")
		testkit.Do(t, errors.Join(os.Mkdir(filepath.Dir(other), 0o700), os.WriteFile(other, content, 0o600)))
		c := open(t, other)
		defer c.Close()
		got, err := c.Reservations(0)
		if err != nil || len(got) != lines {
			t.Errorf("%s: the copy has %d charges of %d, %v", what, len(got), lines, err)
		}
		if got, _, err := c.Head("study"); err != nil || got != records {
			t.Errorf("%s: the copy has %d records of %d, %v", what, got, records, err)
		}
		if got, err := c.State("study"); err != nil || string(got) != state {
			t.Errorf("%s: the copy has state %q, %v", what, got, err)
		}
		if err := c.Bind("south"); (n > 1) != errors.Is(err, ErrOtherSite) {
			t.Errorf("%s: bound to another site: %v", what, err)
		}
	}
	check("nothing", nil, 0, 0, "")
	check("bound", s.Bind("north"), 0, 0, "")
	for i := 1; i <= 12; i++ {
		id, state, before := fmt.Sprint(i), fmt.Sprint("state ", i), fmt.Sprint("state ", i-1)
		if i == 1 {
			before = ""
		}
		check("history", s.Append("study", i-1, [][]byte{[]byte(id)}), i-1, i, before)
		check("charged", s.Reserve(reservation(id), key(byte(i))), i, i, before)
		check("stored", s.Commit(id, bytes.Repeat([]byte(id), 2000), []byte(state)), i, i, state)
	}
}

func TestLookingFindsNoStore(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "site.db")
	none := func(*Store) error { t.Error("there was something to read"); return nil }
	if err := Look(path, none); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no store: %v", err)
	}
	if err := Look(dir, none); err == nil || !strings.Contains(err.Error(), "is not a file") {
		t.Errorf("a folder: %v", err)
	}
	testkit.Do(t, os.WriteFile(path, []byte("from my grandfather"), 0o600))
	before := folder(t, dir)
	if err := Look(path, none); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("another file: %v", err)
	}
	unchanged(t, dir, before)
}

func TestLookingNoticesDamage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "site.db")
	s := testkit.Get(Open(path))(t)
	testkit.Do(t, errors.Join(s.Reserve(Reservation{Release: "one", Study: "s", Request: []byte("recognisable")},
		key(1)), s.Close()))
	content, err := os.ReadFile(path)
	if err != nil || !bytes.Contains(content, []byte("recognisable")) {
		t.Fatalf("nothing to damage: %v", err)
	}
	testkit.Do(t, os.WriteFile(path, bytes.Replace(content, []byte("recognisable"), []byte("recognizable"), 1), 0o600))
	if err := Look(path, func(*Store) error { return nil }); err == nil ||
		!strings.Contains(err.Error(), "line 1 does not follow") {
		t.Errorf("got %v", err)
	}
}
