package sitestore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// create makes an empty store at path if there is no file. The file gets its
// name only when it is complete and durable: so one that stands there and is
// empty has lost what it held, and is never taken for a new one.
func create(path string) error {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, suffix := range []string{"-wal", "-journal"} {
		if _, err := os.Lstat(path + suffix); err == nil {
			return fmt.Errorf("the store is missing, but %s is there: bring the store back from where it was moved", filepath.Base(path+suffix))
		}
	}
	dir := filepath.Dir(path)
	made, err := makeFolders(dir)
	if err != nil {
		return fmt.Errorf("creating its folder: %w", err)
	}
	f, err := os.CreateTemp(dir, prefix(path)+"*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if err := f.Close(); err != nil {
		return err
	}
	s, err := connect(f.Name(), "")
	if err != nil {
		return err
	}
	if err := errors.Join(s.migrate(len(migrations)), s.Close()); err != nil {
		return err
	}
	// Unlike a renaming, a link cannot replace the store of a process that was quicker.
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncFolders(dir, made)
}

func prefix(path string) string { return "." + filepath.Base(path) + "-" }

// sweep removes what crashes left of stores that were being created. The
// caller holds the store at path, so nobody needs them.
func sweep(path string) error {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix(path)) {
			err := os.Remove(filepath.Join(filepath.Dir(path), e.Name()))
			if err != nil && !errors.Is(err, fs.ErrNotExist) { // its maker may remove it too
				return err
			}
		}
	}
	return nil
}

// makeFolders is os.MkdirAll; it returns how many folders it made, from dir upwards.
func makeFolders(dir string) (made int, err error) {
	for d := dir; d != filepath.Dir(d); d = filepath.Dir(d) {
		if _, err := os.Stat(d); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		made++
	}
	return made, os.MkdirAll(dir, 0o700)
}

// syncFolders makes the entries in dir durable, and those of the folders above
// it that were made for it.
func syncFolders(dir string, made int) error {
	if runtime.GOOS == "windows" {
		return nil // folders cannot be synced there
	}
	for range made + 1 {
		d, err := os.Open(dir)
		if err != nil {
			return err
		}
		if err := errors.Join(d.Sync(), d.Close()); err != nil {
			return fmt.Errorf("syncing the folder: %w", err)
		}
		dir = filepath.Dir(dir)
	}
	return nil
}

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
