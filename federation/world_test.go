package federation_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"parley/engine/enginetest"
	"parley/engine/host"
	enats "parley/engine/nats"
	"parley/engine/nats/natstest"
	"parley/engine/wire"
	"parley/federation"
	"parley/federation/coordinator"
	"parley/federation/site"
	"parley/method"
	"parley/privacy"
	"parley/study"
)

func TestMain(m *testing.M) {
	flag.Parse()
	flag.Set("test.parallel", "6") // they wait for each other's daemons more than they work
	natstest.VerifyTestMain(m)
}

var methods = method.Registry{enginetest.Toy{}}

// again is after how long the daemons of these tests put something again.
const again = 400 * time.Millisecond

// world is a coordinator and sites in one process, over a real broker on loopback.
type world struct {
	t    testing.TB
	dir  string
	co   *coordinator.Folder
	log  *logged // of the coordinator
	logs map[string]*logged
	stop func() // the coordinator; nil if it does not serve
	ends map[string]func()
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), log: &logged{}, logs: map[string]*logged{}, ends: map[string]func(){}}
	var err error
	w.co, err = coordinator.Init(filepath.Join(w.dir, "coordinator"), methods,
		coordinator.Config{Listen: freeAddress(t), Hosts: []string{"127.0.0.1"}}, coordinator.Account{})
	check(t, err)
	t.Cleanup(func() {
		for site := range w.ends {
			w.end(site)
		}
		w.halt()
	})
	return w
}

func freeAddress(t testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer l.Close()
	return l.Addr().String()
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// must returns the value of a call that cannot fail here.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// logged counts what a daemon logs, and keeps the first of it.
type logged struct {
	mu    sync.Mutex
	bytes int
	text  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bytes += len(p)
	if l.text.Len() < 1<<20 {
		l.text.Write(p)
	}
	return len(p), nil
}

func (l *logged) size() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bytes
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := l.text.String()
	return text[max(0, len(text)-6000):]
}

// background runs a daemon until the returned function is called.
func background(t testing.TB, serve func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- serve(ctx) }()
	return sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("a daemon ended: %v", err)
		}
	})
}

// serve starts the coordinator.
func (w *world) serve() {
	w.t.Helper()
	d := &coordinator.Daemon{Folder: w.co, Again: again, Log: slog.New(slog.NewTextHandler(w.log, nil))}
	w.stop = background(w.t, d.Serve)
}

func (w *world) halt() {
	if w.stop != nil {
		w.stop()
		w.stop = nil
	}
}

func (w *world) invite(name string, replace bool) *federation.Invitation {
	w.t.Helper()
	i, err := w.co.Invite(name, time.Now().Add(time.Hour), replace)
	check(w.t, err)
	return i
}

func (w *world) path(site string) string { return filepath.Join(w.dir, site) }

// join makes the folder of a site, with three rows and a policy that allows all.
func (w *world) join(names ...string) {
	w.t.Helper()
	for _, name := range names {
		_, err := site.Join(within(w.t), w.path(name), w.invite(name, false), methods, nil)
		check(w.t, err)
		w.furnish(name)
	}
}

func (w *world) furnish(name string) {
	check(w.t, os.MkdirAll(filepath.Join(w.path(name), "data"), 0o700))
	check(w.t, os.WriteFile(filepath.Join(w.path(name), "data", "view_v.csv"), []byte("id,x\na,1\nb,2\nc,3\n"), 0o600))
	check(w.t, os.WriteFile(filepath.Join(w.path(name), "data", "subjects.csv"), []byte("id\na\nb\nc\n"), 0o600))
	check(w.t, os.WriteFile(filepath.Join(w.path(name), "policy.yaml"),
		[]byte("policy: 1\nsite: "+name+"\nprotection: optional\nmax_delta: 1\nper_release: true\n"), 0o600))
}

// folder opens that of a site.
func (w *world) folder(name string) *site.Folder {
	w.t.Helper()
	f, err := site.Open(w.path(name), methods)
	check(w.t, err)
	return f
}

// begin starts the daemons of sites.
func (w *world) begin(names ...string) {
	w.t.Helper()
	for _, name := range names {
		w.begin1(name)
	}
}

// begin1 starts that of a site, whose gates have these options.
func (w *world) begin1(name string, o ...privacy.Option) {
	w.t.Helper()
	if w.logs[name] == nil {
		w.logs[name] = &logged{}
	}
	d := &site.Daemon{Folder: w.folder(name), Again: again, Log: slog.New(slog.NewTextHandler(w.logs[name], nil)),
		Privacy: o}
	w.ends[name] = background(w.t, d.Serve)
}

func (w *world) end(name string) {
	if stop := w.ends[name]; stop != nil {
		delete(w.ends, name)
		stop()
	}
}

func (w *world) submit(p *study.Plan) string {
	w.t.Helper()
	digest, _, err := w.co.Submit(p)
	check(w.t, err)
	return digest
}

// approve waits until the study is posted at sites, and approves it.
func (w *world) approve(digest string, names ...string) {
	w.t.Helper()
	for _, name := range names {
		f := w.folder(name)
		w.eventually("site "+name+" has the plan", func() bool {
			_, err := f.Plan(digest)
			return err == nil
		})
		check(w.t, f.Approve(context.Background(), digest, host.ByPerson))
	}
}

