package sitestore

import "fmt"

// Fill makes the disk full for this store: it grows by at most so many pages
// of 4 KiB from now on. Negative takes the limit away.
func (s *Store) Fill(room int) error {
	var pages int
	if err := s.db.QueryRow(`PRAGMA page_count`).Scan(&pages); err != nil {
		return err
	}
	if room < 0 {
		pages = 1 << 30
	}
	var now int
	return s.db.QueryRow(fmt.Sprintf(`PRAGMA max_page_count = %d`, pages+room)).Scan(&now)
}
