//go:build long && unix

package acceptance

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"parley/federation"
	"parley/federation/coordinator"
	"parley/internal/testkit"
)

// dropping is how many of the faults may leave a study without a site: those that come first.
const dropping = 5

// faults are what may happen to a site, or to who is either end, for so long.
var faults = []func(x *trouble, site, who string, long time.Duration){
	absent("before"), absent("then"), absent("never"),
	tooLate("deadline"), tooLate("approval_deadline"),
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
		x.programs[""] = changed(x.t, "ahead", change{"engine/wire/key.go", "time.Now().UnixMilli()",
			"time.Now().Add(time.Hour).UnixMilli()"})
		x.coordinate()
		pause(long)
		x.kill("")
		x.programs[""] = before
		x.lose()
		x.coordinate()
	},
	(*trouble).cloned,
	(*trouble).revised,
	// 27 rows, so that each comes first with each plan
	(*trouble).dies, (*trouble).dies, (*trouble).dies, (*trouble).dies,
}

// absent loses the coordinator's folder while a site is away that was dropped before, or is dropped
// then, or that comes back. The study goes on without it, or its status names it.
func absent(dropped string) func(x *trouble, site, who string, long time.Duration) {
	return func(x *trouble, site, _ string, long time.Duration) {
		x.tell("site %s is away when the coordinator's folder is lost, for %s, and is dropped: %s", site, long, dropped)
		drop := func(when string) {
			if when == dropped && x.gone == "" && x.of.name != "graffl" { // whose algorithm needs every site to the end
				if _, said, code := x.command("coordinator", "drop", x.home(), x.of.name, site); code == 0 {
					x.gone = site
				} else if !strings.Contains(said, "is done") {
					x.t.Fatal(said)
				}
			}
		}
		before := 0
		sees := func(what string, holds func(coordinator.StudyStatus) bool) {
			x.until(what, func() error {
				x.revive()
				st, err := x.world.study(x.of.name)
				if err == nil && st.State != coordinator.Ended && !holds(st) {
					err = fmt.Errorf("it is %s: %s %v", st.State, st.Text, st.Sites)
				}
				before = max(before, st.Round)
				return err
			})
		}
		x.away = site
		x.kill(site)
		left, at := false, -1 // whether others know that it has left
		if drop("before"); dropped == "before" && x.gone == site {
			sees("it has left, and a round is done without it", func(st coordinator.StudyStatus) bool {
				if at < 0 && x.hasLeft(st, site) {
					at = st.Round + 1
				}
				left = at >= 0 && st.Round > at
				return left || st.State == coordinator.Stopped && strings.Contains(st.Text, site)
			})
			if st := testkit.Get(x.world.study(x.of.name))(x.t); st.State == coordinator.Ended && x.hasLeft(st, site) {
				x.until("the others have the results", func() error { x.revive(); return x.handed(x.of.name) })
				left = true
			}
		}
		x.kill("")
		x.lose()
		x.coordinate()
		drop("then")
		pause(long)
		sees("the study goes on, or the status names the site", func(st coordinator.StudyStatus) bool {
			if left { // it may have released what counts
				return st.Round > before || strings.Contains(st.Text, "which nobody else has: "+site)
			}
			return st.Round > before || strings.Contains(st.Text, site) &&
				(st.State == coordinator.Stopped || dropped != "then" || x.gone != site)
		})
		x.away = ""
		x.begin(site)
	}
}

func (x *trouble) hasLeft(st coordinator.StudyStatus, site string) bool {
	return slices.ContainsFunc(st.Sites, func(s coordinator.StandingState) bool {
		return s.Site == site && s.State == coordinator.Left
	})
}

// tooLate submits another study, which the people of one site do not approve until a deadline has passed: of
// a task, which begins when they have approved, or of approval, after which the site has left.
func tooLate(limit string) func(x *trouble, site, who string, long time.Duration) {
	return func(x *trouble, site, _ string, _ time.Duration) {
		if x.late != "" {
			return
		}
		x.late, x.people = site, limit == "approval_deadline"
		x.tell("study late is submitted, and site %s does not approve it within its %s", site, limit)
		plan := regressionPlan("late", "schedule: synchronous, rounds: 3, tolerance: 0", exact)
		x.do("coordinator", "submit", x.home(), x.beside("late",
			strings.Replace(quorum(plan), "\nviews:", "\n"+limit+": 2s\nviews:", 1)))
		for _, s := range x.sites {
			x.until("site "+s+" has approved study late", func() error {
				if x.revive(); s == site {
					return nil
				}
				return x.approves(s, "late")
			})
		}
		x.over = time.Now().Add(2500 * time.Millisecond)
	}
}

func (x *trouble) studies() []string {
	return []string{x.of.name, "late"}[:1+len(x.others)]
}

// act does what the statuses of a study say must be done.
func (x *trouble) act(study string) {
	st, err := x.world.study(study)
	if err != nil {
		return
	}
	if study == "late" && !x.people {
		if at, err := x.here(x.late, study); err == nil && at.State == federation.Pending && x.hasLeft(st, x.late) {
			x.t.Fatalf("site %s has left study late before anybody decided there", x.late)
		}
		x.approves(x.late, study)
	}
	if st.State == coordinator.Stopped && strings.Contains(st.Text, "submit the plan again") &&
		time.Since(x.acted) > time.Second {
		x.acted = time.Now()
		x.tell("study %s is submitted again, for it has stopped: %s", study, st.Text)
		x.do("coordinator", "submit", x.home(), append([]string{x.plan}, x.others...)[slices.Index(x.studies(), study)])
	}
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
		if first = x.life(site); strings.Contains(first.said.since(first.from), told) ||
			strings.Contains(second.said.since(second.from), told) {
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
	if st, err := x.world.study(x.of.name); err != nil || st.State != coordinator.Running || st.Round == 0 {
		return // it may not have begun, and would begin with that program
	}
	x.tell("%s has another revision of the method", called(who))
	before := x.programs[who]
	x.kill(who)
	x.programs[who] = revised(x.t)
	x.begin(who)
	x.until("somebody says who must act", func() error {
		x.revive()
		st, err := x.world.study(x.of.name)
		if err != nil || st.State == coordinator.Ended {
			return err
		}
		if who == "" && st.State == coordinator.Stopped && strings.Contains(st.Text, "install parley") {
			return nil
		}
		if x.hasLeft(st, who) {
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
