package doctor

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/engine/enginetest"
	"parley/engine/host"
	"parley/engine/nats"
	"parley/engine/wire"
	"parley/federation"
	"parley/federation/coordinator"
	"parley/federation/site"
	"parley/internal/testkit"
	encoding "parley/internal/wire"
	"parley/method"
)

var methods = method.Registry{enginetest.Toy{}}

// world is a coordinator on loopback, and a site that has joined it.
type world struct {
	t           *testing.T
	coordinator *coordinator.Folder
	site        string
	o           Options
	stop        func()
}

// serving is closed when a daemon says that it serves.
type serving struct {
	slog.Handler
	said chan struct{}
}

func (s serving) Handle(_ context.Context, r slog.Record) error {
	if strings.HasPrefix(r.Message, "serving") {
		close(s.said)
	}
	return nil
}

func direct(*url.URL) (*url.URL, error) { return nil, nil }

// free returns an address at which nobody listens.
func free(t *testing.T) string {
	t.Helper()
	l := testkit.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	return l.Addr().String()
}

func newCoordinator(t *testing.T) *world {
	t.Helper()
	t.Setenv("NO_PROXY", "*") // for the site that joins
	f := testkit.Get(coordinator.Init(filepath.Join(t.TempDir(), "coordinator"), methods,
		coordinator.Config{Listen: free(t), WebSocket: free(t), Hosts: []string{"127.0.0.1"}},
		coordinator.Account{}))(t)
	w := &world{t: t, coordinator: f, o: Options{Proxy: direct}, stop: func() {}}
	t.Cleanup(func() { w.stop() })
	return w
}

// newWorld has a site, and serves.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := newCoordinator(t)
	w.serve()
	i := testkit.Get(w.coordinator.Invite("north", time.Now().Add(time.Hour), false))(t)
	w.site = filepath.Join(t.TempDir(), "north")
	testkit.Get(site.Join(t.Context(), w.site, i, methods, nil))(t)
	testkit.Do(t, os.Mkdir(filepath.Join(w.site, "data"), 0o700))
	for file, text := range map[string]string{"subjects.csv": "id,group\ns1,a\ns2,b\n",
		"view_v.csv": "id,x\ns1,1\ns2,2\n"} {
		testkit.Do(t, os.WriteFile(filepath.Join(w.site, "data", file), []byte(text), 0o600))
	}
	return w
}

// serve starts the coordinator's daemon, and returns when it serves.
func (w *world) serve() {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	said, ended := make(chan struct{}), make(chan error, 1)
	d := &coordinator.Daemon{Folder: w.coordinator, Again: time.Second,
		Log: slog.New(serving{slog.NewTextHandler(io.Discard, nil), said})}
	go func() { ended <- d.Serve(ctx) }()
	select {
	case <-said:
	case err := <-ended:
		w.t.Fatalf("the coordinator does not serve: %v", err)
	}
	w.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Error(err)
		}
		w.stop = func() {}
	}
}

