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

// furnished is a store with something of everything: three releases of two studies,
// of which one has no bytes yet, and two histories.
func furnished(t *testing.T, path string) *Store {
	t.Helper()
	s := open(t, path)
	two := reservation("b")
	two.Study = "other"
	if err := errors.Join(s.Bind("north"),
		s.Reserve(reservation("a"), key(1)), s.Commit("a", []byte("bytes of a"), []byte("state a")),
		s.Reserve(two, key(2)), s.Commit("b", []byte("bytes of b"), []byte("state b")),
		s.Reserve(reservation("c"), key(3)), s.Commit("c", []byte("bytes of c"), []byte("state c")),
		s.Reserve(reservation("d"), key(4)),
		s.Append("study", 0, [][]byte{{1}, {2}, {3}}), s.Append("other", 0, [][]byte{{1}, {2}}),
		s.Verify()); err != nil {
		t.Fatal(err)
	}
	testkit.Get(s.Agree("study", []byte("terms")))(t)
	return s
}

func TestNothingIsChangedOrRemoved(t *testing.T) {
	s := furnished(t, filepath.Join(t.TempDir(), "site.db"))
	for _, change := range []string{
		`DELETE FROM ledger`, `UPDATE ledger SET request = x'00'`, `DELETE FROM outbox`,
		`UPDATE outbox SET sealed = x'00'`,
		`DELETE FROM history`, `UPDATE history SET record = x'00'`, `DELETE FROM terms`,
		`UPDATE terms SET terms = x'00'`,
		`UPDATE keys SET key = zeroblob(32)`, `DELETE FROM keys`, // that of a release without bytes
	} {
		if _, err := s.db.Exec(change); err == nil {
			t.Errorf("%s succeeded", change)
		}
	}
}

// behindTheTriggers drops all triggers, does something, and makes them again, so that
// nothing but what was done can be noticed.
func (s *Store) behindTheTriggers(t *testing.T, change string) {
	t.Helper()
	parts := testkit.Get(s.schema())(t)
	all := `BEGIN; `
	for _, p := range parts {
		if p.kind == "trigger" {
			all += `DROP TRIGGER ` + p.name + `; `
		}
	}
	all += change + `; `
	for _, p := range parts {
		if p.kind == "trigger" {
			all += p.text + `; `
		}
	}
	if _, err := s.db.Exec(all + `COMMIT`); err != nil {
		t.Fatalf("%s: %v", change, err)
	}
}

// What somebody changes with other tools, who does not rebuild the chains, is
// noticed when the store is opened. Ends of the ledger that are cut off together
// with their releases are not: the coordinator's record and the marks of package
// host tell of those.
func TestTamperingIsNoticed(t *testing.T) {
	for _, c := range []struct{ change, want string }{
		{`UPDATE ledger SET request = x'00' WHERE seq = 2`, "line 2 does not follow"},
		{`UPDATE ledger SET release = 'z' WHERE seq = 1`, "line 1 does not follow"},
		{`UPDATE ledger SET task = zeroblob(32) WHERE seq = 1`, "line 1 does not follow"},
		{`DELETE FROM ledger WHERE seq = 2`, "line 2 does not follow"},
		{`DELETE FROM ledger WHERE seq = 1`, "line 1 does not follow"},
		{`UPDATE ledger SET previous = x'00' WHERE seq = 3`, "line 3 does not follow"},
		{`UPDATE ledger SET seq = 9 WHERE seq = 4`, "line 4 does not follow"},
		{`DELETE FROM ledger WHERE seq = 4`, "the ledger has lost lines: 1 releases have no charge"}, // it has a key
		{`DELETE FROM ledger WHERE seq >= 3; DELETE FROM keys`, "the ledger has lost lines: 1 releases have no charge"},
		{`DELETE FROM outbox WHERE release = 'a'`, "the outbox has lost releases: 1 charges"},
		{`DELETE FROM outbox WHERE release = 'c'`, "the outbox has lost releases: 1 charges"},
		{`DELETE FROM keys WHERE release = 'd'`, "the outbox has lost releases: 1 charges"},
		{`UPDATE outbox SET sealed = x'00' WHERE release = 'a'`, "release a: its bytes are not those that were stored"},
		{`UPDATE outbox SET release = 'z' WHERE release = 'a'`, "1 releases have no charge"},
		{`INSERT INTO outbox (release, study, sealed) VALUES ('z', 'study', x'00')`, "1 releases have no charge"},
		{`UPDATE outbox SET digest = NULL, sealed = x'00' WHERE release = 'a'`, "release a has no digest"},
		{`UPDATE outbox SET state = NULL WHERE release = 'c'; UPDATE state SET state = x'00' WHERE study = 'study'`,
			"has no digest"},
		{`INSERT INTO keys VALUES ('a', zeroblob(32))`, "release a is stored, and its key is kept"},
		{`UPDATE state SET state = x'00' WHERE study = 'study'`, "the state of study study is not the one"},
		{`UPDATE state SET state = NULL WHERE study = 'other'`, "the state of study other is not the one"},
		{`DELETE FROM state WHERE study = 'other'`, "the state of study other is not the one"},
		{`INSERT INTO state VALUES ('third', x'00')`, "study third has a state, and no release"},
		{`UPDATE history SET record = x'09' WHERE study = 'study' AND seq = 0`,
			"record 0 of the history of study study"},
		{`UPDATE history SET record = x'09' WHERE study = 'study' AND seq = 2`,
			"record 2 of the history of study study"},
		{`UPDATE history SET record = x'09' WHERE study = 'other' AND seq = 1`,
			"record 1 of the history of study other"},
		{`UPDATE history SET head = zeroblob(32) WHERE study = 'study' AND seq = 2`,
			"record 2 of the history of study study"},
		{`DELETE FROM history WHERE study = 'study' AND seq = 0`, "record 1 of the history of study study"},
		{`DELETE FROM history WHERE study = 'study' AND seq = 1`, "record 2 of the history of study study"},
		{`UPDATE history SET study = 'third' WHERE study = 'other' AND seq = 1`,
			"record 1 of the history of study third"},
	} {
		path := filepath.Join(t.TempDir(), "site.db")
		s := furnished(t, path)
		s.behindTheTriggers(t, c.change)
		if err := s.Verify(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.change, err)
		}
		testkit.Do(t, s.Close())
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("opened after %s: %v", c.change, err)
		}
		if err := Look(path, func(*Store) error { return nil }); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("looked at after %s: %v", c.change, err)
		}
	}
}

