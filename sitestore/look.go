package sitestore

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Look hands a copy of the store at path to read, for those who only want to
// look: the store is not changed by as much as a bit, not created, not brought
// to a newer schema, and may lie where nothing can be written. The copy is
// verified as by [Open], is good until read returns, and is removed then.
//
// A store that is not there is an error that wraps [fs.ErrNotExist]; one that
// another process has open, or changes meanwhile, ErrLocked.
func Look(path string, read func(*Store) error) (err error) {
	s, remove, err := copyOf(path)
	if err != nil {
		return fmt.Errorf("looking at the site store %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, s.Close(), remove()) }()
	return read(s)
}

// copyOf opens a copy of the store, with what a crash may have left of its
// write-ahead log.
func copyOf(path string) (s *Store, remove func() error, err error) {
	before, err := stamps(path)
	if err != nil {
		return nil, nil, err
	}
	if err := unlocked(path); err != nil {
		return nil, nil, err
	}
	dir, err := os.MkdirTemp("", "parley-look-")
	if err != nil {
		return nil, nil, err
	}
	remove = func() error { return os.RemoveAll(dir) }
	defer func() {
		if err != nil {
			err = errors.Join(err, remove())
		}
	}()
	to := filepath.Join(dir, "site.db")
	for _, suffix := range parts {
		if err := copyFile(to+suffix, path+suffix); err != nil && !(suffix != "" && errors.Is(err, fs.ErrNotExist)) {
			return nil, nil, err
		}
	}
	after, err := stamps(path)
	if err != nil {
		return nil, nil, err
	}
	if before != after {
		return nil, nil, ErrLocked
	}
	s, err = acquire(to)
	return s, remove, err
}

// parts are the suffixes of the files that a store consists of.
var parts = [...]string{"", "-wal", "-journal"}

type stamp struct {
	size int64
	at   time.Time
}

// stamps tells of the store's files what changes when they are written to.
func stamps(path string) (list [len(parts)]stamp, err error) {
	for i, suffix := range parts {
		info, err := os.Stat(path + suffix)
		switch {
		case i > 0 && errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return list, err
		case !info.Mode().IsRegular():
			return list, fmt.Errorf("%s is not a file", filepath.Base(path+suffix))
		default:
			list[i] = stamp{info.Size(), info.ModTime()}
		}
	}
	return list, nil
}

// unlocked fails with ErrLocked if another process has the store open. It asks
// through a connection that may only read, in a mode in which SQLite makes no
// file of its own: of a store that is free, that gives some other error, which
// is of no interest here.
func unlocked(path string) error {
	s, err := connect(path, "&mode=ro&_pragma=locking_mode(EXCLUSIVE)")
	if err != nil {
		return err
	}
	defer s.Close()
	var version int
	err = s.db.QueryRow(`PRAGMA schema_version`).Scan(&version)
	if err != nil && (strings.Contains(err.Error(), "SQLITE_BUSY") || strings.Contains(err.Error(), "database is locked")) {
		return ErrLocked
	}
	return nil
}

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
