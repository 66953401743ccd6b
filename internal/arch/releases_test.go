package arch

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// Only the gate makes what may leave a site: nobody else can write to a
// Release, and a session's Seal and the outbox are the only places it comes from.
func TestOnlyTheGateMakesReleases(t *testing.T) {
	var makers []string
	found := false
	for _, f := range source(t) {
		if f.pkg != "privacy" || f.test {
			continue
		}
		for _, d := range f.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv != nil && receiver(d) == "Release" && d.Name.Name != "Bytes" {
					t.Errorf("%s: Release has the method %s; it can only be read, by Bytes", f.path, d.Name.Name)
				}
				if d.Name.IsExported() && d.Type.Results != nil &&
					slices.ContainsFunc(d.Type.Results.List, func(r *ast.Field) bool {
						return named(r.Type) == "Release"
					}) {
					makers = append(makers, receiver(d)+"."+d.Name.Name)
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					ts, ok := s.(*ast.TypeSpec)
					if !ok || ts.Name.Name != "Release" {
						continue
					}
					found = true
					st, ok := ts.Type.(*ast.StructType)
					if !ok {
						t.Fatalf("Release is no struct: anybody could convert bytes to it")
					}
					for _, field := range st.Fields.List {
						if len(field.Names) == 0 || slices.ContainsFunc(field.Names, (*ast.Ident).IsExported) {
							t.Errorf("Release has a field that others can write to")
						}
					}
				}
			}
		}
	}
	slices.Sort(makers)
	if want := []string{"Gate.Stored", "Session.Seal"}; !found || !slices.Equal(makers, want) {
		t.Errorf("releases come from %v, want %v", makers, want)
	}
}

// sealers are the functions of privacy that make a Release, and reader the one that reads
// it. Both sealers make it by themselves, of bytes that the journal has: none that they
// call does.
var (
	sealers = []string{"Gate.Stored", "Session.Seal"}
	reader  = "Release.Bytes"
)

// Within privacy any function could fill a Release, and hand it out in a slice, a struct,
// a callback, or by a pointer that it was given. So no other line than the type's own
// and those functions may name the type, or the field that holds its bytes.
func TestOnlySealingNamesReleases(t *testing.T) {
	found := map[string]bool{}
	for _, f := range source(t) {
		if f.pkg != "privacy" || f.test {
			continue
		}
		for _, d := range f.ast.Decls {
			where := "a declaration"
			if fn, ok := d.(*ast.FuncDecl); ok {
				where = strings.TrimPrefix(receiver(fn)+"."+fn.Name.Name, ".")
				if where == reader || slices.Contains(sealers, where) {
					found[where] = true
					continue
				}
			}
			// Names that are no use of the type: fields, methods and keys of that name, and
			// the type's own declaration.
			other, own := map[*ast.Ident]bool{}, false
			ast.Inspect(d, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.FuncDecl:
					other[n.Name] = true
				case *ast.TypeSpec:
					other[n.Name] = n.Name.Name == "Release" && !n.Assign.IsValid()
					own = own || other[n.Name]
				case *ast.StructType: // one without a name, of the same fields, can be assigned to it
					if !own && slices.ContainsFunc(n.Fields.List, func(f *ast.Field) bool {
						return slices.ContainsFunc(f.Names, func(id *ast.Ident) bool { return id.Name == "sealed" })
					}) {
						t.Errorf("%s: %s has a struct with the field of a release", f.set.Position(n.Pos()), where)
					}
				case *ast.Field:
					for _, id := range n.Names {
						other[id] = true
					}
				case *ast.KeyValueExpr:
					if id, ok := n.Key.(*ast.Ident); ok {
						other[id] = id.Name == "Release"
					}
				case *ast.SelectorExpr:
					other[n.Sel] = true
					if n.Sel.Name == "sealed" {
						t.Errorf("%s: %s reaches for the bytes of a release, which only %s and %v may",
							f.set.Position(n.Pos()), where, reader, sealers)
					}
				case *ast.Ident:
					if n.Name == "Release" && !other[n] {
						t.Errorf("%s: %s names the type Release, which only %v may", f.set.Position(n.Pos()),
							where, sealers)
					}
				}
				return true
			})
		}
	}
	for _, name := range append(sealers, reader) {
		if !found[name] {
			t.Errorf("privacy has no %s: this test looks for the wrong name", name)
		}
	}
}
