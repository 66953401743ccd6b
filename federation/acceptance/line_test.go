//go:build unix

package acceptance

import (
	"encoding/json"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"parley/federation/coordinator"
	"parley/internal/testkit"
)

// line is the way from a site to its coordinator: a proxy that can be cut, slow, or
// dead without a word.
type line struct {
	listener net.Listener
	target   func() string

	mu    sync.Mutex
	cut   bool          // refuses, and has closed what there was
	dead  bool          // takes and passes nothing
	delay time.Duration // of each piece
	rate  int           // bytes a second; 0: no limit
	pairs map[net.Conn]net.Conn
	moved chan struct{} // closed when any of this changes
	wg    sync.WaitGroup
}

// newLine makes a proxy to wherever target says then.
func newLine(t *testing.T, target func() string) *line {
	t.Helper()
	l := &line{target: target, pairs: map[net.Conn]net.Conn{}, moved: make(chan struct{})}
	var err error
	if l.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	l.wg.Go(l.accept)
	t.Cleanup(func() {
		l.listener.Close()
		l.set(func() { l.cut = true })
		l.wg.Wait()
	})
	return l
}

// set changes the line's condition.
func (l *line) set(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
	close(l.moved)
	l.moved = make(chan struct{})
	if l.cut {
		for a, b := range l.pairs {
			a.Close()
			b.Close()
		}
	}
}

// heal makes the line good.
func (l *line) heal() { l.set(func() { l.cut, l.dead, l.rate = false, false, 0 }) }

func (l *line) accept() {
	for {
		a, err := l.listener.Accept()
		if err != nil {
			return
		}
		l.wg.Go(func() { l.connect(a) })
	}
}

func (l *line) connect(a net.Conn) {
	defer a.Close()
	b, err := net.Dial("tcp", l.target())
	if err != nil {
		return
	}
	defer b.Close()
	l.mu.Lock()
	l.pairs[a] = b
	cut := l.cut
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		delete(l.pairs, a)
		l.mu.Unlock()
	}()
	if cut {
		return
	}
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
		both.Go(func() {
			l.pump(way[1], way[0])
			a.Close()
			b.Close()
		})
	}
	both.Wait()
}

// pump passes on what comes, in pieces.
func (l *line) pump(to io.Writer, from io.Reader) {
	piece := make([]byte, 16<<10)
	for {
		n, err := from.Read(piece)
		if n > 0 {
			l.hold(n)
			if _, err := to.Write(piece[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// hold keeps a piece back as long as the line's condition demands.
func (l *line) hold(n int) {
	for {
		l.mu.Lock()
		dead, cut, moved, wait := l.dead, l.cut, l.moved, l.delay
		if l.rate > 0 {
			wait += time.Duration(n) * time.Second / time.Duration(l.rate)
		}
		l.mu.Unlock()
		switch {
		case cut:
			return
		case dead:
			<-moved
			continue
		}
		if wait > 0 {
			select {
			case <-time.After(wait):
			case <-moved: // a change ends what was held back before
			}
		}
		return
	}
}

// lines puts a line between each site, which has joined, and the coordinator; some
// lead to its WebSocket.
func (w *world) lines(webSocket func(site string) bool) map[string]*line {
	w.t.Helper()
	all := map[string]*line{}
	for _, s := range w.sites {
		scheme := "tls"
		if webSocket(s) {
			scheme = "wss"
		}
		all[s] = newLine(w.t, func() string {
			var c coordinator.Config
			if err := readJSON(filepath.Join(w.home(), "coordinator.json"), &c); err != nil {
				return ""
			}
			if scheme == "wss" {
				return c.WebSocket
			}
			return c.Listen
		})
		w.readdress(s, (&url.URL{Scheme: scheme, Host: all[s].listener.Addr().String()}).String())
	}
	return all
}

// readdress makes a site look for its coordinator elsewhere.
func (w *world) readdress(site, address string) {
	w.t.Helper()
	path := filepath.Join(w.folder(site), "site.json")
	config := map[string]any{}
	testkit.Do(w.t, readJSON(path, &config))
	config["urls"] = []string{address}
	data, err := json.Marshal(config)
	if err == nil {
		err = os.WriteFile(path, data, 0o600)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}
