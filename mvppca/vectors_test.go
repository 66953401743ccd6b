package mvppca_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley/internal/vectors"
	"parley/mvppca"
)

func vectorFiles(t testing.TB) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob("testdata/fedmvppca/*.json")
	if err != nil || len(names) != 6 {
		t.Fatalf("want six files of test vectors, got %v (%v)", names, err)
	}
	files := make(map[string][]byte)
	for _, n := range names {
		if files[filepath.Base(n)], err = os.ReadFile(n); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

func TestPublishedVectorsAgree(t *testing.T) {
	for name, file := range vectorFiles(t) {
		t.Run(name, func(t *testing.T) {
			checks, err := mvppca.VerifyVectors(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range checks {
				if !c.OK {
					t.Errorf("%s: want %s, got %s (error %.1e, tolerance %.0e)", c.Entry, c.Want, c.Got, c.WorstError, c.Tolerance)
				}
			}
			if len(checks) < 20 {
				t.Errorf("only %d entries were compared", len(checks))
			}
		})
	}
}

// unused are inputs on which nothing in the files depends: the noise of a view
// that no step at that place uses.
var unused = regexp.MustCompile(`^\.prior\.sigma2_mean\[[12]\]$|^\.sites\[[12]\]\.start\.sigma2\[[12]\]$`)

// number is one number in a file.
type number struct {
	path string
	set  func(json.Number)
	old  json.Number
}

// numbers lists the numbers below a decoded value, in order of path.
func numbers(path string, v any, set func(any)) (out []number) {
	switch x := v.(type) {
	case map[string]any:
		for k, y := range x {
			out = append(out, numbers(path+"."+k, y, func(z any) { x[k] = z })...)
		}
	case []any:
		for i, y := range x {
			out = append(out, numbers(fmt.Sprintf("%s[%d]", path, i), y, func(z any) { x[i] = z })...)
		}
	case json.Number:
		out = append(out, number{path, func(n json.Number) { set(n) }, x})
	}
	slices.SortFunc(out, func(a, b number) int { return strings.Compare(a.path, b.path) })
	return out
}

// TestChangedVectorsDisagree changes numbers in the files one by one: each must
// be noticed.
func TestChangedVectorsDisagree(t *testing.T) {
	for name, file := range vectorFiles(t) {
		t.Run(name, func(t *testing.T) {
			var tree any
			d := json.NewDecoder(bytes.NewReader(file))
			d.UseNumber()
			if err := d.Decode(&tree); err != nil {
				t.Fatal(err)
			}
			all := slices.DeleteFunc(numbers("", tree, nil), func(n number) bool { return unused.MatchString(n.path) })
			r := rand.New(rand.NewPCG(1, uint64(len(file))))
			for range 30 {
				n := all[r.IntN(len(all))]
				changed := json.Number(fmt.Sprint(asFloat(t, n.old)*1.02 + 0.01))
				if !strings.ContainsAny(string(n.old), ".e") {
					changed = json.Number(fmt.Sprint(int(asFloat(t, n.old)) + 1))
				}
				n.set(changed)
				file, err := json.Marshal(tree)
				n.set(n.old)
				if err != nil {
					t.Fatal(err)
				}
				checks, err := mvppca.VerifyVectors(file)
				if err == nil && vectors.List(checks).OK() {
					t.Errorf("%s was changed from %s to %s and still agrees", n.path, n.old, changed)
				}
			}
		})
	}
}

func asFloat(t *testing.T, n json.Number) float64 {
	t.Helper()
	v, err := n.Float64()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestUnknownVectorsAreRefused(t *testing.T) {
	for file, want := range map[string]string{
		`{"schema": "fedmvppca/case/2"}`: "unknown schema",
		`{}`:                             "unknown schema",
		`[]`:                             "test vectors",
		`{"schema": "fedmvppca/inverse-gamma/1"} {}`:  "test vectors",
		`{"schema": "fedmvppca/case/1", "extra": 1}`:  "unknown field",
		`{"schema": "fedmvppca/one-shot/1", "q": 2}`:  "no views",
		`{"schema": "fedmvppca/hierarchical/1"}`:      "no views",
		`{"schema": "fedmvppca/rounds/1", "dims": 3}`: "json",
	} {
		if _, err := mvppca.VerifyVectors([]byte(file)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", file, err, want)
		}
	}
}

// FuzzVerifyVectors: no file may make the verification panic.
func FuzzVerifyVectors(f *testing.F) {
	for _, file := range vectorFiles(f) {
		f.Add(file)
	}
	f.Add([]byte(`{"schema": "fedmvppca/inverse-gamma/1", "cases": [{"x": [1, 0]}]}`))
	f.Fuzz(func(t *testing.T, file []byte) {
		if len(file) > 1<<17 {
			return
		}
		checks, err := mvppca.VerifyVectors(file)
		if err == nil {
			for _, c := range checks {
				if c.Entry == "" {
					t.Errorf("a check without a name: %+v", c)
				}
			}
		}
	})
}
