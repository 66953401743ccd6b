package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"parley/engine"
	"parley/engine/enginetest"
	"parley/internal/testkit"
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
	stop func()
}

func (h interrupted) Run(ctx context.Context, _ method.Task, s *privacy.Session) (method.Answer, error) {
	h.stop()
	return method.Answer{Body: []byte("done")}, ctx.Err()
}

// What was paid for is computed and stored although the run is interrupted; an
// exact answer is cut short.
func TestInterruptedComputationOfWhatWasChargedIsFinished(t *testing.T) {
	for name, c := range map[string]struct {
		request privacy.Request
		stored  bool
	}{"noised": {noisedSum, true}, "exact": {counted, false}} {
		w := enginetest.New(sites[:1]...)
		ctx, stop := context.WithCancel(t.Context())
		m := toy{sites: sites[:1], rounds: 2}
		run := process(w, m, "", 1, nil)
		run.Requests["north"] = listing(2, c.request)
		replaced(w, run, m, "north", run.Requests["north"], interrupted{stop: stop})
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
	m := toy{sites: sites[:1], rounds: 2}
	run := process(w, m, "", 1, nil)
	run.Requests["north"] = listing(2, noisedSum)
	site := replaced(w, run, m, "north", run.Requests["north"], interrupted{})
	run.Links["north"] = linkFunc(func(_ context.Context, task []byte, past engine.History) (engine.Reply, error) {
		stop()
		_, err := site.Handle(ctx, task, past.Since(0))
		return engine.Reply{}, err
	})
	if _, err := run.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	if _, reserved, err := w.Stores["north"].Release(toyStudy + "/north/1"); err != nil || reserved {
		t.Errorf("reserved %v, %v", reserved, err)
	}
}

type linkFunc func(ctx context.Context, task []byte, past engine.History) (engine.Reply, error)

func (f linkFunc) Exchange(ctx context.Context, task []byte, past engine.History) (engine.Reply, error) {
	return f(ctx, task, past)
}

// failing is a site whose method fails from some task on.
type failing struct {
	toySite
	rounds int
	asked  *int
}

func (h failing) Run(ctx context.Context, t method.Task, s *privacy.Session) (method.Answer, error) {
	if *h.asked++; *h.asked > h.rounds {
		return method.Answer{}, errors.New("row 7 is called Smith")
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
		m, w := toy{sites: sites, rounds: 4}, enginetest.New(sites...)
		run := process(w, m, "", 2, func(e engine.Event) {
			if e.Left != nil {
				heard = e.Left.Reason
			}
		})
		if c.fails {
			replaced(w, run, m, "centre", run.Requests["centre"], failing{rounds: 2, asked: new(int)})
		} else {
			replaced(w, run, m, "centre", listing(2, counted), toySite{})
		}
		out := testkit.Get(run.Run(t.Context()))(t)
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
	m, w := toy{sites: sites[:1], rounds: 1}, enginetest.New(sites[:1]...)
	run := process(w, m, "", 1, nil)
	run.Requests["north"] = listing(1, noisedSum)
	replaced(w, run, m, "north", run.Requests["north"], interrupted{stop: func() {}})
	out := testkit.Get(run.Run(t.Context()))(t)
	x := out.Rounds[0].Sites[0]
	if len(x.Request.Sums) != 1 || x.Request.Sums[0].Mechanism != noisedSum.Sums[0].Mechanism || x.Request.Sums[0].Bound != 1 || x.Up == 0 || x.Left != "" {
		t.Errorf("got %+v", x)
	}
}
