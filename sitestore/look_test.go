package sitestore

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// folder reads every file of a folder.
func folder(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if all[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
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
	t.Setenv("TMPDIR", t.TempDir()) // where copies are made, and must not stay
	dir := t.TempDir()
	path := filepath.Join(dir, "site.db")
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Reserve(Reservation{Release: "one", Study: "s", Request: []byte("r")}), s.Commit("one", []byte("bytes"), nil)); err != nil {
		t.Fatal(err)
	}
	if err := Look(path, func(*Store) error { return nil }); !errors.Is(err, ErrLocked) {
		t.Errorf("an open store: %v", err)
	}

	// What a killed process leaves: the last lines are in the write-ahead log.
	crashed := t.TempDir()
	for name, content := range folder(t, dir) {
		if err := os.WriteFile(filepath.Join(crashed, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{dir, crashed} {
		before := folder(t, d)
		if got := looked(t, filepath.Join(d, "site.db")); !slices.Equal(got, []string{"one"}) {
			t.Errorf("got %v", got)
		}
		unchanged(t, d, before)
	}
	if _, ok := folder(t, crashed)["site.db-wal"]; !ok {
		t.Error("the crash left no write-ahead log, so it has not been tested")
	}
	if left := folder(t, os.Getenv("TMPDIR")); len(left) > 0 && os.TempDir() == os.Getenv("TMPDIR") {
		t.Errorf("copies have stayed: %d", len(left))
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
	if err := os.WriteFile(path, []byte("from my grandfather"), 0o600); err != nil {
		t.Fatal(err)
	}
	before := folder(t, dir)
	if err := Look(path, none); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("another file: %v", err)
	}
	unchanged(t, dir, before)
}

func TestLookingNoticesDamage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "site.db")
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Reserve(Reservation{Release: "one", Study: "s", Request: []byte("recognisable")}), s.Close()); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil || !bytes.Contains(content, []byte("recognisable")) {
		t.Fatalf("nothing to damage: %v", err)
	}
	if err := os.WriteFile(path, bytes.Replace(content, []byte("recognisable"), []byte("recognizable"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Look(path, func(*Store) error { return nil }); err == nil || !strings.Contains(err.Error(), "line 1 does not follow") {
		t.Errorf("got %v", err)
	}
}
