//go:build unix

package doctor

import (
	"os"
	"path/filepath"
	"testing"

	"parley/internal/testkit"
)

func TestPermissions(t *testing.T) {
	w := newWorld(t)
	key := filepath.Join(w.site, "site.key")
	for _, d := range []struct {
		path string
		mode os.FileMode
		good os.FileMode
	}{{key, 0o644, 0o600}, {w.site, 0o777, 0o700}} {
		testkit.Do(t, os.Chmod(d.path, d.mode))
		failing(t, w.look(), "permissions", d.path)
		testkit.Do(t, os.Chmod(d.path, d.good))
	}
	testkit.Do(t, os.Chmod(w.site, 0o755))
	r := w.look()
	fine(t, r)
	if !noted(r, "permissions", w.site) {
		t.Error(text(r))
	}
}

func TestUnwritableFolder(t *testing.T) {
	dir := t.TempDir()
	if os.Geteuid() == 0 { // may write anywhere but to what is no disk
		dir = "/dev/fd"
	} else if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	failing(t, disk(dir), "disk", "cannot be written to")
}

func TestSameDisk(t *testing.T) {
	dir := t.TempDir()
	if !sameDisk(dir, dir) || sameDisk(dir, "/dev") || sameDisk(dir, filepath.Join(dir, "missing")) {
		t.Error("disks are taken for each other")
	}
}
