package report

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/problem"
)

func TestStoresAreFound(t *testing.T) {
	dir := t.TempDir()
	for _, file := range []string{"many/north/site.db", "many/south/site.db", "results/sites/north/site.db", "none/readme"} {
		path := filepath.Join(dir, filepath.FromSlash(file))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ path, site, want, wrong, hint string }{
		{"many", "south", "many/south/site.db", "", ""},
		{"many/north/site.db", "", "many/north/site.db", "", ""},
		{"many/north", "", "many/north/site.db", "", ""},
		{"many/north", "north", "many/north/site.db", "", ""},
		{"results", "", "results/sites/north/site.db", "", ""},
		{"results", "north", "results/sites/north/site.db", "", ""},
		{"many", "", "", "2 sites have stores here", "north, south"},
		{"many", "sooth", "", `site "sooth" has no store here`, "did you mean south?"},
		{"none", "north", "", "no site's store is here", "local.stores"},
		{"nowhere", "north", "", "there is no such store", ""},
	} {
		got, err := FindStore(filepath.Join(dir, filepath.FromSlash(c.path)), c.site)
		if c.want != "" {
			if err != nil || got != filepath.Join(dir, filepath.FromSlash(c.want)) {
				t.Errorf("%s, %q: %q, %v", c.path, c.site, got, err)
			}
			continue
		}
		if p := (problem.Problem{}); !errors.As(err, &p) || !strings.Contains(p.What, c.wrong) || !strings.Contains(p.Hint, c.hint) {
			t.Errorf("%s, %q: %v", c.path, c.site, err)
		}
	}
}
