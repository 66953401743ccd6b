package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"

	"parley/federation"
	"parley/internal/files"
)

// keys checks that nobody but its owner reads the key, or changes the folder.
func keys(dir, file string) (r Report) {
	if runtime.GOOS == "windows" {
		return Report{note("permissions", "on Windows the folder's own list of permissions decides who reads %s: only the user of the service should", file)}
	}
	for _, p := range []struct {
		path, mode string
		bad        fs.FileMode
	}{{file, "600", 0o077}, {dir, "700", 0o022}} {
		info, err := os.Stat(p.path)
		switch {
		case errors.Is(err, fs.ErrNotExist): // opening the folder says so
		case err != nil:
			r = append(r, fail("permissions", "let the user that runs parley read it", err))
		case info.Mode().Perm()&p.bad != 0:
			r = append(r, fail("permissions", fmt.Sprintf("chmod %s %s", p.mode, p.path), fmt.Errorf("others can open %s (mode %04o)", p.path, info.Mode().Perm())))
		case info.Mode().Perm()&0o077 != 0:
			r = append(r, note("permissions", "others can look into %s (mode %04o); chmod %s %s closes it", p.path, info.Mode().Perm(), p.mode, p.path))
		default:
			r = append(r, ok("permissions", "only its owner can open %s (mode %04o)", p.path, info.Mode().Perm()))
		}
	}
	return r
}

const (
	tooLittle = 64 << 20 // bytes free that a daemon cannot do without
	little    = 1 << 30
)

// disk checks that the folder can be written to, durably, and that there is room.
func disk(dir string) (r Report) {
	if err := write(dir); err != nil {
		return Report{fail("disk", "let the user that runs parley write there, and look at the disk", fmt.Errorf("%s cannot be written to: %w", dir, err))}
	}
	free, err := files.Free(dir)
	if err != nil {
		return Report{fail("disk", "look at the disk", err)}
	}
	return Report{room(dir, free)}
}

// room judges how much is free.
func room(dir string, free uint64) Finding {
	size := fmt.Sprintf("%.1f GiB", float64(free)/(1<<30))
	if free < little {
		size = fmt.Sprintf("%d MiB", free>>20)
	}
	switch {
	case free < tooLittle:
		return fail("disk", fmt.Sprintf("make room: at least %d MiB", tooLittle>>20), fmt.Errorf("only %s are free for %s", size, dir))
	case free < little:
		return note("disk", "a write to %s is durable; only %s are free", dir, size)
	}
	return ok("disk", "a write to %s is durable; %s are free", dir, size)
}

// write writes a small file through to the disk, and removes it.
func write(dir string) error {
	f, err := os.CreateTemp(dir, ".doctor-*")
	if err != nil {
		return err
	}
	_, err = f.Write([]byte("a write that succeeds\n"))
	return errors.Join(err, f.Sync(), f.Close(), os.Remove(f.Name()))
}

// log checks that the audit log is whole.
func log(path string) Finding {
	n, _, err := federation.VerifyLog(path)
	if errors.Is(err, fs.ErrNotExist) {
		return ok("log", "nothing has been noted yet")
	}
	if err != nil {
		return fail("log", "keep the file as it is for whoever looks into it, and bring back a copy", err)
	}
	return ok("log", "%s is whole: %d lines", path, n)
}

// status says what to do about a file of which the status is made.
func status(err error) Finding {
	if strings.Contains(err.Error(), "status.json") {
		return fail("folder", "remove status.json: the daemon writes it anew", err)
	}
	return fail("folder", hinted(err, "bring that file back from a backup"), err)
}
