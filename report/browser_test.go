//go:build browser

package report_test

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"parley/figure"
	"parley/internal/testkit"
)

// open shows the page at a width in a fresh browser and returns the context of its tab. The page
// may load itself, and nothing else.
func open(t *testing.T, file string, width, height int64) context.Context {
	t.Helper()
	ctx := testkit.Open(t, func(url string) bool {
		return url == "file://"+file || strings.HasPrefix(url, "data:") || strings.HasPrefix(url, "file://"+file+"#")
	})
	testkit.Act(t, ctx, window(width, height), chromedp.Navigate("file://"+file))
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

// faults runs a script that returns a list of complaints.
func faults(t *testing.T, ctx context.Context, script string) {
	t.Helper()
	for _, f := range testkit.Eval[[]string](t, ctx, script) {
		t.Error(f)
	}
}

// shown are the pictures of this width that are not folded away.
const shown = `[...document.querySelectorAll('svg')].filter(svg => svg.checkVisibility({contentVisibilityAuto: true}))`

// Every picture has a size, and no text of it is cut at its edge. Fonts differ
// between machines, so the widths that the drawing assumed are checked here.
const pictures = shown + `.flatMap(svg => {
	const name = svg.querySelector('title').textContent, box = svg.getBoundingClientRect();
	if (!(box.width > 100 && box.height > 40)) return [name + ': ' + box.width + ' by ' + box.height];
	return [...svg.querySelectorAll('text')].filter(text => {
		const b = text.getBoundingClientRect();
		return b.left < box.left - 0.5 || b.right > box.right + 0.5 || b.top < box.top - 0.5 || b.bottom > box.bottom + 0.5;
	}).map(text => name + ': the text "' + text.textContent + '" is cut');
})`

// No two texts of a picture lie on each other.
const overlaps = shown + `.flatMap(svg => {
	const texts = [...svg.querySelectorAll('text')].map(t => [t.lastChild ? t.lastChild.textContent : '', t.getBoundingClientRect()]).filter(t => t[0]);
	const found = [];
	for (let i = 0; i < texts.length; i++) for (let j = 0; j < i; j++) {
		const [s, a] = texts[i], [u, b] = texts[j];
		const w = Math.min(a.right, b.right) - Math.max(a.left, b.left), h = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
		if (w > 1 && h > 4) found.push(svg.querySelector('title').textContent + ': "' + s + '" lies on "' + u + '"');
	}
	return found.slice(0, 5);
})`

// letters are large enough to be read: 10 pixels on the screen.
const letters = shown + `.flatMap(svg => {
	const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
	return [...svg.querySelectorAll('text')].filter(t => parseFloat(getComputedStyle(t).fontSize) * scale < 9.9)
		.slice(0, 1).map(t => svg.querySelector('title').textContent + ': "' + t.textContent + '" has letters of ' + parseFloat(getComputedStyle(t).fontSize) * scale + ' pixels');
})`

// marks says which pictures have nothing drawn inside their frame: every mark lies within its
// picture, and there is one.
const marks = shown + `.flatMap(svg => {
	const box = svg.getBoundingClientRect(), name = svg.querySelector('title').textContent;
	const drawn = [...svg.querySelectorAll('path, ellipse, rect')].slice(1).filter(e => !e.closest('defs')).map(e => e.getBoundingClientRect());
	const found = drawn.some(b => b.width + b.height > 0) ? [] : [name + ' has no mark'];
	return found.concat(drawn.filter(b => b.left < box.left - 20 || b.right > box.right + 20).slice(0, 1).map(b => name + ': a mark lies beside the picture'));
})`

// contrast complains of words that differ too little from what is behind them (WCAG 2.2, 1.4.3).
// Pictures are turned round on dark screens by a filter, whose effect on the colours of
// letters is computed here: invert, then a rotation of hue by 180° (Filter Effects, 9.1).
const contrast = `(() => {
	const parse = c => (c.match(/[\d.]+/g) || [0, 0, 0, 0]).map(Number);
	const light = ([r, g, b]) => [r, g, b].map(v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
		.reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
	const ratio = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
	const turned = rgb => {
		const [r, g, b] = rgb.map(v => 255 - v), clamp = v => Math.min(Math.max(v, 0), 255);
		return [-0.574 * r + 1.43 * g + 0.144 * b, 0.426 * r + 0.43 * g + 0.144 * b, 0.426 * r + 1.43 * g - 0.856 * b].map(clamp);
	};
	const behind = e => {
		for (; e; e = e.parentElement) {
			const c = parse(getComputedStyle(e).backgroundColor);
			if (c.length < 4 || c[3] > 0.5) return c.slice(0, 3);
		}
		return [255, 255, 255];
	};
	const found = [];
	for (const e of document.querySelectorAll('p, a, dt, dd, h1, h2, h3, td, th, li, figcaption, summary, button, label, select, svg text')) {
		if (!e.textContent.trim() || !e.checkVisibility()) continue;
		const svg = e.closest('svg'), filtered = svg && getComputedStyle(svg).filter !== 'none';
		let ink = parse(svg ? getComputedStyle(e).fill : getComputedStyle(e).color).slice(0, 3);
		if (svg && ink.every(v => v === 0 || v === 255)) continue; // on a cell's own colour, which package figure tests
		if (filtered) ink = turned(ink);
		const r = ratio(ink, behind(svg ? svg.parentElement : e));
		if (r < 4.5) found.push(e.nodeName + ' "' + e.textContent.slice(0, 30) + '" has a contrast of ' + r.toFixed(2));
	}
	return found.slice(0, 5);
})()`

// dark is the screen of a reader who wants it so.
var dark = command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
	Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}})