// change changes site.json.
func (w *world) change(do func(*site.Config)) {
	w.t.Helper()
	path := filepath.Join(w.site, "site.json")
	data, err := os.ReadFile(path)
	var c site.Config
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	do(&c)
	c.Checksum = "" // as a person leaves it
	if data, err = json.Marshal(c); err == nil {
		err = os.WriteFile(path, data, 0o600)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) look() Report { return Site(w.t.Context(), w.site, methods, w.o) }

// failing demands that exactly the checks named fail, with the words and a fix.
func failing(t *testing.T, r Report, check, words string) {
	t.Helper()
	found := false
	for _, f := range r {
		if f.Result != failed {
			continue
		}
		if f.Check != check {
			t.Errorf("%s fails, too: %s", f.Check, f.Found)
			continue
		}
		found = found || strings.Contains(f.Found, words)
		if f.Fix == "" {
			t.Errorf("nothing is said to do about it: %s", f.Found)
		}
		if strings.Contains(f.Found+f.Fix, "\n") {
			t.Errorf("more than a line: %q", f)
		}
	}
	if !found {
		t.Errorf("%s does not fail with %q:\n%s", check, words, text(r))
	}
}

func fine(t *testing.T, r Report) {
	t.Helper()
	if !r.OK() {
		t.Errorf("something fails:\n%s", text(r))
	}
}

func text(r Report) string {
	var b strings.Builder
	r.Text(&b)
	return b.String()
}

func noted(r Report, check, words string) bool {
	for _, f := range r {
		if f.Check == check && f.Result == remarked && strings.Contains(f.Found, words) {
			return true
		}
	}
	return false
}

func TestAllIsWell(t *testing.T) {
	w := newWorld(t)
	r := w.look()
	fine(t, r)
	for _, words := range []string{"accepts this site", "speaks TLS 1.3", "is whole", "can be read",
		"does not expire"} {
		if !strings.Contains(text(r), words) {
			t.Errorf("no line has %q:\n%s", words, text(r))
		}
	}
	c := Coordinator(t.Context(), w.coordinator.Path, methods, w.o)
	fine(t, c)
	if !strings.Contains(text(c), "of the pinned authority") {
		t.Errorf("its own daemon is not recognised:\n%s", text(c))
	}
	before := testkit.Get(os.ReadDir(w.site))(t)
	w.look()
	if after, err := os.ReadDir(w.site); err != nil || len(after) != len(before) {
		t.Errorf("the doctor leaves something: %v, %v", after, err)
	}
}

// begun is a world in which one study has ended, another is approved and waits for site south,
// and nobody serves the site.
func begun(t *testing.T) (w *world, ended, waiting string) {
	w = newWorld(t)
	f := testkit.Get(site.Open(w.site, methods))(t)
	testkit.Do(t, os.WriteFile(f.PolicyPath(),
		[]byte("policy: 1\nprotection: optional\nmax_delta: 1\nper_release: true\n"), 0o600))
	digests := map[string]string{}
	for name, sites := range map[string][]string{"past": {"north"}, "held": {"north", "south"}} {
		p := enginetest.ToyPlan(enginetest.ToyOptions{Rounds: 2}, 1, sites...)
		p.Name = name
		digest, _, err := w.coordinator.Submit(p)
		testkit.Do(t, err)
		digests[name] = digest
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		done <- (&site.Daemon{Folder: f, Again: time.Second, Log: slog.New(slog.DiscardHandler)}).Serve(ctx)
	}()
	for _, digest := range digests {
		for f.Approve(ctx, digest, host.ByPerson) != nil && ctx.Err() == nil {
			wire.Pause(ctx, 20*time.Millisecond)
		}
	}
	for ended := (*site.Ended)(nil); ended == nil && ctx.Err() == nil; ended, _ = f.Ended(digests["past"]) {
		wire.Pause(ctx, 20*time.Millisecond)
	}
	if ctx.Err() != nil {
		t.Fatal("the study does not end")
	}
	cancel()
	testkit.Do(t, <-done)
	return w, digests["past"], digests["held"]
}

// Every fault is named by its own cause, before whatever follows from it, and with what to do.
func TestFaults(t *testing.T) {
	w, ended, waiting := begun(t)
	study := func(file string) string { return filepath.Join("studies", waiting, file) }
	write := func(text string) func(*testing.T, string) {
		return func(t *testing.T, path string) { testkit.Do(t, os.WriteFile(path, []byte(text), 0o600)) }
	}
	letter := func(after string) func(*testing.T, string) { // one that is wrong
		return func(t *testing.T, path string) {
			data := testkit.Get(os.ReadFile(path))(t)
			at := bytes.Index(data, []byte(after)) + len(after) + 20
			data[at] = map[bool]byte{true: 'B', false: 'A'}[data[at] == 'A']
			testkit.Do(t, os.WriteFile(path, data, 0o600))
		}
	}
	gone := func(t *testing.T, path string) { testkit.Do(t, os.RemoveAll(path)) }
	config := func(do func(*site.Config)) func(*testing.T, string) {
		return func(*testing.T, string) { w.change(do) }
	}
	urls := func(url string) func(*testing.T, string) {
		return config(func(c *site.Config) { c.URLs = []string{url} })
	}
	proxy := func(serve func(*testing.T) func(*url.URL) (*url.URL, error)) func(*testing.T, string) {
		return func(t *testing.T, _ string) { w.o.Proxy = serve(t) }
	}
	says := func(greeting string) func(net.Conn) { return func(c net.Conn) { io.WriteString(c, greeting) } }
	_, strange := authority(t, "Another authority")
	inspection, _ := authority(t, "Hospital inspection")
	old, oldRoots := authority(t, "Old")
	user := testkit.Get(nats.PublicOf(testkit.Get(site.Open(w.site, methods))(t).Secrets.User))(t)
	expired := testkit.Get(w.coordinator.Secrets.Authority.Site("north", user, time.Now().Add(-time.Hour)))(t)
	key := testkit.Get(testkit.Get(wire.NewKey())(t).MarshalBinary())(t)
	secrets := testkit.Get(encoding.Marshal([][]byte{key, []byte(user)}))(t)
	status := func(text string) func(*testing.T, string) {
		return write(`{"broker": "ok", "studies": [{"study": "` + waiting + `", "name": "held", ` + text + `}]}`)
	}
	type fault struct {
		name, file   string // the file that is changed, and brought back
		induce       func(t *testing.T, path string)
		check, words string
	}
	look := func(t *testing.T, folder string, c fault, report func() Report) {
		t.Run(c.name, func(t *testing.T) {
			path, o := filepath.Join(folder, c.file), w.o
			before, err := os.ReadFile(path)
			c.induce(t, path)
			defer func() {
				w.o = o
				if err == nil {
					testkit.Do(t, os.WriteFile(path, before, 0o600))
				} else if c.file != "" {
					os.RemoveAll(path)
				}
			}()
			r := report()
			i := slices.IndexFunc(r, func(f Finding) bool { return f.Result == failed })
			if i < 0 || r[i].Check != c.check || !strings.Contains(r[i].Found, c.words) || r[i].Fix == "" ||
				strings.Contains(r[i].Found+r[i].Fix, "\n") {
				t.Errorf("%s does not fail first with %q:\n%s", c.check, c.words, text(r))
			}
		})
	}
	fine(t, w.look())
	for _, c := range []fault{
		{"no key", "site.key", gone, "folder", "not the folder of a site that has joined"},
		{"a key of nothing", "site.key", write("nothing"), "folder", "the key is damaged"},
		{"a letter of the key", "site.key", letter("key-2"), "folder", "letter 20 is wrong"},
		{"a key of another day", "site.key", func(t *testing.T, path string) {
			testkit.Do(t, os.WriteFile(path, federation.Armour("", "parley-site-key-", secrets, 0), 0o600))
		}, "credentials", "site.key has key"},
		{"half a configuration", "site.json", write("{"), "folder", "site.json"},
		{"a letter of the configuration", "site.json", letter(`"jwt": "`), "folder", "checksum"},
		{"the log", "audit.jsonl", write("nothing\n"), "folder", "audit.jsonl"},
		{"a word of the policy", "policy.yaml", write("policy: 1\nprotection: requierd\n"), "policy", "requierd"},
		{"a policy of another site", "policy.yaml", write("policy: 1\nsite: south\n"), "policy",
			"is the policy of site south"},
		{"a policy that has changed", "policy.yaml",
			write("policy: 1\nprotection: optional\nmax_delta: 0.5\nper_release: true\n"), "studies",
			"the policy has changed"},
		{"no store in the file", "site.db", write("not a database"), "store", "site.db"},
		{"no store", "site.db", gone, "store", "the receipts know of"},
		{"half of the receipts", "receipts.json", write("{"), "receipts", "receipts.json"},
		{"a letter of the receipts", "receipts.json", letter(`"ledger_hash": "`), "receipts", "checksum"},
		{"receipts where nothing can be", "site.json",
			config(func(c *site.Config) { c.Receipts = filepath.Join(w.site, "site.key", "receipts") }),
			"receipts", "receipts"},
		{"a header", "data/view_v.csv", write("name,x,x\n"), "data", "view_v.csv"},
		{"no data", "site.json", config(func(c *site.Config) { c.Data = "/nowhere" }), "data", "/nowhere"},
		{"a column of the approved plan", "data/view_v.csv", write("id,y\ns1,1\ns2,2\n"), "data", "x"},
		{"text among numbers", "data/view_v.csv", write("id,x\ns1,1\ns2,two\n"), "data", "two"},
		{"another cell", "data/view_v.csv", write("id,x\ns1,1\ns2,3\n"), "studies", "the data have changed"},
		{"a plan", study("plan.cbor"), letter(""), "studies", "plan of study"},
		{"a decision", study("decision.json"), write("{"), "studies", "decision.json"},
		{"a decision of another revision", study("decision.json"), func(t *testing.T, path string) {
			data := testkit.Get(os.ReadFile(path))(t)
			testkit.Do(t, os.WriteFile(path, bytes.Replace(data, []byte(`"revision": 1`), []byte(`"revision": 7`), 1),
				0o600))
		}, "studies", "it was 7, and is 1"},
		{"a loss that a person must decide about", "status.json", func(t *testing.T, path string) {
			lock := testkit.Get(testkit.Get(site.Open(w.site, methods))(t).Hold(""))(t)
			t.Cleanup(func() { lock.Release() })
			write(`{"studies": [{"study": "`+ended+`", "name": "past", "state": "unable", "text": "an older copy\n  `+
				`to go on: parley site go-on"}]}`)(t, path)
		}, "studies", "study past is held up: an older copy"},
		{"a status", "status.json", write("{"), "folder", "status.json"},
		{"an unknown name", "site.json", func(t *testing.T, path string) {
			w.o.Lookup = func(context.Context, string) ([]string, error) { return nil, errors.New("no such host") }
			urls("wss://broker.example:443")(t, path)
		}, "names", "broker.example is not known here"},
		{"a port at which nobody listens", "site.json", urls("tls://" + free(t)), "ports", "cannot be reached"},
		{"another program", "site.json", urls("tls://" + listen(t, says("SSH-2.0-nothing\r\n"))), "tls",
			"does not speak TLS"},
		{"connections used up", "site.json", urls("tls://" +
			listen(t, says("-ERR 'maximum connections exceeded'\r\n"))), "connections", "are used up"},
		{"a port that is silent", "site.json", urls("tls://" + listen(t, func(net.Conn) {})), "connections",
			"says nothing in it"},
		{"another authority", "site.json", config(func(c *site.Config) { c.Roots = string(strange) }), "tls",
			`was issued by "CN=Parley coordinator"`},
		{"no authority", "site.json", config(func(c *site.Config) { c.Roots = "nothing" }), "tls",
			"the pinned certificate cannot be read"},
		{"old TLS", "site.json", func(t *testing.T, _ string) {
			at := listen(t, func(c net.Conn) {
				s := tls.Server(c, &tls.Config{Certificates: []tls.Certificate{old}, MaxVersion: tls.VersionTLS12})
				s.Handshake()
				io.Copy(io.Discard, s)
			})
			w.change(func(c *site.Config) { c.URLs, c.Roots = []string{"tls://" + at}, string(oldRoots) })
		}, "tls", "speaks TLS 1.2 only"},
		{"a proxy that refuses", "", proxy(func(t *testing.T) func(*url.URL) (*url.URL, error) {
			return refusing(t, http.StatusForbidden)
		}), "proxy", "it refuses to connect"},
		{"a proxy with a password", "", proxy(func(t *testing.T) func(*url.URL) (*url.URL, error) {
			return refusing(t, http.StatusProxyAuthRequired)
		}), "proxy", "it wants a name and password"},
		{"a proxy that opens connections", "", proxy(func(t *testing.T) func(*url.URL) (*url.URL, error) {
			return through(listen(t, func(c net.Conn) {
				if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
					return
				}
				io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
				s := tls.Server(c, &tls.Config{Certificates: []tls.Certificate{inspection}})
				s.Handshake()
				io.Copy(io.Discard, s)
			}))
		}), "tls", `was issued by "CN=Hospital inspection"`},
		{"an old token", "site.json", config(func(c *site.Config) { c.JWT = expired }), "credentials",
			"was good until"},
		{"no token", "site.json", config(func(c *site.Config) { c.JWT = "nothing" }), "credentials", "cannot be read"},
	} {
		look(t, w.site, c, w.look)
	}
	w.stop()
	look(t, w.site, fault{"a coordinator that has stopped", "", func(*testing.T, string) {}, "ports",
		"cannot be reached"}, w.look)
	co := func() Report { return Coordinator(t.Context(), w.coordinator.Path, methods, w.o) }
	fine(t, co())
	for _, c := range []fault{
		{"no key", "coordinator.key", gone, "folder", "there is no such key"},
		{"a letter of the key", "coordinator.key", letter("key-2"), "folder", "letter 20 is wrong"},
		{"half a configuration", "coordinator.json", write("{"), "folder", "coordinator.json"},
		{"the log", "audit.jsonl", write("nothing\n"), "folder", "audit.jsonl"},
		{"half of the sites", "sites.json", write("{"), "sites", "sites.json"},
		{"a letter of the sites", "sites.json", letter(`"certificate": "`), "sites",
			"sites.json is damaged: site north"},
		{"a status", "status.json", write("{"), "folder", "status.json"},
		{"a plan", study("plan.cbor"), letter(""), "studies", "plan of study"},
		{"orders", study("orders.json"), write("{"), "studies", "orders.json"},
		{"a state", study("state.json"), write("{"), "studies", "state.json"},
		{"a study that has stopped", "status.json", status(`"state": "stopped", "text": "no site is left"`), "studies",
			"held has stopped: no site is left"},
		{"a second process of a site", "status.json",
			write(`{"sites": [{"site": "north", "state": "joined", "text": "two machines serve as north"}]}`), "sites",
			"two machines serve as north"},
		{"a site that took too much", "status.json",
			write(`{"sites": [{"site": "north", "state": "joined", "text": "it is refused until", "refused": true}]}`),
			"sites", "site north: it is refused until"},
		{"a site that is held up", "status.json",
			status(`"state": "running", "sites": [{"site": "north", "state": "unable", "text": "its disk takes no ` +
				`writes"}]`), "studies", "its disk takes no writes"},
		{"a site with another program", "status.json",
			status(`"state": "running", "sites": [{"site": "north", "state": "must install", "text": "install parley ` +
				`7"}]`), "studies", "install parley 7"},
		{"a rebuilt study without a site", "status.json",
			status(`"state": "waiting", "text": "it waits for the history that these sites have kept: south"`),
			"studies", "have kept: south"},
		{"a port that is taken", "", func(t *testing.T, _ string) {
			l := testkit.Get(net.Listen("tcp", w.coordinator.Config.Listen))(t)
			t.Cleanup(func() { l.Close() })
		}, "ports", "another program listens at " + w.coordinator.Config.Listen},
	} {
		look(t, w.coordinator.Path, c, co)
	}
	testkit.Get(w.coordinator.Revoke("north"))(t)
	w.serve()
	look(t, w.site, fault{"keys that were revoked", "", func(*testing.T, string) {}, "broker",
		"does not accept this end's key"}, w.look)
}

