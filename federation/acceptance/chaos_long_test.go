//go:build long && unix

package acceptance

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley/internal/testkit"
	"parley/sitestore"
)

// histories is how many seeded histories the chaos test runs:
//
//	go test -tags long ./federation/acceptance -run Chaos -histories 60 -timeout 2h
//	go test -tags long ./federation/acceptance -run Chaos -history 17
var (
	histories = flag.Int("histories", 10, "seeded histories of the chaos test")
	history   = flag.Int("history", -1, "the one history of the chaos test to run, by its seed")
	fault     = flag.Int("fault", -1, "the one kind of fault of the chaos test, by its place in the table")
)

// chaosPlan is a short study: whether an undisturbed one has the same bytes, and whether its plan names the keys of its
// sites, which join first.
type chaosPlan struct {
	name, plan   string
	same, totals bool
}

// chaosPlans are of every kind.
var chaosPlans = []chaosPlan{
	{"factors", factorPlan("factors", "", exact), true, false},
	{"factors-rounds", strings.Replace(factorPlan("factors-rounds", ", rounds: 25, iterations: 2", exact),
		"name: factors,", "name: fed-mv-ppca,", 1), true, false},
	{"factors-private", factorPlan("factors-private", "", private), false, false},
	{"pvi-synchronous", regressionPlan("pvi-synchronous", "schedule: synchronous, rounds: 20, tolerance: 0", exact),
		true, false},
	{"pvi-sequential", regressionPlan("pvi-sequential", "schedule: sequential, rounds: 8, tolerance: 0", exact),
		true, false},
	{"pvi-asynchronous", regressionPlan("pvi-asynchronous", "schedule: asynchronous, rounds: 15, tolerance: 0", exact),
		false, false},
	{"pvi-private", regressionPlan("pvi-private", "rounds: 20", private), false, false},
	{"pvi-private-asynchronous", regressionPlan("pvi-private-asynchronous",
		"schedule: asynchronous, rounds: 15, update: {noise: 100, steps: 1}, rows: [{site: north, rows: 20}, {site: "+
			"centre, rows: 20}, {site: south, rows: 20}]", private), false, false},
	{"graffl", unsupervised("graffl", "graffl-abc, components: 1, algorithm: sets, set: {particles: 16, proposals: "+
		"300, rows: 10}", exact), true, false},
	{"vae", unsupervised("vae", "vae, model: linear, latent: 1, rounds: 20, epochs: 2", exact), true, false},
}

// chaosTotals are of sums that no single party can open, which need all sites to the end.
var chaosTotals = []chaosPlan{
	{"totals", regressionPlan("totals", "rounds: 8", "{protection: none, sum: secure, openers: [north, south]}"), true,
		true},
	{"totals-private", regressionPlan("totals-private", "rounds: 20",
		strings.Replace(private, "{", "{sum: secure, openers: [north, south], ", 1)), false, true},
}

// Real processes are killed, from outside and at the worst moments from inside, frozen and
// upgraded, lines cut and slowed, disks and tables of file handles filled, folders lost and brought back,
// and the broker's data deleted, at moments that a seed chooses. Every study
// ends with the model that an undisturbed one has, if need be after what its status says must be done; nothing
// is charged twice, no release has a second version, every log is whole, and no site has left that nobody
// dropped. The first fault of a history is that of its number in the table.
func TestChaos(t *testing.T) {
	first, last := 0, *histories
	if *history >= 0 {
		first, last = *history, *history+1
	}
	for seed := first; seed < last; seed++ {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			t.Parallel()
			c := chaosPlans[seed%len(chaosPlans)]
			c.plan = quorum(c.plan)
			newTrouble(t, seed, c, faults).run()
		})
		t.Run("totals/"+strconv.Itoa(seed), func(t *testing.T) {
			t.Parallel()
			newTrouble(t, seed, chaosTotals[seed%len(chaosTotals)], faults[dropping:]).run()
		})
	}
}

// trouble is one history.
type trouble struct {
	*world
	of     chaosPlan
	seed   int
	rng    *rand.Rand
	faults []func(x *trouble, site, who string, long time.Duration)
	lines  map[string]*line
	told   []string // what has happened
	begun  time.Time
	// mortal are those that may have ended by themselves: their disks were full, or they were told to die.
	mortal map[string]bool
	events int
	acted  time.Time // when somebody last did what a status says
	away   string    // the site that is not to be started again
	gone   string    // the site that was dropped: the quorum allows for one
	// late is the site whose people approve another study after a deadline; people says that it is theirs.
	late   string
	people bool
	over   time.Time // when the deadline has passed
}

