package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"parley/internal/testkit"
	"parley/method/methodtest/means"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"parley": main,
		// A method is its own folder and one line.
		"parley-with-means": func() { methods = append(methods, means.Method{}); main() },
	})
}

// TestScripts runs the stories in testdata/script. Each starts beside a small
// data set in three forms: small/data (wide files), small/folders (one for each
// of two hospitals, the second without the view genes) and small/long.csv.
// $EXAMPLE is the example study, $VECTORS the published test vectors of the
// method, $DPVECTORS those of differential privacy, $PVIVECTORS those of
// partitioned variational inference, and $INCOME the data of the income example.
func TestScripts(t *testing.T) {
	abs := func(path string) string {
		path = testkit.Get(filepath.Abs(filepath.FromSlash(path)))(t)
		return path
	}
	scripts, err := filepath.Glob(filepath.Join("testdata", testkit.Sized("script", "script*"), "*.txt"))
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	testscript.Run(t, testscript.Params{
		Files: scripts,
		Setup: func(env *testscript.Env) error {
			env.Setenv("EXAMPLE", abs("../../examples/alzheimer"))
			env.Setenv("VECTORS", abs("../../methods/factors/testdata/fedmvppca"))
			env.Setenv("DPVECTORS", abs("../../privacy/account/testdata/dp"))
			env.Setenv("INCOME", abs("../../examples/income/data"))
			return writeData(filepath.Join(env.WorkDir, "small"))
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"json": jsonCommand, "same": sameCommand, "replace": replaceCommand, "files": filesCommand,
			"copydir": copyCommand,
			"failure": exitCommand(exitFailed), "usage": exitCommand(exitUsage),
		},
		RequireUniqueNames: true,
	})
}

