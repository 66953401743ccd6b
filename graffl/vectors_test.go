package graffl

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/internal/vectors"
)

func vectorFiles(t testing.TB) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob("testdata/graffl/*.json")
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
			checks, err := VerifyVectors(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range checks {
				if !c.OK {
					t.Errorf("%s: want %s, got %s (error %.1e, tolerance %.0e)", c.Entry, c.Want, c.Got, c.WorstError, c.Tolerance)
				}
			}
			if len(checks) < 3 {
				t.Errorf("only %d entries were compared", len(checks))
			}
		})
	}
}

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

// Numbers of the files, changed one by one, are noticed.
func TestChangedVectorsDisagree(t *testing.T) {
	for name, file := range vectorFiles(t) {
		t.Run(name, func(t *testing.T) {
			var tree any
			d := json.NewDecoder(bytes.NewReader(file))
			d.UseNumber()
			if err := d.Decode(&tree); err != nil {
				t.Fatal(err)
			}
			all := numbers("", tree, nil)
			r := rand.New(rand.NewPCG(1, uint64(len(file))))
			for _, at := range r.Perm(len(all))[:min(len(all), 60)] {
				n := all[at]
				old, err := n.old.Float64()
				if err != nil {
					t.Fatal(err)
				}
				changed := json.Number(fmt.Sprint(old*1.02 + 0.01))
				if !strings.ContainsAny(string(n.old), ".e") {
					changed = json.Number(fmt.Sprint(int(old) + 1))
				}
				n.set(changed)
				file, err := json.Marshal(tree)
				n.set(n.old)
				if err != nil {
					t.Fatal(err)
				}
				checks, err := VerifyVectors(file)
				if err == nil && vectors.List(checks).OK() {
					t.Errorf("%s was changed from %s to %s and still agrees", n.path, n.old, changed)
				}
			}
		})
	}
}

func TestVectorsThatCannotBeRun(t *testing.T) {
	for _, c := range []struct{ want, file string }{
		{"unknown schema", `{"schema": "graffl/priors/2"}`},
		{"unknown schema", `{}`},
		{"test vectors", `[]`},
		{"test vectors", `{"schema": "graffl/priors/1"} {}`},
		{"unknown field", `{"schema": "graffl/privacy/1", "extra": 1}`},
		{"has no rows", `{"schema": "graffl/setdistance/1"}`},
		{"0 accepted", `{"schema": "graffl/selection/1", "cases": [{"L": 0}]}`},
		{"no squared distance", `{"schema": "graffl/selection/1", "distances": [[[-1]]], "cases": [{"L": 1}]}`},
		{"a site of 0 rows", `{"schema": "graffl/selection/1", "schedule": [{"N": 1, "n_j": [0]}]}`},
		{"row 0 of x_gen has 2", `{"schema": "graffl/discrepancy/1", "cases": [{"x_enc": [[1]], "x_gen": [[1, 2]]}]}`},
		{"pairs 1 rows with 2", `{"schema": "graffl/discrepancy/1", "cases": [{"x_enc": [[1]], "x_gen": [[1], [2]]}]}`},
	} {
		if _, err := VerifyVectors([]byte(c.file)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.file, err, c.want)
		}
	}
}

func FuzzVerifyVectors(f *testing.F) {
	for _, file := range vectorFiles(f) {
		f.Add(file)
	}
	f.Add([]byte(`{"schema": "graffl/priors/1", "default_prior_from_box": {"lo": [0], "hi": [1], "K": 1, "m": [0], "Psi": [[1]]}}`))
	f.Fuzz(func(t *testing.T, file []byte) {
		if len(file) > 1<<14 { // moments grow with the square of the landmarks
			t.Skip()
		}
		checks, err := VerifyVectors(file)
		if err == nil && len(checks) == 0 && !bytes.Contains(file, []byte("schema")) {
			t.Error("nothing was compared, and nothing was said")
		}
	})
}