// Whatever is missing of the schema, or is there beside it, is noticed.
func TestAnotherSchemaIsNoticed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "site.db")
	s := open(t, path)
	parts := testkit.Get(s.schema())(t)
	s.Close()
	changes := map[string]string{
		`CREATE TRIGGER quiet BEFORE INSERT ON ledger BEGIN SELECT 1; END`: "it has a trigger quiet",
		`CREATE TABLE notes (text TEXT)`:                                   "it has a table notes",
		`CREATE VIEW v AS SELECT 1`:                                        "it has a view v",
		`ALTER TABLE state ADD COLUMN more TEXT`: "table state is missing, or is not as it " +
			"was made",
		`DROP TRIGGER key_is_final; CREATE TRIGGER key_is_final BEFORE UPDATE ON keys BEGIN SELECT 1; END`: "trigger key_is_final is missing, or is not as it was made",
		`DROP INDEX ledger_release; CREATE INDEX ledger_release ON ledger (study)`:                         "index ledger_release is missing, or is not as it was made",
	}
	triggers := 0
	for _, p := range parts {
		if p.kind == "trigger" {
			triggers++
			changes[`DROP TRIGGER `+p.name] = fmt.Sprintf("trigger %s is missing", p.name)
		}
	}
	if triggers < 12 {
		t.Errorf("only %d triggers: %v", triggers, parts)
	}
	for change, want := range changes {
		path := filepath.Join(t.TempDir(), "site.db")
		s := furnished(t, path)
		if _, err := s.db.Exec(change); err != nil {
			t.Fatalf("%s: %v", change, err)
		}
		s.Close()
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", change, err)
		}
	}
}

// A store belongs to one site for ever.
func TestStoreOfAnotherSiteIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "site.db")
	s := open(t, path)
	testkit.Do(t, errors.Join(s.Bind("north"), s.Bind("north")))
	s.Close()
	s = open(t, path)
	if err := s.Bind("south"); !errors.Is(err, ErrOtherSite) ||
		!strings.Contains(err.Error(), `"north", not of "south"`) {
		t.Errorf("got %v", err)
	}
	if err := s.Bind("north"); err != nil {
		t.Error(err)
	}
}

func TestOtherBytesThanThoseStoredAreNotSent(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "site.db"))
	testkit.Do(t, errors.Join(s.Reserve(reservation("r"), key(1)), s.Commit("r", []byte("bytes"), nil)))
	s.behindTheTriggers(t, `UPDATE outbox SET sealed = x'00'`)
	if r, _, err := s.Release("r"); err == nil || r.Sealed != nil {
		t.Fatalf("got %q, %v", r.Sealed, err)
	}
}

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
	for path, want := range map[string]string{other: "not a Parley site store", newer: "newer parley",
		text: "not a database"} {
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
