//go:build long

package nats_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"parley/engine/nats"
	"parley/engine/nats/natstest"
	"parley/engine/wire"
	"parley/internal/testkit"
)

// In a cluster whose leader is killed again and again, nothing that was
// acknowledged is lost, and no reader sees a value go back.
func TestKilledLeaders(t *testing.T) {
	const study = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	c := natstest.NewCluster(t, "../..", natstest.Build(t, ""))
	connect := func(name string, replicas int, sign func(public string) (string, error)) *nats.Conn {
		seed, public, err := nats.NewUser()
		if err != nil {
			t.Fatal(err)
		}
		token := testkit.Get(sign(public))(t)
		conn := testkit.Get(nats.Connect(nats.Options{URLs: c.URLs, Roots: c.Roots, JWT: token, Seed: seed, Name: name,
			Replicas: replicas}))(t)
		t.Cleanup(conn.Close)
		return conn
	}
	coord := connect("coordinator", 3, c.Authority.Coordinator)
	site := connect("north", 0, func(public string) (string, error) {
		return c.Authority.Site("north", public, time.Time{})
	})
	within := func() context.Context {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		t.Cleanup(cancel)
		return ctx
	}

	const puts = 30
	task := wire.TaskKey(study, "north")
	var readers sync.WaitGroup
	readers.Go(func() { // the site sees values rise, and the last one
		seen, latest := uint64(0), -1
		for latest < puts-1 {
			value, revision, err := site.Wait(within(), task, seen)
			if err != nil {
				t.Error(err)
				return
			}
			n, err := strconv.Atoi(string(value))
			if err != nil || n < latest || n == latest && revision == seen {
				t.Errorf("after %d came %q, %v", latest, value, err)
				return
			}
			seen, latest = revision, n
		}
	})
	var after uint64
	for i := range puts {
		killed := ""
		if i == 8 || i == 16 || i == 24 {
			if killed = c.Leader(study); killed == "" {
				t.Fatal("the bucket has no leader")
			}
			c.Kill(killed)
		}
		began := time.Now()
		revision, tries := putOnce(t, within, coord, task, fmt.Sprint(i), after)
		if revision <= after {
			t.Errorf("revision %d after %d", revision, after)
		}
		after = revision
		if gap := time.Since(began); killed != "" || i == 0 || gap > time.Second {
			t.Logf("put %d took %.2f s, %d tries more; killed: %q", i, gap.Seconds(), tries, killed)
		}
		if killed != "" {
			c.Start(killed)
		}
	}
	readers.Wait()
	if c.Leader(study) == "" {
		t.Error("the servers do not agree again")
	}
	value, revision, err := coord.Get(within(), task)
	if err != nil || string(value) != fmt.Sprint(puts-1) || revision != after {
		t.Errorf("in the end there is %q at revision %d, %v; want %d at %d", value, revision, err, puts-1, after)
	}
}

// putOnce puts a value until that is acknowledged, or found to have been done.
func putOnce(t *testing.T, within func() context.Context, w wire.Wire, key, value string,
	after uint64) (revision uint64, tries int) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; tries++ {
		revision, err := w.Put(within(), key, []byte(value), after)
		if err == nil {
			return revision, tries
		}
		if errors.Is(err, wire.ErrMoved) { // this value, by a try that was not acknowledged; or a read that is behind
			if now, revision, err := w.Get(within(), key); err == nil && string(now) == value && revision > after {
				return revision, tries
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("put %s: %v", value, err)
		}
		<-time.After(50 * time.Millisecond)
	}
}