// writeData writes the small data set: 60 subjects with one factor behind five
// features, gaps among them.
func writeData(dir string) error {
	files := map[string]*strings.Builder{}
	line := func(file, format string, a ...any) {
		if files[file] == nil {
			files[file] = new(strings.Builder)
		}
		fmt.Fprintf(files[file], format+"\n", a...)
	}
	header := map[string]string{"clinic": "id,age,weight,score", "genes": "id,g1,g2"}
	features := map[string][]string{"clinic": {"age", "weight", "score"}, "genes": {"g1", "g2"}}
	for _, folder := range []string{"data", "folders/north", "folders/south"} {
		line(folder+"/subjects.csv", "id,group")
		line(folder+"/view_clinic.csv", header["clinic"])
		if folder != "folders/south" {
			line(folder+"/view_genes.csv", header["genes"])
		}
	}
	line("long.csv", "id,view,feature,value")
	rng := rand.New(rand.NewPCG(11, 0))
	for i := range 60 {
		id, group, hospital := fmt.Sprintf("s%03d", i), []string{"case", "control"}[i%2],
			[]string{"folders/north", "folders/south"}[i%2]
		x := rng.NormFloat64()
		for _, folder := range []string{"data", hospital} {
			line(folder+"/subjects.csv", "%s,%s", id, group)
		}
		for _, view := range []string{"clinic", "genes"} {
			if view == "genes" && i%7 == 3 {
				continue // the subject lacks the view
			}
			cells := []string{id}
			for j, f := range features[view] {
				value := fmt.Sprintf("%.3f", 50+10*x*float64(j+1)+5*rng.NormFloat64())
				if i%9 == 4 && j == 0 {
					value = "" // not measured
				} else {
					line("long.csv", "%s,%s,%s,%s", id, view, f, value)
				}
				cells = append(cells, value)
			}
			line("data/view_"+view+".csv", "%s", strings.Join(cells, ","))
			if view == "clinic" || hospital == "folders/north" {
				line(hospital+"/view_"+view+".csv", "%s", strings.Join(cells, ","))
			}
		}
	}
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(content.String()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// jsonCommand demands that a file, or stdout, is one JSON value with the named
// keys; with lines as first argument, one value in each line.
func jsonCommand(ts *testscript.TestScript, neg bool, args []string) {
	perLine := len(args) > 0 && args[0] == "lines"
	if perLine {
		args = args[1:]
	}
	if neg || len(args) == 0 {
		ts.Fatalf("usage: json [lines] file [key...]")
	}
	values := []string{ts.ReadFile(args[0])}
	if perLine {
		values = strings.Split(strings.TrimRight(values[0], "\n"), "\n")
	}
	for _, text := range values {
		object := map[string]any{}
		if err := json.Unmarshal([]byte(text), &object); err != nil {
			ts.Fatalf("%s: %v", args[0], err)
		}
		for _, key := range args[1:] {
			if _, ok := object[key]; !ok {
				ts.Fatalf("%s has no %q", args[0], key)
			}
		}
	}
}

// sameCommand compares two results directories, but for the sites' stores,
// whose bytes tell of every opening, and for the times in provenance.json.
func sameCommand(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: same dir dir")
	}
	a, b := ts.MkAbs(args[0]), ts.MkAbs(args[1])
	err := compareResults(a, b)
	if neg && err == nil {
		ts.Fatalf("%s and %s are the same", args[0], args[1])
	}
	if !neg {
		ts.Check(err)
	}
}

func compareResults(a, b string) error {
	listA, err := resultFiles(a)
	if err != nil {
		return err
	}
	listB, err := resultFiles(b)
	if err != nil {
		return err
	}
	if !slices.Equal(listA, listB) {
		return fmt.Errorf("%s has %v, %s has %v", a, listA, b, listB)
	}
	for _, name := range listA {
		if filepath.Base(name) == "provenance.json" || filepath.Base(name) == "site.db" {
			continue
		}
		x, errX := os.ReadFile(filepath.Join(a, name))
		y, errY := os.ReadFile(filepath.Join(b, name))
		if errX != nil || errY != nil || !bytes.Equal(x, y) {
			return fmt.Errorf("%s differs (%v, %v)", name, errX, errY)
		}
	}
	return nil
}

// resultFiles lists the files below dir, with forward slashes.
func resultFiles(dir string) (names []string, err error) {
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		names = append(names, filepath.ToSlash(rel))
		return err
	})
	return names, err
}

// exitCommand runs a command that must end with this exit code.
func exitCommand(code int) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg || len(args) == 0 {
			ts.Fatalf("usage: failure|usage command [arguments]")
		}
		err := ts.Exec(args[0], args[1:]...)
		if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != code {
			ts.Fatalf("%v; want exit code %d", err, code)
		}
	}
}

func copyCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: copydir from to")
	}
	ts.Check(os.CopyFS(ts.MkAbs(args[1]), os.DirFS(ts.MkAbs(args[0]))))
}

// filesCommand demands that the files below a folder are exactly those that
// another file lists, but for the report's figures and tables.
func filesCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: files dir list")
	}
	names, err := resultFiles(ts.MkAbs(args[0]))
	ts.Check(err)
	names = slices.DeleteFunc(names, func(name string) bool {
		part := filepath.ToSlash(filepath.Dir(name))
		return strings.HasSuffix(part, "figures") || strings.HasSuffix(part, "tables")
	})
	if got, want := strings.Join(names, "\n"), strings.TrimSpace(ts.ReadFile(args[1])); got != want {
		ts.Fatalf("%s has\n%s\nwant\n%s", args[0], got, want)
	}
}

// replaceCommand replaces a text that stands in a file once.
func replaceCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: replace file old new")
	}
	text := ts.ReadFile(args[0])
	unescape := strings.NewReplacer(`\n`, "\n")
	old, new := unescape.Replace(args[1]), unescape.Replace(args[2])
	if strings.Count(text, old) != 1 {
		ts.Fatalf("%q stands in %s %d times", old, args[0], strings.Count(text, old))
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Replace(text, old, new, 1)), 0o644))
}
