package sitestore

import (
	"bytes"
	"fmt"
)

// Verify walks the ledger and reports the first line whose hash does not
// follow from its content and the line before it.
func (s *Store) Verify() error {
	rows, err := s.db.Query(`SELECT seq, release, study, task, request, previous, hash FROM ledger ORDER BY seq`)
	if err != nil {
		return fmt.Errorf("reading the ledger: %w", err)
	}
	defer rows.Close()
	var last []byte
	for want := int64(1); rows.Next(); want++ {
		var seq int64
		var r Reservation
		var task, previous, hash []byte
		if err := rows.Scan(&seq, &r.Release, &r.Study, &task, &r.Request, &previous, &hash); err != nil {
			return fmt.Errorf("reading the ledger: %w", err)
		}
		copy(r.Task[:], task)
		if seq != want || !bytes.Equal(previous, last) || !bytes.Equal(hash, r.hash(previous)) {
			return fmt.Errorf("ledger line %d does not follow from the line before it", want)
		}
		last = hash
	}
	return rows.Err()
}
