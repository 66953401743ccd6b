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
	"strings"
	"testing"
	"time"

	"parley/engine/nats"
	"parley/federation/coordinator"
	"parley/federation/site"
	"parley/internal/must"
	"parley/method"
)

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
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	return l.Addr().String()
}

func newCoordinator(t *testing.T) *world {
	t.Helper()
	t.Setenv("NO_PROXY", "*") // for the site that joins
	f, err := coordinator.Init(filepath.Join(t.TempDir(), "coordinator"), method.Registry{}, coordinator.Config{Listen: free(t), WebSocket: free(t), Hosts: []string{"127.0.0.1"}}, coordinator.Account{})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, coordinator: f, o: Options{Proxy: direct}, stop: func() {}}
	t.Cleanup(func() { w.stop() })
	return w
}

// newWorld has a site, and serves.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := newCoordinator(t)
	w.serve()
	i := must.Get(w.coordinator.Invite("north", time.Now().Add(time.Hour), false))(t)
	w.site = filepath.Join(t.TempDir(), "north")
	must.Get(site.Join(t.Context(), w.site, i, method.Registry{}, nil))(t)
	must.Do(t, os.Mkdir(filepath.Join(w.site, "data"), 0o700))
	for file, text := range map[string]string{"subjects.csv": "id,group\ns1,a\ns2,b\n", "view_a.csv": "id,x\ns1,1\ns2,2\n"} {
		must.Do(t, os.WriteFile(filepath.Join(w.site, "data", file), []byte(text), 0o600))
	}
	return w
}

// serve starts the coordinator's daemon, and returns when it serves.
func (w *world) serve() {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	said, ended := make(chan struct{}), make(chan error, 1)
	d := &coordinator.Daemon{Folder: w.coordinator, Again: time.Second, Log: slog.New(serving{slog.NewTextHandler(io.Discard, nil), said})}
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
	if data, err = json.Marshal(c); err == nil {
		err = os.WriteFile(path, data, 0o600)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) look() Report { return Site(w.t.Context(), w.site, method.Registry{}, w.o) }

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
	for _, words := range []string{"accepts this site", "speaks TLS 1.3", "is whole", "can be read", "does not expire"} {
		if !strings.Contains(text(r), words) {
			t.Errorf("no line has %q:\n%s", words, text(r))
		}
	}
	c := Coordinator(t.Context(), w.coordinator.Path, method.Registry{}, w.o)
	fine(t, c)
	if !strings.Contains(text(c), "of the pinned authority") {
		t.Errorf("its own daemon is not recognised:\n%s", text(c))
	}
	before := must.Get(os.ReadDir(w.site))(t)
	w.look()
	if after, err := os.ReadDir(w.site); err != nil || len(after) != len(before) {
		t.Errorf("the doctor leaves something: %v, %v", after, err)
	}
}

func TestPortsOfACoordinator(t *testing.T) {
	w := newCoordinator(t)
	look := func() Report { return Coordinator(t.Context(), w.coordinator.Path, method.Registry{}, w.o) }
	fine(t, look())
	l := must.Get(net.Listen("tcp", w.coordinator.Config.Listen))(t)
	defer l.Close()
	failing(t, look(), "ports", "another program listens at "+w.coordinator.Config.Listen)
}

