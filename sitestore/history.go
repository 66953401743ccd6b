package sitestore

import (
	"bytes"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
)

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
	n, head, err = headOf(s.db, study)
	if err != nil {
		return 0, head, fmt.Errorf("reading the history of study %s: %w", study, err)
	}
	return n, head, nil
}

func headOf(q interface {
	QueryRow(string, ...any) *sql.Row
}, study string) (n int, head [32]byte, err error) {
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
	rows, err := s.db.Query(`SELECT record FROM history WHERE study = ? AND seq >= ? ORDER BY seq`, study, from)
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
	return s.update("keeping the history", func(tx *sql.Tx) error {
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
				if err := tx.QueryRow(`SELECT record FROM history WHERE study = ? AND seq = ?`, study, seq).Scan(&old); err != nil {
					return err
				}
				if !bytes.Equal(old, r) {
					return fmt.Errorf("%w: record %d differs", ErrForked, seq)
				}
				continue
			}
			head = Next(head, r)
			if _, err := tx.Exec(`INSERT INTO history (study, seq, record, head) VALUES (?, ?, ?, ?)`, study, seq, r, head[:]); err != nil {
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
			return fmt.Errorf("record %d of the history of study %.12s does not follow from the record before it", seq, study)
		}
		next++
	}
	return rows.Err()
}
