// Package live is a page on this machine that shows what a coordinator or a site is doing,
// and at a site lets a person approve or refuse a study.
//
// The page is for whoever has its link, which holds a token that is made anew at each start.
// The browser keeps the token for the tab and sends it in a header, so that no other site's
// page can ask in its place. Requests for another host or from another origin are refused,
// and only a POST changes anything. The page loads nothing from elsewhere, and works on
// what a [Source] says: names of studies and sites, states and words, never a subject's row.
package live

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/engine/host"
	"parley/federation"
	"parley/federation/coordinator"
	"parley/federation/site"
	"parley/privacy/ledger"
	"parley/sitestore"
)

// View is what the page shows at one moment.
type View struct {
	Title   string                `json:"title"`
	Says    string                `json:"says"` // how the program itself is
	Studies []study               `json:"studies"`
	Sites   []standing            `json:"sites,omitempty"` // that have been invited or have joined
	Log     []federation.LogEntry `json:"log"`             // the last lines, newest first
}

// study is one of the studies.
type study struct {
	ID      string     `json:"id"` // digest of its plan
	Name    string     `json:"name"`
	State   string     `json:"state"`
	Text    string     `json:"text,omitempty"`
	Round   int        `json:"round,omitempty"` // 0 before the first
	Done    int        `json:"done,omitempty"`  // of Of steps
	Of      int        `json:"of,omitempty"`
	Sites   []standing `json:"sites,omitempty"`
	Pending bool       `json:"pending,omitempty"` // waits for a person's decision here
}

// standing is where a site stands.
type standing struct {
	Name  string `json:"name"`
	State string `json:"state"`
	Text  string `json:"text,omitempty"`
}

// Source says what there is to see. It is asked again and again, by several goroutines.
type Source interface {
	View(ctx context.Context) (*View, error)
}

// decider is a [Source] at which a person decides. The same rules hold as for commands:
// what policy, ledger or data do not allow cannot be approved.
type decider interface {
	Source
	// Show says in words what a study would mean for the site.
	Show(ctx context.Context, study string) (string, error)
	Approve(ctx context.Context, study string) error
	Refuse(ctx context.Context, study, reason string) error
	// Budget says in words what is spent and what is left.
	Budget(ctx context.Context) (string, error)
}

// page is an [http.Handler] for one address.
type page struct {
	host   string
	token  string
	source Source
	every  time.Duration
}

// New makes the page of a source, to be served at host, such as 127.0.0.1:8080. The source
// is asked so often for each browser, which is told what has changed. The link holds the
// token: it is as good as a password until the program ends.
func New(source Source, host string, every time.Duration) (h http.Handler, link string) {
	p := &page{host: host, token: rand.Text(), source: source, every: every}
	return p, "http://" + host + "/#" + p.token
}

// Loopback reports an address that others than this machine's people could reach.
func Loopback(address string) error {
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("%s is not an address of this machine alone\n  hint: such as 127.0.0.1:8080; a proxy with a "+
			"password may stand before it", address)
	}
	return nil
}

//go:embed page.html
var markup []byte

// policy lets the page run its own script and style, by their hashes, and nothing else.
var policy = func() string {
	between := func(tag string) string {
		_, after, _ := bytes.Cut(markup, []byte("<"+tag+">"))
		text, _, _ := bytes.Cut(after, []byte("</"+tag+">"))
		sum := sha256.Sum256(text)
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return "default-src 'none'; script-src " + between("script") + "; style-src " + between("style") +
		"; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}()

// mostBody bounds what a browser sends.
const mostBody = 4 << 10

func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", policy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	if why := foreign(p.host, r); why != "" {
		http.Error(w, why, http.StatusForbidden)
		return
	}
	if r.URL.Path == "/" {
		if r.Method != http.MethodGet {
			http.Error(w, "only GET", http.StatusMethodNotAllowed)
			return
		}
		h.Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(markup) // a browser that has gone needs no word
		return
	}
	if subtle.ConstantTimeCompare([]byte(r.Header.Get("X-Parley-Token")), []byte(p.token)) != 1 {
		http.Error(w, "this needs the link that the program printed when it started", http.StatusUnauthorized)
		return
	}
	d, decides := p.source.(decider)
	switch what := r.Method + " " + r.URL.Path; {
	case what == "GET /events":
		p.events(w, r)
	case what == "GET /show" && decides:
		p.words(w, func() (string, error) { return d.Show(r.Context(), r.URL.Query().Get("study")) })
	case what == "GET /budget" && decides:
		p.words(w, func() (string, error) { return d.Budget(r.Context()) })
	case what == "POST /approve" && decides:
		p.decide(w, r, func(o order) error { return d.Approve(r.Context(), o.Study) })
	case what == "POST /refuse" && decides:
		p.decide(w, r, func(o order) error { return d.Refuse(r.Context(), o.Study, o.Reason) })
	default:
		http.NotFound(w, r)
	}
}

