//go:build unix

package acceptance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"parley/federation"
	"parley/federation/coordinator"
	"parley/internal/testkit"
	"parley/internal/version"
)

// results is the folder of a study's results at one end; "" is the coordinator.
func (w *world) results(name, study string) string {
	w.t.Helper()
	found, err := filepath.Glob(filepath.Join(w.dir, orCoordinator(name), "results", study+"-????????????"))
	if err != nil || len(found) != 1 {
		w.t.Fatalf("%s has %d folders of results of study %s", called(name), len(found), study)
	}
	return found[0]
}

func orCoordinator(name string) string {
	if name == "" {
		return "coordinator"
	}
	return name
}

// files reads those below a folder of which keep is true, by their names.
func files(dir string, keep func(name string) bool) (map[string][]byte, error) {
	all := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil || !keep(filepath.ToSlash(rel)) {
			return err
		}
		data, err := os.ReadFile(path)
		if filepath.Base(path) == "rounds.jsonl" {
			data = keys.ReplaceAll(data, nil)
		}
		data = links.ReplaceAll(data, nil)
		if strings.HasSuffix(rel, ".html") { // reports name the program
			data = bytes.ReplaceAll(data, []byte(newer), []byte(version.Number))
		}
		all[filepath.ToSlash(rel)] = data
		return err
	})
	return all, err
}

// links lead from a shared report to those of the sites, which lie beside it only where
// all sites ran on one computer.
var links = regexp.MustCompile(`(?s)<li><a href="#section-site-pages">.*?</li>\n|<section ` +
	`id="section-site-pages".*?</section>\n`)

// keys are the names of those by which releases were signed: there are none where
// all is one process.
var keys = regexp.MustCompile(`"key":"[0-9a-f]{32}",`)

// equal says how two sets of files differ.
func equal(got, want map[string][]byte) error {
	var differ []string
	for name, data := range want {
		if other, ok := got[name]; !ok {
			return fmt.Errorf("%s is missing", name)
		} else if !bytes.Equal(data, other) {
			differ = append(differ, name+" differs"+firstDifference(other, data))
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			return fmt.Errorf("%s should not be there", name)
		}
	}
	if len(differ) > 0 {
		slices.Sort(differ)
		return errors.New(strings.Join(differ, "; "))
	}
	if len(want) == 0 {
		return fmt.Errorf("there are no files")
	}
	return nil
}

// firstDifference shows where two texts differ.
func firstDifference(got, want []byte) string {
	i := 0
	for i < min(len(got), len(want)) && got[i] == want[i] {
		i++
	}
	around := func(data []byte) []byte { return data[max(0, min(i, len(data))-40):min(len(data), i+80)] }
	return fmt.Sprintf(" from byte %d on: %q, want %q", i, around(got), around(want))
}

// own are the files of a site's results that are only its own: times are in
// provenance.json, and the store tells of every opening.
func own(name string) bool {
	return !strings.HasPrefix(name, "shared/") && !slices.Contains([]string{"provenance.json", "site.db"}, name)
}

// public are the coordinator's results that say the same however they came to be.
func public(name string) bool { return federation.Shared(name) || name == "report.html" }

// same demands the results of parley run, byte for byte, at every end.
func (w *world) same(study string) {
	w.t.Helper()
	reference := reference(w.t, w.plan)
	compare := func(what, got, want string, keepGot, keepWant func(string) bool) {
		w.t.Helper()
		a := testkit.Get(files(got, keepGot))(w.t)
		b := testkit.Get(files(want, keepWant))(w.t)
		if err := equal(a, b); err != nil {
			w.t.Errorf("%s, against parley run: %v", what, err)
		}
	}
	notSites := func(name string) bool { return public(name) && !strings.HasPrefix(name, "sites/") }
	compare("the coordinator's results", w.results("", study), reference, public, notSites)
	for _, s := range w.sites {
		compare("the results of site "+s, w.results(s, study), filepath.Join(reference, "sites", s), own, own)
		compare("what site "+s+" has of the others' results", filepath.Join(w.results(s, study), "shared"), reference,
			public, notSites)
	}
}

// charge is a line of a site's ledger, as far as it concerns these tests.
type charge struct {
	Study   string `json:"study"`
	Release string `json:"release"`
	Attempt int    `json:"attempt"`
	Round   int    `json:"round"`
	Kind    string `json:"kind"`
}

// ledger is what a site was ever charged, and the last hash.
func (w *world) ledger(site string) (charges []charge, head string) {
	w.t.Helper()
	return w.ledgerIn(w.folder(site))
}

