package nats

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"parley/engine/wire"
)

// patience is after how long an end looks by itself, here.
const patience = time.Minute

func (w *world) patient(o Options) *Conn {
	w.t.Helper()
	c, err := connect(o, patience)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(c.Close)
	return c
}

// Each of many ends is woken, in both directions, whatever goes on beside it: none
// has to wait until it looks by itself.
func TestManyEndsAreWoken(t *testing.T) {
	w := newWorld(t)
	o := w.coordinatorOptions()
	o.URLs, o.Server, o.Log = nil, w.server, nil
	c := w.patient(o)
	put(t, c, study+".coordinator", "claim", 0)
	var group sync.WaitGroup
	var mu sync.Mutex
	late := map[string]int{}
	wait := func(what string, c *Conn, key string, seen uint64) uint64 {
		begun := time.Now()
		_, revision, err := c.Wait(t.Context(), key, seen)
		if err != nil {
			t.Error(err)
		}
		if took := time.Since(begun); took >= patience {
			mu.Lock()
			defer mu.Unlock()
			late[what]++
		}
		return revision
	}
	const rounds = 10
	for i := range 200 {
		name := fmt.Sprintf("site-%03d", i)
		o := w.siteOptions(name)
		o.Log = nil
		s := w.patient(o)
		task, answer := wire.TaskKey(study, name), wire.AnswerKey(study, name)
		group.Go(func() {
			var seen, mine uint64
			for range rounds {
				seen = wait("at sites", s, task, seen)
				mine = put(t, s, answer, "answer", mine)
			}
		})
		group.Go(func() {
			var seen, mine uint64
			for range rounds {
				mine = put(t, c, task, "task", mine)
				seen = wait("at the coordinator", c, answer, seen)
			}
		})
	}
	group.Wait()
	if len(late) > 0 {
		t.Errorf("woken by nobody: %v", late)
	}
}

// Ends that connect while keys are revoked are woken as all others.
func TestEndsAreWokenThatConnectDuringARevocation(t *testing.T) {
	w := newWorld(t)
	o := w.coordinatorOptions()
	o.URLs, o.Server, o.Log = nil, w.server, nil
	c := w.patient(o)
	put(t, c, study+".coordinator", "claim", 0)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
			}
			_, public, err := NewUser()
			if err == nil {
				err = w.server.Revoke(public)
			}
			if err != nil {
				t.Error(err)
				return
			}
		}
	}()
	var ends []*Conn
	for i := range 200 {
		o := w.siteOptions(fmt.Sprintf("site-%03d", i))
		o.Log = nil
		ends = append(ends, w.connect(o))
	}
	for _, s := range ends {
		eventually(t, "connected", s.Connected)
	}
	close(stop)
	<-stopped
	var group sync.WaitGroup
	for i, s := range ends {
		task := wire.TaskKey(study, fmt.Sprintf("site-%03d", i))
		first := put(t, c, task, "first", 0)
		if _, _, err := s.Wait(within(t), task, 0); err != nil {
			t.Fatal(err)
		}
		group.Go(func() {
			begun := time.Now()
			if _, _, err := s.Wait(within(t), task, first); err != nil || time.Since(begun) > 10*time.Second {
				t.Errorf("%s was not woken", task)
			}
		})
		put(t, c, task, "second", first)
	}
	group.Wait()
}
