package filelock_test

import (
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"parley/internal/filelock"
	"parley/internal/must"
)

func TestOneHolderAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first := must.Get(filelock.Acquire(path))(t)
	if _, err := filelock.Acquire(path); !errors.Is(err, filelock.ErrHeld) {
		t.Fatalf("acquired twice: %v", err)
	}
	must.Do(t, first.Release())
	again := must.Get(filelock.Acquire(path))(t)
	must.Do(t, again.Release())
}

// Many take and release the lock at once: at each moment one of them holds it.
func TestNobodyShares(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	var held atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				l, err := filelock.Acquire(path)
				if errors.Is(err, filelock.ErrHeld) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if n := held.Add(1); n != 1 {
					t.Errorf("%d hold the lock", n)
				}
				held.Add(-1)
				if err := l.Release(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}
