package conformance

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"parley/internal/vectors"
	"parley/method"
	"parley/methods/factors"
	"parley/methods/mixture"
	"parley/methods/regression"
)

// fake has vectors that agree, disagree, fail or say nothing.
type fake struct{}

func (fake) SchemaPrefix() string { return "fake/" }

func (fake) Verify(file []byte, _ method.Means) ([]vectors.Check, error) {
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
	r, err := Run(dir, []method.Verifier{fake{}}, method.Means{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]File{}
	for _, f := range r.Files {
		got[f.Name] = f
	}
	for name, want := range map[string]string{
		"agrees.json": "", "broken.json": "the file cannot be run", "damaged.json": "this is not JSON", "foreign.json": "nothing in this program knows this schema",
	} {
		if f := got[name]; !strings.Contains(f.Error, want) || f.OK != (want == "") {
			t.Errorf("%s: %+v", name, f)
		}
	}
	if f := got["nothing.json"]; f.OK {
		t.Error("a file without an entry agrees")
	}
	if f := got["wrong.json"]; f.OK || len(f.Checks) != 2 || !f.Checks[0].OK || f.Checks[1].OK || f.Checks[1].Want != "2" || f.Checks[1].Got != "2.5" {
		t.Errorf("wrong.json: %+v", f)
	}
	if len(r.Files) != 6 || r.OK {
		t.Errorf("%d files, in agreement: %v", len(r.Files), r.OK)
	}
	var b strings.Builder
	if err := r.Print(&b); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"agrees.json   fake/1   2        2      agrees", "wrong.json    fake/1   2        1      DISAGREES", "damaged.json           0        0      DISAGREES", "  two: want 2, got 2.5", "  this is not JSON"} {
		if !strings.Contains(b.String(), line) {
			t.Errorf("%q is not in\n%s", line, b.String())
		}
	}
}

func TestNothingRecognisedIsAnError(t *testing.T) {
	for name, dir := range map[string]fstest.MapFS{"empty": {}, "other files": {"a.txt": file("{}"), "b.json": file("{}")}} {
		if _, err := Run(dir, []method.Verifier{fake{}}, method.Means{}); err == nil || !strings.Contains(err.Error(), "no test vectors here") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Run(os.DirFS("testdata/nowhere"), []method.Verifier{fake{}}, method.Means{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder that does not exist: %v", err)
	}
}

func TestVectorsAgree(t *testing.T) {
	r, err := Run(os.DirFS("../../methods/factors/testdata/fedmvppca"), append(Known(method.Registry{factors.Method{}}), fake{}), method.Means{})
	if err != nil {
		t.Fatal(err)
	}
	entries := 0
	for _, f := range r.Files {
		entries += len(f.Checks)
	}
	if !r.OK || len(r.Files) != 3 || entries < 100 {
		t.Errorf("%d files with %d entries; agreement: %v", len(r.Files), entries, r.OK)
	}
}

// Every method has vectors, and the accountant, and each file has one that knows it.
func TestEveryMethodIsAVerifier(t *testing.T) {
	var prefixes []string
	for _, v := range Known(method.Registry{factors.Method{}, mixture.Method{}, regression.Method{}}) {
		prefixes = append(prefixes, v.SchemaPrefix())
	}
	slices.Sort(prefixes)
	if want := []string{"dp-vectors/", "fedmvppca/", "graffl/", "pvi/"}; !slices.Equal(prefixes, want) {
		t.Errorf("vectors of %v are known, want %v", prefixes, want)
	}
}
