package atomicfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

func TestWriteReplacesTheWholeFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "new", "folders", "file")
	for _, want := range []string{"a longer text", "short", ""} {
		if err := Write(path, []byte(want)); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != want {
			t.Fatalf("got %q, %v", got, err)
		}
	}
	onlyFile(t, path)
}

func TestFailedStreamLeavesTheOldFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := Write(path, []byte("old")); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	err := Stream(path, func(w io.Writer) error {
		if _, err := w.Write(make([]byte, 1<<20)); err != nil {
			return err
		}
		return broken
	})
	if !errors.Is(err, broken) {
		t.Fatalf("got %v", err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "old" {
		t.Fatalf("got %d bytes, %v", len(got), err)
	}
	onlyFile(t, path)
}

func onlyFile(t *testing.T, path string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Fatalf("left behind: %v, %v", entries, err)
	}
}

func TestFileInTheWayIsReported(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := Write(file, nil); err != nil {
		t.Fatal(err)
	}
	if err := Write(filepath.Join(file, "below"), nil); err == nil {
		t.Fatal("no error for a file where a folder should be")
	}
}

func TestWriteRemovesWhatCrashesLeft(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, name := range []string{".file-123", ".file-9"} {
		if err := os.WriteFile(filepath.Join(filepath.Dir(path), name), []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := Write(path, nil); err != nil {
		t.Fatal(err)
	}
	onlyFile(t, path)
	for name, want := range map[string]bool{".file-1": true, ".file-": false, ".file-1a": false, ".file-two-1": false, "file-1": false, ".other-1": false} {
		if Leftover(path, name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}
