package sitestore

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/internal/testkit"
)

// open opens a store that survives the end of this process, and durable one
// that survives the end of the machine, as sites have it, which takes its time.
func open(t testing.TB, path string) *Store    { return opened(t, path, Quick()) }
func durable(t testing.TB, path string) *Store { return opened(t, path) }

func opened(t testing.TB, path string, o ...Option) *Store {
	t.Helper()
	s := testkit.Get(Open(path, o...))(t)
	t.Cleanup(func() { s.Close() })
	return s
}

func reservation(release string) Reservation {
	return Reservation{Release: release, Study: "study", Task: [32]byte{1}, Request: []byte("request")}
}

func key(b byte) (k [32]byte) {
	for i := range k {
		k[i] = b ^ byte(37*i+11)
	}
	return k
}

func TestReleaseIsStoredOnceAfterItsCharge(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "site.db"))
	if err := s.Commit("r1", []byte("bytes"), nil); !errors.Is(err, errNotReserved) {
		t.Fatalf("stored without a charge: %v", err)
	}
	testkit.Do(t, s.Reserve(reservation("r1"), key(1)))
	if err := s.Reserve(reservation("r1"), key(2)); !errors.Is(err, errReserved) {
		t.Fatalf("charged twice: %v", err)
	}
	if r, ok, err := s.Release("r1"); err != nil || !ok || r.Sealed != nil || [32]byte(r.Key) != key(1) {
		t.Fatalf("after the charge: %+v, %v, %v", r, ok, err)
	}
	testkit.Do(t, s.Commit("r1", []byte("bytes"), []byte("state")))
	if err := s.Commit("r1", []byte("other"), nil); !errors.Is(err, ErrCommitted) {
		t.Fatalf("stored twice: %v", err)
	}
	if err := s.Commit("r1", []byte("bytes"), []byte("another state")); err != nil {
		t.Fatalf("the same bytes again: %v", err)
	}
	if err := s.Reserve(reservation("r1"), key(2)); !errors.Is(err, errReserved) {
		t.Fatalf("charged after it was stored: %v", err)
	}
	if state, err := s.State("study"); err != nil || string(state) != "state" {
		t.Fatalf("state %q, %v", state, err)
	}
	r, ok, err := s.Release("r1")
	if err != nil || !ok || string(r.Sealed) != "bytes" || r.Task != [32]byte{1} || r.Key != nil {
		t.Fatalf("got %+v, %v, %v", r, ok, err)
	}
}

func TestForeignFilesAreLeftAlone(t *testing.T) {
	dir := t.TempDir()
	other := filepath.Join(dir, "other.db")
	db := testkit.Get(sql.Open("sqlite", other))(t)
	testkit.Get(db.Exec(`CREATE TABLE patients (id TEXT)`))(t)
	db.Close()
	newer := filepath.Join(dir, "newer.db")
	s := open(t, newer)
	testkit.Get(s.db.Exec(fmt.Sprintf(`PRAGMA user_version = %d`, len(migrations)+1)))(t)
	s.Close()
	text := filepath.Join(dir, "text.db")
	testkit.Do(t, os.WriteFile(text, []byte(strings.Repeat("not a database ", 500)), 0o600))
	for path, want := range map[string]string{other: "not a Parley site store", newer: "newer parley", text: "not a database"} {
		before := testkit.Get(os.ReadFile(path))(t)
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", filepath.Base(path), err)
		}
		if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
			t.Errorf("%s was changed", filepath.Base(path))
		}
	}
}

// A store whose bytes were damaged opens with everything it held, or not at
// all: it never starts again from nothing.
func FuzzDamagedStore(f *testing.F) {
	path := filepath.Join(f.TempDir(), "site.db")
	s := testkit.Get(Open(path))(f)
	want := []string{"r", "s", "t"}
	for _, id := range want {
		testkit.Do(f, s.Reserve(reservation(id), key(1)))
	}
	testkit.Do(f, errors.Join(s.Commit("r", []byte("x"), nil), s.Close()))
	good := testkit.Get(os.ReadFile(path))(f)
	f.Add(uint32(0), []byte("x"))
	f.Add(uint32(60), []byte{0, 0, 0, 0})
	f.Add(uint32(4096), bytes.Repeat([]byte{0xff}, 64))
	for page := range len(good) / 4096 { // one cell fewer, or none
		f.Add(uint32(4096*page+3), []byte{0, 2})
		f.Add(uint32(4096*page+3), []byte{0, 0})
	}
	f.Fuzz(func(t *testing.T, at uint32, damage []byte) {
		bad := bytes.Clone(good)
		copy(bad[int(at)%len(bad):], damage)
		path := filepath.Join(t.TempDir(), "site.db")
		testkit.Do(t, os.WriteFile(path, bad, 0o600))
		s, err := Open(path)
		if err != nil {
			return
		}
		defer s.Close()
		lines, err := s.Reservations(0)
		if err != nil {
			return
		}
		var got []string
		for _, l := range lines {
			got = append(got, l.Release)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("damage at %d made of the charges %v, without an error", int(at)%len(bad), got)
		}
		if r, ok, err := s.Release("r"); err == nil && (!ok || string(r.Sealed) != "x") {
			t.Fatalf("damage at %d: release %+v, %v", int(at)%len(bad), r, ok)
		}
	})
}
