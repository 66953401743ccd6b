//go:build unix

package acceptance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"parley/federation/coordinator"
	"parley/federation/site"
	"parley/internal/testkit"
)

// patience is how long a condition may take to hold, on a machine that does much else.
const patience = 90 * time.Second

// again is after how long everything is put again that has no answer.
const again = "200ms"

// world is a coordinator and its sites, each a process and a folder.
type world struct {
	t        *testing.T
	dir      string
	plan     string
	others   []string // plans beside it
	sites    []string
	binary   string // which commands run, and processes that are not in
	programs map[string]string
	env      map[string]string // one more variable of who is started

	mu    sync.Mutex
	alive map[string]*process // by site; "" is the coordinator's
	said  map[string]*record  // what each has written in all its lives
}

// record is what a process writes.
type record struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (r *record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(p)
}

func (r *record) since(n int) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()[n:]
}

// process is one life of a daemon.
type process struct {
	name string
	cmd  *exec.Cmd
	said *record
	from int // where its record begins
	done chan struct{}
	err  error // once done
}

// newWorld makes the folders of a demonstration of a plan. Nothing runs yet.
func newWorld(t *testing.T, plan string, sites ...string) *world {
	t.Helper()
	w := &world{t: t, dir: filepath.Join(t.TempDir(), "demo"), plan: plan, sites: sites, binary: binary,
		programs: map[string]string{}, env: map[string]string{}, alive: map[string]*process{},
		said: map[string]*record{}}
	t.Cleanup(w.end)
	w.do("demo", plan, "--dir", w.dir, "--no-serve", "--listen", freeAddress(t), "--websocket", freeAddress(t))
	return w
}

var ports struct {
	sync.Mutex
	given map[int]bool
}

// freeAddress is one where nobody listens. It is not among those that the system
// gives to connections, so it stays free while a coordinator is down.
func freeAddress(t *testing.T) string {
	t.Helper()
	ports.Lock()
	defer ports.Unlock()
	for range 1000 {
		port := 10000 + rand.IntN(20000)
		if ports.given[port] {
			continue
		}
		address := fmt.Sprintf("127.0.0.1:%d", port)
		if l, err := net.Listen("tcp", address); err == nil {
			l.Close()
			if ports.given == nil {
				ports.given = map[int]bool{}
			}
			ports.given[port] = true
			return address
		}
	}
	t.Fatal("no port is free")
	return ""
}

// end kills what runs, and tells what was said if the test has failed.
func (w *world) end() {
	w.mu.Lock()
	var all []*process
	for _, p := range w.alive {
		all = append(all, p)
	}
	w.mu.Unlock()
	for _, p := range all {
		p.cmd.Process.Kill()
		<-p.done
	}
	if !w.t.Failed() {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(w.said)) {
		if r := w.said[name]; r != nil {
			lines := strings.Split(r.since(0), "\n")
			if n := len(lines); n > 200 {
				lines = append(slices.Clone(lines[:50]), append([]string{"…"}, lines[n-150:]...)...)
			}
			w.t.Logf("%s said:\n%s", called(name), strings.Join(lines, "\n"))
		}
	}
}

func called(name string) string {
	if name == "" {
		return "the coordinator"
	}
	return "site " + name
}

func (w *world) home() string               { return filepath.Join(w.dir, "coordinator") }
func (w *world) folder(s string) string     { return filepath.Join(w.dir, s) }
func (w *world) invitation(s string) string { return filepath.Join(w.dir, s+".invitation") }

// command runs a command to its end.
func (w *world) command(args ...string) (out, stderr string, code int) {
	w.t.Helper()
	var o, e bytes.Buffer
	cmd := exec.Command(w.binary, args...)
	cmd.Stdout, cmd.Stderr = &o, &e
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		w.t.Fatal(err)
	}
	return o.String(), e.String(), cmd.ProcessState.ExitCode()
}

// do runs a command that must succeed.
func (w *world) do(args ...string) (out string) {
	w.t.Helper()
	out, stderr, code := w.command(args...)
	if code != 0 {
		w.t.Fatalf("parley %s: exit code %d\n%s%s", strings.Join(args, " "), code, out, stderr)
	}
	return out
}

