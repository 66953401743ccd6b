package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"parley/internal/testkit"
)

// writers are where sections of a run's report are made. What other commands make pages of is
// not among them.
var writers = []string{"../methods", "../method", "../figure", "../report", "../engine/host"}

// others are packages there that write pages of other commands.
var others = regexp.MustCompile(`methods/factors/select|method/selection|methodtest|/testdata|_test\.go$`)

// headings are the titles of sections in the program, as regular expressions: what is not known
// before it runs may be anything.
func headings(t *testing.T) map[string]*regexp.Regexp {
	t.Helper()
	found := map[string]*regexp.Regexp{}
	add := func(e ast.Expr) {
		if pattern := pattern(e); strings.Trim(pattern, ".+") != "" {
			found[pattern] = regexp.MustCompile("^(?:" + pattern + ")$")
		}
	}
	section := func(e ast.Expr) bool {
		switch x := e.(type) {
		case *ast.SelectorExpr:
			return x.Sel.Name == "Section"
		case *ast.Ident:
			return x.Name == "Section"
		}
		return false
	}
	literal := func(x *ast.CompositeLit) {
		for _, e := range x.Elts {
			if kv, ok := e.(*ast.KeyValueExpr); ok {
				if key, ok := kv.Key.(*ast.Ident); ok && key.Name == "Title" {
					add(kv.Value)
				}
			}
		}
	}
	see := func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.CompositeLit:
			if list, ok := x.Type.(*ast.ArrayType); ok && section(list.Elt) {
				for _, e := range x.Elts {
					if one, ok := e.(*ast.CompositeLit); ok && one.Type == nil {
						literal(one)
					}
				}
			} else if section(x.Type) {
				literal(x)
			}
		case *ast.CallExpr: // section("id", "Title", …)
			if f, ok := x.Fun.(*ast.Ident); ok && f.Name == "section" && len(x.Args) > 2 {
				add(x.Args[1])
			}
		case *ast.AssignStmt: // sec.Title = …
			if s, ok := x.Lhs[0].(*ast.SelectorExpr); ok && s.Sel.Name == "Title" {
				if of, ok := s.X.(*ast.Ident); ok && strings.HasPrefix(of.Name, "sec") {
					add(x.Rhs[0])
				}
			}
		}
		return true
	}
	for _, dir := range writers {
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || others.MatchString(filepath.ToSlash(path)) {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err == nil {
				ast.Inspect(file, see)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	// The page itself has some: those of its own sections and notes.
	page := testkit.Get(os.ReadFile("../report/page.html"))(t)
	for _, m := range regexp.MustCompile(`(?:<aside[^>]*>|<section[^>]*>)\s*<h2[^>]*>([^<{]+)</h2>`).FindAllSubmatch(
		page, -1) {
		found[regexp.QuoteMeta(string(m[1]))] = regexp.MustCompile("^" + regexp.QuoteMeta(string(m[1])) + "$")
	}
	return found
}

// pattern is an expression of a title as a regular expression.
func pattern(e ast.Expr) string {
	switch x := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(x.Value); err == nil {
			return regexp.QuoteMeta(text)
		}
	case *ast.BinaryExpr:
		return pattern(x.X) + pattern(x.Y)
	}
	return ".+"
}

var (
	entry     = regexp.MustCompile(`(?m)^- (?:Under )?(\*\*[^:]+\*\*):`)
	described = regexp.MustCompile(`(?s)\*\*(.+?)\*\*`)
)

// Every section that a run's report can have is described on its page, and there is no
// description of anything else. A description stands for longer titles that begin with it.
func TestEverySectionOfTheReportIsDescribed(t *testing.T) {
	page := testkit.Get(os.ReadFile("explanation/report.md"))(t)
	var words []string
	for _, e := range entry.FindAllSubmatch(page, -1) {
		for _, m := range described.FindAllSubmatch(e[1], -1) {
			words = append(words, strings.Join(strings.Fields(string(m[1])), " "))
		}
	}
	all := headings(t)
	if len(all) < 30 { // the search itself is broken
		t.Fatalf("%d headings found in the program", len(all))
	}
	for text, heading := range all {
		if !slices.ContainsFunc(words, func(w string) bool {
			return heading.MatchString(w) || strings.HasPrefix(text, regexp.QuoteMeta(w))
		}) {
			t.Errorf("no description of the section %q", text)
		}
	}
	for i, w := range words {
		matched := false
		for text, heading := range all {
			matched = matched || heading.MatchString(w) || strings.HasPrefix(text, regexp.QuoteMeta(w))
		}
		if !matched {
			t.Errorf("no section is called %q", w)
		}
		if slices.Contains(words[:i], w) {
			t.Errorf("%q is described twice", w)
		}
	}
}
