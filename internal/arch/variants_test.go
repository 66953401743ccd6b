package arch

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"
)

// standsApart says whether a package is a way to fit that is kept for comparison, or
// what only such ways use.
func standsApart(pkg string) bool {
	m := methodOf(pkg)
	if m == "" || pkg == m {
		return false
	}
	room := strings.TrimPrefix(pkg, m+"/")
	return room == "published" || strings.HasPrefix(room, "published/") || pkg == "methods/graffl/set" || pkg == "methods/graffl/abc"
}

// meetsAll says whether a room looks at every way to fit, and no fit needs it: test
// vectors, and attacks, which turn what each variant releases against its rows.
func meetsAll(pkg string) bool {
	m := methodOf(pkg)
	return m != "" && (pkg == m+"/verify" || pkg == m+"/attacks")
}

// Whoever reads a method's default, with noise or without, or what all its ways to fit
// have in common, does not meet those that are kept for comparison: only the root, which
// chooses, and what looks at all of them.
func TestVariantsForComparisonStandApart(t *testing.T) {
	found := map[string]bool{}
	for _, f := range source(t) {
		m := methodOf(f.pkg)
		if f.test || m == "" {
			continue
		}
		found[m] = found[m] || standsApart(f.pkg)
		if f.pkg == m || standsApart(f.pkg) || meetsAll(f.pkg) {
			continue
		}
		for _, p := range f.imports {
			if room, ours := strings.CutPrefix(p, module+"/"); ours && (standsApart(room) || meetsAll(room)) {
				t.Errorf("%s imports %s, which only the method's root may", f.path, p)
			}
		}
	}
	for _, m := range []string{"methods/graffl", "methods/mvppca", "methods/pvi"} {
		if !found[m] {
			t.Errorf("%s has no variant that stands apart: this test looks for the wrong names", m)
		}
	}
}

// Which variant a study is of decides the root of a method, once: whatever is asked again
// elsewhere belongs into the variant's own room.
func TestOnlyRootsAndOptionsAskForTheVariant(t *testing.T) {
	asked := false
	for _, f := range source(t) {
		if f.test {
			continue
		}
		m := methodOf(f.pkg)
		if f.path == "judge/attack/print.go" { // begins a heading where the name beside the attacks changes
			continue
		}
		if m != "" && (f.pkg == m || f.pkg == m+"/options") {
			asked = asked || len(asksForVariant(f)) > 0
			continue
		}
		for _, at := range asksForVariant(f) {
			t.Errorf("%s asks for the variant: only the root of a method and its options may", at)
		}
	}
	if !asked {
		t.Error("no method asks for its variant: this test looks for the wrong name")
	}
}

// asksForVariant returns where a file compares a field named Variant, switches by it,
// looks up by it, or hands it to a function that compares for it.
func asksForVariant(f file) (places []token.Position) {
	known := imported(f)
	variant := func(x ast.Expr) bool {
		for {
			switch y := x.(type) {
			case *ast.ParenExpr:
				x = y.X
				continue
			case *ast.StarExpr:
				x = y.X
				continue
			case *ast.SelectorExpr:
				return y.Sel.Name == "Variant"
			}
			return false
		}
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		yes := false
		switch n := n.(type) {
		case *ast.BinaryExpr:
			yes = (n.Op == token.EQL || n.Op == token.NEQ) && (variant(n.X) || variant(n.Y))
		case *ast.SwitchStmt:
			yes = n.Tag != nil && variant(n.Tag)
		case *ast.CaseClause:
			yes = slices.ContainsFunc(n.List, variant)
		case *ast.IndexExpr:
			yes = variant(n.Index)
		case *ast.CallExpr:
			if s, ok := n.Fun.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && slices.Contains([]string{"slices", "strings", "cmp"}, path.Base(known[x.Name])) {
					yes = slices.ContainsFunc(n.Args, variant)
				}
			}
		}
		if yes {
			places = append(places, f.set.Position(n.Pos()))
		}
		return true
	})
	return places
}