func (w *world) ledgerIn(folder string) (charges []charge, head string) {
	w.t.Helper()
	var view struct {
		Entries []struct {
			charge
			Hash string `json:"hash"`
		} `json:"entries"`
	}
	testkit.Do(w.t, json.Unmarshal([]byte(w.do("site", "ledger", "show", folder, "--json")), &view))
	for _, e := range view.Entries {
		charges, head = append(charges, e.charge), e.Hash
	}
	return charges, head
}

// heads are those of all ledgers.
func (w *world) heads() map[string]string {
	w.t.Helper()
	all := map[string]string{}
	for _, s := range w.sites {
		_, all[s] = w.ledger(s)
	}
	return all
}

// round is a line of rounds.jsonl.
type round struct {
	Round int `json:"round"`
	Sites []struct {
		Site    string `json:"site"`
		Kind    string `json:"kind"`
		Release string `json:"release_sha256"`
	} `json:"sites"`
}

// rounds are those that the coordinator has recorded.
func (w *world) rounds(study string) (list []round) {
	w.t.Helper()
	data := testkit.Get(os.ReadFile(filepath.Join(w.results("", study), "rounds.jsonl")))(w.t)
	for line := range strings.Lines(string(data)) {
		var r round
		testkit.Do(w.t, json.Unmarshal([]byte(line), &r))
		list = append(list, r)
	}
	return list
}

// clean demands what must hold of every end when a study has ended, whatever has
// happened: ledgers and logs are whole, and each site was charged once for each of
// the releases that were folded, and for nothing else; but for the last of one that has left.
func (w *world) clean(study string) {
	w.t.Helper()
	st := testkit.Get(w.study(study))(w.t)
	folded := map[string]map[string]bool{}
	for _, r := range w.rounds(study) {
		for _, s := range r.Sites {
			if folded[s.Site] == nil {
				folded[s.Site] = map[string]bool{}
			}
			if s.Release == "" { // it left
				continue
			}
			key := fmt.Sprint(r.Round, s.Kind)
			if folded[s.Site][key] {
				w.t.Errorf("round %d has two answers of site %s", r.Round, s.Site)
			}
			folded[s.Site][key] = true
		}
	}
	w.do("coordinator", "log", "verify", w.home())
	for _, s := range w.sites {
		w.do("site", "log", "verify", w.folder(s))
		w.do("site", "ledger", "verify", w.folder(s))
		charges, _ := w.ledger(s)
		seen, mine := map[string]bool{}, 0
		for _, c := range charges {
			if c.Study != st.Study {
				continue
			}
			mine++
			if seen[c.Release] {
				w.t.Errorf("site %s was charged twice for release %s", s, c.Release)
			}
			seen[c.Release] = true
		}
		at, err := w.stands(study, s)
		if err != nil {
			w.t.Error(err)
		}
		if last := mine - len(folded[s]); last != 0 && (last != 1 || at.State != coordinator.Left) {
			w.t.Errorf("site %s was charged %d times, and %d of its releases were folded", s, mine, len(folded[s]))
		}
	}
}

// replay loses the coordinator's folder at the end of a study, and demands that
// rebuilding it from its key, the plan and the sites leads to the same model, at no
// new charge. The sites must be serving.
func (w *world) replay(study string) {
	w.t.Helper()
	model := func(name string) bool {
		return strings.HasPrefix(name, "model/") || name == "rounds.jsonl" || name == "metrics.json"
	}
	before := testkit.Get(files(w.results("", study), model))(w.t)
	heads := w.heads()
	w.kill("")
	w.lose()
	w.coordinate()
	w.comes(study, coordinator.Ended)
	w.delivered(study)
	after := testkit.Get(files(w.results("", study), model))(w.t)
	if err := equal(after, before); err != nil {
		w.t.Errorf("after rebuilding: %v", err)
	}
	for s, head := range w.heads() {
		if head != heads[s] {
			w.t.Errorf("site %s was charged for a replay", s)
		}
	}
}

// lose deletes the coordinator's folder, and rebuilds it from its key and the plans.
func (w *world) lose() {
	w.t.Helper()
	var config coordinator.Config
	testkit.Do(w.t, readJSON(filepath.Join(w.home(), "coordinator.json"), &config))
	key := filepath.Join(w.dir, "coordinator.key")
	data, err := os.ReadFile(filepath.Join(w.home(), "coordinator.key"))
	if err == nil {
		err = os.WriteFile(key, data, 0o600)
	}
	if err == nil {
		err = os.RemoveAll(w.home())
	}
	if err != nil {
		w.t.Fatal(err)
	}
	args := []string{"coordinator", "rebuild", w.home(), "--key", key, "--listen", config.Listen, "--websocket",
		config.WebSocket, "--host", strings.Join(config.Hosts, ","), w.plan}
	w.do(append(args, w.others...)...)
}
