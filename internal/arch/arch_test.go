package arch

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// floors lists the packages of the module from the top down. A package imports
// only from floors below its own; "x/..." stands for everything below x.
var floors = [][]string{
	{"cmd/parley", "tools/..."},
	{"attack", "conformance", "crossval", "rundir", "selection", "utility"},
	{"engine/enginetest", "engine/local"},
	{"engine", "report", "trials"},
	{"graffl", "mvppca", "pvi"},
	{"method"},
	{"evaluate"},
	{"privacy/privacytest"},
	{"privacy"},
	{"sitestore"},
	{"study"},
	{"augment", "dataset", "figure", "privacy/account", "suffiae"},
	{"privacy/internal/fixed", "internal/vectors/vectorstest"},
	{"problem", "internal/...", "privacy/internal/noise"},
}

// floorOf returns the number of a package's floor, 0 being the top; −1 if it
// has none.
func floorOf(pkg string) int {
	return slices.IndexFunc(floors, func(floor []string) bool {
		return slices.ContainsFunc(floor, func(p string) bool {
			below, all := strings.CutSuffix(p, "...")
			return p == pkg || all && strings.HasPrefix(pkg, below)
		})
	})
}

// file is one Go file of the module.
type file struct {
	path    string // below the root, with forward slashes
	pkg     string // its folder
	test    bool
	lines   int
	imports []string
	ast     *ast.File
}

const module = "parley"

// source parses every Go file of the module.
func source(t *testing.T) (files []file) {
	t.Helper()
	root := filepath.Join("..", "..")
	if data, err := os.ReadFile(filepath.Join(root, "go.mod")); err != nil || !bytes.HasPrefix(data, []byte("module "+module+"\n")) {
		t.Fatalf("the root of module %s is not where it was: %v", module, err)
	}
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && name != "." && (strings.HasPrefix(e.Name(), ".") || e.Name() == "testdata" || e.Name() == "results") {
			return fs.SkipDir
		}
		if path.Ext(name) != ".go" {
			return nil
		}
		data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, data, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		f := file{path: name, pkg: path.Dir(name), test: strings.HasSuffix(name, "_test.go"), lines: bytes.Count(data, []byte("\n")), ast: parsed}
		for _, i := range parsed.Imports {
			p, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			f.imports = append(f.imports, p)
		}
		files = append(files, f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 100 {
		t.Fatalf("only %d Go files were found", len(files))
	}
	return files
}

func TestPackagesImportOnlyFromFloorsBelow(t *testing.T) {
	for _, f := range source(t) {
		if f.test { // tests may look from above
			continue
		}
		own := floorOf(f.pkg)
		if own < 0 {
			t.Errorf("%s: package %s has no floor; give it one in this test and in docs/architecture.md", f.path, f.pkg)
			continue
		}
		for _, p := range f.imports {
			below, ours := strings.CutPrefix(p, module+"/")
			if ours && floorOf(below) <= own {
				t.Errorf("%s imports %s, which is not on a floor below", f.path, p)
			}
		}
	}
}

// methods lists the packages that are methods.
var methods = []string{"graffl", "mvppca", "pvi"}

func TestMethodsShareAFloor(t *testing.T) {
	for _, m := range methods {
		if floorOf(m) != floorOf(methods[0]) {
			t.Errorf("%s has another floor than %s", m, methods[0])
		}
	}
	if floor := floors[floorOf(methods[0])]; len(floor) != len(methods) {
		t.Errorf("the methods are %v, and their floor has %v", methods, floor)
	}
}

// What runs methods knows none of them: only programs choose.
func TestOnlyProgramsKnowMethods(t *testing.T) {
	for _, f := range source(t) {
		if f.test || floorOf(f.pkg) == 0 {
			continue
		}
		for _, p := range f.imports {
			if m, ours := strings.CutPrefix(p, module+"/"); ours && slices.Contains(methods, m) {
				t.Errorf("%s imports method %s", f.path, m)
			}
		}
	}
}

// Methods know nothing of networks, files and clocks, and take no randomness
// but what they derive from the plan's seed.
func TestMethodsArePure(t *testing.T) {
	forbidden := []string{"os", "io/fs", "net", "net/http", "time", "crypto/rand", "log", "log/slog"}
	for _, f := range source(t) {
		if !slices.Contains(methods, f.pkg) || f.test {
			continue
		}
		for _, p := range f.imports {
			if slices.Contains(forbidden, p) {
				t.Errorf("%s imports %s", f.path, p)
			}
		}
	}
}

func TestOldRandomnessIsUsedNowhere(t *testing.T) {
	for _, f := range source(t) {
		for _, p := range f.imports {
			if p == "math/rand" || p == "unsafe" && f.pkg != "internal/kernel" {
				t.Errorf("%s imports %s", f.path, p)
			}
		}
	}
}

// Global functions of math/rand/v2 draw from a source that nobody has seeded.
func TestRandomnessIsSeeded(t *testing.T) {
	sources := []string{"New", "NewPCG", "NewChaCha8", "NewZipf", "Rand", "Source", "PCG", "ChaCha8", "Zipf"}
	for _, f := range source(t) {
		if f.test || !slices.Contains(f.imports, "math/rand/v2") {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "rand" && !slices.Contains(sources, s.Sel.Name) {
					t.Errorf("%s uses rand.%s, whose source is not seeded", f.path, s.Sel.Name)
				}
			}
			return true
		})
	}
}

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
				if d.Name.IsExported() && d.Type.Results != nil && slices.ContainsFunc(d.Type.Results.List, func(r *ast.Field) bool { return named(r.Type) == "Release" }) {
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

func TestOnlyTestsImportEnginetest(t *testing.T) {
	for _, f := range source(t) {
		if !f.test && slices.Contains(f.imports, module+"/engine/enginetest") {
			t.Errorf("%s imports engine/enginetest, which only tests may", f.path)
		}
	}
}

// Noise from a seed protects nobody: no program for sites can draw it.
func TestOnlyTestsAndToolsSeedPrivacyNoise(t *testing.T) {
	seeded, seeds := false, false
	for _, f := range source(t) {
		uses := slices.Contains(f.imports, module+"/privacy/privacytest")
		seeded = seeded || uses
		if uses && !f.test && !strings.HasPrefix(f.pkg, "tools/") {
			t.Errorf("%s imports privacy/privacytest, which only tests and tools may", f.path)
		}
		if f.test || !slices.Contains(f.imports, module+"/privacy/internal/noise") {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "Seeded" && named(s.X) == "noise" {
				seeds = true
				if f.pkg != "privacy/privacytest" {
					t.Errorf("%s makes noise from a seed; only privacy/privacytest may", f.path)
				}
			}
			return true
		})
	}
	if !seeded || !seeds {
		t.Error("nothing uses privacytest, or it makes no seeded source: this test looks for the wrong names")
	}
}

func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	return named(d.Recv.List[0].Type)
}

func named(x ast.Expr) string {
	if p, ok := x.(*ast.StarExpr); ok {
		x = p.X
	}
	if id, ok := x.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

func TestFilesCanBeReadInOneSitting(t *testing.T) {
	for _, f := range source(t) {
		if f.lines > 600 {
			t.Errorf("%s has %d lines", f.path, f.lines)
		}
	}
}