// state is that of a study.
func (w *world) state(digest string) string {
	data, _ := os.ReadFile(filepath.Join(w.co.StudyPath(digest), "state.json"))
	_, text, _ := strings.Cut(string(data), `"state": "`)
	text, _, _ = strings.Cut(text, `"`)
	return text
}

// ended waits for the end of a study at the coordinator and these sites.
func (w *world) ended(digest string, names ...string) {
	w.t.Helper()
	w.eventually("the study ends", func() bool { return w.state(digest) == coordinator.Ended })
	for _, name := range names {
		f := w.folder(name)
		w.eventually("site "+name+" has the results", func() bool {
			e, err := f.Ended(digest)
			return err == nil && e != nil
		})
	}
}

// trace is what the study's model comes to.
func (w *world) trace(p *study.Plan) string {
	w.t.Helper()
	path, err := w.co.ResultsPath(p)
	check(w.t, err)
	data, err := os.ReadFile(filepath.Join(path, "trace"))
	check(w.t, err)
	return string(data)
}

func plan(name string, rounds, quorum int, sites ...string) *study.Plan {
	p := enginetest.ToyPlan(enginetest.ToyOptions{Rounds: rounds}, quorum, sites...)
	p.Name = name
	return p
}

func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// patience is for a machine that is busy with something else: what takes it all has failed.
const patience = 5 * time.Minute

// eventually waits until something is so.
func (w *world) eventually(what string, so func() bool) {
	w.t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-tick.C:
		case <-deadline.C:
			text := ""
			for name, l := range w.logs {
				text += "\n--- " + name + "\n" + l.String()
			}
			w.t.Fatalf("never: %s\n--- coordinator\n%s%s", what, w.log, text)
		}
	}
}

// audit returns the lines of an audit log that say something.
func audit(t testing.TB, dir, what string) (lines []string) {
	t.Helper()
	check(t, federation.ReadLog(filepath.Join(dir, "audit.jsonl"), func(e federation.LogEntry) error {
		if line := fmt.Sprintf("%s %s: %s", e.What, e.Site, e.Text); strings.Contains(line, what) {
			lines = append(lines, line)
		}
		return nil
	}))
	return lines
}

// sizeOf is how many bytes the files of a folder have.
func sizeOf(folder string) (n int64) {
	filepath.WalkDir(folder, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			if info, err := e.Info(); err == nil {
				n += info.Size()
			}
		}
		return nil
	})
	return n
}

// raw is a client of NATS that does what it likes, with the credentials of a site.
type raw struct {
	*nats.Conn
	refused chan string
}

func dial(t testing.TB, url, roots, jwt string, seed []byte, name string, more ...nats.Option) (raw, error) {
	key, err := nkeys.FromSeed(seed)
	check(t, err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(roots))
	r := raw{refused: make(chan string, 10000)}
	r.Conn, err = nats.Connect(strings.Replace(url, "tls:", "nats:", 1), append([]nats.Option{
		nats.UserJWT(func() (string, error) { return jwt, nil }, key.Sign), nats.CustomInboxPrefix("_I_" + name),
		nats.NoReconnect(),
		nats.Secure(&tls.Config{RootCAs: pool}), nats.TLSHandshakeFirst(), nats.Timeout(10 * time.Second),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			select {
			case r.refused <- err.Error():
			default:
			}
		})}, more...)...)
	if err == nil {
		t.Cleanup(r.Close)
	}
	return r, err
}

// raw connects with what a site holds.
func (w *world) raw(f *site.Folder, more ...nats.Option) raw {
	w.t.Helper()
	r, err := dial(w.t, f.Config.URLs[0], f.Config.Roots, f.Config.JWT, f.Secrets.User, f.Config.Site, more...)
	check(w.t, err)
	return r
}

func pool(roots string) *x509.CertPool {
	p := x509.NewCertPool()
	p.AppendCertsFromPEM([]byte(roots))
	return p
}

// connect is the same with this program's client, for values.
func (w *world) connect(f *site.Folder) *enats.Conn {
	w.t.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(f.Config.Roots))
	c, err := enats.Connect(enats.Options{URLs: f.Config.URLs, Roots: pool, JWT: f.Config.JWT, Seed: f.Secrets.User,
		Name: f.Config.Site})
	check(w.t, err)
	w.t.Cleanup(c.Close)
	return c
}

// put replaces a value.
func put(t testing.TB, c *enats.Conn, key string, value []byte) {
	t.Helper()
	check(t, tryPut(within(t), c, key, value))
}

// tryPut replaces a value, and waits for a coordinator that has yet to make its bucket.
func tryPut(ctx context.Context, c *enats.Conn, key string, value []byte) error {
	for {
		_, revision, err := c.Get(ctx, key)
		if err != nil && strings.Contains(err.Error(), "keeps nothing now") {
			if err := wire.Pause(ctx, 10*time.Millisecond); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		if _, err = c.Put(ctx, key, value, revision); err == nil ||
			!strings.Contains(err.Error(), "changed meanwhile") {
			return err
		}
	}
}
