package wire_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/dataset"
	"parley/engine"
	"parley/engine/enginetest"
	"parley/engine/host"
	"parley/engine/local"
	"parley/engine/wire"
	"parley/internal/testkit"
	"parley/method"
	"parley/methods/factors"
	"parley/methods/regression"
	"parley/privacy"
	"parley/privacy/ledger"
	"parley/sitestore"
	"parley/study"
)

// histories is how many seeded histories the chaos test runs:
//
//	go test ./engine/wire -run Chaos -histories 2000 -timeout 2h
var (
	histories = flag.Int("histories", testkit.Sized(20, 200), "seeded histories of the chaos test")
	history   = flag.Int("history", -1, "the one history of the chaos test to run, by its seed")
)

// story is a study, and what becomes of it.
type story struct {
	t       *testing.T
	dir     string
	method  method.Method
	plan    *study.Plan
	data    map[string]dataset.Source
	chaos   *chaos
	net     *weather
	keys    map[string]*wire.Key // "" is the coordinator's
	studyID string
	ended   map[string]bool // sites that have what they may have
	lost    map[string]bool // sites whose store was put back
	shorter map[string]int  // lines of the ledger that was put back, where it had more before
	decided map[string]bool // sites where a person has decided to go on
	mu      sync.Mutex
}

func (s *story) path(site string) string { return filepath.Join(s.dir, site, "site.db") }

func (s *story) host(site string, store host.Store) *host.Host {
	clock := func() time.Time { return time.Unix(int64(s.chaos.upTo(1<<31)), 0) } // it jumps
	return &host.Host{
		Site: site, Methods: method.Registry{s.method}, Data: s.data[site], Store: store,
		Policy: privacy.SimulationPolicy(),
		Marks:  host.Receipts(filepath.Join(s.dir, site+".receipts")), Options: []privacy.Option{privacy.Clock(clock)},
	}
}

// siteOnce is one life of a site's process.
func (s *story) siteOnce(ctx context.Context, site string, p *process) {
	ctx = p.start(ctx)
	defer p.kill()
	store, err := sitestore.Open(s.path(site), sitestore.Quick())
	if err != nil {
		s.t.Errorf("site %s: %v", site, err)
		return
	}
	defer func() {
		if err := store.Close(); err != nil {
			s.t.Errorf("site %s: %v", site, err)
		}
	}()
	h := s.host(site, disk{store, p, site})
	loop, err := h.Open(ctx, s.plan)
	if err != nil {
		if !errors.Is(err, errKilled) && ctx.Err() == nil {
			s.t.Errorf("site %s: %v", site, err)
		}
		return
	}
	server := &wire.Server{Wire: s.net, Key: s.keys[site], Peer: s.keys[""].Peer(), Site: loop,
		Again: time.Minute, Part: 128,
		Keep: func(r wire.Receipt) error { return h.Marks.(host.Receipts).Confirm(r.Study, r) },
		Kept: func() (r wire.Receipt, err error) {
			return r, h.Marks.(host.Receipts).Confirmed(loop.Study, &r)
		},
		End: func([]byte, bool) error {
			s.mu.Lock()
			s.ended[site] = true
			s.mu.Unlock()
			return nil
		}}
	err = server.Serve(ctx)
	var rolledBack *engine.RolledBackError
	if errors.As(err, &rolledBack) { // a person decides
		s.mu.Lock()
		if !s.lost[site] {
			s.t.Errorf("site %s, whose store was never put back: %v", site, err)
		}
		s.mu.Unlock()
		s.mu.Lock()
		s.decided[site] = true
		s.mu.Unlock()
		s.chaos.trace.forget(site)
		if err := h.GoOn(loop.Study, rolledBack); err != nil {
			s.t.Errorf("site %s: %v", site, err)
		}
	}
}

// site lives until the study is over. In one of its pauses an old copy of its store may be
// put back.
func (s *story) site(ctx context.Context, site string, p *process, rollBack bool) {
	var copied []byte
	for lives := 0; ctx.Err() == nil; lives++ {
		s.siteOnce(ctx, site, p)
		s.chaos.sleep(ctx, 5*time.Minute)
		switch {
		case !rollBack || ctx.Err() != nil:
		case copied == nil:
			var err error
			if copied, err = os.ReadFile(s.path(site)); err != nil {
				s.t.Error(err)
			}
		default:
			// What was charged and told to nobody may be lost unnoticed: it was not told.
			before, err := host.Receipts(filepath.Join(s.dir, site+".receipts")).Load()
			if err != nil {
				s.t.Error(err)
			}
			if err := os.WriteFile(s.path(site), copied, 0o600); err != nil {
				s.t.Error(err)
			}
			s.chaos.trace.forget(site) // what was stored and not told may be made again
			s.mu.Lock()
			s.lost[site] = true
			if after := s.lines(site); after < before.Lines {
				s.shorter[site] = after
			}
			s.mu.Unlock()
			rollBack = false
		}
	}
}

