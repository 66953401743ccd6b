//go:build long && linux

package coordinator_test

import (
	"bytes"
	"context"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"parley/dataset"
	"parley/engine/host"
	"parley/engine/local"
	"parley/engine/nats/natstest"
	"parley/federation/coordinator"
	"parley/federation/site"
	"parley/internal/testkit"
	"parley/method"
	"parley/methods/factors"
	"parley/report"
	"parley/study"
)

func TestMain(m *testing.M) { natstest.VerifyTestMain(m) }

// troubled makes trouble for the servers of a cluster after each round, and measures how long the
// next one takes.
type troubled struct {
	t       *testing.T
	cluster *natstest.Cluster
	mend    func() // what the last trouble did; nil if nothing has to be mended
	trouble func(c *natstest.Cluster, leader string, round int) (mend func())
	rounds  int
	ended   time.Time
	gaps    []time.Duration
}

// Round implements [coordinator.Watcher].
func (k *troubled) Stored(uint64) {}

func (k *troubled) Round(study string) {
	if !k.ended.IsZero() {
		k.gaps = append(k.gaps, time.Since(k.ended).Round(100*time.Millisecond))
	}
	if k.mend != nil {
		k.mend()
	}
	leader := k.cluster.Leader(study)
	if leader == "" {
		k.t.Error("the bucket has no leader")
		return
	}
	k.mend = k.trouble(k.cluster, leader, k.rounds)
	k.rounds++
	k.ended = time.Now()
}

func (k *troubled) Health(bool) {}

// killed kills the leader.
func killed(c *natstest.Cluster, leader string, _ int) (mend func()) {
	c.Kill(leader)
	return func() { c.Start(leader) }
}

// full makes every write of the leader to its disk fail, until its administrators start it again.
func full(t *testing.T) func(c *natstest.Cluster, leader string, _ int) (mend func()) {
	return func(c *natstest.Cluster, leader string, _ int) (mend func()) {
		testkit.Do(t, unix.Prlimit(c.Process(leader), unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 0, Max: unix.RLIM_INFINITY},
			nil))
		return func() {
			c.Kill(leader)
			c.Start(leader)
		}
	}
}

// upgraded lets one server after the other end and begin again as another version.
func upgraded(to string) func(c *natstest.Cluster, leader string, round int) (mend func()) {
	return func(c *natstest.Cluster, _ string, round int) (mend func()) {
		name := c.Names()[round%3]
		c.Stop(name)
		c.Program = to
		c.Start(name)
		return nil
	}
}

// older is the version that a cluster is upgraded from.
const older = "v2.11.9"

// logTo writes a daemon's log to the test's.
func logTo(t *testing.T, who string) *slog.Logger {
	return slog.New(slog.NewTextHandler(writer(func(b []byte) { t.Logf("%s: %s", who, bytes.TrimSpace(b)) }), nil))
}

type writer func([]byte)

func (w writer) Write(b []byte) (int, error) { w(b); return len(b), nil }

// Over three servers of a cluster with trouble in every round a study gives the bytes that it
// gives in one process. The times are those between the ends of rounds.
func TestClustersInTrouble(t *testing.T) {
	methods := method.Registry{factors.Method{}}
	plan, err := study.Load(filepath.FromSlash("../../examples/alzheimer/plan.yaml"), methods)
	testkit.Do(t, err)
	binding, err := local.Bind(t.Context(), plan, nil)
	testkit.Do(t, err)
	alone := filepath.Join(t.TempDir(), "alone")
	simulated, err := report.OpenResults(alone, plan, true, time.Now())
	testkit.Do(t, err)
	out, err := local.Run(t.Context(), local.Config{Plan: plan, Methods: methods, Data: binding.Data})
	testkit.Do(t, err)
	_, err = simulated.Write(out.Outcome, time.Now())
	testkit.Do(t, err)

	program := natstest.Build(t, "")
	for _, c := range []struct {
		name, begin string
		trouble     func(c *natstest.Cluster, leader string, round int) (mend func())
	}{
		{"the leader is killed", program, killed},
		{"the leader's disk is full", program, full(t)},
		{"servers are upgraded", natstest.Build(t, older), upgraded(program)},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := &troubled{t: t, cluster: natstest.NewCluster(t, "../..", c.begin), trouble: c.trouble}
			inTrouble(t, k, methods, plan, binding, alone)
			t.Logf("%s: from the end of a round to the end of the next: %v", c.name, k.gaps)
		})
	}
}

