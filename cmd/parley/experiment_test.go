package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/experiment"
)

const experimentPages = "../../docs/experiments"

// The pages of the documentation are what their records say, and no record is of an
// experiment that is gone.
func TestExperimentPagesAreUpToDate(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "records"), os.DirFS(filepath.Join(experimentPages, "records"))); err != nil {
		t.Fatal(err)
	}
	if err := experiment.WritePages(dir, papers, experiments); err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"*.md", "images/*.svg"} {
		made, _ := filepath.Glob(filepath.Join(dir, pattern))
		for _, file := range made {
			name, _ := filepath.Rel(dir, file)
			want, _ := os.ReadFile(file)
			got, err := os.ReadFile(filepath.Join(experimentPages, name))
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("docs/experiments/%s is not what its records say (%v): run parley experiment report", name, err)
			}
		}
		if stands, _ := filepath.Glob(filepath.Join(experimentPages, pattern)); pattern != "*.md" && len(stands) != len(made) {
			t.Errorf("%d files %s, want %d: some belong to nothing", len(stands), pattern, len(made))
		}
	}
	records, _ := filepath.Glob(filepath.Join(experimentPages, "records", "*.json"))
	for _, file := range records {
		if _, err := experiments.Find(strings.TrimSuffix(filepath.Base(file), ".json")); err != nil {
			t.Error(err)
		}
	}
	if len(records) == 0 {
		t.Error("there are no records")
	}
}
