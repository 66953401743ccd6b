package host_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/dataset"
	"parley/engine/host"
	"parley/engine/local"
	"parley/internal/testkit"
	"parley/method"
	"parley/methods/factors"
	"parley/methods/mixture"
	"parley/methods/regression"
	"parley/privacy"
	"parley/privacy/policy"
	"parley/problem"
	"parley/sitestore"
	"parley/study"
)

var update = flag.Bool("update", false, "write the golden texts anew")

var all = method.Registry{factors.Method{}, regression.Method{}, mixture.Method{}}

func text(t *testing.T, p *host.Preview) string {
	t.Helper()
	var b bytes.Buffer
	testkit.Do(t, p.Text(&b))
	if data, err := json.Marshal(p); err != nil || !json.Valid(data) {
		t.Fatal(err)
	}
	return b.String()
}

// golden compares a text with the file of that name.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *update {
		testkit.Do(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want := testkit.Get(os.ReadFile(path))(t)
	if want := strings.ReplaceAll(string(want), "\r\n", "\n"); got != want {
		t.Errorf("%s: the text is\n%s\nand not\n%s\n(go test ./engine/host -update writes it anew)", name, got, want)
	}
}

// bound is a host of a site of an example, with the data that its local section names.
func bound(t *testing.T, path, site string) (*host.Host, *study.Plan) {
	t.Helper()
	p := testkit.Get(study.Load(filepath.Join("..", "..", "examples", filepath.FromSlash(path)), all))(t)
	b := testkit.Get(local.Bind(t.Context(), p, nil))(t)
	return &host.Host{Site: site, Methods: all, Data: b.Data[site], Store: sitestore.NewMemory(),
		Policy: privacy.SimulationPolicy()}, p
}

// What a data manager is shown of the examples.
func TestPreviewInWords(t *testing.T) {
	for _, c := range []struct {
		name, path, site string
		policy           policy.Policy
		takesPart        bool
	}{
		{"alzheimer", "alzheimer/plan.yaml", "centre", privacy.SimulationPolicy(), true},
		{"alzheimer-refused", "alzheimer/plan.yaml", "centre", policy.Default(), false},
		{"alzheimer-private", "alzheimer/private.yaml", "north", policy.Default(), true},
		{"income", "income/plan.yaml", "c01", privacy.SimulationPolicy(), true},
		{"mixture", "mixture/plan.yaml", "south", privacy.SimulationPolicy(), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, plan := bound(t, c.path, c.site)
			h.Policy = c.policy
			p := testkit.Get(h.Preview(t.Context(), plan))(t)
			p.Coordinator = "the University of\x1b[31m Somewhere"
			if p.TakesPart != c.takesPart {
				t.Errorf("takes part: %v", p.TakesPart)
			}
			golden(t, c.name, text(t, p))
		})
	}
}

// What is wrong with the data is shown, with all that can be said without them.
func TestPreviewOfBadData(t *testing.T) {
	h, plan := bound(t, "mixture/plan.yaml", "south")
	schema := plan.Schema()
	dir := t.TempDir()
	write := func(view string) {
		for name, data := range map[string]string{"subjects.csv": "id\na\nb\n", "view_point.csv": view} {
			testkit.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600))
		}
	}
	write("id,x,why\na,1,2\n")
	_, err := dataset.Open(t.Context(), dir, dataset.Options{Schema: &schema})
	list, ok := err.(problem.List)
	if !ok {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		faults problem.List
		want   string
	}{"opened": {list, "column y is missing"}, "none": {nil, "the site has no data yet"}} {
		h.Data, h.Faults = nil, c.faults
		p := testkit.Get(h.Preview(t.Context(), plan))(t)
		if got := strings.Join(strings.Fields(text(t, p)), " "); p.TakesPart || !strings.Contains(got, c.want) ||
			!strings.Contains(got, "would not take part") || !strings.Contains(got, "at most once") {
			t.Errorf("%s:\n%s", name, got)
		}
		if _, err := h.Approve(t.Context(), plan, nil, host.ByPerson); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: approved: %v", name, err)
		}
		if _, err := h.Report(t.Context(), plan, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: reported: %v", name, err)
		}
	}
	write("id,x,y\na,1,about five\nb,1,2\n")
	bad := testkit.Get(dataset.Open(t.Context(), dir, dataset.Options{Schema: &schema}))(t)
	h = &host.Host{Site: "south", Methods: all, Data: bad, Store: sitestore.NewMemory(),
		Policy: privacy.SimulationPolicy()}
	p, err := h.Preview(t.Context(), plan)
	if err != nil || p.TakesPart || len(p.Problems) != 1 || !strings.Contains(text(t, p), "about five") {
		t.Errorf("a bad cell: %+v, %v", p, err)
	}
	// Sound as a file, but not line by line, as a study reads it in which all is noised.
	write("id,x,y,note\na,1,2,\nb,1,2,\"came\nagain\"\n")
	h.Data = testkit.Get(dataset.Open(t.Context(), dir, dataset.Options{Schema: &schema}))(t)
	if p, err = h.Preview(t.Context(), plan); err != nil || p.Views[0].Subjects != 1 ||
		!strings.Contains(text(t, p), "count as nothing: 2") {
		t.Errorf("a cell of two lines: %+v, %v", p, err)
	}
}