// refused runs a command that must fail, and returns what it says.
func (w *world) refused(args ...string) string {
	w.t.Helper()
	out, stderr, code := w.command(args...)
	if code != 1 {
		w.t.Fatalf("parley %s: exit code %d, want 1\n%s%s", strings.Join(args, " "), code, out, stderr)
	}
	return out + stderr
}

// start begins a life of a daemon.
func (w *world) start(name string, args ...string) *process {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.said[name] == nil {
		w.said[name] = &record{}
	}
	program := w.binary
	if other := w.programs[name]; other != "" {
		program = other
	}
	p := &process{name: name, cmd: exec.Command(program, args...), said: w.said[name], done: make(chan struct{})}
	p.from = len(p.said.since(0))
	p.cmd.Stdout, p.cmd.Stderr = p.said, p.said
	p.cmd.Env = append(os.Environ(), w.env[name])
	testkit.Do(w.t, p.cmd.Start())
	w.alive[name] = p
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// coordinate serves the coordinator's folder, again if somebody has taken its port
// meanwhile.
func (w *world) coordinate() *process {
	w.t.Helper()
	for range 20 {
		p := w.start("", "coordinator", "serve", w.home(), "--again", again)
		w.until("the coordinator serves", func() error {
			if p.ended() || strings.Contains(p.said.since(p.from), "serving at") {
				return nil
			}
			return errors.New("it does not yet")
		})
		if said := p.said.since(p.from); !p.ended() || strings.Contains(said, "serving at") {
			return p
		} else if !strings.Contains(said, "address already in use") {
			w.t.Fatalf("the coordinator has ended: %v", p.err)
		}
	}
	w.t.Fatal("the coordinator's port stays taken")
	return nil
}

// serve serves a site's folder.
func (w *world) serve(site string) *process {
	w.t.Helper()
	return w.start(site, "site", "serve", w.folder(site), "--again", again)
}

// join lets sites join, all at once.
func (w *world) join(args ...string) {
	w.t.Helper()
	var wg sync.WaitGroup
	for _, s := range w.sites {
		wg.Go(func() {
			all := append([]string{"site", "join", w.invitation(s)}, args...)
			if out, stderr, code := w.command(all...); code != 0 {
				w.t.Errorf("site %s: exit code %d\n%s%s", s, code, out, stderr)
			}
		})
	}
	wg.Wait()
	if w.t.Failed() {
		w.t.FailNow()
	}
}

// all serves the coordinator, lets all sites join and approve, and serves them.
func (w *world) all() {
	w.t.Helper()
	w.coordinate()
	w.join("--yes")
	for _, s := range w.sites {
		w.serve(s)
	}
}

// kill kills a process, which it may outlive by nothing.
func (w *world) kill(name string) {
	w.t.Helper()
	p := w.life(name)
	if p == nil {
		return
	}
	p.cmd.Process.Kill()
	<-p.done
	w.forget(p)
}

func (w *world) life(name string) *process {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.alive[name]
}

func (w *world) forget(p *process) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.alive[p.name] == p {
		delete(w.alive, p.name)
	}
}

// stop asks a process to end, which it must do well.
func (w *world) stop(name string) {
	w.t.Helper()
	p := w.life(name)
	if p == nil {
		return
	}
	w.serves(p) // before, a signal would just kill it
	p.cmd.Process.Signal(syscall.SIGTERM)
	w.until(called(name)+" stops", func() error {
		if !p.ended() {
			return errors.New("it has not ended")
		}
		return nil
	})
	w.forget(p)
	if p.err != nil {
		w.t.Fatalf("%s, asked to stop: %v", called(name), p.err)
	}
}

// serves waits until a process serves, or has ended.
func (w *world) serves(p *process) {
	w.t.Helper()
	w.until(called(p.name)+" serves", func() error {
		if !p.ended() && !strings.Contains(p.said.since(p.from), "serving ") {
			return errors.New("it does not yet")
		}
		return nil
	})
}

