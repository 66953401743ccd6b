package testkit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley/internal/vectors"
)

// Files reads the files that match a pattern, of which there must be so many, by their
// names without folder.
func Files(t testing.TB, pattern string, want int) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) != want {
		t.Fatalf("want %d files of test vectors, got %v (%v)", want, names, err)
	}
	files := make(map[string][]byte)
	for _, n := range names {
		if files[filepath.Base(n)], err = os.ReadFile(n); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// Agree fails the test for each entry that disagrees, and if fewer than least
// were compared.
func Agree(t testing.TB, checks []vectors.Check, least int) {
	t.Helper()
	for _, c := range checks {
		if !c.OK {
			t.Errorf("%s: want %s, got %s (error %.1e, tolerance %.0e)", c.Entry, c.Want, c.Got,
				c.WorstError, c.Tolerance)
		}
	}
	if len(checks) < least {
		t.Errorf("only %d entries were compared", len(checks))
	}
}

// Number is one number in decoded JSON.
type Number struct {
	Path string
	Old  json.Number
	set  func(json.Number)
}

// Numbers lists the numbers below a value that was decoded with UseNumber, in
// order of path, which begins with the one given.
func Numbers(path string, v any) []Number {
	out := numbers(path, v, nil)
	slices.SortFunc(out, func(a, b Number) int { return strings.Compare(a.Path, b.Path) })
	return out
}

func numbers(path string, v any, set func(any)) (out []Number) {
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
		out = append(out, Number{path, x, func(n json.Number) { set(n) }})
	}
	return out
}

// WhileChanged runs do with the number changed: by 2 % and a little, or by a
// twentieth and at least one where it is whole.
func (n Number) WhileChanged(t testing.TB, do func(to json.Number)) {
	t.Helper()
	old, err := n.Old.Float64()
	if err != nil {
		t.Fatal(err)
	}
	to := json.Number(fmt.Sprint(old + 0.02*math.Abs(old) + 0.01))
	if !strings.ContainsAny(string(n.Old), ".e") {
		to = json.Number(fmt.Sprint(int(old + 1 + math.Abs(old)/20)))
	}
	n.set(to)
	do(to)
	n.set(n.Old)
}

// Changed changes numbers of a file one by one, a seeded sample of them: each
// must be noticed. Paths that unused matches are those of numbers on which
// nothing depends.
func Changed(t *testing.T, file []byte, unused *regexp.Regexp, sample int,
	verify func([]byte) ([]vectors.Check, error)) {
	t.Helper()
	var tree any
	d := json.NewDecoder(bytes.NewReader(file))
	d.UseNumber()
	if err := d.Decode(&tree); err != nil {
		t.Fatal(err)
	}
	all := slices.DeleteFunc(Numbers("", tree), func(n Number) bool { return unused.MatchString(n.Path) })
	r := rand.New(rand.NewPCG(1, uint64(len(file))))
	for range sample {
		n := all[r.IntN(len(all))]
		n.WhileChanged(t, func(to json.Number) {
			file, err := json.Marshal(tree)
			if err != nil {
				t.Fatal(err)
			}
			if checks, err := verify(file); err == nil && vectors.List(checks).OK() {
				t.Errorf("%s was changed from %s to %s and still agrees", n.Path, n.Old, to)
			}
		})
	}
}
