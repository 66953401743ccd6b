package sitestore

import (
	"bytes"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// written makes a store from a dump that an earlier version of the program left.
func written(t testing.TB, version int) string {
	t.Helper()
	dump, err := os.ReadFile(filepath.Join("testdata", fmt.Sprintf("schema-%d.sql", version)))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "site.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(string(dump)); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// There is a dump for every version of the schema before this one.
func TestStoresOfEarlierVersionsOpenWithEverythingTheyHeld(t *testing.T) {
	for version := 1; version < len(migrations); version++ {
		path := written(t, version)
		for range 2 { // migrated, then as it was migrated
			s := open(t, path)
			lines, err := s.Reservations(0)
			if err != nil || len(lines) != 2 || lines[1].Seq != 2 || lines[1].Release != "3fa9/north/2" || lines[1].Task != [32]byte{2} {
				t.Fatalf("schema %d: %+v, %v", version, lines, err)
			}
			r, ok, err := s.Release("3fa9/north/1")
			if err != nil || !ok || !bytes.Contains(r.Sealed, []byte("body")) {
				t.Fatalf("schema %d: %+v, %v, %v", version, r, ok, err)
			}
			if state, err := s.State("3fa9"); string(state) != "state" || err != nil {
				t.Fatalf("schema %d: state %q, %v", version, state, err)
			}
			if e, err := s.Entry("3fa9", 1); !bytes.Equal(e, []byte{2}) || err != nil {
				t.Fatalf("schema %d: entry %x, %v", version, e, err)
			}
			s.Close()
		}
		s := open(t, path)
		if err := s.Commit("3fa9/north/2", []byte("late"), nil); err != nil {
			t.Fatal(err)
		}
		if r, ok, err := s.Release("3fa9/north/2"); err != nil || !ok || string(r.Sealed) != "late" {
			t.Fatalf("schema %d: %+v, %v, %v", version, r, ok, err)
		}
	}
}

func TestStoreThatLostItsContentIsNotANewOne(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct{ file, want string }{
		"empty":                 {"empty.db", "not a Parley site store"},
		"only a log is left":    {"lost.db-wal", "the store is missing"},
		"only a journal":        {"gone.db-journal", "the store is missing"},
		"a folder in its place": {"folder.db/x", "opening the site store"},
	} {
		file := filepath.Join(dir, filepath.FromSlash(c.file))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, c.file[:strings.Index(c.file, ".db")+3])
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCrashWhileCreatingLeavesNothingInTheWay(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "north", "site.db")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, left := range []string{".site.db-123", ".site.db-123-journal"} {
		if err := os.WriteFile(filepath.Join(filepath.Dir(path), left), []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	open(t, path).Close()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 || entries[0].Name() != "site.db" {
		t.Fatalf("%v, %v", entries, err)
	}
}

// Of processes that create the same store at once, one gets it; nobody's
// charge is lost to the file of another.
func TestStoreIsCreatedOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "site.db")
	var group sync.WaitGroup
	stores := make([]*Store, 4)
	for i := range stores {
		group.Go(func() {
			if s, err := Open(path); err == nil {
				stores[i] = s
				if err := s.Reserve(reservation("r")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	opened := 0
	for _, s := range stores {
		if s != nil {
			opened++
			s.Close()
		}
	}
	lines, err := open(t, path).Reservations(0)
	if opened == 0 || err != nil || len(lines) != opened {
		t.Fatalf("%d opened it, it holds %d charges, %v", opened, len(lines), err)
	}
}
