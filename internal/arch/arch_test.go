package arch

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"parley/internal/testkit"
)

// floors lists the packages of both modules from the top down. A package imports
// only from floors below its own; "x/..." stands for everything below x.
var floors = [][]string{
	{"papers", "papers/measure", "papers/prose"},
	{"papers/quoted"},
	{"papers/quoted/..."},
	{"papers/dppvi", "papers/fedmvppca", "papers/graffl"},
	{"papers/experiment", "papers/graffl/scarce", "papers/graffl/suffiae", "papers/graffl/toy", "papers/protocoltest"},
	{"papers/deal", "papers/internal/...", "papers/melba"},
	{"cmd/parley", "federation/acceptance", "tools/release"},
	{"federation/doctor", "federation/live"},
	{"federation/coordinator", "federation/site"},
	{"federation"},
	{"judge", "verify"},
	{"report"},
	{"method/methodtest", "method/methodtest/means"},
	{"engine/enginetest", "engine/nats/natstest"},
	{"engine/nats"},
	{"engine/local", "engine/wire"},
	{"engine/host"},
	{"engine"},
	{"methods/..."},
	{"method"},
	{"judge/evaluate", "study/draft"},
	{"privacy/ledger", "privacy/privacytest"},
	{"privacy"},
	{"sitestore", "privacy/policy"},
	{"study"},
	{"dataset", "figure", "privacy/account", "privacy/masks"},
	{"internal/document", "internal/nn", "internal/testkit", "privacy/internal/fixed"},
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

// inPapers says whether a package is of the module of experiments, which is for a clone of
// the source and no part of the program.
func inPapers(pkg string) bool { return pkg == "papers" || strings.HasPrefix(pkg, "papers/") }

// file is one Go file of the repository.
type file struct {
	path    string // below the root, with forward slashes
	pkg     string // its folder
	test    bool
	lines   int
	imports []string
	ast     *ast.File
	set     *token.FileSet // positions of ast
}

const module = "parley"

// source returns every Go file of both modules.
func source(t *testing.T) []file {
	t.Helper()
	files := testkit.Get(parsed())(t)
	if len(files) < 100 {
		t.Fatalf("only %d Go files were found", len(files))
	}
	return files
}

// parsed parses them once.
var parsed = sync.OnceValues(func() (files []file, err error) {
	root := filepath.Join("..", "..")
	if data, err := os.ReadFile(filepath.Join(root, "go.mod")); err != nil ||
		!bytes.HasPrefix(data, []byte("module "+module+"\n")) {
		return nil, fmt.Errorf("the root of module %s is not where it was: %v", module, err)
	}
	err = fs.WalkDir(os.DirFS(root), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && name != "." && (strings.HasPrefix(e.Name(), ".") || e.Name() == "testdata" ||
			name == "results") {
			return fs.SkipDir
		}
		if path.Ext(name) != ".go" {
			return nil
		}
		data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, name, data, parser.ParseComments)
		if err != nil {
			return err
		}
		f := file{path: name, pkg: path.Dir(name), test: strings.HasSuffix(name, "_test.go"),
			lines: bytes.Count(data, []byte("\n")), ast: parsed, set: set}
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
	return files, err
})

// packageNames gives each package of the module its name, which need not be its folder's.
var packageNames = sync.OnceValue(func() map[string]string {
	names := map[string]string{}
	files, _ := parsed()
	for _, f := range files {
		if !f.test {
			names[f.pkg] = f.ast.Name.Name
		}
	}
	return names
})

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
			// whose rooms the compiler orders
			within := strings.HasPrefix(f.pkg, "methods/") && strings.HasPrefix(below, "methods/")
			if ours && floorOf(below) <= own && !within {
				t.Errorf("%s imports %s, which is not on a floor below", f.path, p)
			}
		}
	}
}

// published is the folder of methods as their papers have them.
const published = "methods/published"

// methodOf returns the method that a package belongs to, which is a folder below
// methods or below published; empty for others.
func methodOf(pkg string) string {
	for _, of := range []string{published, "methods"} {
		if room, ok := strings.CutPrefix(pkg, of+"/"); ok {
			name, _, _ := strings.Cut(room, "/")
			return of + "/" + name
		}
	}
	return ""
}