// Of a private plan that does not state which views a site's subjects have, the site hears before it decides that they
// would count for nothing.
func TestPreviewSaysWhoWouldNotCount(t *testing.T) {
	h, _ := bound(t, "alzheimer/private.yaml", "centre")
	dir := t.TempDir()
	testkit.Do(t, dataset.Write(t.Context(), dir, h.Data))
	emptyView(t, dir, h.Data, "immune")
	path := filepath.Join("..", "..", "examples", "alzheimer", "private.yaml")
	text := string(testkit.Get(os.ReadFile(path))(t))
	for find, want := range map[string]string{
		"- {site: centre, views: [clinic, metabolic, vascular]}": "111 of 111 subjects",
		"- {site: centre, views: [clinic, immune]}": "0 of 111 subjects here would count: the others " +
			"lack views"} {
		p := testkit.Get(study.Parse(path, []byte(strings.Replace(text,
			"- {site: centre, views: [clinic, metabolic, vascular]}", find, 1)), all))(t)
		schema := p.Schema()
		h.Data = testkit.Get(dataset.Open(t.Context(), dir, dataset.Options{Schema: &schema}))(t)
		got := testkit.Get(h.Preview(t.Context(), p))(t)
		said := strings.Contains(strings.Join(got.Notes, "\n"), want)
		if none := strings.HasPrefix(want, "0"); said != none || !got.TakesPart {
			t.Errorf("%s: takes part %v, %q", find, got.TakesPart, got.Notes)
		}
	}
}

// A site without a file of a view that each of its patterns has is refused before its rows are looked at, by whoever
// approves, and told why; so is a simulation. With the file, and nobody who has the view, it is not.
func TestSitesWithoutFilesOfAnyPatternAreRefused(t *testing.T) {
	h, p := bound(t, "alzheimer/private.yaml", "centre")
	dir := t.TempDir()
	testkit.Do(t, dataset.Write(t.Context(), dir, h.Data))
	h.Policy = testkit.Get(policy.Parse("policy.yaml",
		[]byte("policy: 1\nsize: 111\npre_approval: {methods: [factors], study: {epsilon: 3, delta: 1e-5}}\n")))(t)
	schema, data := p.Schema(), h.Data
	testkit.Do(t, os.Remove(filepath.Join(dir, "view_vascular.csv.gz")))
	for _, held := range []bool{false, true} {
		if held {
			emptyView(t, dir, data, "vascular")
		}
		for _, by := range []string{host.ByPerson, host.ByRule, host.ByFile} {
			h.Data = testkit.Get(dataset.Open(t.Context(), dir,
				dataset.Options{Schema: &schema, Tolerant: by != host.ByPerson}))(t)
			if _, err := h.Approve(t.Context(), p, nil, by); held != (err == nil) || !held &&
				!strings.Contains(err.Error(), "no subject of this site could count: there is no file of immune, "+
					"vascular") {
				t.Errorf("a file of the view %v, approved by %s: %v", held, by, err)
			}
		}
		if got := testkit.Get(h.Preview(t.Context(), p))(t); got.TakesPart != held ||
			strings.Contains(text(t, got), "no file of") == held {
			t.Errorf("a file of the view %v: %s", held, text(t, got))
		}
		if _, err := h.Open(t.Context(), p); errors.Is(err, privacy.ErrRefused) == held {
			t.Errorf("a file of the view %v: opened: %v", held, err)
		}
	}
}

// emptyView writes the file of a view that no subject has: one line without values.
func emptyView(t *testing.T, dir string, data dataset.Source, name string) {
	t.Helper()
	views := data.Schema().Views
	v := views[slices.IndexFunc(views, func(v dataset.View) bool { return v.Name == name })]
	header, id := "id", ""
	for _, c := range v.Columns {
		header += "," + c.Name
	}
	for row, err := range data.Rows(t.Context()) {
		testkit.Do(t, err)
		id = row.ID
		break
	}
	text := header + "\n" + id + strings.Repeat(",", len(v.Columns)) + "\n"
	testkit.Do(t, os.WriteFile(filepath.Join(dir, "view_"+name+".csv"), []byte(text), 0o600))
}
