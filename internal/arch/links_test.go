package arch

import (
	"go/ast"
	"go/doc/comment"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// identifier is what the name of an imported package looks like.
var identifier = regexp.MustCompile(`^[a-z][a-z0-9]*$`)

// A link of a doc comment that names nothing was true once: whoever follows it learns
// that the comment is of other code than it stands at. What any file of the package imports
// resolves a link, as in go doc. Links to the standard library and to other modules are
// followed no further than that.
func TestDocLinksLeadSomewhere(t *testing.T) {
	names := declaredNames(t)
	links, importing := 0, map[string]map[string]string{}
	for _, f := range source(t) {
		if !f.test {
			if importing[f.pkg] == nil {
				importing[f.pkg] = map[string]string{}
			}
			maps.Copy(importing[f.pkg], imported(f))
		}
	}
	for _, f := range source(t) {
		if f.test {
			continue
		}
		known := importing[f.pkg]
		parse := comment.Parser{
			LookupSym: func(string, string) bool { return true },
			LookupPackage: func(name string) (string, bool) {
				return name, identifier.MatchString(name) || strings.HasPrefix(name, module+"/") || known[name] != ""
			},
		}
		for _, group := range docComments(f.ast) {
			for _, l := range linksOf(parse.Parse(group.Text())) {
				text := strings.TrimPrefix(strings.Join(slices.DeleteFunc([]string{l.ImportPath, l.Recv, l.Name},
					func(s string) bool { return s == "" }), "."), ".")
				pkg := f.pkg
				switch path, ok := known[l.ImportPath]; {
				case l.ImportPath == "":
				case ok:
					pkg = path
				case l.Name == "": // a word in brackets
					continue
				default:
					pkg = l.ImportPath
					if p, ok := comment.DefaultLookupPackage(pkg); ok {
						pkg = p
					} else if !strings.HasPrefix(pkg, module+"/") {
						pkg = ""
					}
				}
				links++
				if l.ImportPath != "" {
					below, ours := strings.CutPrefix(pkg, module+"/")
					if pkg != "" && !ours {
						continue
					}
					pkg = below
				}
				name := strings.TrimPrefix(l.Recv+"."+l.Name, ".")
				if pkg == "" || name != "" && !names[pkg+"."+name] || packageNames()[pkg] == "" {
					t.Errorf("%s: the link [%s] leads nowhere", f.set.Position(group.Pos()), text)
				}
			}
		}
	}
	if t.Logf("%d links", links); links < 50 {
		t.Errorf("only %d links were found", links)
	}
}

// declaredNames holds "package.Name", and "package.Type.Name" for methods, fields and
// what an interface asks for.
func declaredNames(t *testing.T) map[string]bool {
	names := map[string]bool{}
	for _, f := range source(t) {
		if f.test {
			continue
		}
		for _, d := range f.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				names[f.pkg+strings.ReplaceAll("."+receiver(d)+"."+d.Name.Name, "..", ".")] = true
			case *ast.GenDecl:
				for _, s := range d.Specs {
					switch s := s.(type) {
					case *ast.ValueSpec:
						for _, id := range s.Names {
							names[f.pkg+"."+id.Name] = true
						}
					case *ast.TypeSpec:
						names[f.pkg+"."+s.Name.Name] = true
						var fields *ast.FieldList
						switch x := s.Type.(type) {
						case *ast.StructType:
							fields = x.Fields
						case *ast.InterfaceType:
							fields = x.Methods
						default:
							continue
						}
						for _, field := range fields.List {
							for _, id := range field.Names {
								names[f.pkg+"."+s.Name.Name+"."+id.Name] = true
							}
						}
					}
				}
			}
		}
	}
	return names
}

// docComments returns the comments that document something at the top of a file, its
// fields and values among it.
func docComments(f *ast.File) (groups []*ast.CommentGroup) {
	add := func(all ...*ast.CommentGroup) {
		for _, g := range all {
			if g != nil {
				groups = append(groups, g)
			}
		}
	}
	add(f.Doc)
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			add(d.Doc)
		case *ast.GenDecl:
			ast.Inspect(d, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.GenDecl:
					add(n.Doc)
				case *ast.TypeSpec:
					add(n.Doc, n.Comment)
				case *ast.ValueSpec:
					add(n.Doc, n.Comment)
				case *ast.Field:
					add(n.Doc, n.Comment)
				case *ast.FuncLit:
					return false
				}
				return true
			})
		}
	}
	return groups
}

// linksOf returns the links to names in a comment.
func linksOf(d *comment.Doc) (links []*comment.DocLink) {
	text := func(ts []comment.Text) {
		for _, t := range ts {
			if l, ok := t.(*comment.DocLink); ok {
				links = append(links, l)
			}
		}
	}
	var blocks func(bs []comment.Block)
	blocks = func(bs []comment.Block) {
		for _, b := range bs {
			switch b := b.(type) {
			case *comment.Paragraph:
				text(b.Text)
			case *comment.Heading:
				text(b.Text)
			case *comment.List:
				for _, i := range b.Items {
					blocks(i.Content)
				}
			}
		}
	}
	blocks(d.Content)
	return links
}
