package judge

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/internal/testkit"
	"parley/method"
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

// What an interrupted selection kept is for the same selection alone.
func TestKeepIsForTheSameSelection(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "chosen")
	r := &Selection{Program: "parley 1", Plan: "p", Data: "d"}
	c := method.SelectConfig{Values: []int{1, 2}, Folds: 3, Repeats: 1}
	open := func(r *Selection, c method.SelectConfig) (keptFits, error) {
		if err := r.Claim(dir); err != nil {
			return "", err
		}
		err := r.Keep(dir, &c)
		return c.Kept.(keptFits), err
	}
	first := testkit.Get(open(r, c))(t)
	var got []float64
	if found, err := first.Get("one", &got); found || err != nil {
		t.Errorf("%v, %v", found, err)
	}
	testkit.Do(t, first.Put("one", []float64{0.1, -1e300}))
	again := testkit.Get(open(r, c))(t)
	if found, err := again.Get("one", &got); !found || err != nil || !slices.Equal(got, []float64{0.1, -1e300}) {
		t.Errorf("%v, %v, %v", found, err, got)
	}
	other := c
	other.Folds = 5
	for name, try := range map[string]func() (keptFits, error){
		"folds": func() (keptFits, error) { return open(r, other) },
		"data":  func() (keptFits, error) { return open(&Selection{Program: "parley 1", Plan: "p", Data: "e"}, c) },
	} {
		k := testkit.Get(try())(t)
		if found, err := k.Get("one", &got); found || err != nil {
			t.Errorf("other %s: %v, %v", name, found, err)
		}
	}
}
