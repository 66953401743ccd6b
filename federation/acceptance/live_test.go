//go:build unix

package acceptance

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"parley/federation/live"
	"parley/internal/testkit"
)

var aLink = regexp.MustCompile(`(http://127\.0\.0\.1:\d+)/#(\S+)`)

// link is that of a daemon's page; nil if there is none yet.
func (w *world) link(name string) []string {
	text, err := os.ReadFile(filepath.Join(w.dir, orCoordinator(name), "page.link"))
	if err != nil {
		return nil
	}
	return aLink.FindStringSubmatch(string(text))
}

// visit asks the page of a daemon.
func (w *world) visit(name, method, path, body string) (int, io.ReadCloser) {
	w.t.Helper()
	m := w.link(name)
	if m == nil {
		w.t.Fatalf("%s showed no link", called(name))
	}
	r := testkit.Get(http.NewRequestWithContext(w.t.Context(), method, m[1]+path, strings.NewReader(body)))(w.t)
	r.Header.Set("X-Parley-Token", m[2])
	r.Header.Set("Content-Type", "application/json")
	res := testkit.Get(http.DefaultClient.Do(r))(w.t)
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
		testkit.Do(w.t, json.Unmarshal([]byte(data), &v))
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
	w := newWorld(t, written(t, regressionPlan("watched", "rounds: 5", exact)), three...)
	w.coordinate()
	w.join("--yes")
	w.stop("")
	metrics, siteMetrics := freeAddress(t), map[string]string{}
	for _, s := range three {
		siteMetrics[s] = freeAddress(t)
	}
	w.start("", "coordinator", "serve", w.home(), "--again", again, "--page", "127.0.0.1:0", "--metrics", metrics)
	w.do("site", "refuse", w.folder("south"), "watched")
	for _, s := range three {
		w.start(s, "site", "serve", w.folder(s), "--again", again, "--page", "127.0.0.1:0", "--metrics", siteMetrics[s])
	}
	for _, name := range append([]string{""}, three...) {
		w.until(called(name)+" shows a link", func() error {
			if w.link(name) == nil || !strings.Contains(w.said[name].since(w.life(name).from), " serving ") {
				return errors.New("it does not yet")
			}
			return nil
		})
		// A log is kept, and read by others than those who may decide.
		said := w.said[name].since(w.life(name).from)
		if strings.Contains(said, w.link(name)[2]) ||
			!regexp.MustCompile(`(?m)^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d serving`).MatchString(said) {
			t.Errorf("%s logs its link, or lines without a date:\n%s", called(name), said)
		}
	}
	scrape := func(address, host string, want int) string {
		r := testkit.Get(http.NewRequest("GET", "http://"+address+"/metrics", nil))(t)
		r.Host = host
		res := testkit.Get(http.DefaultClient.Do(r))(t)
		defer res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("/metrics, asked as %s: status %d", host, res.StatusCode)
		}
		return string(testkit.Get(io.ReadAll(res.Body))(t))
	}
	scrape(metrics, "evil.example:80", http.StatusForbidden)
	study := ""
	w.sees("south", func(v live.View) bool {
		if len(v.Studies) == 1 {
			study = v.Studies[0].ID
		}
		return len(v.Studies) == 1 && v.Studies[0].State == "refused"
	})
	status, body := w.visit("south", "GET", "/show?study="+study, "")
	if text, err := io.ReadAll(body); err != nil || status != http.StatusOK ||
		!strings.Contains(string(text), "What it computes") {
		t.Errorf("%d %s %v", status, text, err)
	}
	for _, name := range []string{"../" + study, "../../../coordinator/studies/" + study} {
		status, body := w.visit("south", "GET", "/show?study="+name, "")
		if text, err := io.ReadAll(body); err != nil || status != http.StatusConflict ||
			!strings.Contains(string(text), "there is no study") {
			t.Errorf("study %s: %d %s %v", name, status, text, err)
		}
	}
	if status, _ := w.visit("south", "POST", "/approve", `{"study": "`+study+`"}`); status != http.StatusOK {
		t.Errorf("approving: status %d", status)
	}
	w.sees("", func(v live.View) bool {
		if len(v.Studies) == 1 && v.Studies[0].State == "stopped" { // the refusal was heard of before
			w.do("coordinator", "submit", w.home(), w.plan)
		}
		return len(v.Studies) == 1 && v.Studies[0].State == "done" && len(v.Studies[0].Sites) == len(three) &&
			len(v.Log) > 0
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

	// What the alerts and the dashboard ask for is what a scrape has.
	policy := filepath.Join(w.folder("south"), "policy.yaml")
	rules := testkit.Get(os.ReadFile(policy))(t)
	testkit.Do(t, os.WriteFile(policy, append(rules, "lifetime: {epsilon: 3, delta: 1e-5}\n"...), 0o600))
	said := scrape(metrics, metrics, http.StatusOK) + scrape(siteMetrics["south"], siteMetrics["south"], http.StatusOK)
	for _, want := range []string{`parley_site_waiting_seconds{site="south"} 0`, `parley_site_refused{site="south"} 0`,
		`parley_studies{state="done"} 1`,
		`parley_lifetime_left_ratio{adjacency="add-remove"} 1`} {
		if !strings.Contains(said, want+"\n") {
			t.Errorf("the scrape lacks %s:\n%s", want, said)
		}
	}
	if !regexp.MustCompile(`\nparley_broker_writes_total [1-9][0-9]{0,4}\n`).MatchString(said) {
		t.Errorf("the scrape has no writes of the broker:\n%s", said)
	}
	for _, file := range []string{"prometheus-alerts.yaml", "grafana-dashboard.json"} {
		text := string(testkit.Get(os.ReadFile(filepath.Join("../../deploy", file)))(t))
		for _, name := range regexp.MustCompile(`(parley|process)_\w+`).FindAllString(text, -1) {
			if !strings.Contains(said, "\n"+name) {
				t.Errorf("%s asks for %s, which the scrape lacks", file, name)
			}
		}
	}
}
