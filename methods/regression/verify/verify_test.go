package verify_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"parley/internal/testkit"
	"parley/internal/vectors"
	"parley/method"
	"parley/methods/regression"
)

func vectorFiles(t testing.TB) map[string][]byte {
	t.Helper()
	return testkit.Files(t, "../testdata/pvi/*.json", 4)
}

func check(file []byte) ([]vectors.Check, error) {
	return regression.Method{}.Verify(file, method.Means{})
}

func TestPublishedVectorsAgree(t *testing.T) {
	for name, file := range vectorFiles(t) {
		t.Run(name, func(t *testing.T) {
			checks, err := check(file)
			if err != nil {
				t.Fatal(err)
			}
			testkit.Agree(t, checks, 12)
		})
	}
}

func TestChangedVectorsDisagree(t *testing.T) {
	for name, file := range vectorFiles(t) {
		t.Run(name, func(t *testing.T) {
			testkit.Changed(t, file, regexp.MustCompile("^$"), 30, check)
		})
	}
}

func TestVectorsThatCannotBeRun(t *testing.T) {
	for _, c := range []struct {
		want, file string
	}{
		{"unknown schema", `{"schema": "pvi/clipping/2"}`},
		{"unknown schema", `{}`},
		{"test vectors", `[]`},
		{"test vectors", `{"schema": "pvi/clipping/1"} {}`},
		{"unknown field", `{"schema": "pvi/clipping/1", "extra": 1}`},
		{"gradients of 2 and 1", `{"schema": "pvi/clipping/1", "cases": [{"C": 1, "g": [[1, 2], [1]]}]}`},
		{"q_old: natural parameters of 1 and 2", `{"schema": "pvi/natural-parameters/1", "cases": [{"q_old": {"mean": [0], "var": [1], "eta": [0], "lam": [1, 1]}, "q_new": {"mean": [0], "var": [1]}, "t_old": {"eta": [0], "lam": [1]}}]}`},
		{"no weights", `{"schema": "pvi/natural-parameters/1", "cases": [{}]}`},
	} {
		if _, err := check([]byte(c.file)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.80s: %v, want %q", c.file, err, c.want)
		}
	}
}

// Whatever a file holds: an error or disagreement, never a panic.
func FuzzVerifyVectors(f *testing.F) {
	for _, file := range vectorFiles(f) {
		f.Add(file)
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		if len(file) > 30000 || bytes.Count(file, []byte("[")) > 300 {
			return
		}
		check(file)
	})
}