// lines is how many charges a site's ledger has.
func (s *story) lines(site string) (n int) {
	err := sitestore.Look(s.path(site), func(store *sitestore.Store) (err error) {
		n, _, err = store.Last()
		return err
	})
	if err != nil {
		s.t.Errorf("site %s: %v", site, err)
	}
	return n
}

func (s *story) coordinator(links map[string]engine.Link, store engine.Checkpoints) *engine.Coordinator {
	half, err := method.ForPlan(s.method, s.plan).Coordinator(s.plan)
	if err != nil {
		s.t.Fatal(err)
	}
	c := &engine.Coordinator{Study: s.studyID, Revision: s.method.Revision(), Sites: s.plan.Sites,
		Quorum: s.plan.Quorum, Method: half,
		Requests: map[string][]privacy.Listed{}, Links: links, Checkpoints: store}
	for _, site := range s.plan.Sites {
		if c.Requests[site], err = method.ForPlan(s.method, s.plan).Requests(s.plan, site); err != nil {
			s.t.Fatal(err)
		}
	}
	return c
}

// coordinate lives until the study is done.
func (s *story) coordinate(ctx context.Context, p *process, store *checkpoints, drop string) (*engine.Outcome, error) {
	for ctx.Err() == nil {
		life := p.start(ctx)
		out, err := s.coordinateOnce(life, store, drop)
		if err == nil {
			return out, nil
		}
		if life.Err() == nil && !errors.Is(err, errKilled) && !errors.Is(err, errWeather) {
			return nil, err
		}
		p.kill()
		s.chaos.sleep(ctx, 5*time.Minute)
	}
	return nil, context.Cause(ctx)
}

func (s *story) coordinateOnce(ctx context.Context, store *checkpoints, drop string) (*engine.Outcome, error) {
	term, err := wire.Claim(ctx, s.net, s.keys[""], s.studyID, 0)
	if err != nil {
		return nil, err
	}
	links := map[string]engine.Link{}
	for _, site := range s.plan.Sites {
		links[site] = &wire.Link{Wire: s.net, Key: s.keys[""], Peer: s.keys[site].Peer(), Study: s.studyID, Site: site,
			Term: term, Again: time.Minute}
	}
	c := s.coordinator(links, store)
	if drop != "" {
		timer := time.AfterFunc(time.Duration(s.chaos.upTo(int(20*time.Minute))), func() { c.Drop(drop) })
		defer timer.Stop()
	}
	out, err := c.Run(ctx)
	if err != nil {
		return nil, err
	}
	var wg sync.WaitGroup
	for site, link := range links {
		left := slices.Contains(out.Left, site)
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, 3*time.Hour) // a site may be gone that has everything
			defer cancel()
			if left {
				link.(*wire.Link).Dismiss(ctx, nil)
			} else {
				link.(*wire.Link).End(ctx, out.Shares[site], out.Pasts[site])
			}
		})
	}
	wg.Wait()
	return out, nil
}

// replay rebuilds the model from the history and the sites' outboxes alone.
func (s *story) replay(follow [][]byte) (*engine.Outcome, error) {
	links := map[string]engine.Link{}
	var open []io.Closer
	defer func() {
		for _, c := range open {
			c.Close()
		}
	}()
	for _, site := range s.plan.Sites {
		store, err := sitestore.Open(s.path(site), sitestore.Quick())
		if err != nil {
			return nil, err
		}
		open = append(open, store)
		h := s.host(site, store)
		loop, err := h.Open(context.Background(), s.plan)
		if err != nil {
			return nil, err
		}
		links[site] = &local.Link{Site: loop}
	}
	c := s.coordinator(links, nil)
	c.Follow = follow
	return c.Run(context.Background())
}

