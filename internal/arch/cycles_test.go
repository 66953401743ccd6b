package arch

import (
	"cmp"
	"go/ast"
	"maps"
	"slices"
	"strings"
	"testing"
)

// maxBack is how many references between the files of a method's packages run against
// the best order of those files: what has to be read before what uses it. It must shrink.
const maxBack = 11

// A package reads from its foundations up if few references run back. References are
// names that a file does not declare itself and another one does; names of methods are not among them.
func TestFilesOfMethodsBuildOnEachOther(t *testing.T) {
	packages := map[string][]file{}
	for _, f := range source(t) {
		if !f.test && strings.HasPrefix(f.pkg, "methods/") {
			packages[f.pkg] = append(packages[f.pkg], f)
		}
	}
	all, against := 0, 0
	for _, pkg := range slices.Sorted(maps.Keys(packages)) {
		to := references(packages[pkg])
		n, back := 0, against
		for _, used := range to {
			n += len(used)
		}
		against += backward(to)
		all += n
		t.Logf("%3d files, %4d references between them, %3d run back: %s", len(packages[pkg]), n, against-back, pkg)
	}
	t.Logf("%d of %d references between files run back", against, all)
	if against > maxBack {
		t.Errorf("%d references between files of methods run back, above %d", against, maxBack)
	}
}

// references returns, for each file, the other files whose declarations it names.
func references(files []file) map[string]map[string]bool {
	home := map[string]string{}
	for _, f := range files {
		for _, d := range f.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					home[d.Name.Name] = f.path
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					switch s := s.(type) {
					case *ast.TypeSpec:
						home[s.Name.Name] = f.path
					case *ast.ValueSpec:
						for _, id := range s.Names {
							home[id.Name] = f.path
						}
					}
				}
			}
		}
	}
	delete(home, "_")
	to := map[string]map[string]bool{}
	for _, f := range files {
		to[f.path] = map[string]bool{}
		for _, id := range f.ast.Unresolved { // what the file itself does not declare
			if h := home[id.Name]; h != "" && h != f.path {
				to[f.path][h] = true
			}
		}
	}
	return to
}

// backward counts the references against an order of files in which few are: files that
// use nothing come first, files that nothing uses last, and in between those that use
// least for how much they are used (Eades, Lin and Smyth 1993).
func backward(to map[string]map[string]bool) (count int) {
	left := slices.Sorted(maps.Keys(to))
	var first, last []string
	uses := func(a string) (n int) {
		for _, b := range left {
			if to[a][b] {
				n++
			}
		}
		return n
	}
	used := func(a string) (n int) {
		for _, b := range left {
			if to[b][a] {
				n++
			}
		}
		return n
	}
	take := func(i int) string {
		f := left[i]
		left = slices.Delete(left, i, i+1)
		return f
	}
	for len(left) > 0 {
		if i := slices.IndexFunc(left, func(f string) bool { return uses(f) == 0 }); i >= 0 {
			first = append(first, take(i))
		} else if i := slices.IndexFunc(left, func(f string) bool { return used(f) == 0 }); i >= 0 {
			last = append(last, take(i))
		} else {
			best := slices.MaxFunc(left, func(a, b string) int { return cmp.Compare(used(a)-uses(a), used(b)-uses(b)) })
			first = append(first, take(slices.Index(left, best)))
		}
	}
	slices.Reverse(last)
	place := map[string]int{}
	for i, f := range append(first, last...) {
		place[f] = i
	}
	for f, others := range to {
		for other := range others {
			if place[other] > place[f] {
				count++
			}
		}
	}
	return count
}