// until waits until a condition holds, which is looked at again and again. No
// process that was started may end meanwhile, unless the test lets it.
func (w *world) until(what string, holds func() error) {
	w.t.Helper()
	if err := eventually(holds); err != nil {
		w.t.Fatalf("waiting until %s: %v", what, err)
	}
}

func eventually(holds func() error) error {
	deadline := time.After(patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := holds()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-deadline:
			return fmt.Errorf("after %s: %w", patience, err)
		}
	}
}

// readJSON reads a file, which may not be there yet.
func readJSON(path string, v any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, v)
}

// study is where the coordinator says that a study stands.
func (w *world) study(name string) (st coordinator.StudyStatus, err error) {
	var s coordinator.Status
	if err := readJSON(filepath.Join(w.home(), "status.json"), &s); err != nil {
		return st, err
	}
	for _, st := range s.Studies {
		if st.Name == name || name == "" {
			return st, nil
		}
	}
	return st, fmt.Errorf("the status names no study %s", name)
}

// stands is where the coordinator says that a site stands in a study.
func (w *world) stands(name, site string) (st coordinator.StandingState, err error) {
	all, err := w.study(name)
	for _, s := range all.Sites {
		if s.Site == site {
			return s, err
		}
	}
	return st, errors.Join(err, fmt.Errorf("the status of study %s names no site %s", name, site))
}

// here is where a site itself says that it stands in a study.
func (w *world) here(site_, name string) (st site.StudyStatus, err error) {
	var s site.Status
	if err := readJSON(filepath.Join(w.folder(site_), "status.json"), &s); err != nil {
		return st, err
	}
	for _, st := range s.Studies {
		if st.Name == name || name == "" {
			return st, nil
		}
	}
	return st, fmt.Errorf("the status of site %s names no study %s", site_, name)
}

// comes waits until a study is in a state.
func (w *world) comes(name, state string) (st coordinator.StudyStatus) {
	w.t.Helper()
	w.until("study "+name+" is "+state, func() (err error) {
		if st, err = w.study(name); err == nil && st.State != state {
			err = fmt.Errorf("it is %s: %s", st.State, st.Text)
		}
		return err
	})
	return st
}

// delivered waits until a study is done, and every site that has not left it has what
// it may have.
func (w *world) delivered(name string) {
	w.t.Helper()
	w.until("every site has the results of study "+name, func() error { return w.handed(name) })
}

func (w *world) handed(name string) error {
	st, err := w.study(name)
	if err != nil {
		return err
	}
	if st.State != coordinator.Ended {
		return fmt.Errorf("it is %s: %s", st.State, st.Text)
	}
	for _, s := range st.Sites {
		if s.State != coordinator.HasAll && s.State != coordinator.Left {
			return fmt.Errorf("site %s: %s %s", s.Site, s.State, s.Text)
		}
		// It makes its own report when it has said that it has all.
		ended, err := os.ReadFile(filepath.Join(w.folder(s.Site), "studies", st.Study, "ended.json"))
		if s.State == coordinator.HasAll && (err != nil || strings.Contains(string(ended), `"failed"`)) {
			return fmt.Errorf("site %s has made no report: %s, %v", s.Site, ended, err)
		}
	}
	return nil
}

// reaches waits until a study has come to the end of a round.
func (w *world) reaches(name string, round int) {
	w.t.Helper()
	done := regexp.MustCompile(`study ` + name + `: round (\d+) is done`)
	w.until(fmt.Sprintf("study %s has ended round %d", name, round), func() error {
		last := 0
		for _, m := range done.FindAllStringSubmatch(w.said[""].since(0), -1) {
			n, err := strconv.Atoi(m[1])
			if err != nil {
				return err
			}
			last = max(last, n)
		}
		if last < round {
			return fmt.Errorf("it has ended round %d", last)
		}
		return nil
	})
}

// pause is how long a disturbance lasts. (Nothing is waited for so.)
func pause(d time.Duration) { <-time.After(d) }