// whole holds a page to what every page has to be, at a width: nothing overflows, is cut, hidden,
// too small or too faint, in light and dark, folded and open, and all is reached by keys.
func whole(t *testing.T, ctx context.Context, width int64, crowded bool) {
	t.Helper()
	for _, script := range []string{pictures, overflow(width), letters, marks, contrast} {
		faults(t, ctx, script)
	}
	if !crowded {
		faults(t, ctx, overlaps)
	}
	faults(t, ctx, `[...document.querySelectorAll('.scroll, summary, a, button, select, input')].filter(e => `+
		`e.tabIndex < 0).map(e => e.outerHTML.slice(0, 80) + ' is not reached by keys')`)
	if width < 600 && !crowded { // matrices that are wide whatever is done may scroll in their box
		faults(t, ctx, shown+`.filter(s => s.getBoundingClientRect().width > innerWidth).map(s => `+
			`s.querySelector('title').textContent + ' is wider than the screen')`)
	}
	testkit.Eval[chromedp.Void](t, ctx, `document.querySelectorAll('details').forEach(d => d.open = true)`)
	faults(t, ctx, pictures)
	faults(t, ctx, overflow(width))
	testkit.Act(t, ctx, dark)
	faults(t, ctx, contrast)
}

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
				testkit.Do(t, sample(c.sites, c.views, c.factors).WriteFiles(dir))
				ctx := open(t, filepath.Join(dir, "report.html"), width, 800)
				if count := testkit.Eval[int](t, ctx, `document.querySelectorAll('figure > .scroll `+
					`svg').length`); count != 2*6 {
					t.Errorf("%d pictures, want 6 at two widths", count)
				}
				whole(t, ctx, width, c.sites >= 30)
			})
		}
	}
}

