package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley/internal/testkit"
	"parley/methods/factors"
	"parley/methods/mixture"
	"parley/methods/regression"
	"parley/papers/experiment"
	"parley/papers/quoted"
)

const experimentPages = manual + "/experiments"

// The pages of the documentation are what their records say, and no record is of an
// experiment that is gone.
func TestExperimentPagesAreUpToDate(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "records"),
		os.DirFS(filepath.Join(experimentPages, "records"))); err != nil {
		t.Fatal(err)
	}
	if err := writePages(dir); err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"*.md", "images/*.svg"} {
		made, _ := filepath.Glob(filepath.Join(dir, pattern))
		for _, file := range made {
			name, _ := filepath.Rel(dir, file)
			want, _ := os.ReadFile(file)
			got, err := os.ReadFile(filepath.Join(experimentPages, name))
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("docs/experiments/%s is not what its records say (%v): run go run -C papers . report", name,
					err)
			}
		}
		if stands, _ := filepath.Glob(filepath.Join(experimentPages, pattern)); pattern != "*.md" &&
			len(stands) != len(made) {
			t.Errorf("%d files %s, want %d: some belong to nothing", len(stands), pattern, len(made))
		}
	}
	records, _ := filepath.Glob(filepath.Join(experimentPages, "records", "*.json"))
	for _, file := range records {
		if _, err := experiments.Find(strings.TrimSuffix(filepath.Base(file), ".json")); err != nil {
			t.Error(err)
		}
	}
	if len(records) == 0 {
		t.Error("there are no records")
	}
}

// Every experiment of a paper repeats a table or figure that the page on all of them names, and
// only what has no data is missing.
func TestStatusNamesEveryExperimentOfThePapers(t *testing.T) {
	named := map[string]bool{}
	for _, s := range status {
		for _, name := range s.By {
			named[name] = true
		}
		if s.Mark == experiment.Missing && !strings.Contains(s.Why, "may not be passed on") {
			t.Errorf("%s, %s is missing: %s", s.Paper, s.Item, s.Why)
		}
	}
	for _, x := range experiments {
		beside := x.Name == "fedmvppca-subspace" || x.Name == "dppvi-noise-aware" // in none of these papers
		if x.Paper != quoted.Paper.Name && !named[x.Name] && !beside {
			t.Errorf("%s repeats nothing that the status names", x.Name)
		}
	}
	for _, s := range []experiment.Status{{Mark: "?", Why: "x"}, {Mark: experiment.Whole},
		{Mark: experiment.Missing, Why: "x", By: []string{"dppvi-table-1"}},
		{Mark: experiment.Whole, Why: "x", By: []string{"none"}}} {
		if _, err := experiment.StatusTables([]experiment.Status{s}, nil, experiments); err == nil {
			t.Errorf("%+v is taken", s)
		}
	}
}

// older are the records in which methods of ours have changed since they were made; whoever makes one again takes it
// off. A record of a paper's table or figure is made again when a published method changes.
var older = []string{
	"fedmvppca-table-2-mfeat-vae", "fedmvppca-table-2", "fedmvppca-table-2-mfeat", "dppvi-table-5", "dppvi-figure-3",
	"dppvi-successor", "graffl-figure-3", "graffl-table-2", "fedmvppca-private", "parley-mixtures",
	"dppvi-noise-aware", "parley-intercepts", "fedmvppca-table-6", "graffl-table-1",
	"fedmvppca-table-5", "parley-components", "parley-totals", "parley-rivals",
}

// ours are the methods that are not published ones.
var ours = []string{factors.Method{}.Name(), regression.Method{}.Name(), mixture.Method{}.Name()}