func newTrouble(t *testing.T, seed int, c chaosPlan,
	faults []func(x *trouble, site, who string, long time.Duration)) *trouble {
	x := &trouble{world: newWorld(t, written(t, c.plan), three...), of: c, seed: seed,
		rng: rand.New(rand.NewPCG(uint64(seed), 12)), faults: faults, mortal: map[string]bool{}, begun: time.Now()}
	t.Cleanup(func() {
		if t.Failed() || testing.Verbose() {
			t.Logf("history %d, plan %s:\n%s\nto run it alone: go test ./federation/acceptance -run Chaos -history %d",
				seed, c.name, strings.Join(x.told, "\n"), seed)
		}
	})
	return x
}

func (x *trouble) tell(format string, a ...any) {
	x.told = append(x.told, fmt.Sprintf("%6.2fs ", time.Since(x.begun).Seconds())+fmt.Sprintf(format, a...))
}

func (x *trouble) run() {
	x.coordinate()
	if !x.of.totals {
		x.joinSomehow()
	} else {
		x.join()
	}
	// Slow enough for something to happen in between.
	delay := time.Duration(x.rng.IntN(3)) * 8 * time.Millisecond
	web := x.rng.IntN(8)
	x.lines = x.world.lines(func(s string) bool { return web>>slices.Index(x.sites, s)&1 == 1 })
	for _, l := range x.lines {
		l.set(func() { l.delay = delay })
	}
	for _, s := range x.sites {
		x.serve(s)
	}
	x.tell("all serve; each piece takes %s", delay)
	if x.of.totals {
		x.nameKeys()
	}
	for _, s := range x.sites {
		x.until("site "+s+" has approved", func() error { return x.approves(s, x.of.name) })
	}
	moments := make([]float64, 3+x.rng.IntN(4))
	for i := range moments {
		moments[i] = x.rng.Float64()
	}
	slices.Sort(moments)
	for _, m := range moments {
		x.comesTo(m)
		x.event()
	}
	x.heal()
	pause(time.Until(x.over))
	for _, study := range x.studies() {
		x.until("every site has the results of study "+study, func() error {
			x.revive()
			x.act(study)
			return x.handed(study)
		})
	}
	x.tell("everything is delivered")
	for who := range x.mortal { // whoever has yet to die as it was told
		x.kill(who)
		x.begin(who)
	}
	x.verify()
}

// nameKeys submits a plan that names the keys of its sites, and goes on with what was made of it: a rebuilt folder
// has the keys of nobody.
func (x *trouble) nameKeys() {
	x.until("all have joined", func() error {
		_, out, _ := x.command("coordinator", "submit", x.home(), x.plan)
		if strings.Contains(out, "has not joined") {
			return errors.New(out)
		}
		return nil
	})
	var text []byte
	x.until("a site has the plan", func() error {
		st, err := x.here(x.sites[0], x.of.name)
		if err == nil {
			text, err = os.ReadFile(filepath.Join(x.folder(x.sites[0]), "studies", st.Study, "plan.yaml"))
		}
		return err
	})
	x.plan = filepath.Join(filepath.Dir(x.plan), "named.yaml")
	testkit.Do(x.t, os.WriteFile(x.plan, text, 0o644))
}

// joinSomehow lets the sites join, of which some meet a coordinator that has died.
// Their invitations stay good.
func (x *trouble) joinSomehow() {
	if x.rng.IntN(4) > 0 {
		x.join("--yes")
		return
	}
	x.tell("the coordinator dies while sites join")
	done := make(chan struct{})
	go func() {
		defer close(done)
		x.join("--yes")
	}()
	pause(x.upTo(400 * time.Millisecond))
	x.kill("")
	x.coordinate()
	<-done
	if x.t.Failed() {
		x.t.FailNow()
	}
}

func (x *trouble) upTo(d time.Duration) time.Duration {
	return time.Duration(x.rng.Int64N(int64(d)))
}

// comesTo waits until this share of the study is done.
func (x *trouble) comesTo(share float64) {
	progress := regexp.MustCompile("study " + x.of.name + `: round \d+ is done \((\d+) of (\d+)\)`)
	x.until(fmt.Sprintf("%.0f %% are done", 100*share), func() error {
		x.mu.Lock()
		said := x.said[""].since(0)
		x.mu.Unlock()
		done, of := 0, 1
		for _, m := range progress.FindAllStringSubmatch(said, -1) {
			n, _ := strconv.Atoi(m[1])
			done = max(done, n)
			of, _ = strconv.Atoi(m[2])
		}
		if float64(done) < share*float64(of)-1 && !strings.Contains(said, "study "+x.of.name+" is done: ") {
			x.revive()
			x.act(x.of.name)
			return fmt.Errorf("%d of %d", done, of)
		}
		return nil
	})
}

