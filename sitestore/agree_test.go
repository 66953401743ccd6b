package sitestore

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"parley/internal/testkit"
)

// keeper is what [Store] and [Memory] have in common.
type keeper interface {
	Bind(site string) error
	Release(id string) (Release, bool, error)
	Reserve(r Reservation, key [32]byte) error
	Reservations(after int) ([]Reservation, error)
	Last() (int, [32]byte, error)
	Commit(release string, sealed, state []byte) error
	State(study string) ([]byte, error)
	Head(study string) (int, [32]byte, error)
	Records(study string, from int) ([][]byte, error)
	Append(study string, first int, records [][]byte) error
	Agree(study string, terms []byte) ([]byte, error)
	Decide(at time.Time, study, decision string) error
	Decisions(study string) ([]string, error)
}

// Store and Memory are the same machine: any history, with the durable one
// closed and opened again at any point, gives the same answers.
func TestStoreAndMemoryAgree(t *testing.T) {
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		path := filepath.Join(t.TempDir(), fmt.Sprint(n), "site.db")
		s := open(t, path)
		m := NewMemory()
		payload := rapid.SliceOfN(rapid.Byte(), 1, 8)
		both := func(what string, do func(keeper) (any, error)) {
			a, errA := do(s)
			b, errB := do(m)
			for _, target := range []error{errNotReserved, errReserved, ErrCommitted, ErrForked, ErrMoved,
				ErrOtherSite} {
				if errors.Is(errA, target) != errors.Is(errB, target) {
					rt.Fatalf("%s: %v against %v", what, errA, errB)
				}
			}
			if (errA == nil) != (errB == nil) || fmt.Sprintf("%q", a) != fmt.Sprintf("%q", b) {
				rt.Fatalf("%s: %q, %v against %q, %v", what, a, errA, b, errB)
			}
		}
		study := rapid.SampledFrom([]string{"study", "other"})
		for range rapid.IntRange(1, 14).Draw(rt, "steps") {
			id, of := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "id"), study.Draw(rt, "study")
			switch rapid.IntRange(0, 5).Draw(rt, "op") {
			case 0:
				r := reservation(id)
				r.Seq, r.Study = rapid.IntRange(0, 4).Draw(rt, "seq"), of
				k := key(rapid.Byte().Draw(rt, "key"))
				both("reserve", func(x keeper) (any, error) { return nil, x.Reserve(r, k) })
			case 1:
				b, state := payload.Draw(rt, "bytes"), payload.Draw(rt, "state")
				both("commit", func(x keeper) (any, error) { return nil, x.Commit(id, b, state) })
			case 2:
				first, records := rapid.IntRange(-1, 4).Draw(rt, "first"),
					rapid.SliceOfN(payload, 0, 3).Draw(rt, "records")
				both("append", func(x keeper) (any, error) { return nil, x.Append(of, first, records) })
			case 3:
				terms := payload.Draw(rt, "terms")
				both("ask", func(x keeper) (any, error) { return x.Agree(of, nil) })
				both("agree", func(x keeper) (any, error) { return x.Agree(of, terms) })
				both("decide", func(x keeper) (any, error) { return nil, x.Decide(time.Unix(0, 0), of, string(terms)) })
			case 4:
				site := rapid.SampledFrom([]string{"north", "south"}).Draw(rt, "site")
				both("bind", func(x keeper) (any, error) { return nil, x.Bind(site) })
			case 5:
				s.Close()
				s = open(t, path)
			}
			after := rapid.IntRange(0, 5).Draw(rt, "after")
			both("release", func(x keeper) (any, error) {
				r, ok, err := x.Release(id)
				return fmt.Sprintf("%+v %v", r, ok), err
			})
			both("state", func(x keeper) (any, error) { return x.State(of) })
			both("reservations", func(x keeper) (any, error) {
				lines, err := x.Reservations(after)
				if len(lines) > 0 && lines[0].Seq != after+1 {
					rt.Fatalf("after %d comes %+v", after, lines[0])
				}
				return fmt.Sprint(lines), err
			})
			both("last", func(x keeper) (any, error) {
				n, hash, err := x.Last()
				return fmt.Sprint(n, hash), err
			})
			both("head", func(x keeper) (any, error) {
				n, head, err := x.Head(of)
				return fmt.Sprint(n, head), err
			})
			both("records", func(x keeper) (any, error) { return x.Records(of, after) })
			both("decisions", func(x keeper) (any, error) { return x.Decisions(of) })
		}
		testkit.Do(rt, s.Verify())
		s.Close()
	})
}