func TestNamesOfACoordinator(t *testing.T) {
	w := newCoordinator(t)
	w.o.Lookup = func(context.Context, string) ([]string, error) { return nil, errors.New("no such host") }
	path := filepath.Join(w.coordinator.Path, "coordinator.json")
	c := w.coordinator.Config
	c.Hosts = []string{"broker.example"}
	data := testkit.Get(json.Marshal(c))(t)
	testkit.Do(t, os.WriteFile(path, data, 0o600))
	r := Coordinator(t.Context(), w.coordinator.Path, methods, w.o)
	fine(t, r)
	if !noted(r, "names", "broker.example is not known here") {
		t.Error(text(r))
	}
}

func TestUnknownName(t *testing.T) {
	w := newWorld(t)
	w.o.Lookup = func(context.Context, string) ([]string, error) { return nil, errors.New("no such host") }
	w.change(func(c *site.Config) { c.URLs = []string{"wss://broker.example:443"} })
	failing(t, w.look(), "names", "broker.example is not known here")
	// A proxy may know it.
	w.o.Proxy = refusing(t, http.StatusForbidden)
	r := w.look()
	failing(t, r, "proxy", "it refuses to connect to broker.example:443 (403 Forbidden)")
	if !noted(r, "names", "the proxy looks it up") {
		t.Error(text(r))
	}
}

