package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"parley/engine/host"
	"parley/federation"
	"parley/federation/coordinator"
	"parley/federation/site"
	"parley/method"
	"parley/methods/published/fedmvppca"
	"parley/papers/deal"
	"parley/study"
)

type networkOptions struct {
	sites, rounds, features int
	dir                     string
	idle                    time.Duration
	against                 string // one of [against]; "" for nobody
}

// result is what was measured.
type result struct {
	sites, rounds int
	times         []time.Duration  // of each round but the first
	worked        [2]time.Duration // processor time of coordinator and sites in each of these
	rss           int64            // peak of the coordinator's memory, in bytes
	socket        float64          // bytes at the sockets for each site and round after the first
	bodies        float64          // of these, the bodies of tasks and answers
	all           float64          // bytes at the sockets for each site, less those of every exchange
	joined        time.Duration
	last          time.Time     // when the last round ended
	ended         time.Duration // from the last round to the last site's results
	study         time.Duration // from its submission to the last site's results
	cpu           time.Duration // processor time of the coordinator until then
	idle          float64       // part of a processor that it needs afterwards, with every site connected
}

func (r *result) String() string {
	t, idle := slices.Sorted(slices.Values(r.times)), ""
	if r.idle > 0 {
		idle = fmt.Sprintf(", and of one %.2f %% while idle", 100*r.idle)
	}
	ms := func(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
	return fmt.Sprintf("%d sites × %d rounds: round %v median, %v at most, of processor time %v at the coordinator "+
		"and %v at the sites; coordinator %d MB at most; %.0f bytes for each site and round, bodies %.0f (bound "+
		"%.0f); beginning and end %.0f bytes a site; joining %v, study %v, its results %v; coordinator %v of "+
		"processor time%s", r.sites, r.rounds, ms(t[len(t)/2]), ms(t[len(t)-1]), ms(r.worked[0]), ms(r.worked[1]),
		r.rss/1e6, r.socket, r.bodies, r.bound(), r.all, ms(r.joined), ms(r.study), ms(r.ended), ms(r.cpu), idle)
}

// bound is what may pass at the socket.
func (r *result) bound() float64 { return 1.2*r.bodies + 1000 }

var methods = method.Registry{fedmvppca.Method{}}

// buildParley builds the program in its own module, whose go.sum has all that it needs.
func buildParley(ctx context.Context, binary string) error {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "parley").Output()
	if err != nil {
		return fmt.Errorf("looking for parley: %w", err)
	}
	if binary, err = filepath.Abs(binary); err != nil {
		return err
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, "./cmd/parley")
	build.Dir = strings.TrimSpace(string(root))
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building parley: %w\n%s", err, out)
	}
	return nil
}

func measureNetwork(ctx context.Context, o networkOptions, say func(format string, a ...any)) (r *result, err error) {
	if o.dir == "" {
		if o.dir, err = os.MkdirTemp("", "network-"); err != nil {
			return nil, err
		}
		defer os.RemoveAll(o.dir)
	}
	binary := filepath.Join(o.dir, "parley")
	if err := buildParley(ctx, binary); err != nil {
		return nil, err
	}
	r = &result{sites: o.sites, rounds: o.rounds}
	names := make([]string, o.sites)
	for i := range names {
		names[i] = fmt.Sprintf("hospital-%03d", i)
	}
	plan, err := deal.Plan(methods, deal.Keys{"name": "size", "sites": names,
		"views":  []deal.Keys{{"name": "clinic", "features": features(o)}},
		"method": deal.Keys{"name": "fed-mv-ppca", "latent": 2, "rounds": o.rounds, "iterations": 2}})
	if err != nil {
		return nil, err
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	f, err := coordinator.Init(filepath.Join(o.dir, "coordinator"), methods,
		coordinator.Config{Listen: address, Hosts: []string{"127.0.0.1"}}, coordinator.Account{})
	if err != nil {
		return nil, err
	}
	p, err := newProxy(address)
	if err != nil {
		return nil, err
	}
	defer p.listener.Close()
	c, err := start(binary, f.Path)
	if err != nil {
		return nil, err
	}
	defer c.stop()
	began := time.Now()
	invitations := make([]*federation.Invitation, len(names))
	for i, name := range names {
		if invitations[i], err = f.Invite(name, time.Now().Add(time.Hour), false); err != nil {
			return nil, err
		}
	}
	for i, name := range names {
		if err := join(ctx, o, invitations[i], name, p.address()); err != nil {
			return nil, err
		}
	}
	r.joined = time.Since(began)
	say("%d sites have joined in %v", o.sites, r.joined.Round(time.Millisecond))
	inner, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	failed := make(chan error, o.sites)
	for _, name := range names {
		sf, err := site.Open(filepath.Join(o.dir, name), methods)
		if err != nil {
			return nil, err
		}
		group.Go(func() { serve(inner, sf, failed) })
	}
	if o.against != "" {
		if err := against[o.against](inner, f, o.dir, address); err != nil {
			return nil, err
		}
		time.Sleep(3 * time.Second) // they are at it
	}
	submitted := time.Now()
	digest, _, err := f.Submit(plan)
	if err != nil {
		return nil, err
	}
	if err := approve(ctx, o, names, digest, failed); err != nil {
		return nil, err
	}
	say("every site has approved; %d bytes at the sockets so far", p.bytes.Load())
	if err := r.watch(o, c, p); err != nil {
		return nil, err
	}
	if err := ended(ctx, o, names, digest, failed); err != nil {
		return nil, err
	}
	r.ended, r.study, r.cpu = time.Since(r.last), time.Since(submitted), cpuTime(c.cmd.Process.Pid)
	passed := float64(p.bytes.Load()) / float64(o.sites)
	if o.idle > 0 {
		r.idle = rest(o, c)
	}
	if err := r.apportion(f, plan, passed); err != nil {
		return nil, err
	}
	r.rss = c.stop()
	return r, nil
}

// serve serves a site until ctx ends.
func serve(ctx context.Context, f *site.Folder, failed chan<- error) {
	d := &site.Daemon{Folder: f, Again: 30 * time.Second,
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))}
	if err := d.Serve(ctx); err != nil && ctx.Err() == nil {
		failed <- fmt.Errorf("site %s: %w", f.Config.Site, err)
	}
}

