package sitestore

import (
	"errors"
	"fmt"
	"os"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

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
		return nil, fmt.Errorf("the program that wrote to it was stopped in the middle: start it again, which mends it (%w)", err)
	case err != nil:
		return nil, err
	case version < len(migrations):
		return nil, fmt.Errorf("it has schema version %d, and this program reads version %d: the program of its site, or a run that is continued, brings it up to date", version, len(migrations))
	}
	return s, s.Verify()
}

// readOnly says that SQLite would have had to write: a journal is there, with
// which it would take half a commit back.
func readOnly(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code()&0xff == sqlite3.SQLITE_READONLY
}
