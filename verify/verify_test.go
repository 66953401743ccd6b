package verify

import (
	"bytes"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"parley/internal/testkit"
	"parley/internal/vectors"
)

// families are the published files of each method, the fewest entries of one, how many numbers
// of each are changed, and inputs on which nothing in the files depends.
var families = map[string]struct {
	files           string
	n, least, tried int
	unused          string
}{
	"fedmvppca/": {"../methods/factors/testdata/fedmvppca/*.json", 2, 8, 30, `^\.local_rank`},
}

func TestPublishedVectorsAgreeAndChangedOnesDoNot(t *testing.T) {
	for family, of := range families {
		for name, file := range testkit.Files(t, of.files, of.n) {
			t.Run(family+name, func(t *testing.T) {
				testkit.Agree(t, testkit.Get(runs[family](file))(t), of.least)
				testkit.Changed(t, file, regexp.MustCompile(of.unused), of.tried, runs[family])
			})
		}
	}
}

func TestVectorsThatCannotBeRun(t *testing.T) {
	for file, want := range map[string]string{
		`{"schema": "fedmvppca/one-shot/2"}`:            "unknown schema",
		`{"schema": "fedmvppca/one-shot/1"} {}`:         "test vectors",
		`{"schema": "fedmvppca/one-shot/1", "x": 1}`:    "unknown field",
		`{"schema": "fedmvppca/one-shot/1", "q": 2}`:    "no views",
		`{"schema": "fedmvppca/one-shot/1"}`:            "layout",
		`{"schema": "fedmvppca/one-shot/1", "dims": 3}`: "json",
	} {
		family, _, _ := strings.Cut(strings.TrimPrefix(file, `{"schema": "`), "/")
		if _, err := runs[family+"/"]([]byte(file)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v, want %q", file, err, want)
		}
	}
}

// Whatever a file holds: an error or disagreement, never a panic.
func FuzzVerifyVectors(f *testing.F) {
	for _, of := range families {
		for _, file := range testkit.Files(f, of.files, of.n) {
			f.Add(file)
		}
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		if len(file) > 1<<14 || bytes.Count(file, []byte("[")) > 300 { // moments grow with the square of the landmarks
			return
		}
		for family := range families {
			runs[family](file)
		}
	})
}

// fake has vectors that agree, disagree, fail or say nothing.
func fake(file []byte) ([]vectors.Check, error) {
	var list vectors.List
	switch {
	case strings.Contains(string(file), "nothing"):
		return nil, nil
	case strings.Contains(string(file), "broken"):
		return nil, errors.New("the file cannot be run")
	}
	list.Float("one", 1, 1, vectors.Tolerance{Rel: 1e-9})
	got := 2.0
	if strings.Contains(string(file), "wrong") {
		got = 2.5
	}
	list.Float("two", 2, got, vectors.Tolerance{Rel: 1e-9})
	return list, nil
}

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

func TestEveryKindOfFile(t *testing.T) {
	runs["fake/"] = fake
	defer delete(runs, "fake/")
	dir := fstest.MapFS{
		"agrees.json":    file(`{"schema": "fake/1"}`),
		"broken.json":    file(`{"schema": "fake/1", "broken": 1}`),
		"damaged.json":   file(`{"schema": "fake/1"`),
		"foreign.json":   file(`{"schema": "other/1"}`),
		"nothing.json":   file(`{"schema": "fake/1", "nothing": 1}`),
		"wrong.json":     file(`{"schema": "fake/1", "wrong": 1}`),
		"list.json":      file(`[1, 2]`),
		"no-schema.json": file(`{"a": 1}`),
		"number.json":    file(`{"schema": 1}`),
		"README.md":      file("text"),
		"below/a.json":   file(`{"schema": "fake/1"}`),
	}
	r := testkit.Get(Run(dir))(t)
	got := map[string]File{}
	for _, f := range r.Files {
		got[f.Name] = f
	}
	for name, want := range map[string]string{
		"agrees.json": "", "broken.json": "the file cannot be run", "damaged.json": "this is not JSON",
		"foreign.json": "nothing in this program knows this schema",
	} {
		if f := got[name]; !strings.Contains(f.Error, want) || f.OK != (want == "") {
			t.Errorf("%s: %+v", name, f)
		}
	}
	if f := got["nothing.json"]; f.OK {
		t.Error("a file without an entry agrees")
	}
	if f := got["wrong.json"]; f.OK || len(f.Checks) != 2 || !f.Checks[0].OK || f.Checks[1].OK ||
		f.Checks[1].Want != "2" || f.Checks[1].Got != "2.5" {
		t.Errorf("wrong.json: %+v", f)
	}
	if len(r.Files) != 6 || r.OK {
		t.Errorf("%d files, in agreement: %v", len(r.Files), r.OK)
	}
	var b strings.Builder
	testkit.Do(t, r.Print(&b))
	for _, line := range []string{"agrees.json   fake/1   2        2      agrees",
		"wrong.json    fake/1   2        1      DISAGREES", "damaged.json           0        0      DISAGREES",
		"  two: want 2, got 2.5", "  this is not JSON"} {
		if !strings.Contains(b.String(), line) {
			t.Errorf("%q is not in\n%s", line, b.String())
		}
	}
}

func TestNothingRecognisedIsAnError(t *testing.T) {
	for name, dir := range map[string]fstest.MapFS{"empty": {},
		"other files": {"a.txt": file("{}"), "b.json": file("{}")}} {
		if _, err := Run(dir); err == nil || !strings.Contains(err.Error(), "no test vectors here") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Run(os.DirFS("testdata/nowhere")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder that does not exist: %v", err)
	}
}
