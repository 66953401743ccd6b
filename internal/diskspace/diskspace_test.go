package diskspace_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"parley/internal/diskspace"
)

func TestFree(t *testing.T) {
	free, err := diskspace.Free(t.TempDir())
	if err != nil || free == 0 {
		t.Fatalf("%d bytes, %v", free, err)
	}
	if _, err := diskspace.Free(filepath.Join(t.TempDir(), "missing")); err == nil {
		t.Fatal("a folder that is not there has room")
	}
}

func TestFailed(t *testing.T) {
	_, err := os.ReadFile(filepath.Join(t.TempDir(), "missing"))
	if !diskspace.Failed(fmt.Errorf("reading: %w", err)) || diskspace.Failed(errors.New("no")) || diskspace.Failed(nil) {
		t.Fatal(err)
	}
}