// methods lists the folders below methods. A method that is added is held to every rule
// without a line here.
func methods(t *testing.T) []string {
	t.Helper()
	found := map[string]bool{}
	for _, f := range source(t) {
		if m := methodOf(f.pkg); m != "" {
			found[m] = true
		}
	}
	if len(found) < 2 {
		t.Fatalf("only %d methods were found", len(found))
	}
	return slices.Sorted(maps.Keys(found))
}

// small is a method in its smallest whole form, for tests.
const small = "method/methodtest/means"

// What CONTRIBUTING says of adding a method is proved by a small one: nothing knows of it
// but a line of a test, in which studies of it run.
func TestAMethodIsItsFolderAndOneLine(t *testing.T) {
	var by []string
	for _, f := range source(t) {
		if f.pkg != small && slices.Contains(f.imports, module+"/"+small) {
			by = append(by, f.path)
		}
	}
	if want := []string{"cmd/parley/script_test.go"}; !slices.Equal(by, want) {
		t.Errorf("%s is imported by %v, want %v", small, by, want)
	}
}

// numerics and modelFiles are the rooms of ours that a method as published may stand on: it knows nothing of how ours
// is planned and fits, nor do numerics.
var (
	numerics = []string{"methods/factors/ppca", "methods/mixture/gmm", "methods/regression/glm",
		"methods/regression/predict"}
	modelFiles = []string{"methods/factors/fitted", "methods/factors/report", "methods/mixture/fitted",
		"methods/regression/fitted"}
)

// What runs methods knows none of them: only the program chooses, and experiments. Ours never meets a method as
// published.
func TestOnlyProgramsKnowMethods(t *testing.T) {
	may := func(pkg, m string) bool {
		switch {
		case slices.Contains(numerics, pkg):
			return slices.Contains(numerics, m)
		case strings.HasPrefix(pkg, published+"/") && !strings.HasPrefix(m, published+"/"):
			return slices.Contains(numerics, m) || slices.Contains(modelFiles, m)
		}
		return methodOf(m) == methodOf(pkg)
	}
	for _, f := range source(t) {
		if f.test || f.pkg == "cmd/parley" || f.pkg == "verify" || inPapers(f.pkg) {
			continue
		}
		for _, p := range f.imports {
			if m, ours := strings.CutPrefix(p, module+"/"); ours && methodOf(m) != "" && !may(f.pkg, m) {
				t.Errorf("%s imports %s, which belongs to a method", f.path, m)
			}
		}
	}
}

// pure lists what methods, and what they call, may import beside packages of this
// module: nothing that reaches files, processes, networks, clocks or randomness.
// A name stands for the packages below it, too, if it ends with a slash.
var pure = []string{
	"bufio", "bytes", "cmp", "compress/gzip", "container/", "context", "crypto/sha256", "embed", "encoding",
	"encoding/", "errors", "fmt", "hash/", "io", "iter", "maps", "math", "math/",
	"reflect", "runtime", "slices", "sort", "strconv", "strings", "sync", "sync/atomic", "unicode", "unicode/utf8",
	"gonum.org/v1/gonum/", "github.com/fxamacker/cbor/v2",
}

// ours lists the packages of this module that methods, and what only they call, may
// import: what is below them, without what keeps, sends or reads anything. A name
// stands for the packages below it, too, if it ends with a slash.
var ours = []string{
	"dataset", "figure", "judge/evaluate", "method", "privacy", "privacy/account", "privacy/masks", "problem", "study",
	"internal/linalg", "internal/stats", "internal/vectors", "internal/version", "internal/wire",
}

// excepted are imports with a reason: which kernel a processor has, or a test asks
// for, changes no bit of a result.
var excepted = map[string][]string{"internal/linalg": {"os", "golang.org/x/sys/cpu"}}