// Guard lets no page of another's reach what h serves at host.
func Guard(host string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if why := foreign(host, r); why != "" {
			http.Error(w, why, http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// foreign says why a request does not come from this page. A name that somebody else's
// server has pointed here is not this host.
func foreign(host string, r *http.Request) string {
	_, port, _ := net.SplitHostPort(host)
	if r.Host != host && r.Host != "localhost:"+port {
		return "this page is at " + host
	}
	if origin := r.Header.Get("Origin"); origin != "" && origin != "http://"+r.Host {
		return "this page is not for others"
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return ""
	}
	return "this page is not for others"
}

// events sends the view as server-sent events, whenever it has changed.
func (p *page) events(w http.ResponseWriter, r *http.Request) {
	flush, ok := w.(http.Flusher)
	if !ok {
		http.Error(w, "this connection cannot be kept", http.StatusNotImplemented)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	tick := time.NewTicker(p.every)
	defer tick.Stop()
	var last []byte
	for {
		v, err := p.source.View(r.Context())
		if err != nil {
			v = &View{Title: "Parley", Says: err.Error()}
		}
		now, err := json.Marshal(v)
		if err != nil {
			return
		}
		if !bytes.Equal(now, last) {
			if _, err := fmt.Fprintf(w, "data: %s\n\n", now); err != nil {
				return
			}
			flush.Flush()
			last = now
		}
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
	}
}

func (p *page) words(w http.ResponseWriter, say func() (string, error)) {
	text, err := say()
	if err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, text)
}

// order is a person's decision.
type order struct {
	Study  string `json:"study"`
	Reason string `json:"reason"`
}

func (p *page) decide(w http.ResponseWriter, r *http.Request, do func(order) error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		http.Error(w, "want application/json", http.StatusUnsupportedMediaType)
		return
	}
	var o order
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, mostBody))
	d.DisallowUnknownFields()
	if err := d.Decode(&o); err != nil {
		http.Error(w, "this is no decision: "+err.Error(), http.StatusBadRequest)
		return
	}
	p.words(w, func() (string, error) { return "done", do(order{o.Study, strings.TrimSpace(o.Reason)}) })
}

// OfCoordinator is what a coordinator's folder shows.
func OfCoordinator(f *coordinator.Folder) Source { return coordinating{f, &tail{}} }

type coordinating struct {
	*coordinator.Folder
	log *tail
}

func (c coordinating) View(context.Context) (*View, error) {
	s, err := c.ReadStatus()
	if err != nil {
		return nil, err
	}
	v := &View{Title: "Coordinator", Says: "the broker is " + s.Broker}
	for _, x := range s.Sites {
		one := standing{Name: x.Site, State: x.State}
		if x.Program != nil {
			one.Text = fmt.Sprintf("parley %s on %s", x.Program.Version, x.Program.Platform)
		}
		v.Sites = append(v.Sites, one)
	}
	for _, x := range s.Studies {
		one := study{ID: x.Study, Name: x.Name, State: x.State, Text: x.Text, Round: x.Round,
			Done: x.Progress, Of: x.Of}
		for _, y := range x.Sites {
			one.Sites = append(one.Sites, standing{Name: y.Site, State: y.State, Text: y.Text})
		}
		v.Studies = append(v.Studies, one)
	}
	v.Log, err = c.log.lines(c.Path)
	return v, err
}

// OfSite is what a site's folder shows; a person decides there.
func OfSite(f *site.Folder) Source { return taking{f, &tail{}} }

type taking struct {
	*site.Folder
	log *tail
}

func (t taking) View(context.Context) (*View, error) {
	s, err := t.ReadStatus()
	if err != nil {
		return nil, err
	}
	v := &View{Title: "Site " + s.Site, Says: "connected to the coordinator"}
	if !s.Connected {
		v.Says = "not connected to the coordinator: " + s.Trouble
	} else if s.Trouble != "" {
		v.Says = s.Trouble
	}
	for _, x := range s.Studies {
		v.Studies = append(v.Studies, study{ID: x.Study, Name: x.Name, State: x.State, Text: x.Text,
			Pending: x.State == federation.Pending})
	}
	v.Log, err = t.log.lines(t.Path)
	return v, err
}

func (t taking) Show(ctx context.Context, study string) (string, error) {
	study, err := t.Find(study) // what a browser sends is no part of a path before it was found
	if err != nil {
		return "", err
	}
	p, err := t.Preview(ctx, study)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	if err := p.Text(&text); err != nil {
		return "", err
	}
	return text.String(), nil
}

func (t taking) Approve(ctx context.Context, study string) error {
	study, err := t.Find(study)
	if err != nil {
		return err
	}
	return t.Folder.Approve(ctx, study, host.ByPerson+" at the live page")
}

func (t taking) Refuse(_ context.Context, study, reason string) error {
	study, err := t.Find(study)
	if err != nil {
		return err
	}
	return t.Folder.Refuse(study, reason)
}

// delta is that at which a budget is counted where no guarantee names one.
const delta = 1e-5

func (t taking) Budget(context.Context) (string, error) {
	rules, err := t.Policy()
	if err != nil {
		return "", err
	}
	var text strings.Builder
	err = sitestore.Look(t.StorePath(), func(s *sitestore.Store) error {
		charged, err := ledger.Read(s)
		if err != nil {
			return err
		}
		v, err := charged.Look(delta, &rules)
		if err != nil {
			return err
		}
		return v.Text(&text)
	})
	return text.String(), err
}

// mostLines are shown of an audit log.
const mostLines = 50

// tail keeps the last lines of a log, which is read again only when it has grown.
type tail struct {
	mu   sync.Mutex
	size int64
	last []federation.LogEntry // newest first
}

func (t *tail) lines(dir string) ([]federation.LogEntry, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	file := filepath.Join(dir, "audit.jsonl")
	info, err := os.Stat(file)
	if err != nil || info.Size() == t.size {
		return t.last, err
	}
	var last []federation.LogEntry
	err = federation.ReadLog(file, func(e federation.LogEntry) error {
		e.Previous = ""
		if last = append(last, e); len(last) > 2*mostLines {
			last = slices.Clone(last[mostLines:])
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	last = last[max(0, len(last)-mostLines):]
	slices.Reverse(last)
	t.size, t.last = info.Size(), last
	return last, nil
}
