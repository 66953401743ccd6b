package sitestore

import (
	"bytes"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"os"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Verify walks the whole ledger and every history, and reports the first line
// or record whose hash does not follow from its content and what is before it;
// damage of pages and indices; what is not as the schema made it; releases
// without a charge, charges without release or key, keys of releases that are
// stored, stored bytes and states that are not those that were stored. [Open] does the same.
func (s *Store) Verify() error {
	if err := s.checkPages(); err != nil {
		return err
	}
	if err := s.checkSchema(); err != nil {
		return err
	}
	var last []byte
	want := 0
	err := s.lines(0, func(r Reservation, previous, hash []byte) error {
		want++
		if r.Seq != want || !bytes.Equal(previous, last) || !bytes.Equal(hash, r.chain(previous)) {
			return fmt.Errorf("line %d does not follow from the line before it", want)
		}
		last = hash
		return nil
	})
	if err != nil {
		return err
	}
	for _, check := range []func() error{s.verifyReleases, s.verifyStates, s.verifyHistory} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// checkPages looks for lines that damaged pages would hide.
func (s *Store) checkPages() error {
	var report string
	if err := s.db.QueryRow(`PRAGMA integrity_check`).Scan(&report); err != nil {
		return fmt.Errorf("checking the ledger: %w", err)
	}
	if report != "ok" {
		return fmt.Errorf("the ledger or what belongs to it is damaged: %s", report)
	}
	return nil
}

// verifyReleases holds outbox and keys against the ledger, and the stored
// bytes against their digests.
func (s *Store) verifyReleases() error {
	var uncharged, lost int
	if err := s.db.QueryRow(`SELECT count(*) FROM (SELECT release FROM outbox UNION ALL SELECT release FROM keys)
		WHERE release NOT IN (SELECT release FROM ledger)`).Scan(&uncharged); err != nil {
		return fmt.Errorf("reading the outbox: %w", err)
	}
	if uncharged > 0 {
		return fmt.Errorf("the ledger has lost lines: %d releases have no charge", uncharged)
	}
	if err := s.db.QueryRow(`SELECT count(*) FROM ledger WHERE seq > (SELECT old FROM binding)
		AND release NOT IN (SELECT release FROM outbox UNION ALL SELECT release FROM keys)`).Scan(&lost); err != nil {
		return fmt.Errorf("reading the outbox: %w", err)
	}
	if lost > 0 {
		return fmt.Errorf("the outbox has lost releases: %d charges of the ledger have neither bytes nor a key", lost)
	}
	if err := s.none(`SELECT release FROM outbox WHERE (digest IS NULL OR state IS NULL)
		AND release IN (SELECT release FROM ledger WHERE seq > (SELECT old FROM binding))`, "release %s has no digest, so that nobody can tell whether its bytes and the state are those that were stored"); err != nil {
		return err
	}
	if err := s.none(`SELECT k.release FROM keys k JOIN outbox o ON o.release = k.release`,
		"release %s is stored, and its key is kept"); err != nil {
		return err
	}
	return s.each(`SELECT release, sealed, digest FROM outbox WHERE digest IS NOT NULL`,
		func(release string, sealed, digest []byte) error {
			if sum := sha256.Sum256(sealed); !bytes.Equal(sum[:], digest) {
				return fmt.Errorf("release %s: its bytes are not those that were stored", release)
			}
			return nil
		})
}

// none complains about the first name that a query finds.
func (s *Store) none(query, complaint string) error {
	var name string
	err := s.db.QueryRow(query + ` LIMIT 1`).Scan(&name)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the outbox: %w", err)
	}
	return fmt.Errorf(complaint, name)
}

// verifyStates holds each study's state against the last release that it was
// stored with.
func (s *Store) verifyStates() error {
	if err := s.none(`SELECT study FROM state WHERE study NOT IN (SELECT study FROM outbox)`,
		"study %.12s has a state, and no release that it was stored with"); err != nil {
		return err
	}
	return s.each(`SELECT study, coalesce((SELECT state FROM state s WHERE s.study = o.study), x''), state FROM outbox o
		WHERE rowid = (SELECT max(rowid) FROM outbox WHERE study = o.study) AND state IS NOT NULL`, func(study string, state, digest []byte) error {
		if sum := sha256.Sum256(state); !bytes.Equal(sum[:], digest) {
			return fmt.Errorf("the state of study %.12s is not the one that was stored with its last release", study)
		}
		return nil
	})
}

// each hands over rows of a name and two values.
func (s *Store) each(query string, do func(name string, a, b []byte) error) (err error) {
	rows, err := s.db.Query(query)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var name string
		var a, b []byte
		if err := rows.Scan(&name, &a, &b); err != nil {
			return err
		}
		if err := do(name, a, b); err != nil {
			return err
		}
	}
	return rows.Err()
}

// lines hands over the lines of the ledger after the first so many, with the
// hashes that chain them.
func (s *Store) lines(after int, do func(r Reservation, previous, hash []byte) error) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("reading the ledger: %w", err)
		}
	}()
	rows, err := s.read().Query(`SELECT seq, release, study, task, request, previous, hash FROM ledger WHERE seq > ? `+
		`ORDER BY seq`, after)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var r Reservation
		var task, previous, hash []byte
		if err := rows.Scan(&r.Seq, &r.Release, &r.Study, &task, &r.Request, &previous, &hash); err != nil {
			return err
		}
		copy(r.Task[:], task)
		copy(r.Hash[:], hash)
		if err := do(r, previous, hash); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Look hands the store at path to read, for those who only want to look: beside