// rest is the part of a processor that the coordinator needs while nothing happens.
func rest(o networkOptions, c *process) float64 {
	time.Sleep(20 * time.Second) // what is left to do is done
	before := cpuTime(c.cmd.Process.Pid)
	time.Sleep(o.idle)
	return float64(cpuTime(c.cmd.Process.Pid)-before) / float64(o.idle)
}

// apportion says what of all that passed at a site's socket was bodies, and what beginning and end.
func (r *result) apportion(f *coordinator.Folder, p *study.Plan, all float64) error {
	each, err := bodies(f, p)
	if err != nil {
		return err
	}
	for _, body := range each[1:r.rounds] { // as in watch
		r.bodies += body / float64(r.rounds-1)
	}
	r.all = all
	for _, body := range each { // a study has exchanges before and after its rounds
		r.all -= body + r.socket - r.bodies
	}
	return nil
}

// approve approves the study at every site, as soon as it is posted there.
func approve(ctx context.Context, o networkOptions, names []string, digest string, failed <-chan error) error {
	for _, name := range names {
		f, err := site.Open(filepath.Join(o.dir, name), methods)
		if err != nil {
			return err
		}
		if err := until(ctx, failed, func() bool { _, err := f.Plan(digest); return err == nil }); err != nil {
			return err
		}
		if err := f.Approve(ctx, digest, host.ByPerson); err != nil {
			return err
		}
	}
	return nil
}

