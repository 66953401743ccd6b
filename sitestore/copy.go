package sitestore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Copy writes the store at path, as it is at one moment, to a file that must be
// new, beside the process that writes to it. Whoever brings the copy back later
// brings an older ledger back: see Receipts in package host.
func Copy(path, to string) error {
	if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, fmt.Errorf("copying the site store to %s: %w", to, fs.ErrExist))
	}
	s, err := reading(path)
	if err != nil {
		return fmt.Errorf("copying the site store %s: %w", path, err)
	}
	// VACUUM is not possible within a transaction; it makes one of its own.
	_, err = s.db.Exec(`COMMIT`)
	if err == nil {
		_, err = s.db.Exec(`VACUUM INTO ?`, to)
	}
	if err == nil {
		err = os.Chmod(to, 0o600)
	}
	if err = errors.Join(err, s.Close()); err != nil {
		return fmt.Errorf("copying the site store %s: %w", path, err)
	}
	return Look(to, func(*Store) error { return nil }) // which verifies it
}
