package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/dataset"
	"parley/engine"
	"parley/figure"
	"parley/internal/testkit"
	"parley/method"
	"parley/privacy"
	"parley/privacy/ledger"
	"parley/privacy/policy"
	"parley/problem"
	"parley/study"
)

// toy knows one method, without options.
type toy struct{}

func (toy) Options(name string) (any, bool) { return &struct{}{}, name == "toy" }
func (toy) Names() []string                 { return []string{"toy"} }

func plan(t *testing.T, seed string) *study.Plan {
	t.Helper()
	p, err := study.Parse("plan.yaml", []byte("parley: 1\nname: small\nquestion: Why?\nseed: "+seed+
		"\nsites: [north, south]\nviews: [{name: v, features: [a]}]\nmethod: {name: toy}\nprivacy: {protection: "+
		"none}\n"), toy{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const data = "fingerprint-1"

var (
	began = time.Date(2026, 11, 21, 8, 0, 0, 0, time.FixedZone("", 3600))
	ended = began.Add(time.Hour)
)

// both are the directories of both ends of a simulation.
type both struct {
	*Results
	sites  map[string]*Site
	ledger *ledger.Ledger
	policy *policy.Policy
}

// begin makes them.
func begin(path string, p *study.Plan, data string, now time.Time) (both, error) {
	b := both{sites: map[string]*Site{}}
	var err error
	if b.Results, err = OpenResults(path, p, true, now); err != nil {
		return b, err
	}
	for _, site := range p.Sites {
		if b.sites[site], err = OpenSite(SiteIn(path, site), p, site, data); err != nil {
			return b, err
		}
	}
	return b, nil
}

func (b both) Write(out *engine.Outcome, results map[string]*method.Result, now time.Time) error {
	for site, r := range results {
		if err := b.sites[site].Write(r, b.ledger, b.policy); err != nil {
			return fmt.Errorf("site %s: %w", site, err)
		}
	}
	_, err := b.Results.Write(out, now)
	return err
}

func openResults(t *testing.T, path string) both {
	t.Helper()
	return testkit.Get(begin(path, plan(t, "1"), data, began))(t)
}

func outcome() *engine.Outcome {
	exchange := func(site string, up int) engine.Exchange {
		return engine.Exchange{Site: site, Kind: "sum", Down: 10, Up: up, Release: strings.Repeat("a", 64),
			Request: privacy.Request{Protection: privacy.Unprotected,
				Contents: []privacy.Content{{What: "a sum", Values: 1}}}}
	}
	return &engine.Outcome{
		Result: &method.Result{
			Files: []method.File{{Name: "model/model.json", Data: []byte("{}\n")},
				{Name: "model/long.csv", Write: func(w io.Writer) error {
					_, err := io.WriteString(w, "a,b\n")
					return err
				}}},
			Metrics:  map[string]float64{"sum": 3, "share": 0.5},
			Headline: []figure.Fact{{Name: "sum", Value: "3"}},
			Sections: []figure.Section{{ID: "sums", Title: "Sums", Items: []figure.Item{{Figure: &figure.Figure{
				ID: "sites", Title: "Sites", Caption: "Where the sites lie.", Alt: "Two sites.",
				Chart: figure.Scatter{Groups: []figure.Group{
					{Name: "north", Mean: figure.Numbers{0, 1}, Cov: figure.Numbers{1, 0, 1}},
					{Name: "south", Mean: figure.Numbers{1, 1}, Cov: figure.Numbers{1, 0, 1}},
				}},
			}}}}},
		},
		Rounds: []engine.Round{
			{Round: 1, Sites: []engine.Exchange{exchange("north", 100), exchange("south", 90)},
				Info: method.Info{"sum": 2}},
			{Round: 2, Sites: []engine.Exchange{exchange("north", 11),
				{Site: "south", Kind: "sum", Down: 10, Left: "its release was not valid"}},
				Info: method.Info{"sum": 3}},
		},
		Left: []string{"south"},
	}
}

// subjects is what a site may see of its own: a mark for each subject.
func subjects() []figure.Section {
	return []figure.Section{{ID: "scores", Title: "Your subjects", Items: []figure.Item{{Figure: &figure.Figure{
		ID: "subjects", Title: "Subjects", Caption: "Every mark is a subject.", Alt: "Marks.",
		Chart: figure.Scatter{Groups: []figure.Group{{Name: "all", X: figure.Numbers{1, 2, 3},
			Y: figure.Numbers{4, 5, 6}}}},
	}}}}}
}

func sites() map[string]*method.Result {
	return map[string]*method.Result{"north": {Files: []method.File{{Name: "scores.csv", Data: []byte("id\ns1\n")}},
		Sections: subjects()}}
}

func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(dir, name))
		all[name] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func namesOf(all map[string]string) []string {
	var list []string
	for name := range all {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

func same(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for name := range a {
		if a[name] != b[name] {
			return false
		}
	}
	return true
}

func TestLayout(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "results")
	d := openResults(t, path)
	if got := namesOf(tree(t, path)); !slices.Equal(got,
		[]string{"plan.yaml", "provenance.json", "sites/north/provenance.json", "sites/south/provenance.json"}) {
		t.Errorf("before the run: %v", got)
	}
	testkit.Do(t, d.Write(outcome(), sites(), ended))
	all := tree(t, path)
	want := []string{"figures/sites.csv", "figures/sites.svg", "metrics.json", "model/long.csv", "model/model.json",
		"plan.yaml", "provenance.json", "report.html",
		"rounds.jsonl", "sites/north/figures/subjects.csv", "sites/north/figures/subjects.svg",
		"sites/north/provenance.json", "sites/north/report.html", "sites/north/scores.csv",
		"sites/south/provenance.json", "tables/exchange-table.csv", "tables/tasks-table.csv"}
	if got := namesOf(all); !slices.Equal(got, want) {
		t.Errorf("after the run: %v\nwant %v", got, want)
	}
	var metrics struct {
		Sum, Share float64
		Verdicts   []string
	}
	if err := json.Unmarshal([]byte(all["metrics.json"]), &metrics); err != nil || metrics.Sum != 3 ||
		metrics.Share != 0.5 || !slices.Equal(metrics.Verdicts, []string{"1 of 2 sites left before the end: south"}) {
		t.Errorf("metrics.json: %v (%v)", metrics, err)
	}
	if p, err := study.Parse("plan.yaml", []byte(all["plan.yaml"]), toy{}); err != nil || p.Seed != 1 || p.Quorum != 2 {
		t.Errorf("plan.yaml: %+v (%v)", p, err)
	}
	if all["model/long.csv"] != "a,b\n" || all["sites/north/scores.csv"] != "id\ns1\n" {
		t.Errorf("the method's files: %q, %q", all["model/long.csv"], all["sites/north/scores.csv"])
	}
}

func TestRoundsReadBack(t *testing.T) {
	path := t.TempDir()
	out := outcome()
	testkit.Do(t, openResults(t, path).Write(out, nil, ended))
	lines := strings.Split(strings.TrimSuffix(tree(t, path)["rounds.jsonl"], "\n"), "\n")
	if len(lines) != len(out.Rounds) {
		t.Fatalf("%d lines for %d rounds", len(lines), len(out.Rounds))
	}
	for i, line := range lines {
		d := json.NewDecoder(strings.NewReader(line))
		d.DisallowUnknownFields()
		var r engine.Round
		testkit.Do(t, d.Decode(&r))
		if x, want := r.Sites[1], out.Rounds[i].Sites[1]; r.Round != i+1 ||
			r.Info["sum"] != out.Rounds[i].Info["sum"] || x.Up != want.Up || x.Release != want.Release ||
			x.Request.Protection !=
				want.Request.Protection {
			t.Errorf("line %d: %+v", i+1, r)
		}
		if i == 0 && !strings.Contains(line, `"bytes_up":90,"release_sha256":"aaa`) {
			t.Errorf("line 1: %s", line)
		}
	}
}

func TestProvenance(t *testing.T) {
	path := t.TempDir()
	d := openResults(t, path)
	read := func() (p provenance) {
		t.Helper()
		testkit.Do(t, json.Unmarshal([]byte(tree(t, path)["provenance.json"]), &p))
		return p
	}
	digest := testkit.Get(plan(t, "1").Digest())(t)
	p := read()
	if p.Finished != nil || p.Plan != digest.String() || p.Seed != 1 || p.Study != "small" || !p.Simulated ||
		!strings.HasPrefix(p.Program, "parley ") || p.Go == "" || p.Platform == "" {
		t.Errorf("when it begins: %+v", p)
	}
	if !p.Started.Equal(began) || p.Started.Location() != time.UTC {
		t.Errorf("started %v", p.Started)
	}
	testkit.Do(t, d.Write(outcome(), nil, ended))
	shared := tree(t, path)["provenance.json"]
	if strings.Contains(shared, data) || !strings.Contains(tree(t, path)["sites/south/provenance.json"],
		`"data_sha256": "`+data+`"`) {
		t.Errorf("the fingerprint of the data is where it should not be: %s", shared)
	}
	p = read()
	if p.Finished == nil || !p.Finished.Equal(ended) || !slices.Equal(p.SitesLeft, []string{"south"}) ||
		!slices.Equal(p.Protections, []string{"none"}) {
		t.Errorf("when it has ended: %+v", p)
	}
}

// Who reads the report learns before anything else that a site is not in the result to
// its end; where all are, nothing is said.
func TestSitesThatLeftAreSaidFirst(t *testing.T) {
	page := func(out *engine.Outcome) string {
		path := t.TempDir()
		testkit.Do(t, openResults(t, path).Write(out, sites(), ended))
		return tree(t, path)["report.html"]
	}
	text := page(outcome())
	said, first := strings.Index(text, "south left in round 2: its release was not valid."),
		strings.Index(text, `id="section-sums"`)
	if said < 0 || first < 0 || said > first {
		t.Errorf("that south left stands at %d, and the first section of the method at %d", said, first)
	}
	whole := outcome()
	whole.Left, whole.Rounds[1].Sites[1] = nil, whole.Rounds[0].Sites[1]
	if text := page(whole); strings.Contains(text, "left in round") || strings.Contains(text, "section-left") {
		t.Error("a site is said to have left, and none has")
	}
}

func TestFinishedRunIsWrittenAgainToTheSameBytes(t *testing.T) {
	path := t.TempDir()
	testkit.Do(t, openResults(t, path).Write(outcome(), sites(), ended))
	before := tree(t, path)
	again := testkit.Get(begin(path, plan(t, "1"), data, began.Add(24*time.Hour)))(t)
	testkit.Do(t, again.Write(outcome(), sites(), ended.Add(24*time.Hour)))
	if !same(before, tree(t, path)) {
		t.Error("writing the same results again changed them")
	}
}

func TestDirectoriesOfOthersAreRefusedAndLeftAlone(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(path string) error
		plan    string
		data    string
		want    string
	}{
		"another plan": {nil, "2", data, "holds a run of another plan"},
		"other data":   {nil, "1", "d2", "the data have changed since this run began"},
		"photographs": {func(path string) error {
			return errors.Join(os.MkdirAll(path, 0o755), os.WriteFile(filepath.Join(path, "sea.jpg"), nil, 0o644))
		}, "1", data, "is not empty and holds no run"},
		"a folder": {func(path string) error { return os.MkdirAll(filepath.Join(path, "empty"), 0o755) }, "1", data,
			"is not empty and holds no run"},
		"a strange provenance": {func(path string) error {
			return errors.Join(os.MkdirAll(path, 0o755), os.WriteFile(filepath.Join(path, "provenance.json"),
				[]byte("from my grandfather"), 0o644))
		}, "1", data, "this is not a run's provenance"},
	} {
		path := filepath.Join(t.TempDir(), "results")
		if c.prepare == nil {
			openResults(t, path)
		} else if err := c.prepare(path); err != nil {
			t.Fatal(err)
		}
		before := tree(t, path)
		_, err := begin(path, plan(t, c.plan), c.data, ended)
		if p := (problem.Problem{}); !errors.As(err, &p) || !strings.Contains(p.What, c.want) ||
			!strings.Contains(p.Hint, "--out") || !strings.HasPrefix(p.File, path) {
			t.Errorf("%s: %v", name, err)
		}
		if !same(before, tree(t, path)) {
			t.Errorf("%s: the directory was changed", name)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	testkit.Do(t, os.WriteFile(file, nil, 0o644))
	if _, err := begin(file, plan(t, "1"), data, began); err == nil {
		t.Error("a file was taken for a directory")
	}
}

// A site's fingerprint may be missing where nothing has been computed, as after
// a crash, and nowhere else.
func TestRunThatForgotItsDataIsNotContinued(t *testing.T) {
	path := t.TempDir()
	openResults(t, path)
	lost := filepath.Join(path, "sites", "south", "provenance.json")
	testkit.Do(t, os.Remove(lost))
	openResults(t, path)
	testkit.Do(t, errors.Join(os.Remove(lost), os.WriteFile(filepath.Join(path, "sites", "south", "site.db"),
		nil, 0o644)))
	if _, err := begin(path, plan(t, "1"), data, began); err == nil ||
		!strings.Contains(err.Error(), "site south: which data this run began on is not known any more") {
		t.Errorf("got %v", err)
	}
}

// A crash between the first two files, or within the first, can be continued.
func TestOpenContinuesWhereverItCrashed(t *testing.T) {
	path := t.TempDir()
	testkit.Do(t, os.WriteFile(filepath.Join(path, ".provenance.json-31"), []byte("{"), 0o600))
	openResults(t, path)
	testkit.Do(t, os.Remove(filepath.Join(path, "plan.yaml")))
	openResults(t, path)
	if got := namesOf(tree(t, path)); !slices.Equal(got,
		[]string{"plan.yaml", "provenance.json", "sites/north/provenance.json", "sites/south/provenance.json"}) {
		t.Errorf("got %v", got)
	}
}

func TestFilesOfAMethodStayInside(t *testing.T) {
	for _, name := range []string{"../../outside", "/outside", "model/../../outside", ""} {
		path := filepath.Join(t.TempDir(), "results")
		out := outcome()
		out.Result.Files = append(out.Result.Files, method.File{Name: name})
		if err := openResults(t, path).Write(out, nil, ended); err == nil ||
			!strings.Contains(err.Error(), "not inside the results") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestFailedWriteLeavesTheOldFile(t *testing.T) {
	path := t.TempDir()
	d := openResults(t, path)
	testkit.Do(t, d.Write(outcome(), sites(), ended))
	before := tree(t, path)
	broken := errors.New("broken")
	out := outcome()
	out.Result.Files[0].Data = nil
	out.Result.Files[0].Write = func(w io.Writer) error {
		if _, err := io.WriteString(w, "half"); err != nil {
			return err
		}
		return broken
	}
	if err := d.Write(out, sites(), ended); !errors.Is(err, broken) {
		t.Fatalf("got %v", err)
	}
	if !same(before, tree(t, path)) {
		t.Error("a write that failed changed the results")
	}
}

// The page for everybody cannot show single subjects, whatever the method
// says; the page for a site can, and says so.
func TestOnlyTheSitesPageShowsSubjects(t *testing.T) {
	path := t.TempDir()
	out := outcome()
	out.Result.Sections = append(out.Result.Sections, subjects()...)
	if err := openResults(t, path).Write(out, sites(), ended); err == nil {
		t.Error("the shared report shows single subjects")
	}
	if _, ok := tree(t, path)["report.html"]; ok {
		t.Error("a refused report was written")
	}
	path = t.TempDir()
	testkit.Do(t, openResults(t, path).Write(outcome(), sites(), ended))
	all := tree(t, path)
	if page := all["sites/north/report.html"]; !strings.Contains(page, "must not leave the site") ||
		!strings.Contains(page, "It may show single subjects") {
		t.Error("the site's page does not say what it is")
	}
	page := all["report.html"]
	if strings.Contains(page, "must not leave") ||
		!strings.Contains(page, "<h3>Not protected by differential privacy") {
		t.Error("the shared page does not say how it is protected")
	}
	if before, _, _ := strings.Cut(page, `<nav`); !strings.Contains(before,
		`<li><a href="#section-privacy">Not protected by differential privacy</a></li>`) {
		t.Error("the shared page does not open with how it is protected")
	}
}

func TestNumbersThatCannotBeWrittenAreErrors(t *testing.T) {
	out := outcome()
	out.Result.Metrics["sum"] = math.Inf(1)
	if err := openResults(t, t.TempDir()).Write(out, nil, ended); err == nil ||
		!strings.Contains(err.Error(), "metrics.json") {
		t.Errorf("got %v", err)
	}
	out = outcome()
	out.Rounds[0].Info["sum"] = math.NaN()
	if err := openResults(t, t.TempDir()).Write(out, nil, ended); err == nil ||
		!strings.Contains(err.Error(), "rounds.jsonl") {
		t.Errorf("got %v", err)
	}
}

func TestExchangesAreSummedOverRounds(t *testing.T) {
	path := t.TempDir()
	testkit.Do(t, openResults(t, path).Write(outcome(), nil, ended))
	for name, want := range map[string][][]string{
		"tables/exchange-table.csv": {{"north", "sum", "2", "111", "20"}, {"south", "sum", "2", "90", "20"}},
		"tables/tasks-table.csv":    {{"sum", "a sum", "1"}},
	} {
		records := testkit.Get(csv.NewReader(bytes.NewReader([]byte(tree(t, path)[name]))).ReadAll())(t)
		for i, w := range want {
			if !slices.Equal(records[i+1], w) {
				t.Errorf("%s, line %d: %v, want %v", name, i+1, records[i+1], w)
			}
		}
	}
}

// opener is a method that has models and nothing else.
type opener struct {
	method.Method
	name    string
	formats []string
}

func (o opener) Name() string           { return o.name }
func (o opener) ModelFormats() []string { return o.formats }
func (o opener) OpenModel(data []byte) (method.Model, error) {
	if strings.Contains(string(data), "broken") {
		return nil, errors.New("it is broken")
	}
	return opened{o.name}, nil
}

type opened struct{ method string }

func (o opened) Method() string         { return o.method }
func (o opened) Schema() dataset.Schema { return dataset.Schema{} }

var openers = method.Registry{
	opener{name: "first", formats: []string{"parley/first-model/2", "parley/first-model/3"}},
	opener{name: "second", formats: []string{"parley/second-model/1"}},
}

func TestAModelIsFoundInItsDirectories(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		testkit.Do(t, os.MkdirAll(filepath.Dir(path), 0o777))
		testkit.Do(t, os.WriteFile(path, []byte(text), 0o666))
		return path
	}
	file := write("results/model/model.json", `{"format": "parley/second-model/1"}`)
	for _, path := range []string{file, filepath.Dir(file), filepath.Join(dir, "results")} {
		if m, err := ReadModel(openers, path); err != nil || m.Method() != "second" {
			t.Errorf("%s: %v, %v", path, m, err)
		}
	}
	write("begun/provenance.json", "{}")
	write("empty/other.txt", "")
	broken := write("broken.json", `{"format": "parley/second-model/1", "broken": 1}`)
	text := write("text.json", `hello`)
	for path, want := range map[string]string{
		filepath.Join(dir, "begun"): "has not ended",
		filepath.Join(dir, "empty"): "there is no model in this directory",
		filepath.Join(dir, "none"):  "there is no such model",
		broken:                      "it is broken",
		text:                        "this is not a model",
	} {
		_, err := ReadModel(openers, path)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), path+": ") {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	var p problem.Problem
	if _, err := ReadModel(openers, text); !errors.As(err, &p) || p.Hint == "" {
		t.Errorf("no hint in %v", err)
	}
}

func TestStoresAreFound(t *testing.T) {
	dir := t.TempDir()
	for _, file := range []string{"many/north/site.db", "many/south/site.db", "results/sites/north/site.db",
		"none/readme"} {
		path := filepath.Join(dir, filepath.FromSlash(file))
		testkit.Do(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o644)))
	}
	for _, c := range []struct{ path, site, want, wrong, hint string }{
		{"many", "south", "many/south/site.db", "", ""},
		{"many/north/site.db", "", "many/north/site.db", "", ""},
		{"many/north", "", "many/north/site.db", "", ""},
		{"many/north", "north", "many/north/site.db", "", ""},
		{"results", "", "results/sites/north/site.db", "", ""},
		{"results", "north", "results/sites/north/site.db", "", ""},
		{"many", "", "", "2 sites have stores here", "north, south"},
		{"many", "sooth", "", `site "sooth" has no store here`, "did you mean south?"},
		{"none", "north", "", "no site's store is here", "local.stores"},
		{"nowhere", "north", "", "there is no such store", ""},
	} {
		got, err := FindStore(filepath.Join(dir, filepath.FromSlash(c.path)), c.site)
		if c.want != "" {
			if err != nil || got != filepath.Join(dir, filepath.FromSlash(c.want)) {
				t.Errorf("%s, %q: %q, %v", c.path, c.site, got, err)
			}
			continue
		}
		if p := (problem.Problem{}); !errors.As(err, &p) || !strings.Contains(p.What, c.wrong) ||
			!strings.Contains(p.Hint, c.hint) {
			t.Errorf("%s, %q: %v", c.path, c.site, err)
		}
	}
}

// A paper's paragraph says who took part to the end, and what the method says; where nobody said it, there is none.
func TestReportHasAParagraphForAPaper(t *testing.T) {
	for _, said := range []string{"", "A toy told a story."} {
		b := testkit.Get(begin(filepath.Join(t.TempDir(), "run"), plan(t, "1"), data, began))(t)
		b.Paper = method.Paper{Text: said, References: []string{"Toy A. doi:10.1000/1"}}
		out := outcome()
		out.Left = []string{"south"}
		r := testkit.Get(b.Results.Write(out, ended))(t)
		last := r.Sections[len(r.Sections)-1]
		if (last.ID == "paper") != (said != "") {
			t.Fatalf("the last section is %s", last.ID)
		}
		if said == "" {
			continue
		}
		if text := last.Items[0].Note.Text; !strings.Contains(text,
			"1 site of 2 took part to the end; rows stayed at the sites. A toy told a story. What the sites sent had "+
				"no noise") {
			t.Error(text)
		}
		if text := last.Items[1].Note.Text; !strings.HasSuffix(text, "\n\nToy A. doi:10.1000/1") {
			t.Error(text)
		}
	}
}
