//go:build unix

// Package docs holds the documentation to the program: what a page tells the reader to
// type is typed, in a copy of the repository, and what it shows is compared.
package docs

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley/internal/testkit"
)

// block is what stands between two fences.
type block struct {
	line int    // of its fence, from 1
	kind string // after the fence: "console", "text", "yaml plan.yaml"
	text string
}

func blocks(page string) (all []block) {
	var open *block
	for i, line := range strings.Split(page, "\n") {
		kind, fence := strings.CutPrefix(line, "```")
		switch {
		case fence && open == nil:
			open = &block{line: i + 1, kind: kind}
		case fence:
			all = append(all, *open)
			open = nil
		case open != nil:
			open.text += line + "\n"
		}
	}
	return all
}

// elsewhere are the pages whose commands need several machines or terminals, which
// federation/acceptance has, and what holds their commands to the program.
var elsewhere = []string{
	"docs/how-to/back-up-and-restore.md", "docs/how-to/run-a-coordinator.md",
	"docs/how-to/take-part-as-a-site.md", "docs/how-to/use-a-nats-cluster.md",
	"docs/tutorials/three-hospitals.md",                              // typed by federation/acceptance
	"docs/how-to/install.md", "docs/how-to/use-from-r-and-python.md", // .ci/long installs what they install
}

// notHere says why a command is not run: it measures for long, is a test itself, changes
// the machine, or waits for other terminals.
var notHere = regexp.MustCompile(`^(go run (\./tools/|-C papers )|go test|go vet|gofmt|sudo |(parley|go run ` +
	`\./cmd/parley) (demo|coordinator|site (join|serve)) )`)

// slow are commands of minutes. The page's next ones do not need them.
var slow = regexp.MustCompile(`(^| )(select|attack|privacy curve) |evaluate ` +
	`(results/open|examples/alzheimer/private)|examples/icu/|examples/baselines/multi-channel`)

// TestConsole runs the commands of every page in order and compares what they print with
// the block of text that follows.
func TestConsole(t *testing.T) {
	root := testkit.Get(filepath.Abs(".."))(t)
	tools := t.TempDir()
	program := filepath.Join(tools, "parley")
	if out, err := exec.Command("go", "build", "-o", program, "../cmd/parley").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	testkit.Do(t, os.WriteFile(filepath.Join(tools, "go"), []byte(goCommand), 0o755))
	pages := testkit.Get(filepath.Glob(testkit.Sized("tutorials", "*") + "/*.md"))(t)
	for i := range pages {
		pages[i] = "docs/" + pages[i]
	}
	pages = append(pages, "README.md", "docs/privacy.md")
	found := 0
	for _, page := range pages {
		if slices.Contains(elsewhere, page) || strings.HasPrefix(page, "docs/reference/") {
			continue
		}
		text := testkit.Get(os.ReadFile(filepath.Join(root, page)))(t)
		all := blocks(string(text))
		console := 0
		for _, b := range all {
			if b.kind == "console" {
				console++
			}
		}
		if console == 0 {
			continue
		}
		found += console
		t.Run(page, func(t *testing.T) {
			s := &shell{t: t, page: page, dir: clone(t, root), tools: tools, program: program}
			for i, b := range all {
				if name, ok := strings.CutPrefix(b.kind, "yaml "); ok {
					testkit.Do(t, os.WriteFile(filepath.Join(s.dir, name), []byte(b.text), 0o644))
				}
				if b.kind != "console" {
					continue
				}
				printed, done := s.run(b)
				if i+1 < len(all) && all[i+1].kind == "text" && done {
					if err := shows(printed, all[i+1].text); err != nil {
						t.Errorf("%s:%d: %v\nall of it:\n%s", page, all[i+1].line, err, printed)
					}
				}
			}
		})
	}
	if found < testkit.Sized(10, 40) {
		t.Errorf("only %d blocks were found", found)
	}
}

// goCommand is a go whose `run` and `build` of the program take the one that is built.
const goCommand = `#!/bin/sh
case "$1 $2 $3 $4" in
"run ./cmd/parley "*|"run ../cmd/parley "*) shift 2; exec "$PROGRAM" "$@" ;;
"build -o bin/parley ./cmd/parley") mkdir -p bin; exec cp "$PROGRAM" bin/parley ;;
esac
echo "this test does not run: go $*" >&2
exit 1
`

// shell runs the blocks of a page, one after another, where the one before left off.
type shell struct {
	t       *testing.T
	page    string
	dir     string // the working directory
	tools   string
	program string
}

// run runs the commands of a block; done says that it ran all of them.
func (s *shell) run(b block) (printed string, done bool) {
	s.t.Helper()
	done = true
	var script strings.Builder
	for line := range strings.Lines(b.text) {
		command, ok := strings.CutPrefix(line, "$ ")
		if !ok {
			continue
		}
		if notHere.MatchString(command) || slow.MatchString(command) {
			done = false
			continue
		}
		script.WriteString(command)
	}
	cmd := exec.Command("bash", "-e", "-c", script.String()+"pwd >\"$HERE\"\n")
	here := filepath.Join(s.t.TempDir(), "here")
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "PATH="+s.tools+":"+os.Getenv("PATH"), "PROGRAM="+s.program, "HERE="+here)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		s.t.Fatalf("%s:%d: %v\n%s%s", s.page, b.line, err, script.String(), out.String())
	}
	where, err := os.ReadFile(here)
	if err != nil {
		s.t.Fatal(err)
	}
	s.dir = strings.TrimSpace(string(where))
	return out.String(), done
}

// shows reports the first line of want that is not among what was printed. Lines stand
// one below another as they were printed; … stands for anything within a line and, as a
// line, for any lines. Neither the beginning nor what was printed by commands before is
// wanted, but the end is.
func shows(printed, want string) error {
	var pattern strings.Builder
	pattern.WriteString(`(?s)^(?:.*\n)??`)
	for line := range strings.Lines(want) {
		line = strings.TrimRight(line, " \n")
		if line == "…" {
			pattern.WriteString(`(?:.*\n)??`)
			continue
		}
		for i, part := range strings.Split(line, "…") {
			if i > 0 {
				pattern.WriteString(`[^\n]*`)
			}
			pattern.WriteString(regexp.QuoteMeta(part))
		}
		pattern.WriteString(` *\n`)
	}
	pattern.WriteString(`$`)
	re, err := regexp.Compile(pattern.String())
	if err != nil {
		return err
	}
	if re.MatchString(printed) {
		return nil
	}
	for line := range strings.Lines(want) { // the likeliest reason
		for _, part := range strings.Split(strings.TrimSpace(line), "…") {
			if !strings.Contains(printed, part) {
				return fmt.Errorf("%q is not printed", part)
			}
		}
	}
	return fmt.Errorf("what is printed has other lines between, or after:\n%s", want)
}

// clone copies the files that are under version control, as they stand.
func clone(t *testing.T, root string) string {
	t.Helper()
	dir := t.TempDir()
	list := exec.Command("git", "ls-files", "-z", "examples", ":(glob)methods/**/testdata/**",
		":(glob)privacy/**/testdata/**")
	list.Dir = root
	names := testkit.Get(list.Output())(t)
	for name := range strings.SplitSeq(strings.TrimRight(string(names), "\x00"), "\x00") {
		data, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // deleted and not yet committed
		}
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, name)
		testkit.Do(t, os.MkdirAll(filepath.Dir(to), 0o755))
		testkit.Do(t, os.WriteFile(to, data, 0o644))
	}
	return dir
}
