package arch

import (
	"fmt"
	"go/ast"
	"testing"
)

// Limits of what one sitting holds; CONTRIBUTING.md states the same.
const (
	maxFile     = 600 // lines of a file, tests included
	maxFunction = 100 // lines of a function outside tests
)

func TestFilesCanBeReadInOneSitting(t *testing.T) {
	for _, f := range source(t) {
		if f.lines > maxFile {
			t.Errorf("%s has %d lines, above %d", f.path, f.lines, maxFile)
		}
	}
}

func TestFunctionsCanBeReadInOneSitting(t *testing.T) {
	for _, f := range source(t) {
		if f.test || forTests(f.pkg) {
			continue
		}
		hold := func(fn ast.Node, name string) {
			lines := f.set.Position(fn.End()).Line - f.set.Position(fn.Pos()).Line + 1
			if lines > maxFunction {
				t.Errorf("%s: %s has %d lines, above %d", f.path, name, lines, maxFunction)
			}
		}
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				hold(fn, receiver(fn)+"."+fn.Name.Name)
				continue
			}
			// A function that a variable holds is as long to read as any other.
			ast.Inspect(d, func(n ast.Node) bool {
				lit, ok := n.(*ast.FuncLit)
				if ok {
					hold(lit, fmt.Sprintf("func:%d", f.set.Position(lit.Pos()).Line))
				}
				return !ok
			})
		}
	}
}
