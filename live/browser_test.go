//go:build browser

package live

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Somebody without a mouse reads what a study would do, and approves it. Nothing of the
// page is refused by its own policy, and nothing is wider than a telephone.
func TestDecidingByKeys(t *testing.T) {
	o := &office{state: "pending"}
	base, token := serve(t, o)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	ctx, stop = chromedp.NewExecAllocator(ctx, append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()))...)
	defer stop()
	ctx, stop = chromedp.NewContext(ctx)
	defer stop()
	var mu sync.Mutex
	var seen []string
	err := chromedp.Listen(ctx, func(event any) {
		mu.Lock()
		defer mu.Unlock()
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			seen = append(seen, "exception: "+e.ExceptionDetails.Text)
		case *log.EventEntryAdded:
			seen = append(seen, "log: "+e.Entry.Text+" "+e.Entry.URL)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	do := func(actions ...chromedp.Action[chromedp.Void]) {
		t.Helper()
		if err := chromedp.Do(ctx, actions...); err != nil {
			t.Fatal(err)
		}
	}
	eval := func(script string) string {
		t.Helper()
		v, err := chromedp.Run(ctx, chromedp.Evaluate[string](script))
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	// until waits in the page until a script gives true.
	until := func(script string) {
		t.Helper()
		wait := fmt.Sprintf(`new Promise((yes, no) => { const end = Date.now() + 20000, look = () => { if (%s) yes('yes'); else if (Date.now() > end) yes(document.body.innerText); else requestAnimationFrame(look) }; look() })`, script)
		v, err := chromedp.Run(ctx, chromedp.Evaluate[string](wait, chromedp.EvalAwaitPromise))
		if err != nil || v != "yes" {
			t.Fatalf("waiting for %s: %v\n%s", script, err, v)
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
	mu.Lock()
	defer mu.Unlock()
	for _, s := range seen {
		t.Error(s)
	}
}
