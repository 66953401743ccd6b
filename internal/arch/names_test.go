package arch

import (
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var majorVersion = regexp.MustCompile(`^v[0-9]+$`)

// imported returns the import path of each name by which a file calls a package: its
// own name for it, or the package's. To match by the last part of a path alone would
// let an alias pass every rule below.
func imported(f file) map[string]string {
	names := map[string]string{}
	for i, p := range f.imports {
		name := path.Base(p)
		if majorVersion.MatchString(name) {
			name = path.Base(path.Dir(p))
		}
		if below, ours := strings.CutPrefix(p, module+"/"); ours {
			name = packageNames()[below]
		}
		if as := f.ast.Imports[i].Name; as != nil {
			name = as.Name
		}
		names[name] = p
	}
	return names
}

// uses returns what a file names of a package: the selected names, sorted.
func uses(f file, pkg string) (names []string) {
	if !slices.Contains(f.imports, pkg) {
		return nil
	}
	known := imported(f)
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && known[x.Name] == pkg {
				names = append(names, s.Sel.Name)
			}
		}
		return true
	})
	slices.Sort(names)
	return slices.Compact(names)
}

// calls says whether a file names something of a package.
func calls(f file, pkg, name string) bool { return slices.Contains(uses(f, pkg), name) }

// A dot import hides whose names a file uses, from its reader and from these tests.
func TestNoDotImports(t *testing.T) {
	for _, f := range source(t) {
		for i, p := range f.imports {
			if as := f.ast.Imports[i].Name; as != nil && as.Name == "." && !f.test {
				t.Errorf("%s imports %s without its name", f.path, p)
			}
		}
	}
}