// inTrouble runs a study over a cluster, and compares its results with those of one process.
func inTrouble(t *testing.T, k *troubled, methods method.Registry, plan *study.Plan, binding *local.Binding,
	alone string) {
	cluster, dir := k.cluster, t.TempDir()
	f, err := coordinator.Init(filepath.Join(dir, "coordinator"), methods,
		coordinator.Config{NATS: cluster.URLs, Replicas: 3, Roots: string(cluster.PEM)},
		coordinator.Account{Seed: cluster.AccountSeed()})
	testkit.Do(t, err)
	_, _, err = f.Submit(plan)
	testkit.Do(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	served := make(chan error, 1)
	inner, stop := context.WithCancel(ctx)
	go func() {
		served <- (&coordinator.Daemon{Folder: f, Again: time.Second, Log: logTo(t, "coordinator"), Watch: k}).Serve(
			inner)
	}()
	var sites sync.WaitGroup
	for _, name := range plan.Sites {
		invitation, err := f.Invite(name, time.Now().Add(time.Hour), false)
		testkit.Do(t, err)
		home := filepath.Join(dir, name)
		testkit.Do(t, dataset.Write(ctx, filepath.Join(home, "data"), binding.Data[name]))
		testkit.Do(t, os.WriteFile(filepath.Join(home, "policy.yaml"),
			[]byte("policy: 1\nprotection: optional\nmax_delta: 1\n"), 0o600))
		s, err := site.Join(ctx, home, invitation, methods, func(string) {})
		testkit.Do(t, err)
		testkit.Do(t, s.WaitForStudies(ctx, func(string) {}))
		list, err := s.Studies()
		testkit.Do(t, err)
		if len(list) != 1 {
			t.Fatalf("site %s sees the studies %v", name, list)
		}
		testkit.Do(t, s.Approve(ctx, list[0], host.ByPerson))
		sites.Go(func() {
			if err := (&site.Daemon{Folder: s, Again: time.Second, Log: logTo(t, name), UntilDone: true}).Serve(
				ctx); err != nil {
				t.Errorf("site %s: %v", name, err)
			}
		})
	}
	sites.Wait()
	if ctx.Err() != nil {
		t.Fatal("the study did not end")
	}
	stop()
	testkit.Do(t, <-served)
	cancel()
	results, err := f.ResultsPath(plan)
	testkit.Do(t, err)
	for _, part := range []string{"model", "metrics.json", "report.html"} {
		same(t, filepath.Join(alone, part), filepath.Join(results, part))
	}
}

// same demands that a file, or all files in a folder, have the same bytes.
// links lead from a shared report to those of the sites, which lie beside it only where
// all sites ran on one computer.
var links = regexp.MustCompile(`(?s)<li><a href="#section-site-pages">.*?</li>\n|<section ` +
	`id="section-site-pages".*?</section>\n`)

func same(t *testing.T, a, b string) {
	t.Helper()
	var names []string
	testkit.Do(t, filepath.WalkDir(a, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			rel, _ := filepath.Rel(a, path)
			names = append(names, rel)
		}
		return err
	}))
	slices.Sort(names)
	for _, name := range names {
		x, err := os.ReadFile(filepath.Join(a, name))
		testkit.Do(t, err)
		y, err := os.ReadFile(filepath.Join(b, name))
		testkit.Do(t, err)
		if !bytes.Equal(links.ReplaceAll(x, nil), links.ReplaceAll(y, nil)) {
			t.Errorf("%s differs", filepath.Join(b, name))
		}
	}
}
