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

	"pgregory.net/rapid"
)

func open(t testing.TB, path string) *Store {
	t.Helper()
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func reservation(release string) Reservation {
	return Reservation{Release: release, Study: "study", Task: [32]byte{1}, Request: []byte("request")}
}

func TestReleaseIsStoredOnceAfterItsCharge(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "site.db"))
	if err := s.Commit("r1", []byte("bytes"), nil); !errors.Is(err, ErrNotReserved) {
		t.Fatalf("stored without a charge: %v", err)
	}
	if err := s.Reserve(reservation("r1")); err != nil {
		t.Fatal(err)
	}
	if r, ok, err := s.Release("r1"); err != nil || !ok || r.Sealed != nil {
		t.Fatalf("after the charge: %+v, %v, %v", r, ok, err)
	}
	if err := s.Commit("r1", []byte("bytes"), []byte("state")); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit("r1", []byte("other"), nil); !errors.Is(err, ErrCommitted) {
		t.Fatalf("stored twice: %v", err)
	}
	r, ok, err := s.Release("r1")
	if err != nil || !ok || string(r.Sealed) != "bytes" || r.Task != [32]byte{1} {
		t.Fatalf("got %+v, %v, %v", r, ok, err)
	}
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
		ids := rapid.SampledFrom([]string{"a", "b", "c"})
		payload := rapid.SliceOfN(rapid.Byte(), 1, 8)
		same := func(op string, a, b error) {
			for _, target := range []error{ErrNotReserved, ErrCommitted, ErrForked, ErrMoved} {
				if errors.Is(a, target) != errors.Is(b, target) {
					rt.Fatalf("%s: %v against %v", op, a, b)
				}
			}
			if (a == nil) != (b == nil) {
				rt.Fatalf("%s: %v against %v", op, a, b)
			}
		}
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			id := ids.Draw(rt, "id")
			op := rapid.IntRange(0, 3).Draw(rt, "op")
			switch op {
			case 0:
				r := reservation(id)
				r.Seq = rapid.IntRange(0, 4).Draw(rt, "seq")
				same("reserve", s.Reserve(r), m.Reserve(r))
			case 1:
				b, st := payload.Draw(rt, "bytes"), payload.Draw(rt, "state")
				same("commit", s.Commit(id, b, st), m.Commit(id, b, st))
			case 2:
				first, e := rapid.IntRange(0, 4).Draw(rt, "first"), rapid.SliceOfN(payload, 0, 3).Draw(rt, "entries")
				same("append", s.Append("study", first, e), m.Append("study", first, e))
			case 3:
				s.Close()
				s = open(t, path)
			}
			a, okA, errA := s.Release(id)
			b, okB, errB := m.Release(id)
			same("release", errA, errB)
			if okA != okB || a.Task != b.Task || !bytes.Equal(a.Sealed, b.Sealed) {
				rt.Fatalf("release: %+v %v against %+v %v", a, okA, b, okB)
			}
			sa, errA := s.State("study")
			sb, errB := m.State("study")
			same("state", errA, errB)
			after := rapid.IntRange(0, 3).Draw(rt, "after")
			la, errA := s.Reservations(after)
			lb, errB := m.Reservations(after)
			same("reservations", errA, errB)
			if fmt.Sprint(la) != fmt.Sprint(lb) || len(la) > 0 && la[0].Seq != after+1 {
				rt.Fatalf("ledger: %v against %v", la, lb)
			}
			for seq := range 12 {
				if op < 2 {
					break // the manifest is as it was
				}
				ea, errA := s.Entry("study", seq)
				eb, errB := m.Entry("study", seq)
				same("entry", errA, errB)
				if !bytes.Equal(ea, eb) {
					rt.Fatalf("entry %d: %x against %x", seq, ea, eb)
				}
			}
			if !bytes.Equal(sa, sb) {
				rt.Fatalf("states differ")
			}
		}
		if err := s.Verify(); err != nil {
			rt.Fatal(err)
		}
		s.Close()
	})
}

func TestSecondProcessIsKeptOut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "site.db")
	first := open(t, path)
	if _, err := Open(path); !errors.Is(err, ErrLocked) {
		t.Fatalf("opened twice: %v", err)
	}
	first.Close()
	open(t, path)
}

