package files

import (
	"errors"
	"fmt"
	"os"
)

// ErrHeld means that somebody else holds the lock: another process, or another
// part of this one.
var ErrHeld = errors.New("another process holds it")

// Lock is a lock that is held.
type Lock struct {
	file *os.File
	path string
}

// Acquire takes the lock at path, whose file it makes if there is none, or
// fails with ErrHeld at once. A process that is killed leaves the file behind,
// and nobody is kept out by it.
func Acquire(path string) (*Lock, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		if err := lock(f); err != nil {
			f.Close()
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
		if current(f, path) {
			return &Lock{f, path}, nil
		}
		f.Close() // the last holder has removed it meanwhile
	}
}

// current says whether f is the file at path still.
func current(f *os.File, path string) bool {
	own, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(own, there)
}

// Release ends the lock, and removes its file where that is possible.
func (l *Lock) Release() error {
	os.Remove(l.path) // while it is held; whoever has it open looks again
	return l.file.Close()
}
