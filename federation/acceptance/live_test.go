//go:build unix

package acceptance

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"parley/live"
)

var aLink = regexp.MustCompile(`open (http://127\.0\.0\.1:\d+)/#(\S+) `)

// visit asks the page of a daemon.
func (w *world) visit(name, method, path, body string) (int, io.ReadCloser) {
	w.t.Helper()
	m := aLink.FindStringSubmatch(w.said[name].since(w.life(name).from))
	if m == nil {
		w.t.Fatalf("%s showed no link", called(name))
	}
	r, err := http.NewRequestWithContext(w.t.Context(), method, m[1]+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("X-Parley-Token", m[2])
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { res.Body.Close() })
	return res.StatusCode, res.Body
}

// sees waits until the page of a daemon shows something.
func (w *world) sees(name string, holds func(live.View) bool) {
	w.t.Helper()
	status, body := w.visit(name, "GET", "/events", "")
	if status != http.StatusOK {
		w.t.Fatalf("the events of %s: status %d", called(name), status)
	}
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var v live.View
		if err := json.Unmarshal([]byte(data), &v); err != nil {
			w.t.Fatal(err)
		}
		if holds(v) {
			return
		}
	}
	w.t.Fatalf("%s does not show it: %v", called(name), lines.Err())
}

// A study is followed and approved at the pages of both ends, from the first look to the
// results.
func TestLivePages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, written(t, regression("watched", "rounds: 5", exact)), three...)
	w.coordinate()
	w.join("--yes")
	w.stop("")
	w.start("", "coordinator", "serve", w.home(), "--again", again, "--page", "127.0.0.1:0")
	w.do("site", "refuse", w.folder("south"), "watched")
	for _, s := range three {
		w.start(s, "site", "serve", w.folder(s), "--again", again, "--page", "127.0.0.1:0")
	}
	for _, name := range append([]string{""}, three...) {
		w.until(called(name)+" shows a link", func() error {
			if aLink.MatchString(w.said[name].since(w.life(name).from)) {
				return nil
			}
			return errors.New("it does not yet")
		})
	}
	study := ""
	w.sees("south", func(v live.View) bool {
		if len(v.Studies) == 1 {
			study = v.Studies[0].ID
		}
		return len(v.Studies) == 1 && v.Studies[0].State == "refused"
	})
	status, body := w.visit("south", "GET", "/show?study="+study, "")
	if text, err := io.ReadAll(body); err != nil || status != http.StatusOK || !strings.Contains(string(text), "What it computes") {
		t.Errorf("%d %s %v", status, text, err)
	}
	if status, _ := w.visit("south", "POST", "/approve", `{"study": "`+study+`"}`); status != http.StatusOK {
		t.Errorf("approving: status %d", status)
	}
	w.sees("", func(v live.View) bool {
		return len(v.Studies) == 1 && v.Studies[0].State == "done" && len(v.Studies[0].Sites) == len(three) && len(v.Log) > 0
	})
	w.sees("south", func(v live.View) bool {
		for _, e := range v.Log {
			if e.What == "approved" && strings.Contains(e.Text, "by a person at the live page") {
				return v.Studies[0].State == "done"
			}
		}
		return false
	})
	if status, _ := w.visit("north", "GET", "/budget", ""); status != http.StatusOK {
		t.Errorf("the budget: status %d", status)
	}
	w.delivered("watched")
}
