package verify_test

import (
	"regexp"
	"strings"
	"testing"

	"parley/internal/testkit"
	"parley/methods/factors/verify"
)

func vectorFiles(t testing.TB) map[string][]byte {
	t.Helper()
	return testkit.Files(t, "../testdata/fedmvppca/*.json", 3)
}

func TestVectorsAgree(t *testing.T) {
	for name, file := range vectorFiles(t) {
		t.Run(name, func(t *testing.T) {
			checks, err := verify.Vectors(file)
			if err != nil {
				t.Fatal(err)
			}
			least := 20
			if name == "factor_analysis.json" { // two optima of four entries each
				least = 8
			}
			testkit.Agree(t, checks, least)
		})
	}
}

// unused are inputs on which nothing in the files depends: the noise of a view
// that no step at that place uses.
var unused = regexp.MustCompile(`^\.prior\.sigma2_mean\[[12]\]$|^\.sites\[[12]\]\.start\.sigma2\[[12]\]$`)

func TestChangedVectorsDisagree(t *testing.T) {
	for name, file := range vectorFiles(t) {
		t.Run(name, func(t *testing.T) { testkit.Changed(t, file, unused, 30, verify.Vectors) })
	}
}

func TestUnknownVectorsAreRefused(t *testing.T) {
	for file, want := range map[string]string{
		`{"schema": "fedmvppca/one-shot/2"}`:    "unknown schema",
		`{}`:                                    "unknown schema",
		`[]`:                                    "test vectors",
		`{"schema": "fedmvppca/one-shot/1"} {}`: "test vectors",
		`{"schema": "fedmvppca/one-shot/1", "x": 1}`:    "unknown field",
		`{"schema": "fedmvppca/one-shot/1", "q": 2}`:    "no views",
		`{"schema": "fedmvppca/hierarchical/1"}`:        "no views",
		`{"schema": "fedmvppca/one-shot/1", "dims": 3}`: "json",
	} {
		if _, err := verify.Vectors([]byte(file)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", file, err, want)
		}
	}
}

// FuzzVerifyVectors: no file may make the verification panic.
func FuzzVerifyVectors(f *testing.F) {
	for _, file := range vectorFiles(f) {
		f.Add(file)
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		if len(file) > 1<<17 {
			return
		}
		checks, err := verify.Vectors(file)
		if err == nil {
			for _, c := range checks {
				if c.Entry == "" {
					t.Errorf("a check without a name: %+v", c)
				}
			}
		}
	})
}
