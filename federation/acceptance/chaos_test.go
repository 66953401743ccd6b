//go:build unix

package acceptance

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley/federation/coordinator"
	"parley/federation/folder"
	"parley/internal/testkit"
	"parley/sitestore"
)

// histories is how many seeded histories the chaos test runs:
//
//	go test ./federation/acceptance -run Chaos -histories 60 -timeout 2h
//	go test ./federation/acceptance -run Chaos -history 17
var (
	histories = flag.Int("histories", 10, "seeded histories of the chaos test")
	history   = flag.Int("history", -1, "the one history of the chaos test to run, by its seed")
	fault     = flag.Int("fault", -1, "the one kind of fault of the chaos test, by its place in the table")
)

// chaosPlans are short studies of every kind.
var chaosPlans = []struct {
	name, plan string
	same       bool
}{
	{"factors", factorPlan("factors", "", exact), true},
	{"factors-rounds", factorPlan("factors-rounds", ", variant: published, rounds: 25, iterations: 2", exact), true},
	{"factors-private", factorPlan("factors-private", "", private), false},
	{"pvi-synchronous", regressionPlan("pvi-synchronous", "schedule: synchronous, rounds: 20, tolerance: 0", exact), true},
	{"pvi-sequential", regressionPlan("pvi-sequential", "schedule: sequential, rounds: 8, tolerance: 0", exact), true},
	{"pvi-asynchronous", regressionPlan("pvi-asynchronous", "schedule: asynchronous, rounds: 15, tolerance: 0", exact), false},
	{"pvi-private", regressionPlan("pvi-private", "rounds: 20", private), false},
	{"pvi-private-asynchronous", regressionPlan("pvi-private-asynchronous", "schedule: asynchronous, rounds: 15", private), false},
}

// Real processes are killed, from outside and at the worst moments from inside, frozen and
// upgraded, lines cut and slowed, disks and tables of file handles filled, folders lost and brought back,
// and the broker's data deleted, at moments that a seed chooses. Every study
// ends with the model that an undisturbed one has; nothing is charged twice, no
// release has a second version, every log is whole, and no site has left.
func TestChaos(t *testing.T) {
	first, last := 0, *histories
	if *history >= 0 {
		first, last = *history, *history+1
	}
	for seed := first; seed < last; seed++ {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			t.Parallel()
			newTrouble(t, seed).run()
		})
	}
}

// trouble is one history.
type trouble struct {
	*world
	rng   *rand.Rand
	study string
	same_ bool
	lines map[string]*line
	told  []string // what has happened
	begun time.Time
	// mortal are those that may have ended by themselves: their disks were full, or they were told to die.
	mortal map[string]bool
}

func newTrouble(t *testing.T, seed int) *trouble {
	c := chaosPlans[seed%len(chaosPlans)]
	x := &trouble{world: newWorld(t, written(t, c.plan), three...), rng: rand.New(rand.NewPCG(uint64(seed), 12)), study: c.name, same_: c.same, mortal: map[string]bool{}, begun: time.Now()}
	t.Cleanup(func() {
		if t.Failed() || testing.Verbose() {
			t.Logf("history %d, plan %s:\n%s\nto run it alone: go test ./federation/acceptance -run Chaos -history %d", seed, c.name, strings.Join(x.told, "\n"), seed)
		}
	})
	return x
}

func (x *trouble) tell(format string, a ...any) {
	x.told = append(x.told, fmt.Sprintf("%6.2fs ", time.Since(x.begun).Seconds())+fmt.Sprintf(format, a...))
}

