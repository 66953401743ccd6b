//go:build unix

package acceptance

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/internal/testkit"
)

// Over one process for the coordinator and one for each of three sites, synchronous
// exact studies end with the bytes of parley run at every end. All studies end with
// what folding the recorded releases in the recorded order gives: rebuilding does
// just that.
func TestStudiesEndAsParleyRunDoes(t *testing.T) {
	for _, c := range []struct {
		name  string // of the study
		plan  string // of an example; histories have others
		sites []string
		same  bool // as parley run; otherwise noise, or the order of answers, is another
	}{
		{"alzheimer", "alzheimer/plan.yaml", three, true},
		{"alzheimer-private", "alzheimer/private.yaml", three, false},
		{"mixture", "mixture/plan.yaml", []string{"west", "south", "east"}, false},
	}[:testkit.Sized(2, 3)] {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, example(t, c.plan), c.sites...)
			w.all()
			w.delivered(c.name)
			if c.same {
				w.same(c.name)
			}
			w.clean(c.name)
			w.replay(c.name)
			for _, s := range append(w.sites, "") {
				w.stop(s)
			}
		})
	}
}

// What speaks against a site's rows stands in the site's own report, which is that of parley run, and
// in nothing that anybody else has.
func TestDoubtsOfASiteStayThere(t *testing.T) {
	t.Parallel()
	path := written(t, regressionPlan("coded", "rounds: 8", exact))
	view := filepath.Join(filepath.Dir(path), "data", "view_clinic.csv")
	text := testkit.Get(os.ReadFile(view))(t)
	line := slices.Collect(strings.Lines(string(text)))[1]
	cells := strings.Split(line, ",")
	cells[1] = "9999"
	testkit.Do(t, os.WriteFile(view, bytes.Replace(text, []byte(line), []byte(strings.Join(cells, ",")), 1), 0o600))
	w := newWorld(t, path, three...)
	w.all()
	w.delivered("coded")
	w.same("coded")
	for _, end := range append(slices.Clone(w.sites), "") {
		w.stop(end)
	}
	telling := map[string][]string{}
	for _, end := range append(slices.Clone(w.sites), "") {
		all := testkit.Get(files(filepath.Join(w.dir, orCoordinator(end)), func(string) bool { return true }))(t)
		for name, data := range all {
			if bytes.Contains(data, []byte("9999, at 1 of 30 subjects")) {
				telling[orCoordinator(end)] = append(telling[orCoordinator(end)], filepath.Base(name))
			}
		}
	}
	for _, end := range slices.Sorted(maps.Keys(telling)) {
		slices.Sort(telling[end])
		if end == "coordinator" || len(telling) > 1 ||
			!slices.Equal(telling[end], []string{"metrics.json", "report.html"}) {
			t.Errorf("it stands at %s in %q", end, telling[end])
		}
	}
	if len(telling) == 0 {
		t.Error("no report says it")
	}
}
