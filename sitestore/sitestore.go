// Package sitestore is a site's one durable file: an SQLite database that
// holds the ledger, the outbox, the methods' state, the history that
// coordinators have shown, and what was agreed to. An auditor can read it with
// ordinary tools while a Parley process is writing to it.
//
// A release passes through here in two commits. [Store.Reserve] appends the
// charge to the ledger, together with the key of the release's noise, before
// anything is computed from rows; [Store.Commit] stores the finished bytes, and the state that
// goes with them, before they may be sent, and wipes the key. After a crash
// between the two the same task finds its charge and its key, and is computed
// again to the same bytes: nothing is charged twice, and nothing is forfeited.
// After the second commit the stored bytes are sent again, and the file has no key
// that anybody could steal. (The journal of that commit is removed, and not
// overwritten: on what a disk keeps of removed files, see docs/privacy.md.)
//
// After each commit the file alone holds everything, so that a copy of it is
// complete. Neither ledger nor outbox nor history is ever changed or shortened:
// triggers in the schema refuse it. Every line of the ledger and every record
// of the history is chained to the one before it, and [Open] verifies all of
// it: a store that was damaged or tampered with does not open, and never starts
// again from nothing. (Whoever can write the file can also rebuild the chains,
// or bring back an old copy: see Receipts in package host for how that is noticed.)
package sitestore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	_ "modernc.org/sqlite" // the pure Go SQLite driver

	"parley/internal/files"
)

// Errors that a caller branches on.
var (
	// errLocked means that another process has the store open.
	errLocked = errors.New("another process has this site's store open")
	// errNotReserved means that bytes were to be stored without a charge.
	errNotReserved = errors.New("release has no reservation")
	// errReserved means that a release has its charge already.
	errReserved = errors.New("release has been charged")
	// ErrCommitted means that a release already has other bytes.
	ErrCommitted = errors.New("release already has its bytes")
	// ErrMoved means that the ledger has grown since its reader last looked.
	ErrMoved = errors.New("the ledger has grown meanwhile")
	// ErrForked means that a history does not continue the one kept here.
	ErrForked = errors.New("the coordinator's history does not continue the one that this site has kept")
	// ErrFull means that the disk has no room for what is about to be stored.
	ErrFull = errors.New("the disk is full")
	// ErrOtherSite means that the store belongs to another site.
	ErrOtherSite = errors.New("the store belongs to another site")
)

// Reservation is one line of the ledger: a charge for a release.
type Reservation struct {
	// Seq is the line's place in the ledger, from 1. Given to Reserve, it is
	// the place that the line must get; 0 means the next one, whichever it is.
	Seq     int
	Release string   // identity of the release
	Study   string   // hexadecimal digest of the plan
	Task    [32]byte // identity of the task that asked for it
	Request []byte   // what was declared, in deterministic CBOR; it holds the charge
	Hash    [32]byte // SHA-256 of the line and of the hash before it; Reserve makes it
}

// Release is what is kept of a release.
type Release struct {
	Task   [32]byte // identity of the task that it answers
	Sealed []byte   // the bytes that leave; nil until they are stored
	// Key is the secret of the release's noise, 32 bytes, from its charge until
	// its bytes are stored; nil before and after. A release with neither bytes
	// nor key was charged by a program that kept no keys: that charge is
	// forfeited.
	Key []byte
}

// Store is an open site store. Its methods may be called concurrently.
type Store struct {
	path     string
	db       *sql.DB
	lock     *files.Lock // nil if it is only read
	prepared sync.Map    // of *sql.Stmt, by their text
}

// Option changes how a store is kept.
type Option func(*options)

type options struct{ synchronous string }

// Quick makes commits survive the end of the process, but not of the machine:
// for simulations, which can be run again.
func Quick() Option { return func(o *options) { o.synchronous = "OFF" } }

// Open opens or creates the store at path, brings its schema up to date,
// verifies it, and holds it against every other writer until Close. It never
// replaces a file that it cannot read: a damaged store is an error that a
// person must resolve.
func Open(path string, o ...Option) (*Store, error) {
	err := create(path)
	var s *Store
	if err == nil {
		s, err = acquire(path, o...)
	}
	if err != nil {
		return nil, fmt.Errorf("opening the site store %s: %w", path, err)
	}
	return s, nil
}

