package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"

	"parley/internal/testkit"
)

func TestWriteReplacesTheWholeFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "new", "folders", "file")
	for _, want := range []string{"a longer text", "short", ""} {
		testkit.Do(t, Write(path, []byte(want)))
		got, err := os.ReadFile(path)
		if err != nil || string(got) != want {
			t.Fatalf("got %q, %v", got, err)
		}
	}
	onlyFile(t, path)
}

func TestFailedStreamLeavesTheOldFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	testkit.Do(t, Write(path, []byte("old")))
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
	testkit.Do(t, Write(file, nil))
	if err := Write(filepath.Join(file, "below"), nil); err == nil {
		t.Fatal("no error for a file where a folder should be")
	}
}

func TestWriteRemovesWhatCrashesLeft(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, name := range []string{".file-123", ".file-9"} {
		testkit.Do(t, os.WriteFile(filepath.Join(filepath.Dir(path), name), []byte("half"), 0o600))
	}
	testkit.Do(t, Write(path, nil))
	onlyFile(t, path)
	for name, want := range map[string]bool{".file-1": true, ".file-": false, ".file-1a": false, ".file-two-1": false,
		"file-1": false, ".other-1": false} {
		if Leftover(path, name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}

func TestCreateReplacesNothing(t *testing.T) {
	dir := t.TempDir()
	file, folder, link, dangling := filepath.Join(dir, "file"), filepath.Join(dir, "folder"),
		filepath.Join(dir, "link"), filepath.Join(dir, "dangling")
	testkit.Do(t, errors.Join(os.WriteFile(file, []byte("old"), 0o600), os.Mkdir(folder, 0o700), os.Symlink(file, link),
		os.Symlink(filepath.Join(dir, "nowhere"), dangling)))
	for _, linkable := range []bool{true, false} {
		withoutLinks(t, !linkable)
		for _, path := range []string{file, folder, link, dangling} {
			if err := Create(path, text("new")); !errors.Is(err, fs.ErrExist) {
				t.Errorf("%s (links: %v): got %v", path, linkable, err)
			}
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != "old" {
			t.Fatalf("the file holds %q, %v", got, err)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 4 {
			t.Fatalf("left behind: %v, %v", entries, err)
		}
	}
}

func TestCreateWritesTheWholeFile(t *testing.T) {
	for _, linkable := range []bool{true, false} {
		withoutLinks(t, !linkable)
		path := filepath.Join(t.TempDir(), "new", "folders", "file")
		testkit.Do(t, Create(path, text("whole")))
		info, err := os.Stat(path)
		if err != nil || info.Size() != 5 {
			t.Fatalf("got %v, %v", info, err)
		}
		if runtime.GOOS != "windows" && info.Mode().Perm() != 0o644 {
			t.Errorf("got mode %v", info.Mode())
		}
		onlyFile(t, path)
	}
}

func TestFailedCreateLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	broken := errors.New("broken")
	if err := Create(filepath.Join(dir, "file"), func(io.Writer) error { return broken }); !errors.Is(err, broken) {
		t.Fatalf("got %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Fatalf("left behind: %v, %v", entries, err)
	}
}

// Of many who create a file at once one succeeds, and its content stays.
func TestOneOfManyCreates(t *testing.T) {
	for _, linkable := range []bool{true, false} {
		withoutLinks(t, !linkable)
		path := filepath.Join(t.TempDir(), "file")
		var ready, done sync.WaitGroup
		errs := make([]error, 8)
		ready.Add(len(errs))
		for i := range errs {
			done.Go(func() {
				errs[i] = Create(path, func(w io.Writer) error {
					ready.Done()
					ready.Wait() // all have looked before anybody publishes
					_, err := fmt.Fprint(w, i)
					return err
				})
			})
		}
		done.Wait()
		winner := slices.Index(errs, nil)
		if got, err := os.ReadFile(path); err != nil || string(got) != fmt.Sprint(winner) {
			t.Fatalf("got %q, %v; the winner is %d", got, err, winner)
		}
		for i, err := range errs {
			if i != winner && !errors.Is(err, fs.ErrExist) {
				t.Errorf("%d: got %v", i, err)
			}
		}
		onlyFile(t, path)
	}
}

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

// withoutLinks makes the file system one that has no hard links, or undoes it.
func withoutLinks(t *testing.T, without bool) {
	t.Helper()
	link = os.Link
	if without {
		link = func(old, new string) error {
			return &os.LinkError{Op: "link", Old: old, New: new, Err: errors.ErrUnsupported}
		}
	}
	t.Cleanup(func() { link = os.Link })
}

func TestFilesAreAsPrivateAsTheirFolder(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // which has other rights
	}
	open, closed := t.TempDir(), t.TempDir()
	testkit.Do(t, errors.Join(os.Chmod(open, 0o755), os.Chmod(closed, 0o700)))
	own := filepath.Join(open, "own")
	testkit.Do(t, WriteOwn(own, []byte("x")))
	for path, want := range map[string]os.FileMode{filepath.Join(open, "a", "b"): 0o644,
		filepath.Join(closed, "a", "b"): 0o600, own: 0o600} {
		if path != own {
			testkit.Do(t, Write(path, []byte("x")))
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, want %v (%v)", path, info.Mode().Perm(), want, err)
		}
	}
	if info, err := os.Stat(filepath.Join(closed, "a")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("a folder within a private one: %v, %v", info.Mode(), err)
	}
}
