package arch

import (
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"parley/internal/testkit"
)

// The budget of the program's module, and that of papers. Whoever takes something away lowers
// it; only an issue may raise it.
const (
	maxSource    = 116_580
	maxTests     = 72_290
	maxPackages  = 73
	papersSource = 16_140
	papersTests  = 3_940
	maxWide      = 0
	columns      = 120 // of a line, a tab being four; what stands in raw strings is not counted
)

// slack is how many lines may be spared before the budget has to say so.
const slack = 500

func TestTheHouseKeepsToItsBudget(t *testing.T) {
	type kind struct{ papers, test bool }
	lines, tokens, wide, packages := map[kind]int{}, map[kind]int{}, 0, map[string]bool{}
	for _, f := range source(t) {
		k := kind{inPapers(f.pkg), f.test}
		if lines[k] += f.lines; !k.papers {
			packages[f.pkg] = true
		}
		text := testkit.Get(os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(f.path))))(t)
		var s scanner.Scanner
		at := token.NewFileSet().AddFile(f.path, -1, len(text))
		s.Init(at, text, nil, 0)
		raw := map[int]bool{} // lines that a raw string has, which is what it is
		for pos, kind, lit := s.Scan(); kind != token.EOF; pos, kind, lit = s.Scan() {
			tokens[k]++
			for n := range strings.Count(lit, "\n") + 1 {
				raw[at.Line(pos)+n] = raw[at.Line(pos)+n] || strings.HasPrefix(lit, "`")
			}
		}
		number := 0
		for line := range strings.Lines(string(text)) {
			number++
			line = strings.TrimSuffix(strings.ReplaceAll(line, "\t", "    "), "\n")
			if utf8.RuneCountInString(line) > columns && !raw[number] {
				wide++
				t.Logf("%s:%d has more than %d columns", f.path, number, columns)
			}
		}
	}
	for k, n := range lines {
		t.Logf("%+v: %d lines, %d tokens", k, n, tokens[k])
	}
	for _, of := range []struct {
		what, name    string
		is, most, low int // what there is, may be, and must be for the budget to stay as it is
	}{
		{"lines of source", "maxSource", lines[kind{}], maxSource, maxSource - slack},
		{"lines of tests", "maxTests", lines[kind{test: true}], maxTests, maxTests - slack},
		{"lines of papers", "papersSource", lines[kind{papers: true}], papersSource, papersSource - slack},
		{"lines of papers' tests", "papersTests", lines[kind{true, true}], papersTests, papersTests - slack},
		{"packages", "maxPackages", len(packages), maxPackages, maxPackages},
		{"lines of more than 120 columns", "maxWide", wide, maxWide, maxWide - slack},
	} {
		switch {
		case of.is > of.most:
			t.Errorf("%d %s, above %d: take as many away elsewhere", of.is, of.what, of.most)
		case of.is < of.low:
			t.Errorf("%d %s, below %d: lower %s to %d, so that nobody adds them again", of.is, of.what, of.most,
				of.name, of.is)
		}
	}
}

// sourceOfProgram returns the files of the program's module.
func sourceOfProgram(t *testing.T) []file {
	return slices.DeleteFunc(slices.Clone(source(t)), func(f file) bool { return inPapers(f.pkg) })
}

// A site's people install one program. It starts no other, and above all no compiler:
// whatever does is for a clone of the source.
func TestTheProgramStartsNoOther(t *testing.T) {
	for _, f := range sourceOfProgram(t) {
		if !f.test && !forTests(f.pkg) && !strings.HasPrefix(f.pkg, "tools/") && slices.Contains(f.imports, "os/exec") {
			t.Errorf("%s imports os/exec, which only tests, tools and papers may", f.path)
		}
	}
}