// acquire takes hold of the store at path.
func acquire(path string, o ...Option) (_ *Store, err error) {
	// EXTRA makes the end of a commit, which is the emptying of the journal, as
	// durable as the rest.
	opt := options{synchronous: "EXTRA"}
	for _, set := range o {
		set(&opt)
	}
	if path, err = filepath.EvalSymlinks(path); err != nil { // one store has one lock
		return nil, err
	}
	// SQLite's own locks let readers in between two commits, and other writers, too.
	lock, err := files.Acquire(path + lockSuffix)
	if errors.Is(err, files.ErrHeld) {
		return nil, errLocked
	}
	if err != nil {
		return nil, err
	}
	s, err := connect(path, "&_pragma=synchronous("+opt.synchronous+
		")&_pragma=secure_delete(ON)&_pragma=busy_timeout(60000)")
	if err != nil {
		return nil, errors.Join(err, lock.Release())
	}
	s.lock = lock
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	if _, err := s.version(); err != nil {
		return nil, err
	}
	// A rollback journal leaves the whole store in one file after each commit. It is emptied instead of
	// made and removed each time. Only now, because it writes to the file.
	if _, err := s.db.Exec(`PRAGMA journal_mode = TRUNCATE`); err != nil {
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

// lockSuffix is what the name of the lock's file has beyond the store's.
const lockSuffix = ".lock"

func connect(path, pragmas string) (*Store, error) {
	dsn := ":memory:"
	if path != dsn {
		dsn = "file:" + (&url.URL{Path: path}).EscapedPath() + "?_pragma=trusted_schema(OFF)&_txlock=immediate" +
			pragmas
	}
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // one writer
	return &Store{path: path, db: db}, nil
}

// Close releases the store.
func (s *Store) Close() error {
	err := s.db.Close()
	if s.lock != nil {
		if journal, gone := os.Stat(s.path + "-journal"); err == nil && gone == nil && journal.Size() == 0 {
			err = os.Remove(s.path + "-journal")
		}
		err = errors.Join(err, s.lock.Release())
	}
	return err
}

// Bind makes the store that of a site, or checks that it is: ErrOtherSite if it
// belongs to another one.
func (s *Store) Bind(site string) error {
	return s.update("binding the store to its site", func(tx statements) error {
		var bound sql.NullString
		if err := tx.QueryRow(`SELECT site FROM binding`).Scan(&bound); err != nil {
			return err
		}
		if !bound.Valid {
			_, err := tx.Exec(`UPDATE binding SET site = ?`, site)
			return err
		}
		if bound.String != site {
			return fmt.Errorf("%w: it is that of %q, not of %q", ErrOtherSite, bound.String, site)
		}
		return nil
	})
}

// reserve is what a disk must have free beside what is about to be stored:
// room for the pages that a commit changes, and for the journal that keeps
// them as they were.
const reserve = 4 << 20

// Free returns ErrFull if the disk has no room for so many bytes. It is asked
// before a charge, so that what is charged can be stored.
func (s *Store) Free(bytes int64) error {
	free, err := files.Free(filepath.Dir(s.path))
	if err != nil {
		return fmt.Errorf("asking how much room the disk has: %w", err)
	}
	if need := 2*uint64(min(max(bytes, 0), math.MaxInt64-reserve)) + reserve; free < need {
		return fmt.Errorf("%w: it has %d MB free, and %d are needed\n  hint: make room; nothing has been charged",
			ErrFull, free>>20, 1+need>>20)
	}
	return nil
}

// Release returns what is kept under a release's identity; ok is false if
// nothing was ever reserved under it. Bytes that are no longer those that were
// stored are an error.
func (s *Store) Release(id string) (r Release, ok bool, err error) {
	var task, digest []byte
	err = s.read().QueryRow(`SELECT l.task, o.sealed, o.digest, k.key FROM ledger l
		LEFT JOIN outbox o ON o.release = l.release LEFT JOIN keys k ON k.release = l.release
		WHERE l.release = ? ORDER BY l.seq LIMIT 1`, id).Scan(&task, &r.Sealed, &digest, &r.Key)
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
// SHA-256, and keeps the key of its noise. Both are durable when Reserve
// returns. errReserved is returned if the release has a charge and a key, or
// its bytes; ErrMoved if the line cannot get the place that r.Seq asks for.
func (s *Store) Reserve(r Reservation, key [32]byte) error {
	return s.update("reserving "+r.Release, func(tx statements) error {
		var last, n int
		var previous []byte
		err := tx.QueryRow(`SELECT seq, hash FROM ledger ORDER BY seq DESC LIMIT 1`).Scan(&last, &previous)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if r.Seq != 0 && r.Seq != last+1 {
			return ErrMoved
		}
		if err := tx.QueryRow(`SELECT (SELECT count(*) FROM outbox WHERE release = ?1) + (SELECT count(*) FROM keys `+
			`WHERE release = ?1)`, r.Release).Scan(&n); err != nil {
			return err
		}
		if n > 0 {
			return errReserved
		}
		if _, err := tx.Exec(`INSERT INTO ledger (release, study, task, request, previous, hash) VALUES (?, ?, ?, ?, `+
			`?, ?)`,
			r.Release, r.Study, r.Task[:], r.Request, previous, r.chain(previous)); err != nil {
			return err
		}
		_, err = tx.Exec(`INSERT INTO keys (release, key) VALUES (?, ?)`, r.Release, key[:])
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

// Last returns the number of the ledger's last line, 0 if it is empty, and its
// hash, which tells of every line.
func (s *Store) Last() (lines int, hash [32]byte, err error) {
	var h []byte
	err = s.read().QueryRow(`SELECT seq, hash FROM ledger ORDER BY seq DESC LIMIT 1`).Scan(&lines, &h)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0, hash, fmt.Errorf("reading the ledger: %w", err)
	}
	copy(hash[:], h)
	return lines, hash, nil
}

// Commit stores a release's bytes and the state of the study that goes with
// them, and wipes the key of its noise, in one commit. errNotReserved is
// returned if nothing was charged for it, ErrCommitted if it has other bytes
// already; the same bytes again change nothing.
func (s *Store) Commit(release string, sealed, state []byte) error {
	return s.update("storing "+release, func(tx statements) error {
		var stored []byte
		err := tx.QueryRow(`SELECT sealed FROM outbox WHERE release = ?`, release).Scan(&stored)
		switch {
		case err == nil && bytes.Equal(stored, sealed):
			return nil
		case err == nil:
			return ErrCommitted
		case !errors.Is(err, sql.ErrNoRows):
			return err
		}
		var study string
		err = tx.QueryRow(`SELECT l.study FROM ledger l JOIN keys k ON k.release = l.release WHERE l.release = ? `+
			`LIMIT 1`, release).Scan(&study)
		if errors.Is(err, sql.ErrNoRows) {
			return errNotReserved
		}
		if err != nil {
			return err
		}
		bytesDigest, stateDigest := sha256.Sum256(sealed), sha256.Sum256(state)
		if _, err := tx.Exec(`INSERT INTO outbox (release, study, sealed, digest, state) VALUES (?, ?, ?, ?, ?)`,
			release, study, sealed, bytesDigest[:], stateDigest[:]); err != nil {
			return err
		}
		if _, err := tx.Exec(`INSERT INTO state (study, state) VALUES (?, ?)
			ON CONFLICT (study) DO UPDATE SET state = excluded.state`, study, state); err != nil {
			return err
		}
		_, err = tx.Exec(`DELETE FROM keys WHERE release = ?`, release)
		return err
	})
}

// State returns what the method of a study carries from one task to the next
// at this site; nil before its first release.
func (s *Store) State(study string) ([]byte, error) {
	var state []byte
	err := s.read().QueryRow(`SELECT state FROM state WHERE study = ?`, study).Scan(&state)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("reading the state of study %s: %w", study, err)
	}
	return state, nil
}

// Agree keeps what was agreed to for a study, or returns what is kept: the
// first terms stay. Where terms are kept, or these are nil, which keeps nothing, a
// store that is only looked at will do.
func (s *Store) Agree(study string, terms []byte) (kept []byte, err error) {
	err = s.read().QueryRow(`SELECT terms FROM terms WHERE study = ?`, study).Scan(&kept)
	if err == nil || terms == nil && errors.Is(err, sql.ErrNoRows) {
		return kept, nil
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("reading the terms of study %s: %w", study, err)
	}
	err = s.update("keeping the terms of study "+study, func(tx statements) error {
		err := tx.QueryRow(`SELECT terms FROM terms WHERE study = ?`, study).Scan(&kept)
		if errors.Is(err, sql.ErrNoRows) {
			kept = terms
			_, err = tx.Exec(`INSERT INTO terms (study, terms) VALUES (?, ?)`, study, terms)
		}
		return err
	})
	return kept, err
}

// Decide keeps what a person has decided about a study at a time of the site's
// clock.
func (s *Store) Decide(at time.Time, study, decision string) error {
	return s.update("keeping a decision", func(tx statements) error {
		_, err := tx.Exec(`INSERT INTO decisions (at, study, decision) VALUES (?, ?, ?)`, at.UTC().Format(time.RFC3339),
			study, decision)
		return err
	})
}

// Decisions returns what was decided about a study, in order.
func (s *Store) Decisions(study string) (list []string, err error) {
	rows, err := s.db.Query(`SELECT decision FROM decisions WHERE study = ? ORDER BY seq`, study)
	if err != nil {
		return nil, fmt.Errorf("reading decisions: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var d string
		if err := rows.Scan(&d); err != nil {
			return nil, fmt.Errorf("reading decisions: %w", err)
		}
		list = append(list, d)
	}
	return list, rows.Err()
}

func (s *Store) update(doing string, change func(statements) error) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", doing, full(err))
		}
	}()
	tx, err := s.db.BeginTx(context.Background(), nil)
	if err != nil {
		return err
	}
	var fresh []string
	defer func() {
		tx.Rollback()
		for _, text := range fresh { // only now: the transaction had the one connection
			s.prepare(text)
		}
	}()
	if err := change(statements{tx, func(text string) *sql.Stmt {
		if known, ok := s.prepared.Load(text); ok {
			return tx.Stmt(known.(*sql.Stmt))
		}
		fresh = append(fresh, text)
		return nil
	}}); err != nil {
		return err
	}
	return tx.Commit()
}

// prepare parses a statement, unless it has run before; nil if it cannot be parsed. The caller is in no transaction.
func (s *Store) prepare(text string) *sql.Stmt {
	known, ok := s.prepared.Load(text)
	if !ok {
		fresh, err := s.db.Prepare(text)
		if err != nil {
			return nil
		}
		known, _ = s.prepared.LoadOrStore(text, fresh)
	}
	return known.(*sql.Stmt)
}

// read runs statements outside a transaction.
func (s *Store) read() statements { return statements{s.db, s.prepare} }

// statements runs SQL, and parses once what runs often: that takes longer than to run it.
type statements struct {
	on interface {
		Exec(text string, args ...any) (sql.Result, error)
		Query(text string, args ...any) (*sql.Rows, error)
		QueryRow(text string, args ...any) *sql.Row
	}
	known func(text string) *sql.Stmt // nil if it has to be parsed
}

func (s statements) Exec(text string, args ...any) (sql.Result, error) {
	if known := s.known(text); known != nil {
		return known.Exec(args...)
	}
	return s.on.Exec(text, args...)
}

func (s statements) Query(text string, args ...any) (*sql.Rows, error) {
	if known := s.known(text); known != nil {
		return known.Query(args...)
	}
	return s.on.Query(text, args...)
}

func (s statements) QueryRow(text string, args ...any) *sql.Row {
	if known := s.known(text); known != nil {
		return known.QueryRow(args...)
	}
	return s.on.QueryRow(text, args...)
}

// full makes what SQLite says of a full disk ErrFull.
func full(err error) error {
	if strings.Contains(err.Error(), "SQLITE_FULL") || strings.Contains(err.Error(), "database or disk is full") {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return err
}
