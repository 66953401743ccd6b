package engine_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"strings"
	"testing"
	"time"

	"parley/engine"
	"parley/engine/enginetest"
	"parley/internal/testkit"
	"parley/internal/wire"
	"parley/method"
	"parley/privacy"
	"parley/privacy/account"
	"parley/privacy/masks"
	"parley/sitestore"
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
		if heard == nil || errors.Is(heard, privacy.ErrRefused) == c.fails || len(out.Left) != 1 ||
			len(out.Rounds) != 4 {
			t.Fatalf("heard %v; left %v in %d rounds", heard, out.Left, len(out.Rounds))
		}
		for i, r := range out.Rounds {
			for _, x := range r.Sites {
				gone := x.Site == "centre" && i == 2
				if (x.Left != "") != gone || gone && (!strings.Contains(x.Left, c.want) ||
					strings.Contains(x.Left, "Smith") || x.Up != 0) {
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
	if len(x.Request.Sums) != 1 || x.Request.Sums[0].Mechanism != noisedSum.Sums[0].Mechanism ||
		x.Request.Sums[0].Bound != 1 || x.Up == 0 || x.Left != "" {
		t.Errorf("got %+v", x)
	}
}

// opener is a site whose one number is summed, and who opens the sum.
type opener struct{ toySite }

func (opener) Run(_ context.Context, t method.Task, s *privacy.Session) (a method.Answer, err error) {
	if t.Kind == "open" {
		a.Body, err = s.Unmask(t.Body)
		return a, err
	}
	return a, s.Total("n", []float64{1})
}

// An opener that goes on after a loss answers again, with other masks, what it had answered. It opens nothing more:
// what it had opened with the lost masks would be opened for two sets.
func TestAnOpenerThatHasLostItsLedgerOpensNothing(t *testing.T) {
	group := masks.Group{Openers: []int{0}, Quorum: 2}
	var keys []masks.Keys
	for _, name := range sites[:2] {
		k := testkit.Get(masks.Simulated(toyStudy, name))(t)
		keys, group.Members = append(keys, k), append(group.Members, k.Member(name))
	}
	sum := privacy.Request{Protection: privacy.Unprotected, Masked: true,
		Totals: []privacy.Total{{Name: "n", Numbers: 1, Grid: masks.Raw}}}
	list := []privacy.Listed{{Kind: "sum", Times: 1, Request: sum},
		{Kind: "open", Times: 1, Request: privacy.Request{Protection: privacy.Differential, Opens: 4}}}
	for _, lost := range []bool{false, true} {
		store := sitestore.NewMemory()
		gate := privacy.NewGate(privacy.Study{Digest: toyStudy, Site: "north", Requests: list, Collusion: -1,
			Party: &masks.Party{Group: group, Keys: keys[0]}}, privacy.SimulationPolicy(), store, rows(1))
		site := engine.NewSite(engine.Site{Name: "north", Study: toyStudy, Sites: sites[:2], Half: opener{}, Gate: gate,
			Store: store})
		task, past := forge(t, 1, "sum", "")
		sealed := testkit.Get(site.Handle(t.Context(), task, past))(t).Release.Bytes()
		own := testkit.Get(privacy.Open(sealed, sum))(t).Masked
		other := masks.Party{Group: group, Self: 1, Keys: keys[1]}
		set := []masks.Signed{own.Signed, testkit.Get(other.Mask(own.Sum, [32]byte{1}, make(masks.Vector, 4)))(t)}
		digest := sha256.Sum256(sealed)
		open, past := forge(t, 2, "open", string(testkit.Get(wire.Marshal(privacy.Opening{Sum: own.Sum, Set: set}))(t)),
			engine.Record{Round: 1, All: true, Releases: digest[:]})
		past.Own = []engine.Claim{{Round: 1, Digest: digest[:]}}
		if lost {
			testkit.Do(t, store.Decide(time.Now(), toyStudy, (&engine.RolledBackError{Round: 1}).Decision()))
		}
		_, err := site.Handle(t.Context(), open, past)
		if refusal := (*engine.Refusal)(nil); lost != (errors.As(err, &refusal) &&
			strings.Contains(refusal.Public, "lost part of its ledger")) || !lost && err != nil {
			t.Errorf("lost %v: %v", lost, err)
		}
	}
}
