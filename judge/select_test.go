package judge

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/testkit"
)

func TestClaimOverwritesOnlyItsOwn(t *testing.T) {
	r := &Selection{Plan: "p", Data: "d"}
	dir := t.TempDir()
	if err := r.Claim(filepath.Join(dir, "new")); err != nil {
		t.Error(err)
	}
	if err := r.Claim(dir); err != nil {
		t.Errorf("an empty directory: %v", err)
	}
	put := func(name, text string) {
		testkit.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	put("thesis.txt", "")
	for _, c := range []struct{ text, want string }{
		{"", "holds no selection"}, // not written yet
		{"not json", "this is not a selection"},
		{`{"plan_sha256": "other", "data_sha256": "d"}`, "holds a selection of another plan (other) or other data"},
		{`{"plan_sha256": "p", "data_sha256": "other"}`, "holds a selection of another plan (p) or other data"},
		{`{"plan_sha256": "p", "data_sha256": "d"}`, ""},
	} {
		if c.text != "" {
			put(fileName, c.text)
		}
		err := r.Claim(dir)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
	}
}
