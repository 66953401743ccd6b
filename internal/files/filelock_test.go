package files_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"parley/internal/files"
	"parley/internal/testkit"
)

func TestOneHolderAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first := testkit.Get(files.Acquire(path))(t)
	if _, err := files.Acquire(path); !errors.Is(err, files.ErrHeld) {
		t.Fatalf("acquired twice: %v", err)
	}
	testkit.Do(t, first.Release())
	again := testkit.Get(files.Acquire(path))(t)
	testkit.Do(t, again.Release())
}

// Many take and release the lock at once: at each moment one of them holds it.
func TestNobodyShares(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	var held atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				l, err := files.Acquire(path)
				if errors.Is(err, files.ErrHeld) {
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

func TestFree(t *testing.T) {
	free, err := files.Free(t.TempDir())
	if err != nil || free == 0 {
		t.Fatalf("%d bytes, %v", free, err)
	}
	if _, err := files.Free(filepath.Join(t.TempDir(), "missing")); err == nil {
		t.Fatal("a folder that is not there has room")
	}
}

func TestFailed(t *testing.T) {
	_, err := os.ReadFile(filepath.Join(t.TempDir(), "missing"))
	if !files.Failed(fmt.Errorf("reading: %w", err)) || files.Failed(errors.New("no")) || files.Failed(nil) {
		t.Fatal(err)
	}
}