func TestNothingIsChangedOrRemoved(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "site.db"))
	if err := errors.Join(s.Reserve(reservation("r")), s.Commit("r", []byte("x"), nil), s.Append("study", 0, [][]byte{{1}})); err != nil {
		t.Fatal(err)
	}
	for _, change := range []string{
		`DELETE FROM ledger`, `UPDATE ledger SET request = x'00'`, `DELETE FROM outbox`, `UPDATE outbox SET sealed = x'00'`,
		`DELETE FROM manifest`, `UPDATE manifest SET entry = x'00'`,
	} {
		if _, err := s.db.Exec(change); err == nil {
			t.Errorf("%s succeeded", change)
		}
	}
}

func TestTamperingIsNoticed(t *testing.T) {
	for _, change := range []string{
		`UPDATE ledger SET request = x'00' WHERE seq = 2`,
		`UPDATE ledger SET release = 'z' WHERE seq = 1`,
		`UPDATE ledger SET task = zeroblob(32) WHERE seq = 1`,
		`DELETE FROM ledger WHERE seq = 2`,
		`DELETE FROM ledger WHERE seq = 1`,
		`UPDATE ledger SET previous = x'00' WHERE seq = 3`,
		`UPDATE ledger SET seq = 4 WHERE seq = 3`,
		`DELETE FROM ledger WHERE seq = 3`, // its release is in the outbox
	} {
		path := filepath.Join(t.TempDir(), "site.db")
		s := open(t, path)
		for _, id := range []string{"a", "b", "c"} {
			if err := s.Reserve(reservation(id)); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(s.Commit("c", []byte("x"), nil), s.Verify()); err != nil {
			t.Fatal(err)
		}
		if _, err := s.db.Exec(`DROP TRIGGER ledger_is_final; DROP TRIGGER ledger_is_kept; ` + change); err != nil {
			t.Fatal(err)
		}
		if err := s.Verify(); err == nil {
			t.Errorf("not noticed: %s", change)
		}
		s.Close()
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), "ledger") {
			t.Errorf("opened after %s: %v", change, err)
		}
	}
}

func TestOtherBytesThanThoseStoredAreNotSent(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "site.db"))
	if err := errors.Join(s.Reserve(reservation("r")), s.Commit("r", []byte("bytes"), nil)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.db.Exec(`DROP TRIGGER outbox_is_final; UPDATE outbox SET sealed = x'00'`); err != nil {
		t.Fatal(err)
	}
	if r, _, err := s.Release("r"); err == nil || r.Sealed != nil {
		t.Fatalf("got %q, %v", r.Sealed, err)
	}
}

func TestForeignFilesAreLeftAlone(t *testing.T) {
	dir := t.TempDir()
	other := filepath.Join(dir, "other.db")
	db, err := sql.Open("sqlite", other)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(`CREATE TABLE patients (id TEXT)`); err != nil {
		t.Fatal(err)
	}
	db.Close()
	newer := filepath.Join(dir, "newer.db")
	s := open(t, newer)
	if _, err := s.db.Exec(fmt.Sprintf(`PRAGMA user_version = %d`, len(migrations)+1)); err != nil {
		t.Fatal(err)
	}
	s.Close()
	text := filepath.Join(dir, "text.db")
	if err := os.WriteFile(text, []byte(strings.Repeat("not a database ", 500)), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{other: "not a Parley site store", newer: "newer parley", text: "not a database"} {
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
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
	s, err := Open(path)
	if err != nil {
		f.Fatal(err)
	}
	want := []string{"r", "s", "t"}
	for _, id := range want {
		if err := s.Reserve(reservation(id)); err != nil {
			f.Fatal(err)
		}
	}
	if err := errors.Join(s.Commit("r", []byte("x"), nil), s.Close()); err != nil {
		f.Fatal(err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
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
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
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
		if r, ok, err := s.Release("r"); err == nil && (!ok || r.Sealed != nil && string(r.Sealed) != "x") {
			t.Fatalf("damage at %d: release %+v, %v", int(at)%len(bad), r, ok)
		}
	})
}

func Example() {
	dir, err := os.MkdirTemp("", "site")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	s, err := Open(filepath.Join(dir, "site.db"))
	if err != nil {
		panic(err)
	}
	defer s.Close()
	fmt.Println(s.Reserve(Reservation{Release: "r1", Study: "3fa9", Request: []byte("charge")}))
	fmt.Println(s.Commit("r1", []byte("sealed bytes"), nil))
	r, ok, err := s.Release("r1")
	fmt.Println(string(r.Sealed), ok, err)
	// Output:
	// <nil>
	// <nil>
	// sealed bytes true <nil>
}
