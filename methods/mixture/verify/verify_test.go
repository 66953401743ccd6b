package verify

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"parley/internal/testkit"
)

func vectorFiles(t testing.TB) map[string][]byte {
	t.Helper()
	return testkit.Files(t, "../testdata/graffl/*.json", 4)
}

func TestPublishedVectorsAgree(t *testing.T) {
	for name, file := range vectorFiles(t) {
		t.Run(name, func(t *testing.T) {
			checks, err := Vectors(file)
			if err != nil {
				t.Fatal(err)
			}
			testkit.Agree(t, checks, 3)
		})
	}
}

func TestChangedVectorsDisagree(t *testing.T) {
	for name, file := range vectorFiles(t) {
		t.Run(name, func(t *testing.T) { testkit.Changed(t, file, regexp.MustCompile("^$"), 60, Vectors) })
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
	} {
		if _, err := Vectors([]byte(c.file)); err == nil || !strings.Contains(err.Error(), c.want) {
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
		checks, err := Vectors(file)
		if err == nil && len(checks) == 0 && !bytes.Contains(file, []byte("schema")) {
			t.Error("nothing was compared, and nothing was said")
		}
	})
}
