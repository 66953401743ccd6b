package mvppca_test

import (
	"os"
	"path/filepath"
	"testing"

	"parley/mvppca"
)

func vectorFiles(t *testing.T) map[string][]byte {
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
			t.Logf("%d entries", len(checks))
		})
	}
}
