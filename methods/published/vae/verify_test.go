package vae

import (
	"regexp"
	"strings"
	"testing"

	"parley/internal/testkit"
	"parley/internal/vectors"
	"parley/method"
)

func verifyVectors(file []byte) ([]vectors.Check, error) {
	return Method{}.Verify(file, method.Means{})
}

func vectorFiles(t testing.TB) map[string][]byte {
	return testkit.Files(t, "testdata/vae/*.json", 1)
}

func TestVectorsAgree(t *testing.T) {
	for _, file := range vectorFiles(t) {
		checks, err := verifyVectors(file)
		if err != nil {
			t.Fatal(err)
		}
		testkit.Agree(t, checks, 8)
	}
}

// unused are inputs on which nothing depends: what stands for values that all have, and
// draws for a channel that a subject lacks.
var unused = regexp.MustCompile(`\.fill\[[24]\]$|\.cases\[[23]\]\.(fill\[[01]\]|draws\[[45]\])$`)

func TestChangedVectorsDisagree(t *testing.T) {
	for _, file := range vectorFiles(t) {
		testkit.Changed(t, file, unused, 60, verifyVectors)
	}
}

func FuzzVerifyVectors(f *testing.F) {
	for _, file := range vectorFiles(f) {
		f.Add(file)
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		if len(file) > 1<<15 {
			return
		}
		checks, err := verifyVectors(file)
		for _, c := range checks {
			if err == nil && !strings.HasPrefix(c.Entry, "cases[") {
				t.Errorf("a check without a name: %+v", c)
			}
		}
	})
}
