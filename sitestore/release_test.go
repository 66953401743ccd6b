package sitestore_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/dataset"
	"parley/internal/testkit"
	"parley/privacy"
	"parley/privacy/account"
	"parley/privacy/ledger"
	"parley/sitestore"
)

// people is a data set of so many rows without views.
type people int

func (n people) Schema() dataset.Schema { return dataset.Schema{} }

func (n people) Rows(context.Context) iter.Seq2[*dataset.Row, error] {
	return func(yield func(*dataset.Row, error) bool) {
		for i := range int(n) {
			if !yield(&dataset.Row{ID: fmt.Sprint(i)}, nil) {
				return
			}
		}
	}
}

// gate guards five people, of whom a study may ask as often as it likes for a
// noised vector of so many numbers.
func gate(j privacy.Journal, length int) *privacy.Gate {
	sum := privacy.Sum{Name: "v", Unit: privacy.Subject, Form: privacy.Vectors, Blocks: []int{length}, Bound: 1,
		Mechanism: account.Mechanism{Kind: account.Gaussian, Noise: 1 << 20, Rate: 1, Diameter: 2, Count: 1}}
	return privacy.NewGate(privacy.Study{Digest: "3fa9", Site: "north", Method: "toy", Sites: 1, Quorum: 1,
		Requests: []privacy.Listed{
			{Kind: "fit", Times: math.MaxInt, Request: privacy.Request{Protection: privacy.Differential,
				Sums: []privacy.Sum{sum}}},
		}}, privacy.SimulationPolicy(), j, people(5))
}

// deliver does what a site does with a task.
func deliver(ctx context.Context, g *privacy.Gate, round int) ([]byte, error) {
	ask := privacy.Ask{Study: "3fa9", Site: "north", Round: round, Kind: "fit",
		Task: [32]byte{byte(round), byte(round >> 8), byte(round >> 16)}}
	if r, ok, err := g.Stored(ask); err != nil || ok {
		return r.Bytes(), err
	}
	s, err := g.Admit(ask)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if _, err := s.Sum(ctx, "v", func(_ *dataset.Row, v []float64) int {
		v[0] = 1
		return 0
	}); err != nil {
		return nil, err
	}
	r, err := s.Seal(nil, []byte("state"))
	return r.Bytes(), err
}

// spy sees what a gate stores, and may say that the disk has no room.
type spy struct {
	*sitestore.Store
	full   bool
	sealed [][]byte
}

func (s *spy) Free(bytes int64) error {
	if s.full {
		return fmt.Errorf("storing: %w", sitestore.ErrFull)
	}
	return s.Store.Free(bytes)
}

func (s *spy) Commit(release string, sealed, state []byte) error {
	s.sealed = append(s.sealed, sealed)
	return s.Store.Commit(release, sealed, state)
}

func charges(t *testing.T, s *sitestore.Store) int {
	t.Helper()
	lines := testkit.Get(s.Reservations(0))(t)
	return len(lines)
}

// A task that is delivered again and again at a full disk is charged never; one
// that was charged before the disk was full, once, and what was computed for it
// each time are the same bytes, which are stored when there is room.
func TestFullDiskCostsNothing(t *testing.T) {
	s := testkit.Get(sitestore.Open(filepath.Join(t.TempDir(), "site.db"), sitestore.Quick()))(t)
	defer s.Close()
	j := &spy{Store: s, full: true}
	for range 10 {
		if _, err := deliver(t.Context(), gate(j, 4000), 1); !errors.Is(err, sitestore.ErrFull) {
			t.Fatal(err)
		}
	}
	if n := charges(t, s); n != 0 {
		t.Fatalf("ten deliveries at a full disk were charged %d times", n)
	}

	// The disk is full when the release is to be stored: SQLite says so.
	j.full = false
	testkit.Do(t, s.Fill(2))
	for range 10 {
		if _, err := deliver(t.Context(), gate(j, 4000), 1); !errors.Is(err, sitestore.ErrFull) {
			t.Fatal(err)
		}
		j.full = true // nobody asks again whether there is room for what is charged
	}
	if n := charges(t, s); n != 1 || len(j.sealed) != 10 {
		t.Fatalf("%d charges, computed %d times", n, len(j.sealed))
	}
	testkit.Do(t, s.Verify())
	testkit.Do(t, s.Fill(-1))
	sent, err := deliver(t.Context(), gate(j, 4000), 1)
	if err != nil || charges(t, s) != 1 {
		t.Fatalf("%d charges, %v", charges(t, s), err)
	}
	for _, b := range j.sealed {
		if !bytes.Equal(b, sent) {
			t.Fatal("other bytes were computed for the same task")
		}
	}
	again, err := deliver(t.Context(), gate(j, 4000), 1)
	if err != nil || !bytes.Equal(again, sent) || len(j.sealed) != 11 {
		t.Fatalf("it was not sent from the store: %v", err)
	}
}

// A charge for which there is no room is no charge at all.
func TestChargeThatDoesNotFitIsNone(t *testing.T) {
	s := testkit.Get(sitestore.Open(filepath.Join(t.TempDir(), "site.db"), sitestore.Quick()))(t)
	defer s.Close()
	testkit.Do(t, s.Fill(0))
	for i := 0; ; i++ {
		before := charges(t, s)
		err := s.Reserve(sitestore.Reservation{Release: fmt.Sprint(i), Study: "study", Request: make([]byte, 500)},
			[32]byte{byte(i)})
		if err == nil && i < 100 {
			continue
		}
		if _, ok, _ := s.Release(fmt.Sprint(i)); !errors.Is(err, sitestore.ErrFull) || ok || charges(t, s) != before ||
			i == 0 {
			t.Fatalf("charge %d: %v, and there are %d", i, err, charges(t, s))
		}
		break
	}
	testkit.Do(t, s.Verify())
}