// the process that writes to it, whose commits wait until read has returned.
// The store is verified as by [Open], is not changed, not created, not brought
// to a newer schema, and may lie where nothing can be written.
//
// A store that is not there is an error that wraps [fs.ErrNotExist].
func Look(path string, read func(*Store) error) (err error) {
	s, err := reading(path)
	if err != nil {
		return fmt.Errorf("looking at the site store %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return read(s)
}

func reading(path string) (_ *Store, err error) {
	switch info, err := os.Stat(path); {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("it is not a file")
	}
	s, err := connect(path, "&mode=ro&_pragma=busy_timeout(10000)")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	// One transaction, so that everything is as it was at one moment. There is one
	// connection, so that all that follows is in it.
	if _, err := s.db.Exec(`BEGIN`); err != nil {
		return nil, err
	}
	version, err := s.version()
	switch {
	case readOnly(err):
		return nil, fmt.Errorf("the program that wrote to it was stopped in the middle: start it again, which mends "+
			"it (%w)", err)
	case err != nil:
		return nil, err
	case version < len(migrations):
		return nil, fmt.Errorf("it has schema version %d, and this program reads version %d: the program of its site, "+
			"or a run that is continued, brings it up to date", version, len(migrations))
	}
	return s, s.Verify()
}

// readOnly says that SQLite would have had to write: a journal is there, with
// which it would take half a commit back.
func readOnly(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code()&0xff == sqlite3.SQLITE_READONLY
}

// Next is the head of a history after one more record: a hash that tells of
// every record so far. The head of the empty history is 32 zero bytes.
func Next(head [32]byte, record []byte) [32]byte {
	h := sha256.New()
	h.Write([]byte("parley history\x00"))
	h.Write(head[:])
	h.Write(record)
	return [32]byte(h.Sum(nil))
}

// Head returns how many records of a study's history are kept, and its head.
func (s *Store) Head(study string) (n int, head [32]byte, err error) {
	n, head, err = headOf(s.read(), study)
	if err != nil {
		return 0, head, fmt.Errorf("reading the history of study %s: %w", study, err)
	}
	return n, head, nil
}

func headOf(q statements, study string) (n int, head [32]byte, err error) {
	var h []byte
	err = q.QueryRow(`SELECT seq + 1, head FROM history WHERE study = ? ORDER BY seq DESC LIMIT 1`, study).Scan(&n, &h)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, head, nil
	}
	copy(head[:], h)
	return n, head, err
}

// Records returns the records of a study's history from position from (0 for
// the first) on.
func (s *Store) Records(study string, from int) (records [][]byte, err error) {
	rows, err := s.read().Query(`SELECT record FROM history WHERE study = ? AND seq >= ? ORDER BY seq`, study, from)
	if err != nil {
		return nil, fmt.Errorf("reading the history of study %s: %w", study, err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var r []byte
		if err := rows.Scan(&r); err != nil {
			return nil, fmt.Errorf("reading the history of study %s: %w", study, err)
		}
		records = append(records, r)
	}
	return records, rows.Err()
}

// Append keeps records of a study's history from position first on. Records
// that are kept already must be the same bytes, and none may be skipped;
// otherwise ErrForked is returned and nothing is kept.
func (s *Store) Append(study string, first int, records [][]byte) error {
	if len(records) == 0 {
		return nil
	}
	return s.update("keeping the history", func(tx statements) error {
		kept, head, err := headOf(tx, study)
		if err != nil {
			return err
		}
		if first < 0 || first > kept {
			return fmt.Errorf("%w: records %d to %d are missing", ErrForked, kept, first-1)
		}
		for i, r := range records {
			seq := first + i
			if seq < kept {
				var old []byte
				if err := tx.QueryRow(`SELECT record FROM history WHERE study = ? AND seq = ?`, study,
					seq).Scan(&old); err != nil {
					return err
				}
				if !bytes.Equal(old, r) {
					return fmt.Errorf("%w: record %d differs", ErrForked, seq)
				}
				continue
			}
			head = Next(head, r)
			if _, err := tx.Exec(`INSERT INTO history (study, seq, record, head) VALUES (?, ?, ?, ?)`, study, seq, r,
				head[:]); err != nil {
				return err
			}
		}
		return nil
	})
}

// verifyHistory walks every study's history.
func (s *Store) verifyHistory() (err error) {
	rows, err := s.db.Query(`SELECT study, seq, record, head FROM history ORDER BY study, seq`)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var at string
	var head [32]byte
	next := 0
	for rows.Next() {
		var study string
		var seq int
		var record, kept []byte
		if err := rows.Scan(&study, &seq, &record, &kept); err != nil {
			return err
		}
		if study != at {
			at, head, next = study, [32]byte{}, 0
		}
		head = Next(head, record)
		if seq != next || !bytes.Equal(kept, head[:]) {
			return fmt.Errorf("record %d of the history of study %.12s does not follow from the record before it", seq,
				study)
		}
		next++
	}
	return rows.Err()
}