func TestUnreachablePort(t *testing.T) {
	w := newWorld(t)
	nobody := free(t)
	good := ""
	w.change(func(c *site.Config) { good, c.URLs = c.URLs[1], []string{"tls://" + nobody} })
	failing(t, w.look(), "ports", nobody+" cannot be reached")
	// One way that works is enough.
	w.change(func(c *site.Config) { c.URLs = append(c.URLs, good) })
	r := w.look()
	fine(t, r)
	if !noted(r, "ports", nobody+" cannot be reached") {
		t.Error(text(r))
	}
}

func TestProxy(t *testing.T) {
	w := newWorld(t)
	w.o.Proxy = refusing(t, http.StatusForbidden)
	failing(t, w.look(), "proxy", "it refuses to connect")
	w.o.Proxy = refusing(t, http.StatusProxyAuthRequired)
	failing(t, w.look(), "proxy", "it wants a name and password")
	w.o.Proxy = through(free(t))
	failing(t, w.look(), "proxy", "through the proxy")
	w.o.Proxy = through(listen(t, func(c net.Conn) {
		request, err := http.ReadRequest(bufio.NewReader(c))
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", request.Host)
		if err != nil {
			return
		}
		defer to.Close()
		io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
		go func() {
			io.Copy(to, c)
			to.Close()
		}()
		io.Copy(c, to)
	}))
	r := w.look()
	fine(t, r)
	if !strings.Contains(text(r), "connects to "+w.coordinator.Config.WebSocket) {
		t.Error(text(r))
	}
}

