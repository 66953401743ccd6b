package nats

import (
	"encoding/base64"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"parley/engine/wire"
	"parley/internal/testkit"
)

// proxy is a small HTTP proxy that knows CONNECT only.
type proxy struct {
	user    string // NAME:PASSWORD; empty: anybody
	refuse  bool
	tunnels atomic.Int64
	sent    sync.Map // host → what a client began with
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method != http.MethodConnect || p.refuse:
		http.Error(w, "no", http.StatusForbidden)
		return
	case p.user != "" && r.Header.Get("Proxy-Authorization") != "Basic "+
		base64.StdEncoding.EncodeToString([]byte(p.user)):
		http.Error(w, "who are you?", http.StatusProxyAuthRequired)
		return
	}
	up, err := net.Dial("tcp", r.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer up.Close()
	p.tunnels.Add(1)
	c, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer c.Close()
	if _, err := io.WriteString(c, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	first := make([]byte, 1)
	if _, err := io.ReadFull(c, first); err != nil {
		return
	}
	p.sent.Store(r.Host, first[0])
	up.Write(first)
	var both sync.WaitGroup
	both.Go(func() { io.Copy(up, c); up.Close() })
	both.Go(func() { io.Copy(c, up); c.Close() })
	both.Wait()
}

func TestThroughAProxy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	put(t, w.connect(w.coordinatorOptions()), wire.TaskKey(study, "north"), "task", 0)
	for _, c := range []struct {
		name, user, login string
		tls, refuse       bool
		trouble           string
	}{
		{name: "open"},
		{name: "over TLS, which this end does not trust", tls: true, trouble: "certificate"},
		{name: "with a password", user: "ada:secret", login: "ada:secret"},
		{name: "with a wrong password", user: "ada:secret", login: "ada:guess", trouble: "wants a name and password"},
		{name: "that refuses", refuse: true, trouble: "allow CONNECT"},
	} {
		for _, address := range []string{"tls://" + w.server.Addr(), "wss://" + w.server.webSocketAddr()} {
			t.Run(c.name+" "+address[:3], func(t *testing.T) {
				p := &proxy{user: c.user, refuse: c.refuse}
				server := httptest.NewUnstartedServer(p)
				server.Config.ErrorLog = log.New(io.Discard, "", 0)
				if c.tls {
					server.StartTLS()
				} else {
					server.Start()
				}
				defer server.CloseClientConnections()
				defer server.Close()
				via := testkit.Get(url.Parse(server.URL))(t)
				if name, password, ok := strings.Cut(c.login, ":"); ok {
					via.User = url.UserPassword(name, password)
				}
				o := w.siteOptions("north")
				o.URLs, o.Proxy = []string{address}, func(u *url.URL) (*url.URL, error) {
					if u.Scheme != "https" {
						t.Errorf("asked for a proxy of %s", u)
					}
					return via, nil
				}
				s := testkit.Get(Connect(o))(t)
				defer s.Close()
				if c.trouble != "" {
					eventually(t, c.trouble, func() bool { return strings.Contains(s.Trouble(), c.trouble) })
					if trouble := s.Trouble(); strings.Contains(trouble, "guess") || s.Connected() ||
						p.tunnels.Load() != 0 {
						t.Errorf("connected: %v, %d tunnels, %s", s.Connected(), p.tunnels.Load(), trouble)
					}
					return
				}
				holds(t, s, wire.TaskKey(study, "north"), "task")
				if p.tunnels.Load() != 1 {
					t.Errorf("%d tunnels", p.tunnels.Load())
				}
				p.sent.Range(func(_, first any) bool {
					if first != byte(22) { // a TLS handshake
						t.Errorf("the first byte was %d: sent in plain text", first)
					}
					return true
				})
			})
		}
	}
}
