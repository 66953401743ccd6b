package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"parley/engine"
	"parley/engine/enginetest"
	"parley/method"
	"parley/privacy"
	"parley/privacy/account"
)

var noisedSum = privacy.Request{Protection: privacy.Differential, Sums: []privacy.Sum{{
	Name: "a sum", Unit: privacy.Subject, Form: privacy.Vectors, Blocks: []int{1}, Bound: 1,
	Mechanism: account.Mechanism{Kind: account.Gaussian, Noise: 4, Rate: 1, Diameter: 2, Count: 1},
}}}

// interrupted is a site whose people stop the program while it computes.
type interrupted struct {
	toySite
	request privacy.Request
	stop    func()
}

func (h interrupted) Request(method.Task) (privacy.Request, error) { return h.request, nil }

func (h interrupted) Run(ctx context.Context, _ method.Task, s *privacy.Session) (privacy.Release, error) {
	h.stop()
	if err := ctx.Err(); err != nil {
		return privacy.Release{}, err
	}
	return s.Seal([]byte("done"), nil)
}

// What was paid for is computed and stored although the run is interrupted, so
// that the charge is not lost; an exact answer costs nothing and is cut short.
func TestInterruptDoesNotForfeitACharge(t *testing.T) {
	exact := privacy.Request{Protection: privacy.Unprotected, Contents: []privacy.Content{{What: "a count", Values: 1}}}
	for name, c := range map[string]struct {
		request privacy.Request
		stored  bool
	}{"noised": {noisedSum, true}, "exact": {exact, false}} {
		w := enginetest.New(sites[:1]...)
		ctx, stop := context.WithCancel(t.Context())
		run := process(w, toy{sites: sites[:1], rounds: 2}, "", 1, nil)
		site := run.Links["north"].(enginetest.Link).Site
		site.Half = interrupted{request: c.request, stop: stop}
		if _, err := run.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Fatalf("%s: got %v", name, err)
		}
		r, _, err := w.Stores["north"].Release(toyStudy + "/north/1")
		if err != nil || (r.Sealed != nil) != c.stored {
			t.Errorf("%s: the stored release is %q, %v", name, r.Sealed, err)
		}
	}
}

func TestNothingIsChargedOnceARunIsInterrupted(t *testing.T) {
	w := enginetest.New(sites[:1]...)
	ctx, stop := context.WithCancel(t.Context())
	run := process(w, toy{sites: sites[:1], rounds: 2}, "", 1, nil)
	site := run.Links["north"].(enginetest.Link).Site
	site.Half = interrupted{request: noisedSum}
	run.Links["north"] = linkFunc(func(_ context.Context, task []byte) ([]byte, error) {
		stop()
		_, err := site.Handle(ctx, task)
		return nil, err
	})
	if _, err := run.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	if _, reserved, err := w.Stores["north"].Release(toyStudy + "/north/1"); err != nil || reserved {
		t.Errorf("reserved %v, %v", reserved, err)
	}
}

type linkFunc func(ctx context.Context, task []byte) ([]byte, error)

func (f linkFunc) Exchange(ctx context.Context, task []byte) ([]byte, error) { return f(ctx, task) }

// spender is a site that asks for more than it may, or fails, from some round on.
type spender struct {
	toySite
	rounds int
	fails  bool
	asked  *int
}

func (h spender) Request(t method.Task) (privacy.Request, error) {
	*h.asked++
	if *h.asked > h.rounds && !h.fails {
		return privacy.Request{Protection: "imaginary"}, nil
	}
	return h.toySite.Request(t)
}

func (h spender) Run(ctx context.Context, t method.Task, s *privacy.Session) (privacy.Release, error) {
	if *h.asked > h.rounds {
		return privacy.Release{}, errors.New("row 7 is called Smith")
	}
	return h.toySite.Run(ctx, t, s)
}

// A site whose budget is spent leaves in the middle of a study, and everybody
// may read why; what went wrong with its data is for its own people.
func TestSiteThatLeavesInALaterRoundSaysWhy(t *testing.T) {
	for _, c := range []struct {
		fails bool
		want  string
	}{{false, "refused by the site's policy"}, {true, "it failed"}} {
		var heard error
		run := process(enginetest.New(sites...), toy{sites: sites, rounds: 4}, "", 2, func(e engine.Event) {
			if e.Left != nil {
				heard = e.Left.Reason
			}
		})
		run.Links["centre"].(enginetest.Link).Site.Half = spender{rounds: 2, fails: c.fails, asked: new(int)}
		out, err := run.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if heard == nil || errors.Is(heard, privacy.ErrRefused) == c.fails || len(out.Left) != 1 || len(out.Rounds) != 4 {
			t.Fatalf("heard %v; left %v in %d rounds", heard, out.Left, len(out.Rounds))
		}
		for i, r := range out.Rounds {
			for _, x := range r.Sites {
				gone := x.Site == "centre" && i == 2
				if (x.Left != "") != gone || gone && (!strings.Contains(x.Left, c.want) || strings.Contains(x.Left, "Smith") || x.Up != 0) {
					t.Errorf("round %d: %+v", r.Round, x)
				}
			}
		}
		if n := len(out.Rounds[3].Sites); n != 2 {
			t.Errorf("%d sites in the last round", n)
		}
	}
}

func TestRoundsNameTheChargeOfEveryRelease(t *testing.T) {
	run := process(enginetest.New(sites[:1]...), toy{sites: sites[:1], rounds: 1}, "", 1, nil)
	run.Links["north"].(enginetest.Link).Site.Half = interrupted{request: noisedSum, stop: func() {}}
	out, err := run.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	x := out.Rounds[0].Sites[0]
	if len(x.Request.Sums) != 1 || x.Request.Sums[0].Mechanism != noisedSum.Sums[0].Mechanism || x.Request.Sums[0].Bound != 1 || x.Up == 0 || x.Left != "" {
		t.Errorf("got %+v", x)
	}
}
