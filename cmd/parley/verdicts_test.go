package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley/internal/testkit"
	"parley/problem"
	"parley/study"
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
		ranges  = "[{name: age, range: [-50, 150]}, {name: weight, range: [-50, 150]}, {name: score, range: [-50, " +
			"150]}]"
		whole  = "[weight, score]"
		clinic = "{name: clinic, features: %s}"
		genes  = ", {name: genes, features: [{name: g1, range: [-50, 150]}, {name: g2, range: [-50, 150]}]}"
		class  = "outcome: {column: group, levels: [control, case]}"
	)
	for _, c := range []struct{ name, views, method, privacy, says string }{
		{"factors", ranges + "}" + genes, "name: factors, latent: 1", open, ""},
		{"too-many-factors", ranges + "}" + genes, "name: factors, latent: 4", open,
			"4 factors are more than the covariances of 5 features can tell"},
		{"one-view", ranges + "}", "name: factors, latent: 1", open, ""},
		{"published-factors", whole + "}", "name: fed-mv-ppca, latent: 1, rounds: 3", open, ""},
		{"private-factors", ranges + "}" + genes, "name: factors, latent: 1", private, ""},
		{"private-published-factors", ranges + "}" + genes, "name: fed-mv-ppca, latent: 1, rounds: 3", private,
			"The spread between sites is not an estimate"},
		{"outcome", ranges + "}", "name: regression, " + class, open, ""},
		{"unsettled-outcome", ranges + "}", "name: regression, rounds: 1, " + class, open, "The fit had not converged"},
		{"partitioned-outcome", ranges + "}", "name: dp-pvi, algorithm: exact, rounds: 2, " + class, open, "converged"},
		{"private-outcome", ranges + "}", "name: regression, rounds: 5, " + class, private, ""},
		{"published-outcome", ranges + "}", "name: dp-pvi, rounds: 2, update: {noise: 40}, rows: [{site: north, " +
			"rows: 20}, {site: south, rows: 20}, {site: east, rows: 20}], " + class, private, ""},
		{"mixture", ranges + "}", "name: mixture, components: 2, draws: 64", open,
			"Do not rely on these groups: a component may lie elsewhere; "},
		{"private-mixture", ranges + "}", "name: mixture, components: 2, draws: 64", private, ""},
		{"published-mixture", ranges + "}", "name: graffl-abc, components: 2, rounds: 5, accepted: 10", open,
			"What was found is not the posterior"},
		{"set-mixture", ranges + "}", "name: graffl-abc, components: 2, algorithm: sets, set: {particles: 20, " +
			"proposals: 300, rows: 10}", open, "Intervals are not calibrated"},
		{"autoencoder", ranges + "}" + genes, "name: vae, model: linear, latent: 1, rounds: 2", open, ""},
	} {
		if testkit.Sized(c.name == "private-published-factors" || c.name == "published-outcome" ||
			c.name == "set-mixture", false) {
			continue
		}
		plan := fmt.Sprintf("parley: 1\nname: %s\nsites: [north, south, east]\nviews: [%s]\nsubjects: "+
			"[group]\nmethod: {%s}\nprivacy: %s\nlocal: {data: small/data, split: {scenario: IID}}\n",
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

// sound is a study in order, file by file.
var sound = map[string]string{
	"plan.yaml": `parley: 1
name: tried
sites: [north, south]
views:
  - name: clinic
    features: [age, crp]
  - name: lab
    features: [tau]
method: {name: factors, latent: 1}
privacy: {protection: none}
local:
  sites: {north: north, south: south}
`,
	"north/subjects.csv": "id\nn1\nn2\nn3\nn4\nn5\nn6\nn7\nn8\nn9\nnA\n",
	"north/view_clinic.csv": "id,age,crp\nn1,71,1.5\nn2,64,2.5\nn3,58,3.1\nn4,69,0.9\nn5,66,1.1\nn6,75,2.2\nn7,62," +
		"2.8\nn8,67,1.9\nn9,70,1.2\nnA,61,2.0\n",
	"north/view_lab.csv":    "id,tau\nn1,180\nn2,210\nn3,175\nn4,199\n",
	"south/subjects.csv":    "id\ns1\ns2\ns3\n",
	"south/view_clinic.csv": "id,age,crp\ns1,60,1\ns2,65,2\ns3,72,3\n",
	"south/view_lab.csv":    "id,tau\ns1,190\ns2,205\ns3,170\n",
}

func packed(s string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write([]byte(s))
	z.Close()
	return b.String()
}

// What people get wrong ends in a message that says what, where and what to do; none of
// it is silent. A case replaces or, with an empty text, removes files of the sound study.
func TestBadInputIsExplained(t *testing.T) {
	clinic, lab, people := sound["north/view_clinic.csv"], sound["north/view_lab.csv"], sound["north/subjects.csv"]
	plan := func(from, to string) map[string]string {
		if !strings.Contains(sound["plan.yaml"], from) {
			t.Fatalf("%q is not in the plan", from)
		}
		return map[string]string{"plan.yaml": strings.Replace(sound["plan.yaml"], from, to, 1)}
	}
	north := func(name, text string) map[string]string { return map[string]string{"north/" + name: text} }
	instead := func(old, name, text string) map[string]string {
		return map[string]string{"north/" + old: "", "north/" + name: text}
	}
	for name, c := range map[string]struct {
		change map[string]string
		where  string // file, with line where there is one, or key
		what   string
		hint   string
	}{
		// Files.
		"tab-separated view": {instead("view_lab.csv", "view_lab.tsv", lab), "view_lab.tsv: view lab",
			"there is no view_lab.csv", "rename it to view_lab.csv"},
		"capitals in a name": {instead("view_lab.csv", "view_Lab.csv", lab), "view_Lab.csv: view lab",
			"there is no view_lab.csv", "rename it to view_lab.csv"},
		"view without its prefix": {instead("view_lab.csv", "lab.csv", lab), "lab.csv: view lab",
			"there is no view_lab.csv", "rename it to view_lab.csv"},
		"misspelt view": {instead("view_clinic.csv", "view_clinc.csv", clinic),
			"view_clinc.csv: view clinic", "there is no view_clinic.csv", "rename it"},
		"old workbook as CSV": {north("view_lab.csv", "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"), "view_lab.csv",
			"Excel 97 to 2003 (.xls)", "save it as .xlsx"},
		"new workbook as CSV": {north("view_lab.csv", "PK\x03\x04"), "view_lab.csv",
			"spreadsheet workbook or a zip", "let its name end in .xlsx"},
		"text as workbook": {instead("view_lab.csv", "view_lab.xlsx", lab), "view_lab.xlsx",
			"cannot be read as an Excel workbook", "save the one sheet"},
		"text as Parquet": {instead("view_lab.csv", "view_lab.parquet", lab), "view_lab.parquet",
			"cannot be read as Parquet", "flat columns"},
		"no subjects": {north("subjects.csv", ""), "north", "has no subjects.csv",
			"list the ids of all subjects"},
		"the same view twice": {north("view_lab.csv.gz", packed(lab)), "view_lab.csv.gz", "is there twice",
			"keep one of them"},
		"Latin-1": {north("view_lab.csv", "id,tau\nn1,180\nn\xe4,2\n"), "view_lab.csv:3",
			"is not valid UTF-8", "save the file in UTF-8"},
		"UTF-16": {north("view_lab.csv", "\xff\xfei\x00d\x00"), "view_lab.csv", "is UTF-16",
			"save it as CSV in UTF-8"},
		"semicolons, decimal comma": {north("view_lab.csv", "id;tau\nn1;1.012\n"), "view_lab.csv:2",
			`"1.012 or 1012" is not a number`, "whether points part thousands"},
		"no header": {north("view_lab.csv", "n1,180\nn2,210\n"), "view_lab.csv:1",
			`the first column is "n1", not id`, "name the column that identifies"},
		"transposed": {north("view_lab.csv", "id,n1,n2,n3\ntau,1,2,3\n"), "view_lab.csv:1",
			"the table is transposed", "turn it"},
		"empty file": {north("view_lab.csv", "id,tau\n"), "view_lab.csv", "has no rows",
			"export it again with its rows; of a view that nobody here has, leave the file out"},
		// Rows and cells.
		"words for numbers": {north("view_lab.csv", "id,tau\nn1,high\n"),
			"view_lab.csv:2:4: subject n1, feature tau", `"high" is not a number`, "missing: [-9, unknown]"},
		"decimal comma in quotes": {north("view_lab.csv", "id,tau\nn1,\"1,5\"\n"), "view_lab.csv:2",
			"is not a number", "use a decimal point"},
		"infinity": {north("view_lab.csv", "id,tau\nn1,inf\n"), "view_lab.csv:2", "is not finite",
			"write missing cells empty"},
		"too few cells": {north("view_clinic.csv", strings.Replace(clinic, "n2,64,2.5", "n2,64", 1)),
			"view_clinic.csv:3", "2 cells, but the header has 3", "write every cell of a row"},
		"a subject twice": {north("view_lab.csv", lab+"n2,5\n"), "view_lab.csv:", "n2 appears again",
			"every subject has one row"},
		"a subject nobody knows": {north("view_lab.csv", lab+"zz,5\n"), "view_lab.csv:6:1: subject zz",
			"is not in subjects.csv", "add the subject there"},
		"ids written differently": {north("subjects.csv", strings.ReplaceAll(people, "n", "N00")),
			"north/view_clinic.csv: id", "written differently than in subjects.csv: n1 here may be N001 there",
			"the same way in all files"},
		"ids are measurements": {north("view_lab.csv", "id,tau\n1.5,1\n2.5,2\n"), "view_lab.csv:2",
			"the ids look like measurements", "must name the subjects"},
		"a code for missing": {north("view_clinic.csv", strings.Replace(clinic, "n1,71", "n1,-9", 1)),
			"site north, view clinic, feature age", "-9, at 1 of 10 subjects, looks like a code", "missing: [-9]"},
		"another code": {north("view_clinic.csv", strings.Replace(clinic, "n1,71,1.5\nn2,64,2.5",
			"n1,71,-999\nn2,64,-999", 1)), "site north, view clinic, feature crp", "-999, at 2 of 10 subjects",
			"missing: [-999]"},
		"a value of 1e12": {north("view_clinic.csv", strings.Replace(clinic, "n1,71,1.5", "n1,71,1e12", 1)),
			"site north, view clinic, feature crp", "1 of 10 values are far from the rest", "is it another unit"},
		"a site that lacks a view": {north("view_lab.csv", ""), "site north", "lacks the view lab", "if it has it"},
		"a site of two": {map[string]string{"south/subjects.csv": "id\ns1\ns2\n",
			"south/view_clinic.csv": "id,age,crp\ns1,60,1\ns2,65,2\n",
			"south/view_lab.csv":    "id,tau\ns1,190\ns2,205\n"}, "site south, subjects", "there are only 2",
			"join this site with another"},
		"a feature missing at one": {north("view_clinic.csv", "id,age\nn1,71\nn2,60\n"),
			"north/view_clinic.csv:1: view clinic", "column crp is missing", "a site has all columns"},
		"a feature spelt otherwise": {north("view_clinic.csv", strings.Replace(clinic, "crp", "CR_P", 1)),
			"north/view_clinic.csv:1: view clinic", "column crp is missing", "is it the column CR_P?"},
		// Plans.
		"a feature that is a number": {plan("[age, crp]", "[age, 1433]"), "plan.yaml:6:21: views.features",
			"1433 where a name is expected", `write it in quotes: "1433"`},
		"a category for factors": {plan("[age, crp]", "[age, {name: stage, kind: category, levels: [I, II]}]"),
			"plan.yaml:6:21: views.features", "stage is a category, and factors models numbers", "leave it out"},
		"a tab in the plan": {plan("    features: [age", "\tfeatures: [age"), "plan.yaml:6",
			"a tab cannot indent", "indent with spaces"},
		"a misspelt key": {plan("latent: 1", "latnt: 1"), "plan.yaml:9", "unknown key",
			"did you mean latent?"},
		"a bracket left open": {plan("[age, crp]", "[age, crp"), "plan.yaml:", "not YAML",
			"brackets and quotes that are closed"},
		"a level that is a code": {plan("[age, crp]",
			"[age, {name: stage, kind: category, levels: [I, II], missing: [II]}]"), "plan.yaml:6",
			"level II is a code for missing values too", "either a level, or a code"},
		"a site without a folder": {plan("{north: north, south: south}", "{north: north}"), "local.sites",
			"no folder for site south", "add it: south: FOLDER"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			files := maps.Clone(sound)
			maps.Copy(files, c.change)
			for name, text := range files {
				path := filepath.Join(dir, filepath.FromSlash(name))
				testkit.Do(t, os.MkdirAll(filepath.Dir(path), 0o777))
				if text == "" {
					continue
				}
				testkit.Do(t, os.WriteFile(path, []byte(text), 0o666))
			}
			said := explained(t, filepath.Join(dir, "plan.yaml"))
			for _, p := range said {
				text := strings.ReplaceAll(filepath.ToSlash(p.Error()), filepath.ToSlash(dir)+"/", "")
				if strings.Contains(text, c.where) && strings.Contains(text, c.what) &&
					strings.Contains(p.Hint, c.hint) {
					return
				}
			}
			t.Errorf("nothing says %q at %q with the hint %q in\n%v", c.what, c.where, c.hint, said)
		})
	}
}

// The study that the cases change is sound: it has nothing to say but what each site is.
func TestSoundInputIsNotExplained(t *testing.T) {
	dir := t.TempDir()
	for name, text := range sound {
		path := filepath.Join(dir, filepath.FromSlash(name))
		testkit.Do(t, os.MkdirAll(filepath.Dir(path), 0o777))
		testkit.Do(t, os.WriteFile(path, []byte(text), 0o666))
	}
	if said := explained(t, filepath.Join(dir, "plan.yaml")); len(said) > 0 {
		t.Errorf("got %v", said)
	}
}

// explained is all that 'plan check --data' says of a plan, errors and notes.
func explained(t *testing.T, path string) problem.List {
	t.Helper()
	plan, err := study.Load(path, methods)
	var notes problem.List
	if err == nil {
		notes, err = checkNotes(t.Context(), plan, nil, true)
	}
	if err == nil {
		return notes
	}
	if list := (problem.List)(nil); errors.As(err, &list) {
		return list
	}
	if one := (problem.Problem{}); errors.As(err, &one) {
		return problem.List{one}
	}
	t.Fatalf("%v has no place", err)
	return nil
}