// The script sorts and filters a table, picks one of several pictures and says what a mark is; a
// page whose script does not run shows the same.
func TestScript(t *testing.T) {
	dir := t.TempDir()
	r := sample(40, 4, 6)
	bars := func(id string) figure.Item {
		return figure.Item{Figure: &figure.Figure{ID: id, Title: id, Caption: "A bar.", Choice: "Factor",
			Chart: figure.Bars{Labels: []string{"a"}, Values: figure.Numbers{1}}}}
	}
	r.Sections = append(r.Sections, figure.Section{ID: "choice", Title: "Choice",
		Items: []figure.Item{bars("one"), bars("two"),
			{Table: &figure.Table{ID: "long", Title: "Long",
				Columns: []figure.Column{{Name: "n", Numbers: figure.Numbers{3, math.NaN(), -1, 10, 2, 5, 7, 8, 9,
					4, 6, 1}}}}}}})
	testkit.Do(t, r.WriteFiles(dir))
	ctx := open(t, filepath.Join(dir, "report.html"), 1280, 800)
	column := `[...document.querySelectorAll('#table-long tbody tr')].filter(r => !r.hidden).map(r => ` +
		`r.textContent).join(' ')`
	testkit.Act(t, ctx, chromedp.Evaluate[chromedp.Void](`document.querySelector('#table-long button').click()`))
	if got := testkit.Eval[string](t, ctx, column); got != "−1 1 2 3 4 5 6 7 8 9 10 n/a" {
		t.Errorf("sorted: %s", got)
	}
	testkit.Act(t, ctx, chromedp.Evaluate[chromedp.Void](`document.querySelector('#table-long button').click()`))
	if got := testkit.Eval[string](t, ctx, column); got != "10 9 8 7 6 5 4 3 2 1 −1 n/a" {
		t.Errorf("sorted downwards: %s", got)
	}
	if got := testkit.Eval[string](t, ctx, `{ const f = document.querySelector('#table-long input'); f.value = '1'; `+
		`f.dispatchEvent(new Event('input')); } `+column); got != "10 1 −1" {
		t.Errorf("filtered: %s", got)
	}
	visible := `[...document.querySelectorAll('[data-choice]')].filter(f => f.checkVisibility()).map(f => ` +
		`f.id).join(' ')`
	if got := testkit.Eval[string](t, ctx, visible); got != "figure-one" {
		t.Errorf("before a choice: %s", got)
	}
	if got := testkit.Eval[string](t, ctx, `{ const s = document.querySelector('select'); s.value = '1'; `+
		`s.dispatchEvent(new Event('change')); } `+visible); got != "figure-two" {
		t.Errorf("chosen: %s", got)
	}
	if got := testkit.Eval[string](t, ctx, `document.querySelector('#figure-two .wide svg [rx]').dispatchEvent(new `+
		`MouseEvent('click', {bubbles: true})); document.querySelector('#figure-two .value').textContent`); got !=
		"a: 1" {
		t.Errorf("the mark says %q", got)
	}
	testkit.Act(t, ctx, command(emulation.SetScriptExecutionDisabled,
		emulation.SetScriptExecutionDisabledParams{Value: true}), chromedp.Reload())
	if n := testkit.Eval[int](t, ctx, `document.querySelectorAll('.tools').length`); n != 0 {
		t.Errorf("%d tools without a script", n)
	}
	if got := testkit.Eval[string](t, ctx, visible); got != "figure-one figure-two" {
		t.Errorf("without the script: %s", got)
	}
}

func TestContentsLeadToTheirSections(t *testing.T) {
	dir := t.TempDir()
	r := sample(3, 4, 6)
	testkit.Do(t, r.WriteFiles(dir))
	ctx := open(t, filepath.Join(dir, "report.html"), 1280, 800)
	testkit.Act(t, ctx, command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-reduced-motion", Value: "reduce"}}}))
	for _, s := range r.Sections {
		testkit.Act(t, ctx, chromedp.Click(`nav a[href="#section-`+s.ID+`"]`))
		top := testkit.Eval[float64](t, ctx, `document.getElementById('section-`+s.ID+`').getBoundingClientRect().top`)
		room := testkit.Eval[float64](t, ctx, `document.documentElement.scrollHeight - window.innerHeight - `+
			`window.scrollY`)
		// The last sections cannot reach the top of the window.
		if top < -1 || top > 40 && room > 1 {
			t.Errorf("the link to %s leaves it at %v", s.ID, top)
		}
	}
	// The first stop of the tabulator is the link past the head of the page.
	testkit.Act(t, ctx, chromedp.Navigate("about:blank"),
		chromedp.Navigate("file://"+filepath.Join(dir, "report.html")), chromedp.KeyEvent("\t"))
	if first := testkit.Eval[string](t, ctx, `document.activeElement.getAttribute('href')`); first != "#main" {
		t.Errorf("the first stop is %q", first)
	}
}

func TestPagePrints(t *testing.T) {
	dir := t.TempDir()
	testkit.Do(t, sample(3, 4, 6).WriteFiles(dir))
	ctx := open(t, filepath.Join(dir, "report.html"), 1280, 800)
	pdf := testkit.Get(chromedp.Run(ctx, chromedp.PrintToPDF(chromedp.PDFPaper(chromedp.PaperA4))))(t)
	if !strings.HasPrefix(string(pdf), "%PDF-") {
		t.Error("not a PDF")
	}
	printed(t, ctx)
}

// printed holds a page to what paper asks for: light, no wider than A4, and no picture higher
// than a page.
func printed(t *testing.T, ctx context.Context) {
	t.Helper()
	testkit.Act(t, ctx, command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print",
		// A4 less its margins
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}}), window(680, 980))
	faults(t, ctx, overflow(680))
	faults(t, ctx, shown+`.filter(s => s.getBoundingClientRect().right > window.innerWidth + 0.5 || s.getBoundingClientRect().height > 980)
		.map(s => s.querySelector('title').textContent + ' is larger than the paper')`)
	faults(t, ctx, `getComputedStyle(document.body).backgroundColor === 'rgb(255, 255, 255)' && `+
		`getComputedStyle(document.querySelector('figure svg')).filter === 'none' ? [] : ['the paper is dark']`)
}