// holds checks what must hold of every site at the end.
func (s *story) holds(out *engine.Outcome) {
	listed := map[string]int{}
	for _, r := range out.Rounds {
		for _, x := range r.Sites {
			if x.Up > 0 {
				listed[x.Site]++
			}
		}
	}
	for _, site := range s.plan.Sites {
		err := sitestore.Look(s.path(site), func(store *sitestore.Store) error {
			if _, err := ledger.Verify(store); err != nil {
				return err
			}
			lines, err := store.Reservations(0)
			if err != nil {
				return err
			}
			pending := 0
			seen, opened := map[string]bool{}, map[int]bool{}
			for _, l := range lines {
				r, _, err := store.Release(l.Release)
				if err != nil {
					return err
				}
				if seen[l.Release] {
					return fmt.Errorf("release %s was charged twice", l.Release)
				}
				seen[l.Release] = true
				c, err := privacy.ReadCharge(l)
				if err != nil {
					return err
				}
				if opened[c.Opens] && c.Opens > 0 {
					return fmt.Errorf("the sum of round %d was opened twice", c.Opens)
				}
				opened[c.Opens] = true
				if r.Sealed == nil {
					pending++
				}
			}
			left := slices.Contains(out.Left, site)
			if s.lost[site] {
				if n, ok := s.shorter[site]; ok && !s.decided[site] && len(lines) > n {
					return errors.New("it went on with an older ledger than others have seen, and nobody has decided " +
						"that")
				}
				return nil
			}
			if len(lines) != listed[site] && !left || len(lines) > listed[site]+1 {
				return fmt.Errorf("%d charges, and %d releases were taken", len(lines), listed[site])
			}
			if pending > 0 && !left {
				return fmt.Errorf("%d charges have no release", pending)
			}
			return nil
		})
		if err != nil {
			s.t.Errorf("site %s: %v", site, err)
		}
	}
	if s.chaos.trace.wrong != nil {
		s.t.Error(s.chaos.trace.wrong)
	}
}

func trace0(out *engine.Outcome) (all []byte) {
	for _, f := range out.Result.Files {
		all = append(all, f.Data...)
	}
	return all
}

// Whatever is killed, lost, repeated, late, full, or put back: the study ends.
// Synchronous exact plans end with the bytes of an undisturbed run, every plan with
// those of its history's replay; each release exists in one version; each site was
// charged for what was taken from it, exactly, and nothing is forfeited.
func TestChaos(t *testing.T) {
	plans := append(toyPlans(), realPlans(t)...)
	n := *histories
	from := 0
	if *history >= 0 {
		from, n = *history, *history+1
	}
	for seed := from; seed < n; seed++ {
		p := plans[seed%len(plans)]
		t.Run(fmt.Sprintf("%d %s", seed, p.name), func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) { live(t, dir, seed, p) })
		})
	}
}

type chaosPlan struct {
	name   string
	method method.Method
	plan   *study.Plan
	same   bool // an undisturbed run gives the same bytes
}

var threeSites = []string{"north", "centre", "south"}

func toyPlans() []chaosPlan {
	plan := func(o enginetest.ToyOptions) *study.Plan { return enginetest.ToyPlan(o, 2, threeSites...) }
	return []chaosPlan{
		{"exact rounds", enginetest.Toy{}, plan(enginetest.ToyOptions{Rounds: 5}), true},
		{"noised rounds", enginetest.Toy{}, plan(enginetest.ToyOptions{Rounds: 4, Private: true}), false},
		{"exact, asynchronous", enginetest.Toy{}, plan(enginetest.ToyOptions{Rounds: 4, Async: true}), false},
		{"noised, asynchronous", enginetest.Toy{}, plan(enginetest.ToyOptions{Rounds: 4, Async: true, Private: true}),
			false},
	}
}

// realPlans are small studies of the methods themselves.
func realPlans(t *testing.T) []chaosPlan {
	const views = "views: [{name: clinic, features: [{name: age, range: [-9, 9]}, {name: weight, range: [-9, 9]}, " +
		"{name: pressure, range: [-9, 9]}]}]\n"
	const private = "privacy: {protection: differential, unit: subject, adjacency: add-remove, total: {epsilon: 20, " +
		"delta: 1e-5}}\n"
	plans := []chaosPlan{
		{name: "factors", method: factors.Method{}, same: true},
		{name: "private factors", method: factors.Method{}},
		{name: "private regression", method: regression.Method{}},
		{name: "totals of regression", method: regression.Method{}, same: true},
		{name: "private totals of regression", method: regression.Method{}},
	}
	for i, text := range []string{
		views + "method: {name: factors, latent: 1, scaling: none}\nprivacy: {protection: none}\n",
		views + "method: {name: factors, latent: 1}\n" + private,
		views + "subjects: [ill]\nmethod: {name: regression, outcome: {column: ill, levels: [no, yes]}, rounds: 5}\n" +
			private,
		views + "subjects: [ill]\nmethod: {name: regression, outcome: {column: ill, levels: [no, yes]}, rounds: " +
			"5}\nprivacy: {protection: none, sum: secure}\n",
		views + "subjects: [ill]\nmethod: {name: regression, outcome: {column: ill, levels: [no, yes]}, rounds: 5}\n" +
			strings.Replace(private, "{", "{sum: secure, openers: [north, centre], spare: south, ", 1),
	} {
		quorum := "quorum: 2\n"
		if strings.Contains(text, "none, sum") { // exact totals are of the same sites
			quorum = "quorum: 3\n"
		}
		p, err := study.Parse("plan.yaml", []byte("parley: 1\nname: chaos\nsites: [north, centre, south]\n"+quorum+
			text), method.Registry{plans[i].method})
		if err != nil {
			t.Fatal(err)
		}
		plans[i].plan = p
	}
	return plans
}

