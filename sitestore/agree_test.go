package sitestore

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
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
			for _, target := range []error{errNotReserved, errReserved, ErrCommitted, ErrForked, ErrMoved, ErrOtherSite} {
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
				first, records := rapid.IntRange(-1, 4).Draw(rt, "first"), rapid.SliceOfN(payload, 0, 3).Draw(rt, "records")
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
	for name, k := range map[string]keeper{"store": open(t, filepath.Join(t.TempDir(), "site.db")), "memory": NewMemory()} {
		a, b, c := []byte("a"), []byte("b"), []byte("c")
		testkit.Do(t, k.Append("study", 0, [][]byte{a, b}))
		_, head, _ := k.Head("study")
		for what, x := range map[string]struct {
			first   int
			records [][]byte
		}{
			"another first": {0, [][]byte{b, b, c}}, "another last": {1, [][]byte{a, c}}, "one left out": {3, [][]byte{c}}, "before the first": {-1, [][]byte{c, a, b, c}},
			"another after the same": {0, [][]byte{a, c, c}},
		} {
			if err := k.Append("study", x.first, x.records); !errors.Is(err, ErrForked) {
				t.Errorf("%s, %s: %v", name, what, err)
			}
			if n, h, err := k.Head("study"); n != 2 || h != head || err != nil {
				t.Fatalf("%s, %s: %d records are kept, %v", name, what, n, err)
			}
		}
		if err := errors.Join(k.Append("study", 1, [][]byte{b, c}), k.Append("study", 3, nil), k.Append("study", 9, nil)); err != nil {
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
	all := [][32]byte{head(), head("a"), head("b"), head("a", "b"), head("b", "a"), head("ab"), head("a", ""), head("", "a")}
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
