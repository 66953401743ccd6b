// Command release builds what is handed out of the program: for each platform a
// static archive with the program, its manual pages, completions and licence; for
// Linux a Debian package too; a list of what each program is built from (a software
// bill of materials, CycloneDX 1.5); and SHA256SUMS over all of them.
//
//	go run ./tools/release -out dist
//	go run ./tools/release -out dist -targets linux/amd64
//
// The same commit, built by the same release of Go, gives the same bytes: every time
// in the files is that of the commit, or of SOURCE_DATE_EPOCH, entries are sorted, and
// paths of this machine are left out. Uncommitted changes are built too; what they
// give is not what the commit gives.
package main

import (
	"cmp"
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/internal/version"
)

// target is a platform in Go's words.
type target struct{ os, arch string }

func (t target) String() string { return t.os + "/" + t.arch }

// program is the file's name of the program there.
func (t target) program() string {
	if t.os == "windows" {
		return "parley.exe"
	}
	return "parley"
}

var targets = []target{{"darwin", "amd64"}, {"darwin", "arm64"}, {"linux", "amd64"}, {"linux", "arm64"},
	{"windows", "amd64"}}

func main() {
	out := flag.String("out", "dist", "folder for the files, new or empty")
	list := flag.String("targets", "", "some of the platforms, separated by commas (default all)")
	flag.Parse()
	if err := release(*out, *list, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "release: error:", err)
		os.Exit(1)
	}
}

func release(out, list string, rest []string) error {
	if len(rest) > 0 {
		return fmt.Errorf("unknown argument %q\n  hint: see go run ./tools/release -help", rest[0])
	}
	chosen, err := choose(list)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	if there, err := os.ReadDir(out); err != nil || len(there) > 0 {
		return cmp.Or(err, fmt.Errorf("%s is not empty\n  hint: name another folder with -out", out))
	}
	root, err := command("", "go", "list", "-m", "-f", "{{.Dir}}")
	if err != nil {
		return err
	}
	commit, made, err := commitOf(root)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)

	// The pages are written by the program itself, on this machine.
	host := target{runtime.GOOS, runtime.GOARCH}
	own, err := build(root, work, commit, host)
	if err != nil {
		return err
	}
	words, err := documents(own, work)
	if err != nil {
		return err
	}
	for _, t := range chosen {
		binary := own
		if t != host {
			if binary, err = build(root, work, commit, t); err != nil {
				return err
			}
		}
		c := content{root: root, documents: words, target: t, version: version.Number, made: made}
		if c.program, err = os.ReadFile(binary); err != nil {
			return err
		}
		if c.bill, err = bill(binary, version.Number, made); err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
		if err := c.write(out); err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
	}
	return sums(out)
}

// choose returns the targets of a list, in the order of targets.
func choose(list string) ([]target, error) {
	if list == "" {
		return targets, nil
	}
	var chosen []target
	for name := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(targets, func(t target) bool { return t.String() == strings.TrimSpace(name) })
		if i < 0 {
			return nil, fmt.Errorf("there is no target %q\n  hint: targets are %v", name, targets)
		}
		chosen = append(chosen, targets[i])
	}
	return chosen, nil
}

// commitOf names the commit that the source is at, and says when it was made: the time
// that all files bear, unless SOURCE_DATE_EPOCH says another. Source outside a clone
// has no commit, and needs that variable.
func commitOf(root string) (name string, made time.Time, err error) {
	name, err = command(root, "git", "rev-parse", "--short=12", "HEAD")
	seconds := os.Getenv("SOURCE_DATE_EPOCH")
	if err == nil {
		changed, failed := command(root, "git", "status", "--porcelain", "--untracked-files=no")
		if failed != nil {
			return "", made, failed
		}
		if changed != "" {
			name += ".modified"
		}
		if seconds == "" {
			seconds, err = command(root, "git", "log", "-1", "--format=%ct")
		}
	}
	if seconds == "" {
		return "", made, fmt.Errorf("%w\n  hint: outside a clone, set SOURCE_DATE_EPOCH to the release's time in "+
			"seconds", err)
	}
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return "", made, fmt.Errorf("SOURCE_DATE_EPOCH %q is not a number of seconds", seconds)
	}
	return name, time.Unix(n, 0).UTC(), nil
}

// command runs a command in a folder and returns what it printed, without space around.
func command(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(said.String()))
	}
	return strings.TrimSpace(string(out)), nil
}

// build builds the program for a target without cgo, and so without libraries of the
// system, and returns its path. The program names the commit, if there is one.
func build(root, work, commit string, t target) (string, error) {
	path := filepath.Join(work, t.os+"-"+t.arch, t.program())
	cmd := exec.Command("go", "build", "-buildvcs=false",
		"-ldflags=-s -w -buildid= -X parley/internal/version.commit="+commit, "-o", path, "./cmd/parley")
	cmd.Dir = root
	// The oldest processors of each architecture, and Go's own flags, whatever this
	// machine is set to.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+t.os, "GOARCH="+t.arch, "GOAMD64=v1", "GOARM64=v8.0",
		"GOFLAGS=-trimpath")
	if said, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building for %s: %w\n%s", t, err, said)
	}
	return path, nil
}

// documents has the program write its manual pages and completions, and returns them
// as they lie in an archive.
func documents(program, work string) ([]entry, error) {
	pages := filepath.Join(work, "man")
	if err := os.Mkdir(pages, 0o755); err != nil {
		return nil, err
	}
	if _, err := command("", program, "manual", pages); err != nil {
		return nil, err
	}
	entries, err := folder(pages, "man/man1")
	if err != nil {
		return nil, err
	}
	for _, shell := range []struct{ name, file string }{
		{"bash", "parley.bash"}, {"fish", "parley.fish"}, {"powershell", "parley.ps1"}, {"zsh", "_parley"},
	} {
		script, err := command("", program, "completion", shell.name)
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry{name: "completions/" + shell.file, data: []byte(script + "\n")})
	}
	return entries, nil
}

// sums writes SHA256SUMS over all files of a folder, as sha256sum -c reads it.
func sums(out string) error {
	files, err := folder(out, "")
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, f := range files {
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(f.data), f.name)
	}
	return os.WriteFile(filepath.Join(out, "SHA256SUMS"), []byte(b.String()), 0o644)
}
