//go:build browser

package report_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// open shows the page at a width in a fresh browser and returns the context
// of its tab. What the page writes to the console, and asks of the network,
// fails the test. The test fails too if there is no browser.
func open(t *testing.T, file string, width, height int64) context.Context {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true))
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx)
	t.Cleanup(stop)

	var mu sync.Mutex
	var seen []string
	err := chromedp.Listen(ctx, func(event any) {
		mu.Lock()
		defer mu.Unlock()
		switch e := event.(type) {
		case *runtime.EventConsoleAPICalled:
			seen = append(seen, fmt.Sprintf("console: %s %v", e.Type, e.Args))
		case *runtime.EventExceptionThrown:
			seen = append(seen, "exception: "+e.ExceptionDetails.Text)
		case *log.EventEntryAdded:
			seen = append(seen, "log: "+e.Entry.Text)
		case *network.EventRequestWillBeSent:
			if u := e.Request.URL; u != "file://"+file && !strings.HasPrefix(u, "data:") && !strings.HasPrefix(u, "file://"+file+"#") {
				seen = append(seen, "request: "+u)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		for _, s := range seen {
			t.Error(s)
		}
	})
	do(t, ctx, window(width, height), chromedp.Navigate("file://"+file))
	return ctx
}

// command is an action that sends a command of the protocol.
func command[P, R any](c cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, c, params)
		return err
	})
}

func window(width, height int64) chromedp.Action[chromedp.Void] {
	if width < 600 {
		return chromedp.EmulateViewport(width, height, chromedp.EmulateMobile, chromedp.EmulatePortrait)
	}
	return chromedp.EmulateViewport(width, height)
}

func do(t *testing.T, ctx context.Context, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(ctx, actions...); err != nil {
		t.Fatal(err)
	}
}

// eval runs a script on the page and returns its value.
func eval[T any](t *testing.T, ctx context.Context, script string) T {
	t.Helper()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](script))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// faults runs a script that returns a list of complaints.
func faults(t *testing.T, ctx context.Context, script string) {
	t.Helper()
	for _, f := range eval[[]string](t, ctx, script) {
		t.Error(f)
	}
}

// Every picture has a size, and no text of it is cut at its edge. Fonts differ
// between machines, so the widths that the drawing assumed are checked here.
const pictures = `[...document.querySelectorAll('svg')].flatMap(svg => {
	const name = svg.querySelector('title').textContent, box = svg.getBoundingClientRect();
	if (!(box.width > 100 && box.height > 40)) return [name + ': ' + box.width + ' by ' + box.height];
	return [...svg.querySelectorAll('text')].filter(text => {
		const b = text.getBoundingClientRect();
		return b.left < box.left - 0.5 || b.right > box.right + 0.5 || b.top < box.top - 0.5 || b.bottom > box.bottom + 0.5;
	}).map(text => name + ': the text "' + text.textContent + '" is cut');
})`

// No two texts of a picture lie on each other.
const overlaps = `[...document.querySelectorAll('svg')].flatMap(svg => {
	const texts = [...svg.querySelectorAll('text')].map(t => [t.lastChild ? t.lastChild.textContent : '', t.getBoundingClientRect()]).filter(t => t[0]);
	const found = [];
	for (let i = 0; i < texts.length; i++) for (let j = 0; j < i; j++) {
		const [s, a] = texts[i], [u, b] = texts[j];
		const w = Math.min(a.right, b.right) - Math.max(a.left, b.left), h = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
		if (w > 1 && h > 4) found.push(svg.querySelector('title').textContent + ': "' + s + '" lies on "' + u + '"');
	}
	return found.slice(0, 5);
})`

// overflow complains if the page itself scrolls sideways; wide things scroll in
// their box. A phone's window grows with its page, so its width is given.
func overflow(width int64) string {
	return fmt.Sprintf(`document.documentElement.scrollWidth > %[1]d
		? ['the page is ' + document.documentElement.scrollWidth + ' wide in a window of %[1]d'] : []`, width)
}

func TestPageInABrowser(t *testing.T) {
	for _, c := range []struct{ sites, views, factors int }{{3, 4, 6}, {1, 1, 1}, {30, 12, 20}} {
		for _, width := range []int64{390, 1280} {
			t.Run(fmt.Sprintf("%d sites, %d wide", c.sites, width), func(t *testing.T) {
				dir := t.TempDir()
				if err := sample(c.sites, c.views, c.factors).WriteFiles(dir); err != nil {
					t.Fatal(err)
				}
				ctx := open(t, filepath.Join(dir, "report.html"), width, 800)
				if count := eval[int](t, ctx, `document.querySelectorAll('svg').length`); count != 6 {
					t.Errorf("%d pictures, want 6", count)
				}
				faults(t, ctx, pictures)
				faults(t, ctx, overflow(width))
				if c.sites < 30 {
					faults(t, ctx, overlaps)
				}
				eval[chromedp.Void](t, ctx, `document.querySelectorAll('details').forEach(d => d.open = true)`)
				faults(t, ctx, overflow(width))
			})
		}
	}
}

func TestContentsLeadToTheirSections(t *testing.T) {
	dir := t.TempDir()
	r := sample(3, 4, 6)
	if err := r.WriteFiles(dir); err != nil {
		t.Fatal(err)
	}
	ctx := open(t, filepath.Join(dir, "report.html"), 1280, 800)
	do(t, ctx, command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-reduced-motion", Value: "reduce"}}}))
	for _, s := range r.Sections {
		do(t, ctx, chromedp.Click(`nav a[href="#section-`+s.ID+`"]`))
		top := eval[float64](t, ctx, `document.getElementById('section-`+s.ID+`').getBoundingClientRect().top`)
		room := eval[float64](t, ctx, `document.documentElement.scrollHeight - window.innerHeight - window.scrollY`)
		// The last sections cannot reach the top of the window.
		if top < -1 || top > 40 && room > 1 {
			t.Errorf("the link to %s leaves it at %v", s.ID, top)
		}
	}
	// The first stop of the tabulator is the link past the head of the page.
	do(t, ctx, chromedp.Navigate("about:blank"), chromedp.Navigate("file://"+filepath.Join(dir, "report.html")), chromedp.KeyEvent("\t"))
	if first := eval[string](t, ctx, `document.activeElement.getAttribute('href')`); first != "#main" {
		t.Errorf("the first stop is %q", first)
	}
}

func TestPagePrints(t *testing.T) {
	dir := t.TempDir()
	if err := sample(3, 4, 6).WriteFiles(dir); err != nil {
		t.Fatal(err)
	}
	ctx := open(t, filepath.Join(dir, "report.html"), 1280, 800)
	pdf, err := chromedp.Run(ctx, chromedp.PrintToPDF(chromedp.PDFPaper(chromedp.PaperA4)))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(pdf), "%PDF-") {
		t.Error("not a PDF")
	}
	do(t, ctx, command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"}), window(680, 980)) // A4 less its margins
	faults(t, ctx, overflow(680))
	faults(t, ctx, `[...document.querySelectorAll('svg')].filter(s => s.getBoundingClientRect().right > window.innerWidth + 0.5)
		.map(s => s.querySelector('title').textContent + ' is wider than the paper')`)
}