func (x *trouble) run() {
	x.coordinate()
	x.joinSomehow()
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
	x.until("every site has the results", func() error {
		x.revive()
		return x.handed(x.study)
	})
	x.tell("everything is delivered")
	for who := range x.mortal { // whoever has yet to die as it was told
		x.kill(who)
		x.begin(who)
	}
	x.verify()
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

// pause is how long a disturbance lasts. (Nothing is waited for so.)
func pause(d time.Duration) { <-time.After(d) }

var progress = regexp.MustCompile(`round \d+ is done \((\d+) of (\d+)\)`)

// comesTo waits until this share of the study is done.
func (x *trouble) comesTo(share float64) {
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
		if float64(done) < share*float64(of)-1 && !strings.Contains(said, " is done: ") {
			x.revive()
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
	if *fault >= 0 {
		faults[*fault](x, site, who, long)
		return
	}
	faults[x.rng.IntN(len(faults))](x, site, who, long)
}

// faults are what may happen to a site, or to who is either end, for so long.
var faults = []func(x *trouble, site, who string, long time.Duration){
	func(x *trouble, _, who string, _ time.Duration) {
		x.tell("%s is killed", called(who))
		x.kill(who)
		x.begin(who)
	},
	func(x *trouble, _, who string, long time.Duration) {
		x.tell("%s is stopped, for %s", called(who), long)
		x.halt(who)
		pause(long)
		x.begin(who)
	},
	func(x *trouble, _, _ string, long time.Duration) {
		x.tell("the coordinator is killed, for %s", long)
		x.kill("")
		pause(long)
		x.coordinate()
	},
	func(x *trouble, _, _ string, _ time.Duration) {
		x.tell("all are killed at once")
		all := append(slices.Clone(x.sites), "")
		for _, p := range all {
			if life := x.life(p); life != nil {
				life.cmd.Process.Kill()
			}
		}
		x.rng.Shuffle(4, func(i, j int) { all[i], all[j] = all[j], all[i] })
		for _, p := range all {
			x.kill(p)
		}
		for _, p := range all {
			x.begin(p)
		}
	},
	func(x *trouble, site, _ string, long time.Duration) {
		x.tell("the line of site %s is cut, for %s", site, long)
		x.lines[site].set(func() { x.lines[site].cut = true })
		pause(long)
		x.lines[site].heal()
	},
	func(x *trouble, site, _ string, long time.Duration) {
		x.tell("the line of site %s is dead, for %s", site, long)
		x.lines[site].set(func() { x.lines[site].dead = true })
		pause(long)
		if x.rng.IntN(2) == 0 {
			x.lines[site].set(func() { x.lines[site].cut = true })
		}
		x.lines[site].heal()
	},
	func(x *trouble, site, _ string, _ time.Duration) {
		rate := 20_000 + x.rng.IntN(200_000)
		x.tell("the line of site %s passes %d bytes a second from now on", site, rate)
		x.lines[site].set(func() { x.lines[site].rate = rate })
	},
	func(x *trouble, _, _ string, _ time.Duration) {
		x.tell("the broker's data are deleted")
		live := x.rng.IntN(2) == 0
		if !live {
			x.kill("")
		}
		if err := os.RemoveAll(filepath.Join(x.home(), "broker")); err != nil && !live {
			x.t.Fatal(err)
		}
		if !live {
			x.coordinate()
		}
	},
	func(x *trouble, _, who string, long time.Duration) {
		room := uint64(x.rng.IntN(2)) * uint64(x.rng.IntN(60_000))
		x.tell("the disk of %s takes no file longer than %d bytes, for %s", called(who), room, long)
		x.mortal[who] = true
		p := x.life(who)
		x.check(limit(p.cmd.Process.Pid, room))
		pause(long)
		x.check(unlimit(p.cmd.Process.Pid))
		if x.rng.IntN(3) == 0 {
			x.tell("and then it is killed")
			x.kill(who)
		}
		x.revive()
	},
	func(x *trouble, _, who string, long time.Duration) {
		x.tell("%s gets no more file handles, for %s", called(who), long)
		p := x.life(who)
		x.serves(p) // one that begins without them is begun again
		x.check(handles(p.cmd.Process.Pid, 0))
		pause(long)
		x.check(handles(p.cmd.Process.Pid, enoughHandles))
	},
	func(x *trouble, _, who string, long time.Duration) {
		x.tell("%s is frozen, for %s", called(who), long)
		p := x.life(who)
		p.cmd.Process.Signal(syscall.SIGSTOP)
		pause(long)
		p.cmd.Process.Signal(syscall.SIGCONT)
	},
	func(x *trouble, site, _ string, long time.Duration) {
		x.tell("the data of site %s are gone, for %s", site, long)
		data := filepath.Join(x.folder(site), "data")
		testkit.Do(x.t, os.Rename(data, data+".away"))
		pause(long)
		testkit.Do(x.t, os.Rename(data+".away", data))
	},
	func(x *trouble, _, _ string, _ time.Duration) {
		x.tell("the coordinator's folder is lost, and made again from its key")
		x.kill("")
		x.lose()
		x.coordinate()
	},
	func(x *trouble, _, _ string, long time.Duration) {
		if strings.Contains(x.study, "asynchronous") {
			return // two sites may have seen two orders of answers by then, and the study stops for good
		}
		x.tell("the coordinator's folder comes to be that of %s before", long)
		x.kill("")
		copied := filepath.Join(x.t.TempDir(), "copy")
		testkit.Do(x.t, os.CopyFS(copied, os.DirFS(x.home())))
		x.coordinate()
		pause(long)
		x.kill("")
		testkit.Do(x.t, os.RemoveAll(x.home()))
		testkit.Do(x.t, os.Rename(copied, x.home()))
		testkit.Do(x.t, os.Chmod(x.home(), 0o700))
		x.coordinate()
	},
	func(x *trouble, _, who string, _ time.Duration) {
		x.tell("%s is upgraded", called(who))
		if x.rng.IntN(2) == 0 {
			x.kill(who)
		} else {
			x.halt(who)
		}
		x.programs[who] = upgraded(x.t)
		x.begin(who)
	},
	func(x *trouble, _, _ string, long time.Duration) {
		x.tell("the coordinator's clock is an hour ahead, for %s; then its folder is lost", long)
		x.kill("")
		before := x.programs[""]
		x.programs[""] = changed(x.t, "ahead", change{"engine/wire/key.go", "time.Now().UnixMilli()", "time.Now().Add(time.Hour).UnixMilli()"})
		x.coordinate()
		pause(long)
		x.kill("")
		x.programs[""] = before
		x.lose()
		x.coordinate()
	},
	(*trouble).cloned,
	(*trouble).revised,
	(*trouble).dies, (*trouble).dies, (*trouble).dies,
}

// cloned lets a copy of a site's folder serve beside it, until one of them is told that it
// answers nothing. That one goes.
func (x *trouble) cloned(site, _ string, _ time.Duration) {
	x.tell("a copy of the folder of site %s serves beside it", site)
	x.halt(site)
	copied := filepath.Join(x.t.TempDir(), "copy")
	testkit.Do(x.t, exec.Command("cp", "-a", x.folder(site), copied).Run()) // with the times of its files
	x.begin(site)
	second := x.start("a copy of "+site, "site", "serve", copied, "--again", again)
	const told = "and this one answers nothing"
	first := x.life(site)
	x.until("one of them is told so", func() error {
		x.revive()
		if first = x.life(site); strings.Contains(first.said.since(first.from), told) || strings.Contains(second.said.since(second.from), told) {
			return nil
		}
		return errors.New("neither is")
	})
	x.kill("a copy of " + site)
	if strings.Contains(first.said.since(first.from), told) {
		x.tell("the copy is what serves, and stays")
		x.kill(site)
		testkit.Do(x.t, os.RemoveAll(x.folder(site)))
		testkit.Do(x.t, os.Rename(copied, x.folder(site)))
		x.begin(site)
	}
}

// dies lets an end die where it would do most harm.
func (x *trouble) dies(_, who string, _ time.Duration) {
	point := failpoints[x.rng.IntN(5)].name
	if who == "" {
		point = failpoints[5+x.rng.IntN(3)].name
	}
	x.env[who] = fmt.Sprintf("FAILPOINT=%s:%d", point, 1+x.rng.IntN(4))
	x.tell("%s is to die: %s", called(who), x.env[who])
	x.mortal[who] = true
	x.kill(who)
	before := x.programs[who]
	x.programs[who] = mortal(x.t)
	x.begin(who)
	x.programs[who] = before // of its next life
	delete(x.env, who)
}

// revised gives an end a program with another revision of the method, until somebody says what
// must be done about it: what has begun ends with its own program.
func (x *trouble) revised(_, who string, _ time.Duration) {
	if st, err := x.world.study(x.study); err != nil || st.State != coordinator.Running || st.Round == 0 {
		return // it may not have begun, and would begin with that program
	}
	x.tell("%s has another revision of the method", called(who))
	before := x.programs[who]
	x.kill(who)
	x.programs[who] = revised(x.t)
	x.begin(who)
	x.until("somebody says who must act", func() error {
		x.revive()
		st, err := x.world.study(x.study)
		if err != nil || st.State == coordinator.Ended {
			return err
		}
		if who == "" && st.State == coordinator.Stopped && strings.Contains(st.Text, "install parley") {
			return nil
		}
		for _, s := range st.Sites {
			if s.Site == who && s.State == coordinator.Misfit && strings.Contains(s.Text, "install parley") {
				return nil
			}
		}
		return fmt.Errorf("it is %s: %s %v", st.State, st.Text, st.Sites)
	})
	x.kill(who)
	x.programs[who] = before
	x.begin(who)
}

// serves waits until a process serves, or has ended.
func (x *trouble) serves(p *process) {
	x.t.Helper()
	x.until(called(p.name)+" serves", func() error {
		if !p.ended() && !strings.Contains(p.said.since(p.from), "serving ") {
			return errors.New("it does not yet")
		}
		return nil
	})
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
		if p != nil && !p.ended() {
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
	t := x.t
	if x.same_ {
		x.same(x.study)
	}
	x.clean(x.study)
	st, err := x.world.study(x.study)
	if err != nil {
		t.Fatal(err)
	}
	err = folder.ReadLog(filepath.Join(x.home(), "audit.jsonl"), func(e folder.LogEntry) error {
		if e.What == "left" {
			t.Errorf("site %s has left: %s", e.Site, e.Text)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	for _, s := range x.sites {
		x.onceOnly(st.Study, s)
	}
	if !x.same_ {
		x.replay(x.study)
	}
	if p := x.life(""); p.ended() {
		t.Errorf("the coordinator has ended: %v", p.err)
	}
}

// onceOnly demands that what the coordinator has folded of a site is what the site
// keeps: a release has one version.
func (x *trouble) onceOnly(study, site string) {
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
	for _, r := range x.rounds(x.study) {
		for _, s := range r.Sites {
			if s.Site == site && !kept[s.Release] {
				x.t.Errorf("round %d was folded with a release of site %s that the site does not keep", r.Round, site)
			}
		}
	}
}
