package arch

import (
	"go/ast"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// maxUnused is how many exported names at the top of packages no other package uses.
// It must shrink: whoever takes some away lowers it, and nobody raises it. Some stay:
// types that others hold without naming them.
const maxUnused = 149

// An exported name means that it is used from outside. Names are matched by what a
// file imports, without types: methods and fields are not counted.
func TestExportedMeansUsedFromOutside(t *testing.T) {
	declared, used := map[string]bool{}, map[string]bool{}
	for _, f := range source(t) {
		if !f.test && f.ast.Name.Name != "main" {
			for _, name := range exported(f.ast) {
				declared[f.pkg+"."+name] = true
			}
		}
		imported := map[string]string{} // package by the name that the file uses
		for i, p := range f.imports {
			below, ours := strings.CutPrefix(p, module+"/")
			if !ours || below == f.pkg { // a package's own tests are not outside
				continue
			}
			name := path.Base(p)
			if as := f.ast.Imports[i].Name; as != nil {
				name = as.Name
			}
			imported[name] = below
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && imported[x.Name] != "" {
					used[imported[x.Name]+"."+s.Sel.Name] = true
				}
			}
			return true
		})
	}
	unused := map[string][]string{}
	count := 0
	for _, name := range slices.Sorted(maps.Keys(declared)) {
		if !used[name] {
			pkg := strings.TrimSuffix(name, path.Ext(name))
			unused[pkg] = append(unused[pkg], path.Ext(name)[1:])
			count++
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(unused)) {
		t.Logf("%3d %s: %s", len(unused[pkg]), pkg, strings.Join(unused[pkg], " "))
	}
	t.Logf("%d of %d exported names are used by no other package", count, len(declared))
	if count > maxUnused {
		t.Errorf("%d exported names are used by no other package, above %d: run with -v for the list", count, maxUnused)
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
