package sitestore

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"parley/internal/testkit"
)

// kept says for how many of so many releases the key is still in the file, or
// in the journal beside it, when all of them have been stored. Some are stored
// long after others, so that pages with keys are split, emptied and used again.
func kept(t *testing.T, s *Store, releases int) (found int) {
	t.Helper()
	for i := range releases {
		testkit.Do(t, s.Reserve(reservation(fmt.Sprint(i)), key(byte(i))))
		if k := key(byte(i)); !bytes.Contains(raw(t, s.path), k[:]) {
			t.Fatal("the key of a release that is charged is not in the file: the search finds nothing")
		}
	}
	for _, odd := range []int{1, 0} {
		for i := odd; i < releases; i += 2 {
			testkit.Do(t, s.Commit(fmt.Sprint(i), bytes.Repeat([]byte{byte(i)}, 3000), []byte("state")))
		}
	}
	content := raw(t, s.path)
	for i := range releases {
		if k := key(byte(i)); bytes.Contains(content, k[:]) {
			found++
		}
	}
	return found
}

// raw are the bytes of the store's file, and of a journal if there is one.
func raw(t *testing.T, path string) []byte {
	t.Helper()
	content := testkit.Get(os.ReadFile(path))(t)
	for _, suffix := range []string{"-journal", "-wal"} {
		more, err := os.ReadFile(path + suffix)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		content = append(content, more...)
	}
	return content
}

// When a release is stored, its key is nowhere in the store's file. This says
// nothing of blocks that the file system has freed: the rollback journal that
// had the page as it was is removed, not overwritten, and a disk, a snapshot or
// a copy of the file may keep what was there. That SQLite leaves keys in the
// file unless it is told to overwrite what it deletes shows that the search
// would find them.
func TestKeysAreWiped(t *testing.T) {
	for name, options := range map[string][]Option{"": nil, "quick": {Quick()}} {
		s := testkit.Get(Open(filepath.Join(t.TempDir(), "site.db"), options...))(t)
		if n := kept(t, s, 150); n > 0 {
			t.Errorf("%s: %d keys of 150 are still in the file", name, n)
		}
		testkit.Do(t, s.Close())
	}
	s := open(t, filepath.Join(t.TempDir(), "site.db"))
	testkit.Get(s.db.Exec(`PRAGMA secure_delete = OFF`))(t)
	if n := kept(t, s, 150); n == 0 {
		t.Error("without overwriting no key is left either: the search is blind")
	}
}
