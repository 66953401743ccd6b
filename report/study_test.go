//go:build browser

package report_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"parley/internal/testkit"
)

// program builds the program once for all studies.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "parley-browser-")
	if err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "parley")
	text, err := exec.Command("go", "build", "-o", bin, "parley/cmd/parley").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, text)
	}
	return bin, nil
})

// study runs a plan with the program itself and returns the directory of its results.
func study(t *testing.T, plan string) string {
	t.Helper()
	bin := testkit.Get(program())(t)
	out := filepath.Join(t.TempDir(), "results")
	if text, err := exec.Command(bin, "run", plan, "--out", out).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return out
}

func TestMain(m *testing.M) {
	code := m.Run()
	if bin, err := program(); err == nil {
		os.RemoveAll(filepath.Dir(bin))
	}
	os.Exit(code)
}

// The reports of every example, the shared one and that of a site: whole on a phone, a tablet, a
// desktop and paper, in light and dark, quick to open, and all of it reached by keys.
func TestReportsOfTheExamples(t *testing.T) {
	plans := []string{"alzheimer/plan", "income/plan", "mixture/plan", "alzheimer/private", "icu/plan"}
	plans = plans[:testkit.Sized(3, len(plans))] // one of each method
	for _, plan := range plans {
		t.Run(plan, func(t *testing.T) {
			dir := study(t, filepath.Join("..", "examples", filepath.FromSlash(plan)+".yaml"))
			sites, err := filepath.Glob(filepath.Join(dir, "sites", "*", "report.html"))
			if err != nil || len(sites) == 0 {
				t.Fatalf("no site has a page: %v", err)
			}
			for _, file := range []string{filepath.Join(dir, "report.html"), sites[0]} {
				wholeAtAllWidths(t, file, false)
			}
			ctx := open(t, filepath.Join(dir, "report.html"), 400, 800)
			faults(t, ctx, `document.querySelector('#figure-overview svg') ? [] : ['nothing says who has what']`)
			// On a phone the verdict comes before the contents, and these before what they lead to.
			faults(t, ctx, `(() => { const [a, b, c] = ['#verdict', 'nav', 'main section[id^=section-]'].map(s => document.querySelector(s).getBoundingClientRect());
				return a.bottom <= b.top && b.bottom <= c.top ? [] : ['the verdict does not come first']; })()`)
		})
	}
}

// forty writes a study of 40 sites with 216 features in five views, of which each site lacks one,
// and returns its plan.
func forty(t *testing.T) string {
	t.Helper()
	rng := rand.New(rand.NewPCG(40, 216))
	views, sizes := []string{"clinic", "immune", "metabolic", "vascular", "imaging"}, []int{16, 50, 50, 50, 50}
	const factors = 4
	loadings := map[string][]float64{}
	for k, v := range views {
		for range sizes[k] * factors {
			loadings[v] = append(loadings[v], rng.NormFloat64())
		}
	}
	dir := t.TempDir()
	var plan, folders strings.Builder
	for s := range 40 {
		name := fmt.Sprintf("site%02d", s+1)
		fmt.Fprintf(&folders, "    %s: %s\n", name, name)
		n := 20 + rng.IntN(30)
		tables := make([]strings.Builder, len(views))
		subjects := "id\n"
		var shift [factors]float64
		for a := range shift {
			shift[a] = 0.4 * rng.NormFloat64()
		}
		for k, v := range views {
			tables[k].WriteString("id")
			for j := range sizes[k] {
				fmt.Fprintf(&tables[k], ",%s_%d", v, j+1)
			}
		}
		for i := range n {
			subjects += fmt.Sprintf("s%d\n", i)
			var z [factors]float64
			for a := range z {
				z[a] = shift[a] + rng.NormFloat64()
			}
			for k, v := range views {
				fmt.Fprintf(&tables[k], "\ns%d", i)
				for j := range sizes[k] {
					x := 2 * rng.NormFloat64()
					for a := range z {
						x += loadings[v][j*factors+a] * z[a]
					}
					fmt.Fprintf(&tables[k], ",%.4g", x)
				}
			}
		}
		write(t, filepath.Join(dir, name, "subjects.csv"), subjects)
		for k, v := range views {
			if k == 0 || (s+k)%5 != 0 {
				write(t, filepath.Join(dir, name, "view_"+v+".csv"), tables[k].String()+"\n")
			}
		}
	}
	plan.WriteString("parley: 1\nname: forty\nseed: 1\nsites: [")
	for s := range 40 {
		fmt.Fprintf(&plan, "site%02d, ", s+1)
	}
	plan.WriteString("]\nviews:\n")
	for k, v := range views {
		fmt.Fprintf(&plan, "  - name: %s\n    features: [", v)
		for j := range sizes[k] {
			fmt.Fprintf(&plan, "%s_%d, ", v, j+1)
		}
		plan.WriteString("]\n")
	}
	plan.WriteString("method:\n  name: factors\n  latent: 4\n  noise: feature\nprivacy:\n  protection: " +
		"none\nlocal:\n  sites:\n" + folders.String())
	file := filepath.Join(dir, "plan.yaml")
	write(t, file, plan.String())
	return file
}

func write(t *testing.T, file, text string) {
	t.Helper()
	testkit.Do(t, os.MkdirAll(filepath.Dir(file), 0o700))
	testkit.Do(t, os.WriteFile(file, []byte(text), 0o600))
}

// A study of forty sites has a page below a megabyte, and not many times as long as one of three.
func TestReportOfFortySites(t *testing.T) {
	file := filepath.Join(study(t, forty(t)), "report.html")
	if info, err := os.Stat(file); err != nil || info.Size() > 1_000_000 {
		t.Errorf("%v, %v", info.Size(), err)
	}
	if high := testkit.Eval[int](t, open(t, file, 1280, 1080),
		`document.documentElement.scrollHeight`); high > 12*1080 {
		t.Errorf("%d pixels before folding, want twelve screens", high)
	}
	wholeAtAllWidths(t, file, true)
}

func wholeAtAllWidths(t *testing.T, file string, crowded bool) {
	t.Helper()
	if info, err := os.Stat(file); err != nil || info.Size() > 2_000_000 {
		t.Fatalf("%s: %v, %v", file, info, err)
	}
	for _, width := range []int64{400, 768, 1280} {
		t.Run(fmt.Sprintf("%s, %d wide", filepath.Base(filepath.Dir(file)), width), func(t *testing.T) {
			ctx := open(t, file, width, 800)
			if count := testkit.Eval[int](t, ctx, `document.querySelectorAll('figure:not(.table)').length`); count ==
				0 {
				t.Error("there is no picture")
			}
			faults(t, ctx, `[...document.querySelectorAll('figure:not(.table)')].filter(f => !f.querySelector('figcaption').textContent.trim() || !f.querySelector('svg desc').textContent.trim())
				.map(f => f.id + ' has no words')`)
			whole(t, ctx, width, crowded)
			if width == 1280 {
				printed(t, ctx)
			}
		})
	}
}
