package arch

import (
	"go/ast"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// maxUnused is how many exported names at the top of packages no other package uses
// outside tests; what exists for tests counts as tests, and its own names do not count.
// It must shrink: whoever takes some away lowers it, and nobody raises it. Some stay: types
// that others hold without naming them, and what a package's own tests look at from outside.
const maxUnused = 168

// An exported name means that it is used from outside. Names are matched by what a
// file imports, without types: methods and fields are not counted.
func TestExportedMeansUsedFromOutside(t *testing.T) {
	declared, used, tested := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, f := range source(t) {
		if !f.test && f.ast.Name.Name != "main" && !forTests(f.pkg) {
			for _, name := range exported(f.ast) {
				declared[f.pkg+"."+name] = true
			}
		}
		for _, p := range f.imports {
			below, ours := strings.CutPrefix(p, module+"/")
			if !ours || below == f.pkg { // a package's own tests are not outside
				continue
			}
			for _, name := range uses(f, p) {
				tested[below+"."+name] = true
				if !f.test && !forTests(f.pkg) {
					used[below+"."+name] = true
				}
			}
		}
	}
	unused := map[string][]string{}
	count, untested := 0, 0
	for _, name := range slices.Sorted(maps.Keys(declared)) {
		if !tested[name] {
			untested++
		}
		if !used[name] {
			pkg := strings.TrimSuffix(name, path.Ext(name))
			unused[pkg] = append(unused[pkg], path.Ext(name)[1:])
			count++
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(unused)) {
		t.Logf("%3d %s: %s", len(unused[pkg]), pkg, strings.Join(unused[pkg], " "))
	}
	t.Logf("%d of %d exported names are used by no other package outside tests, %d of them not by another package's "+
		"tests either", count, len(declared), untested)
	if count > maxUnused {
		t.Errorf("%d exported names are used by no other package outside tests, above %d: run with -v for the list",
			count, maxUnused)
	}
}

// exported lists the exported names that a file declares, without methods and fields.
func exported(f *ast.File) (names []string) {
	add := func(id *ast.Ident) {
		if id.IsExported() {
			names = append(names, id.Name)
		}
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				add(d.Name)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					add(s.Name)
				case *ast.ValueSpec:
					for _, id := range s.Names {
						add(id)
					}
				}
			}
		}
	}
	return names
}
