//go:build unix

package acceptance

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"parley/internal/testkit"
	"parley/internal/version"
)

// Built by TestMain: the program, and a folder for what tests share.
var (
	binary string
	shared string
)

// root is that of the module.
const root = "../.."

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	var err error
	if shared, err = os.MkdirTemp("", "parley-acceptance-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(shared)
	binary = filepath.Join(shared, "parley")
	if err := build(binary); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// build builds the program.
func build(to string, flags ...string) error {
	args := append([]string{"build", "-o", to}, flags...)
	cmd := exec.Command("go", append(args, "./cmd/parley")...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building parley: %w\n%s", err, out)
	}
	return nil
}

// change is a text that stands once in a source file, and what is to stand there; without a
// text, a file that is new.
type change struct{ file, old, new string }

// built keeps programs that were built of changed sources.
var built sync.Map

// changed builds the program of sources of which some are changed: another version, another
// revision of a method, as an upgrade brings it, or one that dies where it is told to.
func changed(t *testing.T, name string, changes ...change) string {
	t.Helper()
	once, _ := built.LoadOrStore(name, sync.OnceValues(func() (string, error) {
		texts, replace := map[string]string{}, map[string]string{}
		for _, c := range changes {
			file, err := filepath.Abs(filepath.Join(root, filepath.FromSlash(c.file)))
			if err != nil {
				return "", err
			}
			text, known := texts[file]
			if !known && c.old != "" {
				data, err := os.ReadFile(file)
				if err != nil {
					return "", err
				}
				text = string(data)
			}
			if c.old != "" && strings.Count(text, c.old) != 1 {
				return "", fmt.Errorf("%q does not stand once in %s", c.old, c.file)
			}
			texts[file] = strings.Replace(text, c.old, c.new, 1)
			if !known {
				replace[file] = filepath.Join(shared, fmt.Sprintf("%s-%d.go.txt", name, len(texts)))
			}
			if err := os.WriteFile(replace[file], []byte(texts[file]), 0o644); err != nil {
				return "", err
			}
		}
		data, err := json.Marshal(map[string]any{"Replace": replace})
		if err != nil {
			return "", err
		}
		overlay := filepath.Join(shared, name+".json")
		if err := os.WriteFile(overlay, data, 0o644); err != nil {
			return "", err
		}
		to := filepath.Join(shared, "parley-"+name)
		return to, build(to, "-overlay", overlay)
	}))
	return testkit.Get(once.(func() (string, error))())(t)
}

// newer is the version of a program that was upgraded.
const newer = "0.1.1-test"

// upgraded is the program with another version and the same methods.
func upgraded(t *testing.T) string {
	return changed(t, "upgraded", change{"internal/version/version.go", "Number = " + strconv.Quote(version.Number),
		"Number = " + strconv.Quote(newer)})
}

// references keeps what parley run makes of a plan.
var references sync.Map

// reference runs a plan in one process, and returns the results' folder.
func reference(t *testing.T, plan string) string {
	t.Helper()
	data := testkit.Get(os.ReadFile(plan))(t)
	once, _ := references.LoadOrStore(string(data), sync.OnceValues(func() (string, error) {
		dir, err := os.MkdirTemp(shared, "reference-")
		if err != nil {
			return "", err
		}
		out := filepath.Join(dir, "results")
		if said, err := exec.Command(binary, "run", plan, "--out", out).CombinedOutput(); err != nil {
			return "", fmt.Errorf("parley run %s: %w\n%s", plan, err, said)
		}
		return out, nil
	}))
	return testkit.Get(once.(func() (string, error))())(t)
}
