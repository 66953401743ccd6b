package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley/internal/testkit"
)

var (
	listedDoubts = regexp.MustCompile(`(?s)<h2>What not to trust</h2>(.*?)</div>`)
	listedDoubt  = regexp.MustCompile(`<li><a href="#section-[a-z0-9-]+">([^<]*)</a></li>`)
	warnedOf     = regexp.MustCompile(`(?s)<aside class="note warning">\s*<h3>([^<]*)</h3>`)
)

// verdictsOf are the verdicts that metrics.json in a folder of results holds.
func verdictsOf(t *testing.T, dir string) []string {
	t.Helper()
	var metrics struct{ Verdicts []string }
	data, err := os.ReadFile(filepath.Join(dir, "metrics.json"))
	if err == nil {
		err = json.Unmarshal(data, &metrics)
	}
	if err != nil {
		t.Fatal(err)
	}
	return metrics.Verdicts
}

// onPage are the doubts that the report in a folder opens with; each warning below is one of
// them, and there is no other.
func onPage(t *testing.T, dir string) (all []string) {
	t.Helper()
	page := testkit.Get(os.ReadFile(filepath.Join(dir, "report.html")))(t)
	top := listedDoubts.FindSubmatch(page)
	if top != nil {
		for _, m := range listedDoubt.FindAllSubmatch(top[1], -1) {
			all = append(all, html.UnescapeString(string(m[1])))
		}
	}
	var below []string
	for _, m := range warnedOf.FindAllSubmatch(page, -1) {
		if title := html.UnescapeString(string(m[1])); !slices.Contains(below, title) {
			below = append(below, title)
		}
	}
	if !slices.Equal(all, below) {
		t.Errorf("%s opens with the doubts %q, and warns of %q below", dir, all, below)
	}
	return all
}

// What speaks against a result is one list, whoever says it: the terminal, the report and
// metrics.json, for every method, its variants, with and without privacy, and for every site.
func TestOneListOfVerdicts(t *testing.T) {
	dir := t.TempDir()
	testkit.Do(t, writeData(filepath.Join(dir, "small")))
	const (
		open    = "{protection: none}"
		private = "{protection: differential, unit: subject, adjacency: add-remove, total: {epsilon: 3, delta: 1e-5}}"
		ranges  = "[{name: age, range: [-50, 150]}, {name: weight, range: [-50, 150]}, {name: score, range: [-50, 150]}]"
		whole   = "[weight, score]"
		clinic  = "{name: clinic, features: %s}"
		genes   = ", {name: genes, features: [{name: g1, range: [-50, 150]}, {name: g2, range: [-50, 150]}]}"
		class   = "outcome: {column: group, levels: [control, case]}"
	)
	for _, c := range []struct{ name, views, method, privacy, says string }{
		{"factors", ranges + "}" + genes, "name: mvppca, latent: 1", open, ""},
		{"too-many-factors", ranges + "}" + genes, "name: mvppca, latent: 4", open, "4 factors are more than the covariances of 5 features can tell"},
		{"one-view", ranges + "}", "name: mvppca, latent: 1", open, ""},
		{"published-factors", whole + "}", "name: fed-mv-ppca, latent: 1, rounds: 3", open, ""},
		{"private-factors", ranges + "}" + genes, "name: mvppca, latent: 1", private, ""},
		{"private-published-factors", ranges + "}" + genes, "name: fed-mv-ppca, latent: 1, rounds: 3", private, "The spread between sites is not an estimate"},
		{"outcome", ranges + "}", "name: pvi, " + class, open, ""},
		{"unsettled-outcome", ranges + "}", "name: pvi, rounds: 1, " + class, open, "The fit had not converged"},
		{"partitioned-outcome", ranges + "}", "name: dp-pvi, algorithm: exact, rounds: 2, " + class, open, "converged"},
		{"private-outcome", ranges + "}", "name: pvi, rounds: 5, " + class, private, ""},
		{"published-outcome", ranges + "}", "name: dp-pvi, rounds: 2, update: {noise: 40}, rows: [{site: north, rows: 20}, {site: south, rows: 20}, {site: east, rows: 20}], " + class, private, ""},
		{"mixture", ranges + "}", "name: graffl, components: 2, draws: 64", open, "Do not rely on these groups: a component may lie elsewhere; "},
		{"private-mixture", ranges + "}", "name: graffl, components: 2, draws: 64", private, ""},
		{"published-mixture", ranges + "}", "name: graffl-abc, components: 2, rounds: 5, accepted: 10", open, "What was found is not the posterior"},
		{"set-mixture", ranges + "}", "name: graffl-abc, components: 2, algorithm: sets, set: {particles: 20, proposals: 300, rows: 10}", open, "Intervals are not calibrated"},
		{"autoencoder", ranges + "}" + genes, "name: vae, model: linear, latent: 1, rounds: 2", open, ""},
	} {
		if testkit.Sized(c.name == "private-published-factors" || c.name == "published-outcome" || c.name == "set-mixture", false) {
			continue
		}
		plan := fmt.Sprintf("parley: 1\nname: %s\nsites: [north, south, east]\nviews: [%s]\nsubjects: [group]\nmethod: {%s}\nprivacy: %s\nlocal: {data: small/data, split: {scenario: IID}}\n",
			c.name, strings.Replace(clinic, "%s}", c.views, 1), c.method, c.privacy)
		t.Run(c.name, func(t *testing.T) {
			file, out := filepath.Join(dir, c.name+".yaml"), filepath.Join(dir, c.name)
			testkit.Do(t, os.WriteFile(file, []byte(plan), 0o644))
			var said bytes.Buffer
			root := commandTree()
			root.SetArgs([]string{"run", file, "--out", out, "--quiet"})
			root.SetOut(&said)
			root.SetErr(io.Discard)
			if err := root.ExecuteContext(t.Context()); err != nil {
				t.Fatalf("%v\n%s", err, plan)
			}
			var terminal []string
			if _, list, ok := strings.Cut(said.String(), "\nBefore you rely on this result:\n"); ok {
				list, _, _ = strings.Cut(list, "\n\n")
				for line := range strings.Lines(list) {
					terminal = append(terminal, strings.TrimSuffix(strings.TrimPrefix(line, "- "), "\n"))
				}
			}
			metrics, page := verdictsOf(t, out), onPage(t, out)
			if !slices.Equal(metrics, terminal) || !slices.Equal(metrics, page) {
				t.Errorf("metrics.json says %q\nthe terminal %q\nthe report %q", metrics, terminal, page)
			}
			if !strings.Contains(strings.Join(metrics, "\n"), c.says) {
				t.Errorf("%q, without %q", metrics, c.says)
			}
			for _, site := range []string{"north", "south", "east"} {
				own := filepath.Join(out, "sites", site)
				page := onPage(t, own)
				if _, err := os.Stat(filepath.Join(own, "metrics.json")); errors.Is(err, fs.ErrNotExist) {
					continue // the method has no numbers for a site
				}
				if !slices.Equal(verdictsOf(t, own), page) {
					t.Errorf("site %s: metrics.json says %q, the page %q", site, verdictsOf(t, own), page)
				}
			}
		})
	}
}