// A history goes on where it was, and never otherwise: a record that is kept is
// not another one, none is left out, and of a batch that is wrong nothing is kept.
func TestHistoriesAreNotRewritten(t *testing.T) {
	for name, k := range map[string]keeper{"store": open(t, filepath.Join(t.TempDir(), "site.db")),
		"memory": NewMemory()} {
		a, b, c := []byte("a"), []byte("b"), []byte("c")
		testkit.Do(t, k.Append("study", 0, [][]byte{a, b}))
		_, head, _ := k.Head("study")
		for what, x := range map[string]struct {
			first   int
			records [][]byte
		}{
			"another first": {0, [][]byte{b, b, c}}, "another last": {1, [][]byte{a, c}},
			"one left out": {3, [][]byte{c}}, "before the first": {-1, [][]byte{c, a, b, c}},
			"another after the same": {0, [][]byte{a, c, c}},
		} {
			if err := k.Append("study", x.first, x.records); !errors.Is(err, ErrForked) {
				t.Errorf("%s, %s: %v", name, what, err)
			}
			if n, h, err := k.Head("study"); n != 2 || h != head || err != nil {
				t.Fatalf("%s, %s: %d records are kept, %v", name, what, n, err)
			}
		}
		if err := errors.Join(k.Append("study", 1, [][]byte{b, c}), k.Append("study", 3, nil),
			k.Append("study", 9, nil)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if records, err := k.Records("study", 0); err != nil || fmt.Sprintf("%s", records) != "[a b c]" {
			t.Errorf("%s: %s, %v", name, records, err)
		}
	}
}

// The head of a history is a hash of every record: another record, another
// order or one record fewer is another head.
func TestHeadTellsOfEveryRecord(t *testing.T) {
	head := func(records ...string) (h [32]byte) {
		for _, r := range records {
			h = Next(h, []byte(r))
		}
		return h
	}
	all := [][32]byte{head(), head("a"), head("b"), head("a", "b"), head("b", "a"), head("ab"), head("a", ""),
		head("", "a")}
	for i, h := range all {
		if slices.Contains(all[:i], h) {
			t.Errorf("history %d has the head of another", i)
		}
	}
	s := open(t, filepath.Join(t.TempDir(), "site.db"))
	testkit.Do(t, s.Append("study", 0, [][]byte{[]byte("a"), []byte("b")}))
	if n, h, err := s.Head("study"); n != 2 || h != head("a", "b") || err != nil {
		t.Errorf("%d records, %x, %v", n, h, err)
	}
}

// What a store has handed out stays as it was, whatever happens to the store.
func TestWhatMemoryHandedOutStays(t *testing.T) {
	m := NewMemory()
	testkit.Do(t, m.Reserve(reservation("r"), key(1)))
	before, _, err := m.Release("r")
	if err != nil {
		t.Fatal(err)
	}
	testkit.Do(t, m.Commit("r", []byte("x"), nil))
	if k := key(1); !bytes.Equal(before.Key, k[:]) {
		t.Errorf("the key of a release that another delivery is being computed with became %x", before.Key)
	}
}

// written makes a store from a dump that an earlier version of the program left.
func written(t testing.TB, version int) string {
	t.Helper()
	dump := testkit.Get(os.ReadFile(filepath.Join("testdata", fmt.Sprintf("schema-%d.sql", version))))(t)
	path := filepath.Join(t.TempDir(), "site.db")
	db := testkit.Get(sql.Open("sqlite", path))(t)
	testkit.Get(db.Exec(string(dump)))(t)
	testkit.Do(t, db.Close())
	return path
}

// There is a dump for every version of the schema before this one.
func TestStoresOfEarlierVersionsOpenWithEverythingTheyHeld(t *testing.T) {
	for version := 1; version < len(migrations); version++ {
		path := written(t, version)
		for range 2 { // migrated, then as it was migrated
			s := open(t, path)
			lines, err := s.Reservations(0)
			if err != nil || len(lines) != 2 || lines[1].Seq != 2 || lines[1].Release != "3fa9/north/2" ||
				lines[1].Task != [32]byte{2} {
				t.Fatalf("schema %d: %+v, %v", version, lines, err)
			}
			r, ok, err := s.Release("3fa9/north/1")
			if err != nil || !ok || !bytes.Contains(r.Sealed, []byte("body")) {
				t.Fatalf("schema %d: %+v, %v, %v", version, r, ok, err)
			}
			if state, err := s.State("3fa9"); string(state) != "state" || err != nil {
				t.Fatalf("schema %d: state %q, %v", version, state, err)
			}
			if n, _, err := s.Head("3fa9"); n != 0 || err != nil {
				t.Fatalf("schema %d: a history of %d records, %v", version, n, err)
			}
			if err := s.Bind("north"); err != nil {
				t.Fatalf("schema %d: %v", version, err)
			}
			s.Close()
		}

		// A charge without a key was forfeited. Its task may be charged again, and no
		// bytes are taken for it before; a charge that has its bytes stays alone.
		s := open(t, path)
		again := reservation("3fa9/north/2")
		again.Study, again.Task = "3fa9", [32]byte{2}
		if r, ok, err := s.Release(again.Release); err != nil || !ok || r.Key != nil || r.Sealed != nil ||
			r.Task != again.Task {
			t.Fatalf("schema %d: %+v, %v, %v", version, r, ok, err)
		}
		if err := s.Commit(again.Release, []byte("late"), nil); !errors.Is(err, errNotReserved) {
			t.Fatalf("schema %d: bytes without a key were stored: %v", version, err)
		}
		if err := s.Reserve(reservation("3fa9/north/1"), key(9)); !errors.Is(err, errReserved) {
			t.Fatalf("schema %d: a release that has its bytes was charged again: %v", version, err)
		}
		if err := s.Reserve(again, key(3)); err != nil {
			t.Fatalf("schema %d: %v", version, err)
		}
		if err := s.Reserve(again, key(4)); !errors.Is(err, errReserved) {
			t.Fatalf("schema %d: charged a third time: %v", version, err)
		}
		testkit.Do(t, s.Commit(again.Release, []byte("late"), []byte("later state")))
		s.Close()
		s = open(t, path)
		if r, ok, err := s.Release(again.Release); err != nil || !ok || string(r.Sealed) != "late" || r.Key != nil {
			t.Fatalf("schema %d: %+v, %v, %v", version, r, ok, err)
		}
		if lines, err := s.Reservations(0); err != nil || len(lines) != 3 || lines[2].Release != again.Release {
			t.Fatalf("schema %d: %+v, %v", version, lines, err)
		}
	}
}

// A store whose program was killed before there was a third version of the
// schema has its last lines in a write-ahead log beside it.
func TestStoreOfAKilledEarlierProgramOpensWithItsLog(t *testing.T) {
	for version := 1; version < 3; version++ {
		path := written(t, version)
		db := testkit.Get(sql.Open("sqlite", path))(t)
		db.SetMaxOpenConns(1)
		if _, err := db.Exec(`PRAGMA journal_mode = WAL; INSERT INTO manifest VALUES ('3fa9', 2, x'03');
			UPDATE state SET state = x'6c61746572'`); err != nil {
			t.Fatal(err)
		}
		killed := filepath.Join(t.TempDir(), "site.db")
		for _, suffix := range []string{"", "-wal"} {
			content, err := os.ReadFile(path + suffix)
			if err != nil || len(content) == 0 {
				t.Fatalf("%s: %v", suffix, err)
			}
			testkit.Do(t, os.WriteFile(killed+suffix, content, 0o600))
		}
		testkit.Do(t, db.Close())
		s := open(t, killed)
		if state, err := s.State("3fa9"); err != nil || string(state) != "later" {
			t.Errorf("schema %d: state %q, %v", version, state, err)
		}
		if lines, err := s.Reservations(0); err != nil || len(lines) != 2 {
			t.Errorf("schema %d: %d lines, %v", version, len(lines), err)
		}
		for _, suffix := range []string{"-wal", "-shm"} {
			if _, err := os.Stat(killed + suffix); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("schema %d: the file alone does not hold everything: there is a %s, %v", version, suffix, err)
			}
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
		testkit.Do(t, os.MkdirAll(filepath.Dir(file), 0o700))
		testkit.Do(t, os.WriteFile(file, nil, 0o600))
		path := filepath.Join(dir, c.file[:strings.Index(c.file, ".db")+3])
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCrashWhileCreatingLeavesNothingInTheWay(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "north", "site.db")
	testkit.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
	for _, left := range []string{".site.db-123", ".site.db-123-journal"} {
		testkit.Do(t, os.WriteFile(filepath.Join(filepath.Dir(path), left), []byte("half"), 0o600))
	}
	open(t, path).Close()
	entries, err := os.ReadDir(filepath.Dir(path))
	// which may stay
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool { return e.Name() == "site.db.lock" })
	if err != nil || len(entries) != 1 || entries[0].Name() != "site.db" {
		t.Fatalf("%v, %v", entries, err)
	}
}

// Opening a store that is as it should be writes nothing: what is stored can be
// sent from a full disk.
func TestOpeningWritesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "site.db")
	furnished(t, path).Close()
	before := folder(t, filepath.Dir(path))
	durable(t, path).Close()
	unchanged(t, filepath.Dir(path), before)
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
				if err := s.Reserve(reservation(fmt.Sprint(i)), key(byte(i))); err != nil {
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
