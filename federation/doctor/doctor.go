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
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"

	"parley/dataset"
	"parley/engine"
	"parley/engine/nats"
	"parley/engine/wire"
	"parley/federation"
	"parley/federation/site"
	"parley/internal/files"
	"parley/method"
	"parley/privacy/ledger"
	"parley/sitestore"
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
	if errors.Is(err, fs.ErrPermission) {
		return "let the account that serves read and write the folder, as its owner"
	}
	return otherwise
}

// oneLine keeps a finding on its line.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// keys checks that nobody but its owner reads the key, or changes the folder.
func keys(dir, file string) (r Report) {
	if runtime.GOOS == "windows" {
		return Report{note("permissions", "on Windows the folder's own list of permissions decides who reads %s: only "+
			"the user of the service should", file)}
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
			r = append(r, fail("permissions", fmt.Sprintf("chmod %s %s", p.mode, p.path),
				fmt.Errorf("others can open %s (mode %04o)", p.path, info.Mode().Perm())))
		case info.Mode().Perm()&0o077 != 0:
			r = append(r, note("permissions", "others can look into %s (mode %04o); chmod %s %s closes it", p.path,
				info.Mode().Perm(), p.mode, p.path))
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
		return Report{fail("disk", "let the user that runs parley write there, and look at the disk",
			fmt.Errorf("%s cannot be written to: %w", dir, err))}
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
		return fail("disk", fmt.Sprintf("make room: at least %d MiB", tooLittle>>20),
			fmt.Errorf("only %s are free for %s", size, dir))
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

// Site looks at a site: its folder first, then the way to the coordinator.
func Site(ctx context.Context, path string, methods method.Registry, o Options) Report {
	o = o.complete()
	r := keys(path, filepath.Join(path, "site.key"))
	f, err := site.Open(path, methods)
	if err != nil {
		return append(r, fail("folder", hinted(err, "bring the file back from a backup"), err))
	}
	r = append(r, disk(path)...)
	r = append(r, ok("folder", "site %s, coordinator with key %s", f.Config.Site, f.Coordinator.Name()),
		log(filepath.Join(path, "audit.jsonl")))
	r = append(r, store(f)...)
	r = append(r, policy(f), data(ctx, f))
	if r.OK() { // or what was approved would fail for the same cause
		r = append(r, approved(ctx, f)...)
	}
	r = append(r, certified(f)...)
	r = append(r, token(f.Config.JWT, time.Now()))
	roots, err := nats.Roots([]byte(f.Config.Roots))
	if err != nil {
		return append(r, fail("tls", "bring site.json back from a backup", err))
	}
	return append(r, unique(ways(ctx, f.Config.URLs, roots, o, func(u string) (Report, bool) {
		n := nats.Options{URLs: []string{u}, Roots: roots, JWT: f.Config.JWT, Seed: f.Secrets.User, Name: f.Config.Site}
		return knock(ctx, n, o, func(ctx context.Context, c *nats.Conn) Report { return board(ctx, f, c, u) })
	}))...)
}

// board reads what the coordinator posts for the site.
func board(ctx context.Context, f *site.Folder, c *nats.Conn, u string) Report {
	value, revision, err := c.Get(ctx, federation.BoardKey(f.Config.Site))
	if err != nil {
		return Report{fail("broker", "ask the coordinator whether it serves",
			fmt.Errorf("%s lets this site in, and its board cannot be read: %w", u, err))}
	}
	if revision == 0 {
		return Report{ok("broker", "%s accepts this site", u),
			note("versions", "the coordinator has posted nothing yet")}
	}
	b, err := federation.OpenBoard(f.Secrets.Key, f.Coordinator, f.Config.Site, value)
	if err != nil {
		return Report{fail("broker", "ask the coordinator whether this site's keys were replaced, or its own",
			fmt.Errorf("the board at %s is not for this site's key, or not of its coordinator: %w", u, err))}
	}
	return Report{ok("broker", "%s accepts this site; the board is the coordinator's, with studies: %d", u,
		len(b.Studies)), versions(f, b)}
}

// versions compares both ends' programs.
func versions(f *site.Folder, b federation.Board) Finding {
	own := federation.LocalProgram(f.Methods)
	both := fmt.Sprintf("parley %s here, %s at the coordinator; protocol %d and %d", own.Version, b.Program.Version,
		own.Protocol, b.Program.Protocol)
	if b.Program.Protocol != own.Protocol {
		return fail("versions", "install parley "+b.Program.Version, errors.New(both))
	}
	for _, p := range b.Studies {
		if p.Needs != "" {
			return fail("versions", p.Needs, fmt.Errorf("%s; study %.12s cannot be computed here", both, p.Study))
		}
	}
	for name, revision := range own.Methods {
		if other, has := b.Program.Methods[name]; has && other != revision {
			return note("versions", "%s; method %s has revision %d here and %d there, and its studies need the same",
				both, name, revision, other)
		}
	}
	return ok("versions", "%s", both)
}

// store opens and verifies the site's store, beside a daemon that may have it open.
func store(f *site.Folder) (r Report) {
	found := &ledger.Verified{}
	err := sitestore.Look(f.StorePath(), func(s *sitestore.Store) (err error) {
		found, err = ledger.Verify(s)
		return err
	})
	mark, damaged := f.Receipts().Load()
	switch {
	case errors.Is(err, fs.ErrNotExist) && mark.Lines > 0: // said below
	case errors.Is(err, fs.ErrNotExist):
		r = append(r, ok("store", "nothing has been charged yet: there is no %s", f.StorePath()))
	case err != nil:
		return append(r, fail("store", "bring the newest copy back; do not begin with an empty one", err))
	default:
		r = append(r, ok("store", "%s is whole: %d charges", f.StorePath(), found.Lines))
	}
	switch {
	case damaged != nil:
		return append(r, fail("receipts", "bring the newest copy back; without one, move the file away: an older "+
			"store is then noticed in fewer cases", damaged))
	case mark.Lines > found.Lines:
		return append(r, fail("store", "bring the newest copy back; if there is none, a person decides: parley site "+
			"go-on "+f.Path+" STUDY",
			fmt.Errorf("the receipts know of %d charges, and %s has %d: it is an older copy, or another", mark.Lines,
				f.StorePath(), found.Lines)))
	case found.Lines > 0 && mark.Lines == 0:
		r = append(r, note("receipts", "there are none at %s, though %d releases were charged: an older store is "+
			"noticed in fewer cases", string(f.Receipts()), found.Lines))
	}
	receipts := f.Config.Receipts
	if receipts == "" {
		return append(r, note("receipts", "they are in the site's own folder; on another disk they notice an older "+
			"store that is put back with its folder: name a file there with --receipts of parley site join, or as "+
			"\"receipts\" in site.json"))
	}
	dir := filepath.Dir(receipts)
	if err := write(dir); err != nil {
		return append(r, fail("receipts", "let the user that runs parley write there",
			fmt.Errorf("%s cannot be written to: %w", dir, err)))
	}
	if sameDisk(f.Path, dir) {
		return append(r, note("receipts", "%s is on the same disk as the store", receipts))
	}
	return append(r, ok("receipts", "%s is on another disk than the store", receipts))
}

func policy(f *site.Folder) Finding {
	p, err := f.Policy()
	if err != nil {
		return fail("policy", hinted(err, "see what is wrong with: parley site policy check "+f.PolicyPath()), err)
	}
	if p.Site != "" && p.Site != f.Config.Site {
		return fail("policy", "name this site in it, or none",
			fmt.Errorf("%s is the policy of site %s, and refuses everything here", f.PolicyPath(), p.Site))
	}
	if _, err := os.Stat(f.PolicyPath()); errors.Is(err, fs.ErrNotExist) {
		return note("policy", "there is no %s: the strict default holds", f.PolicyPath())
	}
	return ok("policy", "%s is in order", f.PolicyPath())
}

func data(ctx context.Context, f *site.Folder) Finding {
	if _, err := dataset.Open(ctx, f.DataPath(), dataset.Options{}); err != nil {
		return fail("data", "say where the rows are: parley site data "+f.Path+
			" PATH; to see what is wrong with them: parley data describe PATH", err)
	}
	return ok("data", "%s can be read", f.DataPath())
}

// approved holds every approval against what stands now.
func approved(ctx context.Context, f *site.Folder) (r Report) {
	list, err := f.Studies()
	if err != nil {
		return Report{fail("studies", "let the user that runs parley read it", err)}
	}
	for _, digest := range list {
		_, err := f.Plan(digest)
		if err == nil {
			_, err = f.Decision(digest)
		}
		if err != nil {
			r = append(r, fail("studies", hinted(err, "bring the folder of the study back from a backup"), err))
			continue
		}
		err = f.Holds(ctx, digest)
		switch {
		case errors.Is(err, engine.ErrChanged):
			r = append(r, fail("studies", hinted(err, ""), fmt.Errorf("study %.12s: %w", digest, err)))
		case err != nil:
			r = append(r, fail("data", "put the data back as the plan says; to see what is wrong with them: parley "+
				"data describe "+f.DataPath(), fmt.Errorf("for study %.12s, which was approved: %w", digest, err)))
		}
	}
	s, err := f.ReadStatus()
	if err != nil {
		return append(r, status(err))
	}
	if s.Serving && s.Connected && s.Trouble != "" {
		r = append(r, fail("site", "do as it says: one process at a time answers", errors.New(s.Trouble)))
	}
	for _, st := range s.Studies {
		if st.State == federation.Unable && s.Serving && r.OK() { // or its cause has been said
			r = append(r, fail("studies", hinted(errors.New(st.Text), "mend it; the study then goes on by itself"),
				fmt.Errorf("study %s is held up: %s", st.Name, st.Text)))
		}
	}
	if r == nil {
		r = Report{ok("studies", "plans that can be read: %d; what was approved holds", len(list))}
	}
	return r
}

// certified holds the certificate against the key: the two files may be of different days.
func certified(f *site.Folder) Report {
	c, err := federation.ParseCertificate(f.Config.Certificate)
	if err == nil {
		var peer wire.Peer
		peer, err = c.Verify(f.Coordinator)
		if own := f.Secrets.Key.Peer().Name(); err == nil && (peer.Name() != own || c.Site != f.Config.Site) {
			err = fmt.Errorf("site.json has a certificate for site %s with key %s, and site.key has key %s", c.Site,
				peer.Name(), own)
		}
	}
	if err != nil {
		return Report{fail("credentials", "bring site.key and site.json back from one backup, or ask for an "+
			"invitation that replaces this site's keys", err)}
	}
	return nil
}
