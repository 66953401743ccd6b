package sitestore

import (
	"bytes"
	"errors"
	"fmt"
)

// Verify walks the whole ledger and reports the first line whose hash does not
// follow from its content and the line before it; damage of its pages and
// index; and releases in the outbox without a charge. [Open] does the same.
func (s *Store) Verify() error {
	if err := s.checkPages(); err != nil {
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
	var uncharged int
	if err := s.db.QueryRow(`SELECT count(*) FROM outbox WHERE release NOT IN (SELECT release FROM ledger)`).Scan(&uncharged); err != nil {
		return fmt.Errorf("reading the outbox: %w", err)
	}
	if uncharged > 0 {
		return fmt.Errorf("the ledger has lost lines: %d stored releases have no charge", uncharged)
	}
	return nil
}

// checkPages looks for lines that damaged pages would hide.
func (s *Store) checkPages() error {
	var report string
	if err := s.db.QueryRow(`PRAGMA integrity_check(ledger)`).Scan(&report); err != nil {
		return fmt.Errorf("checking the ledger: %w", err)
	}
	if report != "ok" {
		return fmt.Errorf("the ledger is damaged: %s", report)
	}
	return nil
}

// lines hands over the lines of the ledger after the first so many, with the
// hashes that chain them.
func (s *Store) lines(after int, do func(r Reservation, previous, hash []byte) error) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("reading the ledger: %w", err)
		}
	}()
	rows, err := s.db.Query(`SELECT seq, release, study, task, request, previous, hash FROM ledger WHERE seq > ? ORDER BY seq`, after)
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
