// Package doctor looks for what stands in the way of a coordinator or a site: names,
// ports, proxies, certificates, credentials, versions, permissions, disks, and what
// is in the folder. It changes nothing, and may run beside the daemon.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"

	"parley/federation"
	"parley/internal/files"
)

// The results of a check.
const (
	passed   = "ok"
	remarked = "note" // worth knowing, and in nobody's way
	failed   = "fail"
)

// Finding is what one check has found.
type Finding struct {
	Check  string `json:"check"`  // what was looked at, one word
	Result string `json:"result"` // one of the above
	Found  string `json:"found"`
	Fix    string `json:"fix,omitempty"` // what to do, of a failure
}

// Report is what all checks have found, in the order in which they depend on each other.
type Report []Finding

// OK says whether nothing has failed.
func (r Report) OK() bool {
	return !slices.ContainsFunc(r, func(f Finding) bool { return f.Result == failed })
}

// Text writes a line for each finding, and one for each fix.
func (r Report) Text(w io.Writer) error {
	for _, f := range r {
		lines := fmt.Sprintf("%-4s  %s: %s\n", f.Result, f.Check, f.Found)
		if f.Fix != "" {
			lines += "      fix: " + f.Fix + "\n"
		}
		if _, err := io.WriteString(w, lines); err != nil {
			return err
		}
	}
	return nil
}

// Options change how the checks reach others; the zero value is as the daemons do.
type Options struct {
	Proxy  func(*url.URL) (*url.URL, error)                         // nil: as HTTPS_PROXY and NO_PROXY say
	Lookup func(ctx context.Context, host string) ([]string, error) // nil: the system's
	Within time.Duration                                            // how long another machine may take; 0: 15 seconds
}

func (o Options) complete() Options {
	if o.Proxy == nil {
		o.Proxy = httpproxy.FromEnvironment().ProxyFunc()
	}
	if o.Lookup == nil {
		o.Lookup = net.DefaultResolver.LookupHost
	}
	if o.Within == 0 {
		o.Within = 15 * time.Second
	}
	return o
}

func ok(check, format string, a ...any) Finding {
	return Finding{Check: check, Result: passed, Found: fmt.Sprintf(format, a...)}
}

func note(check, format string, a ...any) Finding {
	return Finding{Check: check, Result: remarked, Found: fmt.Sprintf(format, a...)}
}

// fail takes the words of an error apart: what follows "hint:" is what to do, unless
// fix says better.
func fail(check, fix string, err error) Finding {
	found, hint, has := strings.Cut(err.Error(), "\n  hint: ")
	if fix == "" && has {
		fix = hint
	}
	return Finding{Check: check, Result: failed, Found: oneLine(found), Fix: oneLine(fix)}
}

// hinted is what to do about an error that does not say so itself.
func hinted(err error, otherwise string) string {
	if strings.Contains(err.Error(), "\n  hint: ") {
		return ""
	}
	return otherwise
}

// oneLine keeps a finding on its line.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

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
