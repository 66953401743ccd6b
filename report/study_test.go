//go:build browser

package report_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

// study runs the example plan with the program itself and returns the
// directory of its results.
func study(t *testing.T) string {
	t.Helper()
	bin, out := filepath.Join(t.TempDir(), "parley"), filepath.Join(t.TempDir(), "results")
	for _, c := range [][]string{
		{"go", "build", "-o", bin, "parley/cmd/parley"},
		{bin, "run", filepath.Join("..", "examples", "alzheimer", "plan.yaml"), "--out", out},
	} {
		if text, err := exec.Command(c[0], c[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", c, err, text)
		}
	}
	return out
}

// The reports of the example, the shared one and those of its sites: whole on
// a phone, a desktop and paper, quick to open, and all of it reached by keys.
func TestReportsOfTheExample(t *testing.T) {
	dir := study(t)
	for _, name := range []string{"report.html", "sites/north/report.html", "sites/centre/report.html", "sites/south/report.html"} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if info, err := os.Stat(file); err != nil || info.Size() > 3_000_000 {
			t.Fatalf("%s: %v, %v", name, info, err)
		}
		for _, width := range []int64{390, 1200} {
			t.Run(name, func(t *testing.T) {
				ctx := open(t, file, width, 800)
				least := 6
				if name == "report.html" {
					least = 18
				}
				if count := eval[int](t, ctx, `document.querySelectorAll('svg').length`); count < least {
					t.Errorf("%d pictures, want %d or more", count, least)
				}
				faults(t, ctx, pictures)
				faults(t, ctx, overlaps)
				faults(t, ctx, overflow(width))
				faults(t, ctx, `[...document.querySelectorAll('figure:not(.table)')].filter(f => !f.querySelector('figcaption').textContent.trim() || !f.querySelector('svg desc').textContent.trim())
					.map(f => f.id + ' has no words')`)
				// What scrolls or opens can be reached without a pointer.
				faults(t, ctx, `[...document.querySelectorAll('.scroll, summary, a')].filter(e => e.tabIndex < 0).map(e => e.outerHTML.slice(0, 80) + ' is not reached by keys')`)
				eval[chromedp.Void](t, ctx, `document.querySelectorAll('details').forEach(d => d.open = true)`)
				faults(t, ctx, overflow(width))
			})
		}
	}
}