// people are rows that fit a plan.
func people(t *testing.T, p *study.Plan, seed uint64) dataset.Source {
	if p.Method.Name == "toy" {
		return enginetest.ToyRows(5 + seed)
	}
	rng := rand.New(rand.NewPCG(seed, 5))
	var rows []dataset.Row
	for i := range 40 {
		x := rng.NormFloat64()
		row := dataset.Row{ID: fmt.Sprintf("%03d", i),
			Views: [][]float64{{x + rng.NormFloat64(), x + rng.NormFloat64(), rng.NormFloat64()}}}
		if len(p.Subjects) > 0 {
			row.Subject = []string{map[bool]string{true: "yes", false: "no"}[x > 0]}
		}
		rows = append(rows, row)
	}
	table, err := dataset.NewTable(p.Schema(), rows)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func live(t *testing.T, dir string, seed int, p chaosPlan) {
	c := &chaos{rng: rand.New(rand.NewPCG(uint64(seed), 11)), trace: &trace{stored: map[string][]byte{}}}
	digest, err := p.plan.Digest()
	if err != nil {
		t.Fatal(err)
	}
	s := &story{t: t, dir: dir, method: p.method, plan: p.plan, data: map[string]dataset.Source{}, chaos: c,
		studyID: digest.String(),
		net:     &weather{Memory: wire.NewMemory(), chaos: c, old: map[string][][]byte{}}, keys: map[string]*wire.Key{},
		ended: map[string]bool{}, lost: map[string]bool{}, shorter: map[string]int{}, decided: map[string]bool{}}
	for i, site := range append([]string{""}, p.plan.Sites...) {
		if s.keys[site], err = wire.NewKey(); err != nil {
			t.Fatal(err)
		}
		s.data[site] = people(t, p.plan, uint64(i))
	}
	drop, back := "", ""
	switch site := p.plan.Sites[rand.New(rand.NewPCG(uint64(seed), 12)).IntN(len(p.plan.Sites))]; seed % 5 {
	case 3:
		drop = site
	case 4:
		back = site
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), 10*24*time.Hour, errors.New("the study did not end"))
	defer cancel()
	var wg sync.WaitGroup
	processes := []*process{{chaos: c}}
	for _, site := range p.plan.Sites {
		proc := &process{chaos: c}
		processes = append(processes, proc)
		wg.Go(func() { s.site(ctx, site, proc, site == back) })
	}
	everything, stop := context.WithCancel(ctx)
	wg.Go(func() { // now and then everything dies at once
		for everything.Err() == nil {
			c.sleep(everything, 2*time.Hour)
			for _, p := range processes {
				if everything.Err() == nil && c.happens(1) {
					p.kill()
				}
			}
		}
	})
	out, err := s.coordinate(ctx, processes[0], &checkpoints{p: processes[0]}, drop)
	stop()
	cancel()
	wg.Wait()
	if err != nil && p.plan.Privacy.Secure() {
		gone := drop != "" && !p.plan.Privacy.Differential() && // of exact totals; the spare stands in for an opener
			strings.Contains(err.Error(), drop)
		lost := back != "" && strings.Contains(err.Error(), back) &&
			(strings.Contains(err.Error(), "its store was put back since") ||
				strings.Contains(err.Error(), "has lost part of its ledger"))
		if gone || lost {
			return // the study ends with the reason
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	c.quiet = true
	c.mu.Unlock()
	s.holds(out)
	for _, site := range out.Left {
		if site != drop && (site != back || p.plan.Privacy.Spare == "") { // which stands in for an opener put back
			t.Errorf("site %s left, and nobody wanted that: %+v", site, out.Rounds)
		}
	}
	again, err := s.replay(out.History)
	switch {
	case len(s.lost) > 0 && err != nil: // what is lost cannot be had again; it says who has lost it
		for site := range s.lost {
			if !bytes.Contains([]byte(err.Error()), []byte(site)) &&
				!bytes.Contains([]byte(err.Error()), []byte("lost its store")) {
				t.Errorf("the error does not name site %s: %v", site, err)
			}
		}
	case err != nil:
		t.Errorf("the replay: %v", err)
	case !bytes.Equal(trace0(again), trace0(out)):
		t.Error("the result is not that of the history's replay")
	}
	if p.same && len(out.Left) == 0 && len(s.lost) == 0 {
		quiet, err := local.Run(context.Background(), local.Config{Plan: p.plan, Methods: method.Registry{s.method},
			Data: s.data})
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(trace0(quiet.Outcome), trace0(out)) {
			t.Error("the result is not that of an undisturbed run")
		}
	}
}
