// Package sitestore is a site's one durable file: an SQLite database that
// holds the ledger, the outbox, the methods' state and the manifest of what
// coordinators say they have folded. An auditor can open it with ordinary
// tools while no Parley process has it open.
//
// A release passes through here in two commits. [Store.Reserve] appends the
// charge to the ledger before any row is read; [Store.Commit] stores the
// finished bytes, and the state that goes with them, before they may be sent.
// A crash between the two forfeits the charge; after the second, the same
// bytes are sent again. Neither ledger nor outbox is ever changed or shortened:
// triggers in the schema refuse it. Every line of the ledger is chained to the
// line before it, and [Open] walks the whole chain: a store that was damaged or
// tampered with does not open, and never starts again from nothing. (Whoever
// can write the file can also rebuild the chain, or bring back an old copy.)
package sitestore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"

	_ "modernc.org/sqlite" // the pure Go SQLite driver
)

// Errors that a caller branches on.
var (
	// ErrLocked means that another process has the store open.
	ErrLocked = errors.New("another process has this site's store open")
	// ErrNotReserved means that bytes were to be stored without a charge.
	ErrNotReserved = errors.New("release has no reservation")
	// ErrCommitted means that a release already has its bytes.
	ErrCommitted = errors.New("release already has its bytes")
	// ErrMoved means that the ledger has grown since its reader last looked.
	ErrMoved = errors.New("the ledger has grown meanwhile")
	// ErrForked means that a manifest does not continue the one kept here.
	ErrForked = errors.New("the coordinator's manifest does not continue the one this site has kept")
)

// Reservation is one line of the ledger: a charge for one attempt at one release.
type Reservation struct {
	// Seq is the line's place in the ledger, from 1. Given to Reserve, it is
	// the place that the line must get; 0 means the next one, whichever it is.
	Seq     int
	Release string   // identity of the release: the same for every attempt
	Study   string   // hexadecimal digest of the plan
	Task    [32]byte // SHA-256 of the task that asked for it
	Request []byte   // what was declared, in deterministic CBOR; it holds the charge
	Hash    [32]byte // SHA-256 of the line and of the hash before it; Reserve makes it
}

// Release is what the outbox holds for a release.
type Release struct {
	Task   [32]byte // SHA-256 of the task it answers
	Sealed []byte   // the bytes that leave; nil if only a charge exists
}

// Store is an open site store. Its methods may be called concurrently.
type Store struct {
	db *sql.DB
}

// Open opens or creates the store at path, brings its schema up to date,
// verifies it, and holds it against every other process until Close. It never
// replaces a file that it cannot read: a damaged store is an error that a
// person must resolve.
func Open(path string) (*Store, error) {
	err := create(path)
	var s *Store
	if err == nil {
		s, err = acquire(path)
	}
	if err != nil {
		return nil, fmt.Errorf("opening the site store %s: %w", path, err)
	}
	return s, nil
}

// acquire takes hold of the store at path.
func acquire(path string) (_ *Store, err error) {
	// Exclusive locking keeps a second process out for as long as the file is
	// open, and lets WAL mode do without shared memory.
	s, err := connect(path, "&_pragma=locking_mode(EXCLUSIVE)")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err == nil {
			return
		}
		s.Close()
		if strings.Contains(err.Error(), "SQLITE_BUSY") || strings.Contains(err.Error(), "database is locked") {
			err = ErrLocked
		}
	}()
	if err := s.recognise(); err != nil {
		return nil, err
	}
	// Only now, because it writes to the file.
	if _, err := s.db.Exec(`PRAGMA journal_mode = WAL`); err != nil {
		return nil, err
	}
	if err := s.migrate(len(migrations)); err != nil {
		return nil, err
	}
	if err := s.Verify(); err != nil {
		return nil, err
	}
	return s, sweep(path)
}

func connect(path, pragmas string) (*Store, error) {
	dsn := "file:" + (&url.URL{Path: path}).EscapedPath() + "?_pragma=synchronous(FULL)&_pragma=trusted_schema(OFF)&_txlock=immediate" + pragmas
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // one writer, and an exclusive lock belongs to one connection
	return &Store{db: db}, nil
}

// Close releases the store.
func (s *Store) Close() error { return s.db.Close() }

// Release returns what is stored under a release's identity; ok is false if
// nothing was ever reserved under it. Bytes that are no longer those that were
// stored are an error.
func (s *Store) Release(id string) (r Release, ok bool, err error) {
	var task, digest []byte
	err = s.db.QueryRow(`SELECT l.task, o.sealed, o.digest FROM ledger l LEFT JOIN outbox o ON o.release = l.release
		WHERE l.release = ? ORDER BY l.seq LIMIT 1`, id).Scan(&task, &r.Sealed, &digest)
	if errors.Is(err, sql.ErrNoRows) {
		return r, false, nil
	}
	if err != nil {
		return r, false, fmt.Errorf("reading release %s: %w", id, err)
	}
	if sum := sha256.Sum256(r.Sealed); digest != nil && !bytes.Equal(digest, sum[:]) { // schema 1 kept no digest
		return Release{}, false, fmt.Errorf("reading release %s: its bytes are not those that were stored", id)
	}
	copy(r.Task[:], task)
	return r, true, nil
}

