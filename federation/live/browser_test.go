//go:build browser

package live

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"parley/internal/testkit"
)

// Somebody without a mouse reads what a study would do, and approves it. Nothing of the
// page is refused by its own policy, and nothing is wider than a telephone.
func TestDecidingByKeys(t *testing.T) {
	o := &office{state: "pending"}
	base, token := serve(t, o)
	ctx := testkit.Open(t, func(url string) bool { return strings.HasPrefix(url, base) })
	do := func(actions ...chromedp.Action[chromedp.Void]) {
		t.Helper()
		testkit.Act(t, ctx, actions...)
	}
	eval := func(script string) string {
		t.Helper()
		return testkit.Eval[string](t, ctx, script)
	}
	// until waits in the page until a script gives true.
	until := func(script string) {
		t.Helper()
		wait := fmt.Sprintf(`new Promise((yes, no) => { const end = Date.now() + 20000, look = () => { if (%s) `+
			`yes('yes'); else if (Date.now() > end) yes(document.body.innerText); else requestAnimationFrame(look) }; `+
			`look() })`, script)
		if v := eval(wait); v != "yes" {
			t.Fatalf("waiting for %s\n%s", script, v)
		}
	}
	do(chromedp.EmulateViewport(400, 800), chromedp.Navigate(base+"/#"+token))
	until(`document.querySelector('article button')`)
	if hash := eval(`location.hash`); hash != "" {
		t.Errorf("the address keeps the token: %s", hash)
	}
	if wide := eval(`String(document.documentElement.scrollWidth > innerWidth)`); wide != "false" {
		t.Error("the page is wider than the window")
	}
	do(chromedp.KeyEvent("\t"), chromedp.KeyEvent("\r")) // the first button: show
	until(`document.querySelector('article pre') && document.activeElement.textContent.startsWith('Show')`)
	do(chromedp.KeyEvent("\t"))
	if on := eval(`document.activeElement.textContent`); on != "Approve pain" {
		t.Errorf("the next key is on %q", on)
	}
	do(chromedp.KeyEvent("\r"))
	until(`document.querySelector('h3').textContent.includes('approved') && !document.querySelector('article button')`)
	o.mu.Lock()
	defer o.mu.Unlock()
	if !slices.Equal(o.decided, []string{"approve d1"}) {
		t.Errorf("decided: %v", o.decided)
	}
}