func TestNamesOfACoordinator(t *testing.T) {
	w := newCoordinator(t)
	w.o.Lookup = func(context.Context, string) ([]string, error) { return nil, errors.New("no such host") }
	path := filepath.Join(w.coordinator.Path, "coordinator.json")
	c := w.coordinator.Config
	c.Hosts = []string{"broker.example"}
	data := must.Get(json.Marshal(c))(t)
	must.Do(t, os.WriteFile(path, data, 0o600))
	r := Coordinator(t.Context(), w.coordinator.Path, method.Registry{}, w.o)
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

func TestStoppedCoordinator(t *testing.T) {
	w := newWorld(t)
	w.stop()
	failing(t, w.look(), "ports", "cannot be reached")
}

func TestNotABroker(t *testing.T) {
	w := newWorld(t)
	at := listen(t, func(c net.Conn) { io.WriteString(c, "SSH-2.0-nothing\r\n") })
	w.change(func(c *site.Config) { c.URLs = []string{"tls://" + at} })
	failing(t, w.look(), "tls", "does not speak TLS")
}

func TestWrongAuthority(t *testing.T) {
	w := newWorld(t)
	_, other := authority(t, "Another authority")
	w.change(func(c *site.Config) { c.Roots = string(other) })
	failing(t, w.look(), "tls", `was issued by "CN=Parley coordinator"`)
	w.change(func(c *site.Config) { c.Roots = "nothing" })
	failing(t, w.look(), "tls", "the pinned certificate cannot be read")
}

func TestInterceptingProxy(t *testing.T) {
	w := newWorld(t)
	inspection, _ := authority(t, "Hospital inspection")
	at := listen(t, func(c net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
			return
		}
		io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
		s := tls.Server(c, &tls.Config{Certificates: []tls.Certificate{inspection}})
		s.Handshake()
		io.Copy(io.Discard, s)
	})
	w.o.Proxy = through(at)
	r := w.look()
	failing(t, r, "tls", `was issued by "CN=Hospital inspection"`)
	if !strings.Contains(text(r), "ask who runs it to leave") {
		t.Error(text(r))
	}
}

func TestOldTLS(t *testing.T) {
	w := newWorld(t)
	old, roots := authority(t, "Old")
	at := listen(t, func(c net.Conn) {
		s := tls.Server(c, &tls.Config{Certificates: []tls.Certificate{old}, MaxVersion: tls.VersionTLS12})
		s.Handshake()
		io.Copy(io.Discard, s)
	})
	w.change(func(c *site.Config) { c.URLs, c.Roots = []string{"tls://" + at}, string(roots) })
	failing(t, w.look(), "tls", "speaks TLS 1.2 only")
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

func TestCredentials(t *testing.T) {
	w := newWorld(t)
	f := must.Get(site.Open(w.site, method.Registry{}))(t)
	public := must.Get(nats.PublicOf(f.Secrets.User))(t)
	expired := must.Get(w.coordinator.Secrets.Authority.Site("north", public, time.Now().Add(-time.Hour)))(t)
	w.change(func(c *site.Config) { c.JWT = expired })
	r := w.look()
	failing(t, only(r, "credentials"), "credentials", "was good until")
	failing(t, only(r, "broker"), "broker", "token was valid until")
	w.change(func(c *site.Config) { c.JWT = "nothing" })
	r = w.look()
	failing(t, only(r, "credentials"), "credentials", "cannot be read")
	w.change(func(c *site.Config) { c.JWT = f.Config.JWT })
	w.stop()
	must.Get(w.coordinator.Revoke("north"))(t)
	w.serve()
	failing(t, w.look(), "broker", "does not accept this end's key")
}

func only(r Report, check string) (list Report) {
	for _, f := range r {
		if f.Check == check {
			list = append(list, f)
		}
	}
	return list
}

func TestDamage(t *testing.T) {
	for _, d := range []struct{ file, text, check, words string }{
		{"policy.yaml", "policy: 1\nprotection: requierd\n", "policy", "requierd"},
		{"policy.yaml", "policy: 1\nsite: south\n", "policy", "is the policy of site south"},
		{"site.db", "not a database", "store", "site.db"},
		{"data/view_a.csv", "name,x,x\n", "data", "view_a.csv"},
		{"audit.jsonl", "nothing\n", "folder", "audit.jsonl"},
		{"site.key", "nothing", "folder", "the key is damaged"},
		{"site.json", "{", "folder", "site.json"},
	} {
		t.Run(d.file+" "+d.check, func(t *testing.T) {
			w := newWorld(t)
			must.Do(t, os.WriteFile(filepath.Join(w.site, d.file), []byte(d.text), 0o600))
			failing(t, w.look(), d.check, d.words)
		})
	}
}

func TestOtherFolders(t *testing.T) {
	failing(t, Site(t.Context(), t.TempDir(), method.Registry{}, Options{}), "folder", "not the folder of a site that has joined")
	failing(t, Coordinator(t.Context(), t.TempDir(), method.Registry{}, Options{}), "folder", "there is no such key")
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
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
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
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der := must.Get(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))(t)
	var b bytes.Buffer
	pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: der})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, b.Bytes()
}