func TestRoomIsWhatTheDiskHas(t *testing.T) {
	s := testkit.Get(sitestore.Open(filepath.Join(t.TempDir(), "site.db"), sitestore.Quick()))(t)
	defer s.Close()
	for bytes, full := range map[int64]bool{-1: false, 0: false, 1000: false, 1 << 60: true, math.MaxInt64 - 1: true,
		math.MaxInt64: true} {
		if err := s.Free(bytes); errors.Is(err, sitestore.ErrFull) != full {
			t.Errorf("room for %d bytes: %v", bytes, err)
		}
	}
}

// verified is what VerifyVault says of a store that opens.
func verified(t *testing.T, path string) (found *ledger.Verified, wrong error) {
	t.Helper()
	if err := sitestore.Look(path, func(s *sitestore.Store) error {
		found, wrong = ledger.Verify(s)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return found, wrong
}

// Somebody who writes to the store with other tools puts one release's bytes in
// the place of another's, with all that belongs to them. The store opens, since
// they are bytes that were stored; they answer another task than was charged.
func TestSwappedReleasesAreNoticed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "site.db")
	s := testkit.Get(sitestore.Open(path, sitestore.Quick()))(t)
	for round := 1; round <= 3; round++ {
		testkit.Get(deliver(t.Context(), gate(s, 8), round))(t)
	}
	testkit.Do(t, s.Close())
	if found, wrong := verified(t, path); wrong != nil || found.Stored != 3 {
		t.Fatalf("%+v, %v", found, wrong)
	}
	db := testkit.Get(sql.Open("sqlite", path))(t)
	var trigger string
	testkit.Do(t, db.QueryRow(`SELECT sql FROM sqlite_schema WHERE name = 'outbox_is_final'`).Scan(&trigger))
	for _, change := range []string{
		`DROP TRIGGER outbox_is_final`,
		`UPDATE outbox SET release = '?' WHERE release = '3fa9/north/1'`,
		`UPDATE outbox SET release = '3fa9/north/1' WHERE release = '3fa9/north/2'`,
		`UPDATE outbox SET release = '3fa9/north/2' WHERE release = '?'`,
		trigger,
	} {
		if _, err := db.Exec(change); err != nil {
			t.Fatalf("%s: %v", change, err)
		}
	}
	testkit.Do(t, db.Close())
	_, wrong := verified(t, path)
	for _, want := range []string{"the stored bytes are release 3fa9/north/2, and release 3fa9/north/1 was charged",
		"release 3fa9/north/1, and release 3fa9/north/2 was charged"} {
		if wrong == nil || !strings.Contains(wrong.Error(), want) {
			t.Errorf("%q is not in %v", want, wrong)
		}
	}
}

// The stores of earlier versions hold together as they did, and their gates
// make the charge again that a crash forfeited, once.
func TestForfeitedChargeOfAnEarlierVersionIsMadeAgain(t *testing.T) {
	for version := 1; version <= 2; version++ {
		dump := testkit.Get(os.ReadFile(filepath.Join("testdata", fmt.Sprintf("schema-%d.sql", version))))(t)
		path := filepath.Join(t.TempDir(), "site.db")
		db := testkit.Get(sql.Open("sqlite", path))(t)
		testkit.Get(db.Exec(string(dump)))(t)
		db.Close()
		s := testkit.Get(sitestore.Open(path, sitestore.Quick()))(t)
		found, err := ledger.Verify(s)
		if err != nil || found.Lines != 2 || found.Stored != 1 {
			t.Fatalf("schema %d: %+v, %v", version, found, err)
		}
		again := privacy.Ask{Study: "3fa9", Site: "north", Round: 2, Kind: "fit", Task: [32]byte{2}}
		listed := func(times int) *privacy.Gate {
			charged := testkit.Get(ledger.Read(s))(t)
			return privacy.NewGate(privacy.Study{Digest: "3fa9", Site: "north", Method: "toy", Sites: 1, Quorum: 1,
				Requests: []privacy.Listed{
					{Kind: "fit", Times: times, Request: charged.Entries[1].Request},
				}}, privacy.SimulationPolicy(), s, people(3))
		}
		if version > 1 { // lines of the first version do not say which kind of task they were for
			other := again
			other.Round, other.Task = 3, [32]byte{3}
			if _, err := listed(2).Admit(other); !errors.Is(err, privacy.ErrRefused) {
				t.Errorf("schema %d: a third task of a kind that is listed twice: %v", version, err)
			}
		}
		for range 2 { // made again, and asked for again
			session, err := listed(2).Admit(again)
			if err != nil {
				t.Fatalf("schema %d: %v", version, err)
			}
			session.Close()
		}
		if n := charges(t, s); n != 3 {
			t.Errorf("schema %d: %d charges", version, n)
		}
		charged, err := ledger.Read(s)
		if err != nil || charged.Entries[2].Attempt != 2 || charged.Entries[2].Release != "3fa9/north/2" {
			t.Errorf("schema %d: %+v, %v", version, charged, err)
		}
		if err := errors.Join(s.Verify(), s.Close()); err != nil {
			t.Error(err)
		}
	}
}
