package live

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/internal/testkit"
)

// office is a site of which a test says what it shows, and that remembers what was decided.
type office struct {
	mu      sync.Mutex
	state   string
	decided []string
}

func (o *office) View(context.Context) (*View, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return &View{Title: "Site north", Says: "connected",
		Studies: []study{{ID: "d1", Name: "pain", State: o.state, Pending: o.state == "pending"}}}, nil
}

func (o *office) Show(_ context.Context, study string) (string, error) {
	if study != "d1" {
		return "", errors.New("there is no study " + study)
	}
	return "It sends 3 sums.", nil
}

func (o *office) note(what, state string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.state != "pending" {
		return errors.New("the policy does not allow it")
	}
	o.decided, o.state = append(o.decided, what), state
	return nil
}

func (o *office) Approve(_ context.Context, study string) error {
	return o.note("approve "+study, "approved")
}
func (o *office) Refuse(_ context.Context, study, reason string) error {
	return o.note("refuse "+study+": "+reason, "refused")
}
func (o *office) Budget(context.Context) (string, error) { return "ε 1 of 10 is spent.", nil }

// serve serves an office as the program does, and returns where and the token.
func serve(t *testing.T, source Source) (base, token string) {
	t.Helper()
	s := httptest.NewUnstartedServer(nil)
	var link string
	s.Config.Handler, link = New(source, s.Listener.Addr().String(), time.Millisecond)
	s.Start()
	t.Cleanup(s.Close)
	base, token, _ = strings.Cut(link, "/#")
	return base, token
}

// ask sends a request; headers are name, value, name, value.
func ask(t *testing.T, method, url, body string, headers ...string) (int, string) {
	t.Helper()
	r := testkit.Get(http.NewRequest(method, url, strings.NewReader(body)))(t)
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	res := testkit.Get(http.DefaultClient.Do(r))(t)
	defer res.Body.Close()
	text := testkit.Get(io.ReadAll(res.Body))(t)
	return res.StatusCode, string(text)
}

// Nobody without the token, from another page, by another name or by a link decides or
// sees anything.
func TestOthersAreRefused(t *testing.T) {
	o := &office{state: "pending"}
	base, token := serve(t, o)
	const body, form = `{"study": "d1"}`, "application/json"
	good := []string{"X-Parley-Token", token, "Content-Type", form}
	for name, c := range map[string]struct {
		method, path, body string
		headers            []string
		want               int
	}{
		"no token": {"POST", "/approve", body, []string{"Content-Type", form}, 401},
		"another token": {"POST", "/approve", body, []string{"X-Parley-Token", token + "x", "Content-Type", form},
			401},
		"a link": {"GET", "/approve?study=d1", "", good, 404},
		"a form": {"POST", "/approve", "study=d1", []string{"X-Parley-Token", token, "Content-Type",
			"application/x-www-form-urlencoded"}, 415},
		"another origin": {"POST", "/approve", body, append([]string{"Origin", "https://evil.example"}, good...),
			403},
		"another site":      {"POST", "/approve", body, append([]string{"Sec-Fetch-Site", "cross-site"}, good...), 403},
		"a name that moved": {"POST", "/approve", body, append([]string{"Host", "evil.example:80"}, good...), 403},
		"no study":          {"POST", "/approve", `{"study": 1}`, good, 400},
		"too much":          {"POST", "/approve", `{"study": "` + strings.Repeat("d", mostBody) + `"}`, good, 400},
		"events":            {"GET", "/events", "", nil, 401},
		"what it would do":  {"GET", "/show?study=d1", "", nil, 401},
		"budget":            {"GET", "/budget", "", nil, 401},
		"elsewhere":         {"GET", "/results", "", good, 404},
		"put":               {"PUT", "/", "", good, 405},
	} {
		if got, text := ask(t, c.method, base+c.path, c.body, c.headers...); got != c.want {
			t.Errorf("%s: %d %s, want %d", name, got, text, c.want)
		}
	}
	if len(o.decided) > 0 {
		t.Errorf("decided: %v", o.decided)
	}
	if status, text := ask(t, "GET", base+"/", ""); status != 200 || strings.Contains(text, token) ||
		strings.Contains(text, "pain") {
		t.Errorf("the page without the token: %d", status)
	}
}

func TestDecisions(t *testing.T) {
	o := &office{state: "pending"}
	base, token := serve(t, o)
	with := []string{"X-Parley-Token", token, "Content-Type", "application/json"}
	if status, text := ask(t, "GET", base+"/show?study=d1", "", with...); status != 200 || text != "It sends 3 sums." {
		t.Errorf("%d %s", status, text)
	}
	if status, text := ask(t, "GET", base+"/show?study=d2", "", with...); status != 409 ||
		!strings.Contains(text, "no study d2") {
		t.Errorf("%d %s", status, text)
	}
	if status, _ := ask(t, "POST", base+"/refuse", `{"study": "d1", "reason": " holidays "}`, with...); status != 200 {
		t.Errorf("%d", status)
	}
	if status, text := ask(t, "POST", base+"/approve", `{"study": "d1"}`, with...); status != 409 ||
		!strings.Contains(text, "policy does not allow") {
		t.Errorf("%d %s", status, text)
	}
	if !slices.Equal(o.decided, []string{"refuse d1: holidays"}) {
		t.Errorf("%v", o.decided)
	}
}

// A browser hears of what is, and then of what changes.
func TestEvents(t *testing.T) {
	o := &office{state: "pending"}
	base, token := serve(t, o)
	r := testkit.Get(http.NewRequestWithContext(t.Context(), "GET", base+"/events", nil))(t)
	r.Header.Set("X-Parley-Token", token)
	res := testkit.Get(http.DefaultClient.Do(r))(t)
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	next := func() (v View) {
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				testkit.Do(t, json.Unmarshal([]byte(data), &v))
				return v
			}
		}
		t.Fatal(lines.Err())
		return v
	}
	if v := next(); v.Title != "Site north" || v.Studies[0].State != "pending" || !v.Studies[0].Pending {
		t.Errorf("%+v", v)
	}
	testkit.Do(t, o.Approve(t.Context(), "d1"))
	if v := next(); v.Studies[0].State != "approved" || v.Studies[0].Pending {
		t.Errorf("%+v", v)
	}
}

func TestLoopback(t *testing.T) {
	for address, want := range map[string]bool{"127.0.0.1:0": true, "[::1]:8080": true, "localhost:80": true,
		"0.0.0.0:80": false, ":80": false, "192.0.2.1:80": false, "hospital.example:80": false, "127.0.0.1": false} {
		if got := Loopback(address) == nil; got != want {
			t.Errorf("%s: %v", address, got)
		}
	}
}