// No record is older than the revision of its methods, but those that are listed, which their
// pages say. It needs no history.
func TestRecordsAreOfTheirMethodsRevisions(t *testing.T) {
	found := 0
	for _, x := range experiments {
		if x.Methods == nil {
			t.Errorf("%s: methods.go says nothing of its methods", x.Name)
		}
		r, err := record(filepath.Join(experimentPages, "records", x.Name+".json"))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		names, err := r.Older(x)
		if err != nil {
			t.Error(err)
		}
		published := !strings.HasPrefix(x.Name, "parley-") &&
			slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(ours, name) })
		switch {
		case published || len(names) > 0 && !slices.Contains(older, x.Name):
			t.Errorf("%s: %s changed since its record was made: make it again", x.Name, strings.Join(names, " and "))
		case len(names) == 0 && slices.Contains(older, x.Name):
			t.Errorf("%s: its record is of today: take it off the list", x.Name)
		}
		if len(names) > 0 {
			found++
		}
	}
	if found != len(older) {
		t.Errorf("%d records are older, and the list has %d", found, len(older))
	}
}

// What documents tell people to type, and the stories of the command itself.
func TestCommands(t *testing.T) {
	run := func(words ...string) (printed string, err error) {
		var out bytes.Buffer
		began := false
		c := commandTree(func() { began = true })
		c.SetArgs(words)
		c.SetOut(&out)
		c.SetErr(&out)
		err = c.ExecuteContext(t.Context())
		if !began {
			err = errors.Join(err, errUsage)
		}
		return out.String(), err
	}
	dir := filepath.Join(t.TempDir(), "run")
	quick := []string{"run", "fedmvppca-table-6", "--quick", "--clone", "..", "--out", dir}
	for _, c := range []struct {
		words []string
		want  []string // in what is printed
	}{
		{[]string{"list"},
			[]string{"fedmvppca-table-6", "dppvi-table-5", "graffl-table-2", "What the documentation quotes"}},
		{[]string{"list", "--json"}, []string{`"name":"fedmvppca-table-6"`}},
		{quick, []string{"running 8 computations, ", "8 of 8 computations", "default, all rows in one place",
			"0.0567 ± 0.0108", "below (docs/experiments/fedmvppca.md#tables-2-and-6-with-every-round-protected)",
			"Open " + dir}},
		{append(quick, "--json"), []string{"8 of 8 computations are stored already", `"experiment":`}},
	} {
		printed, err := run(c.words...)
		for _, want := range c.want {
			if err != nil || !strings.Contains(printed, want) {
				t.Errorf("%q: no %q (%v) in\n%s", c.words, want, err, printed)
			}
		}
	}
	other := filepath.Join(t.TempDir(), "other")
	for want, words := range map[string][]string{
		"no experiment has this name":        {"run", "nothing"},
		"data set adcsf: there is no folder": {"run", "fedmvppca-table-2", "--quick", "--clone", other, "--out", other},
		"this is a file":                     {"run", "fedmvppca-table-2", "--out", "go.mod"},
		"a quick run":                        {"report", "--out", other, dir},
		"directory of a run that has":        {"report", "--out", other, other},
		errUsage.Error():                     {"run"},
	} {
		if _, err := run(words...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", words, err, want)
		}
	}
	if _, err := os.Stat(other); err == nil {
		t.Error("what is refused has written something")
	}
}

// errUsage stands for a command line that was not understood.
var errUsage = errors.New("not understood")

// What documents tell people to type is understood.
func TestDocumentsNameCommandsThatExist(t *testing.T) {
	typed := regexp.MustCompile("go run -C papers \\. ([^`\n>|)]*[^`\n>|) ])")
	found := 0
	pages := testkit.Get(filepath.Glob("../docs/*/*.md"))(t)
	for _, page := range append(pages, "../README.md", "../CONTRIBUTING.md", "../CHANGELOG.md") {
		for _, m := range typed.FindAllStringSubmatch(string(testkit.Get(os.ReadFile(page))(t)), -1) {
			words := strings.Fields(strings.TrimSuffix(m[1], " --"))
			c, rest, err := commandTree(func() {}).Find(words)
			if err == nil {
				err = c.ParseFlags(rest)
			}
			if err == nil && c.Name() == "run" && c.Flags().Arg(0) != "NAME" {
				_, err = experiments.Find(c.Flags().Arg(0))
			}
			if found++; err != nil || !c.HasParent() {
				t.Errorf("%s: %s: %v", page, m[0], err)
			}
		}
	}
	if found < 50 {
		t.Errorf("only %d commands were found", found)
	}
}