// printing are the functions of allowed packages that write to what a program has
// open, and runtime's that do more than ask.
var printing = map[string][]string{
	"fmt": {"Print", "Printf", "Println", "Scan", "Scanf", "Scanln"},
	"runtime": {"GC", "Goexit", "SetFinalizer", "Breakpoint", "LockOSThread", "ReadMemStats", "Stack",
		"Caller", "Callers"},
}

func allowed(list []string, pkg string) bool {
	return slices.ContainsFunc(list, func(a string) bool {
		return a == pkg || strings.HasSuffix(a, "/") && strings.HasPrefix(pkg, a)
	})
}

// Methods, and the packages that only they call, know nothing of networks, files and
// clocks, and take no randomness but what they derive from the plan's seed. What they
// may import is listed; anything else needs a reason.
func TestMethodsArePure(t *testing.T) {
	held := heldPure(t)
	for _, f := range source(t) {
		if f.test || !held[f.pkg] {
			continue
		}
		for _, p := range f.imports {
			below, own := strings.CutPrefix(p, module+"/")
			if own && !allowed(ours, below) && !held[below] || !own && !allowed(pure, p) &&
				!slices.Contains(excepted[f.pkg], p) {
				t.Errorf("%s imports %s, which is not on the list of what methods may", f.path, p)
			}
			for _, name := range printing[p] {
				if calls(f, p, name) {
					t.Errorf("%s uses %s.%s", f.path, p, name)
				}
			}
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if c, ok := n.(*ast.CallExpr); ok {
				if name := named(c.Fun); name == "print" || name == "println" {
					t.Errorf("%s uses the builtin %s", f.path, name)
				}
			}
			return true
		})
	}
	for _, m := range append(methods(t), small) {
		if !held[m] {
			t.Errorf("method %s was not looked at", m)
		}
	}
}

// heldPure lists the methods' packages, the small method's, which is copied to begin
// with, their networks, and those below them that nobody else
// imports but programs: to move code out of a method's folder frees it of nothing.
func heldPure(t *testing.T) map[string]bool {
	held, importers := map[string]bool{small: true, "internal/nn": true}, map[string][]string{}
	for _, f := range source(t) {
		if f.test {
			continue
		}
		if methodOf(f.pkg) != "" {
			held[f.pkg] = true
		}
		for _, p := range f.imports {
			if below, own := strings.CutPrefix(p, module+"/"); own {
				importers[below] = append(importers[below], f.pkg)
			}
		}
	}
	for grown := true; grown; {
		grown = false
		for pkg, by := range importers {
			program := func(p string) bool { return p == "cmd/parley" || inPapers(p) }
			if !held[pkg] && slices.ContainsFunc(by, func(p string) bool { return held[p] }) &&
				!slices.ContainsFunc(by, func(p string) bool { return !held[p] && !program(p) }) {
				held[pkg], grown = true, true
			}
		}
	}
	return held
}

// Gates stand in front of a site's data, and its host alone puts them there.
func TestOnlyTheHostMakesGates(t *testing.T) {
	makes := false
	for _, f := range source(t) {
		if f.test || !calls(f, module+"/privacy", "NewGate") {
			continue
		}
		// The laboratory attacks sites of its own making; methodtest is for tests.
		switch {
		case f.pkg == "engine/host":
			makes = true
		case f.path == "judge/lab.go", f.pkg == "method/methodtest":
		default:
			t.Errorf("%s makes a gate; only engine/host may", f.path)
		}
	}
	if !makes {
		t.Error("engine/host makes no gate: this test looks for the wrong name")
	}
}

// forTests says whether a package exists for tests: its name ends in test, or it is one
// of a few that are called by what they make.
func forTests(pkg string) bool {
	return strings.HasSuffix(pkg, "test") || pkg == small || pkg == "internal/testkit"
}

// What is for tests may cut corners that production may not. Who may seed noise, by
// privacytest, a test of its own holds.
func TestOnlyTestsImportWhatIsForTests(t *testing.T) {
	for _, f := range source(t) {
		for _, p := range f.imports {
			below, own := strings.CutPrefix(p, module+"/")
			if own && !f.test && !forTests(f.pkg) && forTests(below) && below != "privacy/privacytest" {
				t.Errorf("%s imports %s, which only tests may", f.path, p)
			}
		}
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