// who chooses a process.
func (x *trouble) who() string {
	return append(slices.Clone(x.sites), "")[x.rng.IntN(4)]
}

func (x *trouble) begin(name string) {
	if name == "" {
		x.coordinate()
	} else {
		x.serve(name)
	}
}

// event is something that happens.
func (x *trouble) event() {
	x.revive()
	site, who, long := x.sites[x.rng.IntN(3)], x.who(), x.upTo(900*time.Millisecond)
	n := x.rng.IntN(len(x.faults))
	if x.events++; x.events == 1 {
		n = x.seed % len(x.faults)
	}
	if *fault >= 0 {
		n = *fault
	}
	x.faults[n](x, site, who, long)
}

// halt asks an end to stop.
func (x *trouble) halt(who string) {
	x.t.Helper()
	p := x.life(who)
	x.serves(p) // before, a signal would just kill it
	p.cmd.Process.Signal(syscall.SIGTERM)
	<-p.done
	if p.err != nil && !x.mortal[who] {
		x.t.Fatalf("%s, asked to stop: %v", called(who), p.err)
	}
	x.forget(p)
}

// check takes errors of a process that has just ended.
func (x *trouble) check(err error) {
	x.t.Helper()
	if err != nil && !errors.Is(err, syscall.ESRCH) {
		x.t.Fatal(err)
	}
}

// revive starts again what has ended by itself, as a service manager does. Only who is
// mortal may do that.
func (x *trouble) revive() {
	x.t.Helper()
	for _, name := range append(slices.Clone(x.sites), "") {
		p := x.life(name)
		if p != nil && !p.ended() || p == nil && name != "" && name == x.away {
			continue
		}
		if p != nil && !x.mortal[name] {
			x.t.Fatalf("%s has ended by itself: %v", called(name), p.err)
		}
		x.tell("%s is started again", called(name))
		if p != nil {
			x.forget(p)
		}
		x.begin(name)
	}
}

// heal makes everything good.
func (x *trouble) heal() {
	for _, l := range x.lines {
		l.heal()
	}
	x.revive()
}

// verify demands what must hold at the end of every history.
func (x *trouble) verify() {
	t, plans := x.t, append([]string{x.plan}, x.others...)
	for i, study := range slices.Backward(x.studies()) { // that of the table last, for it may lose the results of both
		x.clean(study)
		st, whole := testkit.Get(x.world.study(study))(t), true
		for _, s := range x.sites {
			x.onceOnly(study, st.Study, s)
			left := x.hasLeft(st, s)
			whole = whole && !left
			if may := s == x.gone && i == 0 || i == 1 && (s == x.late || !x.people); left && !may || i == 1 &&
				x.people && s == x.late && !left {
				t.Errorf("that site %s has left study %s is %v", s, study, left)
			}
		}
		if i == 0 && whole && x.of.totals && x.of.same { // by the names of sites alone, as another plan has other keys
			want := testkit.Get(os.ReadFile(filepath.Join(
				reference(t, filepath.Join(filepath.Dir(x.plan), "plan.yaml")), "metrics.json")))(t)
			if got := testkit.Get(os.ReadFile(filepath.Join(x.results("", study), "metrics.json")))(t); !bytes.Equal(
				got, want) {
				t.Errorf("the study ends with %s\nand parley run with %s", got, want)
			}
		} else if whole && (x.of.same && !x.of.totals || i == 1) {
			x.plan = plans[i]
			x.same(study)
			x.plan = plans[0]
		} else if i == 0 {
			x.replay(study)
		}
	}
	if p := x.life(""); p.ended() {
		t.Errorf("the coordinator has ended: %v", p.err)
	}
}

// onceOnly demands that what the coordinator has folded of a site is what the site
// keeps: a release has one version.
func (x *trouble) onceOnly(name, study, site string) {
	kept := map[string]bool{}
	charges, _ := x.ledger(site)
	err := sitestore.Look(filepath.Join(x.folder(site), "site.db"), func(s *sitestore.Store) error {
		for _, c := range charges {
			if r, ok, err := s.Release(c.Release); err != nil || !ok {
				return errors.Join(err, fmt.Errorf("release %s is not stored", c.Release))
			} else {
				sum := sha256.Sum256(r.Sealed)
				kept[hex.EncodeToString(sum[:])] = true
			}
		}
		return nil
	})
	if err != nil {
		x.t.Error(err)
	}
	for _, r := range x.rounds(name) {
		for _, s := range r.Sites {
			if s.Site == site && s.Release != "" && !kept[s.Release] {
				x.t.Errorf("round %d was folded with a release of site %s that the site does not keep", r.Round, site)
			}
		}
	}
}