// Reserve appends a charge to the ledger, chained to the line before it by
// SHA-256. It is durable when Reserve returns. ErrMoved is returned if the line
// cannot get the place that r.Seq asks for.
func (s *Store) Reserve(r Reservation) error {
	return s.update("reserving "+r.Release, func(tx *sql.Tx) error {
		var last int
		var previous []byte
		err := tx.QueryRow(`SELECT seq, hash FROM ledger ORDER BY seq DESC LIMIT 1`).Scan(&last, &previous)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if r.Seq != 0 && r.Seq != last+1 {
			return ErrMoved
		}
		_, err = tx.Exec(`INSERT INTO ledger (release, study, task, request, previous, hash) VALUES (?, ?, ?, ?, ?, ?)`,
			r.Release, r.Study, r.Task[:], r.Request, previous, r.chain(previous))
		return err
	})
}

// chain hashes a ledger line together with the hash before it. Every field is preceded by
// its length, so that no two lines hash the same bytes.
func (r Reservation) chain(previous []byte) []byte {
	h := sha256.New()
	for _, field := range [][]byte{previous, []byte(r.Release), []byte(r.Study), r.Task[:], r.Request} {
		fmt.Fprintf(h, "%d:", len(field))
		h.Write(field)
	}
	return h.Sum(nil)
}

// Reservations returns the lines of the ledger after the first so many, in order.
func (s *Store) Reservations(after int) ([]Reservation, error) {
	var out []Reservation
	err := s.lines(after, func(r Reservation, _, _ []byte) error {
		out = append(out, r)
		return nil
	})
	return out, err
}

// Commit stores a release's bytes and the state of the study that goes with
// them, in one commit. ErrNotReserved is returned if nothing was charged for
// it, ErrCommitted if it has bytes already.
func (s *Store) Commit(release string, sealed, state []byte) error {
	return s.update("storing "+release, func(tx *sql.Tx) error {
		var study string
		err := tx.QueryRow(`SELECT study FROM ledger WHERE release = ? LIMIT 1`, release).Scan(&study)
		if errors.Is(err, sql.ErrNoRows) {
			return ErrNotReserved
		}
		if err != nil {
			return err
		}
		var n int
		if err := tx.QueryRow(`SELECT count(*) FROM outbox WHERE release = ?`, release).Scan(&n); err != nil {
			return err
		}
		if n > 0 {
			return ErrCommitted
		}
		digest := sha256.Sum256(sealed)
		if _, err := tx.Exec(`INSERT INTO outbox (release, study, sealed, digest) VALUES (?, ?, ?, ?)`, release, study, sealed, digest[:]); err != nil {
			return err
		}
		_, err = tx.Exec(`INSERT INTO state (study, state) VALUES (?, ?)
			ON CONFLICT (study) DO UPDATE SET state = excluded.state`, study, state)
		return err
	})
}

// State returns what the method of a study carries from one task to the next
// at this site; nil before its first release.
func (s *Store) State(study string) ([]byte, error) {
	var state []byte
	err := s.db.QueryRow(`SELECT state FROM state WHERE study = ?`, study).Scan(&state)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("reading the state of study %s: %w", study, err)
	}
	return state, nil
}

// Entry returns the entry at seq (from 0) of a study's manifest; nil if it is
// not kept.
func (s *Store) Entry(study string, seq int) (entry []byte, err error) {
	err = s.db.QueryRow(`SELECT entry FROM manifest WHERE study = ? AND seq = ?`, study, seq).Scan(&entry)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("reading the manifest of study %s: %w", study, err)
	}
	return entry, nil
}

// Append keeps manifest entries from position first (0 for the first of the
// study) on. Entries that are kept already must be the same bytes, and none
// may be skipped; otherwise ErrForked is returned and nothing is kept.
func (s *Store) Append(study string, first int, entries [][]byte) error {
	if len(entries) == 0 {
		return nil
	}
	return s.update("keeping the manifest", func(tx *sql.Tx) error {
		var kept int
		if err := tx.QueryRow(`SELECT coalesce(max(seq), -1) + 1 FROM manifest WHERE study = ?`, study).Scan(&kept); err != nil {
			return err
		}
		if first > kept {
			return fmt.Errorf("%w: entries %d to %d are missing", ErrForked, kept, first-1)
		}
		for i, e := range entries {
			if seq := first + i; seq >= kept {
				if _, err := tx.Exec(`INSERT INTO manifest (study, seq, entry) VALUES (?, ?, ?)`, study, seq, e); err != nil {
					return err
				}
				continue
			}
			var old []byte
			if err := tx.QueryRow(`SELECT entry FROM manifest WHERE study = ? AND seq = ?`, study, first+i).Scan(&old); err != nil {
				return err
			}
			if string(old) != string(e) {
				return fmt.Errorf("%w: entry %d differs", ErrForked, first+i)
			}
		}
		return nil
	})
}

func (s *Store) update(doing string, change func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(context.Background(), nil)
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	defer tx.Rollback()
	if err := change(tx); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}
