package files_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"parley/internal/files"
)

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