func TestRoomAndClock(t *testing.T) {
	for free, want := range map[uint64]string{1 << 20: failed, 512 << 20: remarked, 4 << 30: passed} {
		if f := room("DIR", free); f.Result != want {
			t.Errorf("%d bytes: %+v", free, f)
		}
	}
	now := time.Now()
	for d, want := range map[time.Duration]string{2 * time.Second: passed, -time.Hour: remarked, time.Hour: remarked} {
		if f := skew(now.Add(d), now, "it"); f.Result != want {
			t.Errorf("%s: %+v", d, f)
		}
	}
}

// listen serves connections on loopback until the test ends.
func listen(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l := testkit.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				serve(c)
			}()
		}
	}()
	return l.Addr().String()
}

func through(at string) func(*url.URL) (*url.URL, error) {
	return func(*url.URL) (*url.URL, error) { return &url.URL{Scheme: "http", Host: at}, nil }
}

// refusing is a proxy that lets nobody through.
func refusing(t *testing.T, status int) func(*url.URL) (*url.URL, error) {
	t.Helper()
	return through(listen(t, func(c net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
			(&http.Response{StatusCode: status, ProtoMajor: 1, ProtoMinor: 1, Body: http.NoBody}).Write(c)
		}
	}))
}

// authority makes a certificate for 127.0.0.1 and who has issued it, as PEM.
func authority(t *testing.T, name string) (tls.Certificate, []byte) {
	t.Helper()
	key := testkit.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der := testkit.Get(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))(t)
	var b bytes.Buffer
	pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: der})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, b.Bytes()
}
