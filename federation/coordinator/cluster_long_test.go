//go:build long

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

// killer kills the leader of a study's bucket after each round, and starts it again
// when the next has ended.
type killer struct {
	t       *testing.T
	cluster *natstest.Cluster
	down    string
	ended   time.Time
	gaps    []time.Duration
}

// Round implements [coordinator.Watcher].
func (k *killer) Round(study string) {
	if !k.ended.IsZero() {
		k.gaps = append(k.gaps, time.Since(k.ended).Round(100*time.Millisecond))
	}
	if k.down != "" {
		k.cluster.Start(k.down)
	}
	if k.down = k.cluster.Leader(study); k.down == "" {
		k.t.Error("the bucket has no leader")
		return
	}
	k.cluster.Kill(k.down)
	k.ended = time.Now()
}

func (k *killer) Health(bool) {}

// logTo writes a daemon's log to the test's.
func logTo(t *testing.T, who string) *slog.Logger {
	return slog.New(slog.NewTextHandler(writer(func(b []byte) { t.Logf("%s: %s", who, bytes.TrimSpace(b)) }), nil))
}

type writer func([]byte)

func (w writer) Write(b []byte) (int, error) { w(b); return len(b), nil }

// Over three servers of a cluster, whose leader is killed in every round, a study gives
// the bytes that it gives in one process. The times are those between the ends of rounds.
func TestClusterWhoseLeadersAreKilled(t *testing.T) {
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

	cluster := natstest.NewCluster(t)
	dir := t.TempDir()
	f, err := coordinator.Init(filepath.Join(dir, "coordinator"), methods, coordinator.Config{NATS: cluster.URLs, Replicas: 3, Roots: string(cluster.PEM)}, coordinator.Account{Seed: cluster.AccountSeed()})
	testkit.Do(t, err)
	_, _, err = f.Submit(plan)
	testkit.Do(t, err)
	k := &killer{t: t, cluster: cluster}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	served := make(chan error, 1)
	inner, stop := context.WithCancel(ctx)
	go func() {
		served <- (&coordinator.Daemon{Folder: f, Again: time.Second, Log: logTo(t, "coordinator"), Watch: k}).Serve(inner)
	}()
	var sites sync.WaitGroup
	for _, name := range plan.Sites {
		invitation, err := f.Invite(name, time.Now().Add(time.Hour), false)
		testkit.Do(t, err)
		home := filepath.Join(dir, name)
		testkit.Do(t, dataset.Write(ctx, filepath.Join(home, "data"), binding.Data[name]))
		testkit.Do(t, os.WriteFile(filepath.Join(home, "policy.yaml"), []byte("policy: 1\nprotection: optional\nmax_delta: 1\n"), 0o600))
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
			if err := (&site.Daemon{Folder: s, Again: time.Second, Log: logTo(t, name), UntilDone: true}).Serve(ctx); err != nil {
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
	t.Logf("from the end of a round, and the killing of a leader, to the end of the next: %v", k.gaps)
}

// same demands that a file, or all files in a folder, have the same bytes.
// links lead from a shared report to those of the sites, which lie beside it only where
// all sites ran on one computer.
var links = regexp.MustCompile(`(?s)<li><a href="#section-site-pages">.*?</li>\n|<section id="section-site-pages".*?</section>\n`)

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