// ended waits until every site has its results.
func ended(ctx context.Context, o networkOptions, names []string, digest string, failed <-chan error) error {
	for _, name := range names {
		if err := until(ctx, failed, func() bool {
			_, err := os.Stat(filepath.Join(o.dir, name, "studies", digest, "ended.json"))
			return err == nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// watch takes the times of rounds, and what passes at the sockets meanwhile.
func (r *result) watch(o networkOptions, c *process, p *proxy) error {
	var first uint64
	round, both := 0, [2]int{c.cmd.Process.Pid, os.Getpid()}
	for at := range c.rounds {
		if round++; round == 1 {
			first = p.bytes.Load()
			for i, pid := range both {
				r.worked[i] = -cpuTime(pid)
			}
		} else {
			r.times = append(r.times, at.Sub(r.last))
		}
		r.last = at
		if round == o.rounds {
			break
		}
	}
	if round < o.rounds {
		return fmt.Errorf("the coordinator ended after %d rounds:\n%s", round, c.log())
	}
	for i, pid := range both {
		r.worked[i] = (r.worked[i] + cpuTime(pid)) / time.Duration(o.rounds-1)
	}
	r.socket = float64(p.bytes.Load()-first) / float64(o.sites*(o.rounds-1))
	return nil
}

// until waits until something is so, unless a site fails or ctx ends.
func until(ctx context.Context, failed <-chan error, so func() bool) error {
	for !so() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case err := <-failed:
			return err
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil
}

func features(o networkOptions) (names []string) {
	for i := range o.features {
		names = append(names, fmt.Sprintf("f%d", i))
	}
	return names
}

// join makes a site's folder, with data, and lets it connect through the proxy.
func join(ctx context.Context, o networkOptions, i *federation.Invitation, name, proxy string) error {
	path := filepath.Join(o.dir, name)
	s, err := site.Join(ctx, path, i, methods, nil)
	if err != nil {
		return err
	}
	s.Config.URLs = []string{"tls://" + proxy}
	config, err := json.Marshal(s.Config)
	if err != nil {
		return err
	}
	seed := uint64(0)
	for _, c := range name {
		seed = 31*seed + uint64(c)
	}
	random := rand.New(rand.NewPCG(seed, 0))
	var subjects, view bytes.Buffer
	fmt.Fprintf(&subjects, "id\n")
	fmt.Fprintf(&view, "id,%s\n", strings.Join(features(o), ","))
	for n := range 12 {
		fmt.Fprintf(&subjects, "s%d\n", n)
		fmt.Fprintf(&view, "s%d", n)
		for range o.features {
			fmt.Fprintf(&view, ",%.3f", random.NormFloat64())
		}
		fmt.Fprintln(&view)
	}
	if err := os.MkdirAll(filepath.Join(path, "data"), 0o700); err != nil {
		return err
	}
	for file, data := range map[string][]byte{"site.json": config, "data/subjects.csv": subjects.Bytes(),
		"data/view_clinic.csv": view.Bytes(),
		"policy.yaml": []byte("policy: 1\nsite: " + name +
			"\nprotection: optional\nmax_delta: 1\nper_release: true\n")} {
		if err := os.WriteFile(filepath.Join(path, file), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// bodies is how many bytes of tasks and answers the record of rounds tells of, for a site, in each exchange.
func bodies(f *coordinator.Folder, p *study.Plan) (each []float64, err error) {
	path, err := f.ResultsPath(p)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(filepath.Join(path, "rounds.jsonl"))
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(data) {
		var r struct {
			Sites []struct {
				Down int `json:"bytes_down"`
				Up   int `json:"bytes_up"`
			} `json:"sites"`
		}
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, err
		}
		sum := 0
		for _, s := range r.Sites {
			sum += s.Down + s.Up
		}
		each = append(each, float64(sum)/float64(len(r.Sites)))
	}
	return each, nil
}

// process is the coordinator.
type process struct {
	cmd    *exec.Cmd
	rounds chan time.Time // when each has ended; closed at the process's end
	stop   func() (rss int64)

	mu   sync.Mutex
	text []string
}

func start(binary, folder string) (*process, error) {
	c := &process{cmd: exec.Command(binary, "coordinator", "serve", folder, "--log", "json"),
		rounds: make(chan time.Time, 1000)}
	stderr, err := c.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(c.rounds)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			var line struct {
				Time  time.Time `json:"time"`
				Msg   string    `json:"msg"`
				Round int       `json:"round"`
			}
			json.Unmarshal(lines.Bytes(), &line) // what is no JSON is no line of the log
			c.mu.Lock()
			if c.text = append(c.text, lines.Text()); len(c.text) > 20 {
				c.text = c.text[1:]
			}
			c.mu.Unlock()
			if line.Round > 0 {
				c.rounds <- line.Time
			}
		}
	}()
	c.stop = sync.OnceValue(func() int64 {
		most := peakMemory(c.cmd.Process.Pid)
		c.cmd.Process.Signal(syscall.SIGTERM)
		<-done
		c.cmd.Wait()
		return most
	})
	return c, nil
}

func (c *process) log() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.text, "\n")
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// proxy passes connections on, and counts what passes.
type proxy struct {
	listener net.Listener
	to       string
	bytes    atomic.Uint64
}

func newProxy(to string) (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: l, to: to}
	go func() {
		for {
			c, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				go p.pass(c)
			}
		}
	}()
	return p, nil
}

func (p *proxy) address() string { return p.listener.Addr().String() }

func (p *proxy) pass(c net.Conn) {
	defer c.Close()
	to, err := net.Dial("tcp", p.to)
	if err != nil {
		return
	}
	defer to.Close()
	go func() {
		io.Copy(to, io.TeeReader(c, p))
		to.(*net.TCPConn).CloseWrite()
	}()
	io.Copy(c, io.TeeReader(to, p))
}

// Write counts.
func (p *proxy) Write(b []byte) (int, error) {
	p.bytes.Add(uint64(len(b)))
	return len(b), nil
}

// peakMemory is the most memory in bytes that the process of this number has held so far, shared
// pages counted; 0 where the system does not tell.
func peakMemory(pid int) (size int64) {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, text, _ := strings.Cut(string(data), "VmHWM:")
	fmt.Sscan(text, &size)
	return size << 10
}

// cpuTime is how long processors have worked for the process of this number, to a hundredth of a second; 0 where the
// system does not tell.
func cpuTime(pid int) (used time.Duration) {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, text, _ := strings.Cut(string(data), ") ") // after its name
	for i, field := range strings.Fields(text) {
		if i == 11 || i == 12 {
			ticks, _ := strconv.ParseInt(field, 10, 64)
			used += time.Duration(ticks) * 10 * time.Millisecond
		}
	}
	return used
}
