package nats

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"parley/engine/wire"
	"parley/internal/testkit"
)

// model is what a value is after the operations so far.
type model struct {
	value    []byte
	revision uint64
}

// The same operations have the same results here as by the words of [wire.Wire], but for the numbers of revisions.
func TestAsTheWireSays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c, other := w.connect(w.coordinatorOptions()), w.connect(w.coordinatorOptions())
	round := 0
	rapid.Check(t, func(t *rapid.T) {
		round++
		bucket := fmt.Sprintf("b%d", round)
		models := map[string]model{}
		defer c.Remove(context.Background(), bucket)
		revisions := map[string]map[uint64]uint64{} // key → of memory → here
		latest := map[string]uint64{}
		for range rapid.IntRange(1, 25).Draw(t, "operations") {
			key := bucket + rapid.SampledFrom([]string{".task.a", ".answer.a", ".coordinator"}).Draw(t, "key")
			if revisions[key] == nil {
				revisions[key] = map[uint64]uint64{0: 0}
			}
			by := []*Conn{c, other}[rapid.IntRange(0, 1).Draw(t, "by")]
			after := rapid.Uint64Range(0, latest[key]).Draw(t, "after")
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			switch rapid.SampledFrom([]string{"put", "put on top", "get", "wait"}).Draw(t, "operation") {
			case "put on top":
				after = latest[key]
				fallthrough
			case "put":
				value := rapid.SliceOfN(rapid.Byte(), 0, 9).Draw(t, "value")
				want, wantErr := after+1, error(nil)
				if after != latest[key] {
					wantErr = wire.ErrMoved
				}
				began := time.Now()
				got, err := by.Put(ctx, key, value, revisions[key][after])
				if stored := by.Stored(key).After(began); stored != (err == nil) {
					t.Fatalf("put %s after %d: %v, and acknowledged: %v", key, after, err, stored)
				}
				if errors.Is(err, errBroke) && wantErr == nil {
					t.Skip("on a busy machine a connection may break, and nobody knows whether the value was put")
				}
				if !errors.Is(err, wantErr) {
					t.Fatalf("put %s after %d: %v, want %v", key, after, err, wantErr)
				}
				if err == nil {
					if got <= revisions[key][latest[key]] {
						t.Fatalf("revision %d does not rise", got)
					}
					revisions[key][want], latest[key], models[key] = got, want, model{value, want}
				}
			case "get":
				want := models[key]
				got, revision, err := by.Get(ctx, key)
				if err != nil || !bytes.Equal(got, want.value) || revision != revisions[key][want.revision] {
					t.Fatalf("get %s: %q %d %v, want %q", key, got, revision, err, want.value)
				}
			case "wait":
				want, wantErr := models[key], error(nil)
				if after == latest[key] {
					want, wantErr = model{}, errors.New("over")
					var quick context.CancelFunc
					ctx, quick = context.WithTimeoutCause(ctx, 5*time.Millisecond, wantErr)
					defer quick()
				}
				got, revision, err := by.Wait(ctx, key, revisions[key][after])
				for was := uint64(0); err == nil && revision != revisions[key][want.revision] && revision > was; {
					was = revision // a wake may bring one that was replaced; the last follows
					got, revision, err = by.Wait(ctx, key, revision)
				}
				if !errors.Is(err, wantErr) || !bytes.Equal(got, want.value) ||
					revision != revisions[key][want.revision] {
					t.Fatalf("wait %s for other than %d: %q %d %v, want %q %v", key, after, got, revision, err,
						want.value, wantErr)
				}
			}
			cancel()
		}
	})
}

// Whoever reads while long values are put reads one of them, or none.
func TestPartsOfTwoValuesAreNeverMixed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c, s := w.connect(w.coordinatorOptions()), w.connect(w.siteOptions("north"))
	key := wire.TaskKey(study, "north")
	after := put(t, c, key, "", 0)
	ctx, stop := context.WithCancel(within(t))
	var group sync.WaitGroup
	group.Go(func() {
		defer stop()
		for i := range 8 {
			r, err := c.Put(within(t), key, bytes.Repeat([]byte{byte('a' + i)}, maxMessage+i<<20), after)
			if err != nil {
				t.Error(err)
				return
			}
			after = r
		}
	})
	whole, reads := 0, 0
	for ctx.Err() == nil {
		value, _, err := s.Get(within(t), key)
		if err != nil {
			t.Fatal(err)
		}
		reads++
		if len(value) == 0 {
			continue
		}
		whole++
		if n := int(value[0] - 'a'); len(value) != maxMessage+n<<20 || bytes.Count(value, value[:1]) != len(value) {
			t.Fatalf("%d bytes that begin with %c are mixed", len(value), value[0])
		}
	}
	group.Wait()
	t.Logf("%d of %d reads brought a value", whole, reads)
}

func TestWhatIsNoValueCanBeReplaced(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c, s := w.connect(w.coordinatorOptions()), w.connect(w.siteOptions("north"))
	key := wire.AnswerKey(study, "north")
	p := place{bucketOf(study), "answer.north"}
	put(t, c, study+".coordinator", "x", 0)
	var after uint64
	for name, data := range map[string][]byte{
		"nothing": {}, "another form": {7, 1}, "half a head": encodeParts(2, []byte("abc"))[:20],
		"parts that are not there": encodeParts(2, bytes.Repeat([]byte("x"), 99)),
	} {
		r := testkit.Get(s.publish(within(t), p, expecting(p, p, after), data))(t)
		if value, revision, err := c.Get(within(t), key); value != nil || revision != r || err != nil {
			t.Errorf("%s: %q, revision %d, %v", name, value, revision, err)
		}
		after = r
	}
	ctx, stop := context.WithTimeoutCause(within(t), 100*time.Millisecond, errors.New("enough"))
	defer stop()
	if value, _, err := c.Wait(ctx, key, 0); err == nil || err.Error() != "enough" {
		t.Errorf("waiting for what is none: %q, %v", value, err)
	}
	done := make(chan string, 1)
	go func() {
		value, _, _ := c.Wait(within(t), key, 0)
		done <- string(value)
	}()
	// Parts of another put stand where those of this one should.
	long := bytes.Repeat([]byte("long"), maxMessage/2)
	r := testkit.Get(s.Put(within(t), key, long, after))(t)
	if got := <-done; got != string(long) {
		t.Errorf("%d bytes came", len(got))
	}
	testkit.Get(s.publish(within(t), p.part(1), expecting(p.part(1), p, r), []byte("torn")))(t)
	if value, revision, err := c.Get(within(t), key); value != nil || revision != r || err != nil {
		t.Errorf("a torn value came as %d bytes, revision %d, %v", len(value), revision, err)
	}
	// A writer that is late does not tear what is there.
	r = put(t, s, key, "short", r)
	if _, err := s.Put(within(t), key, long, after); !errors.Is(err, wire.ErrMoved) {
		t.Error(err)
	}
	testkit.Get(s.Put(within(t), key, long, r))(t)
	if _, err := s.Put(within(t), key, bytes.Repeat([]byte("late"), maxMessage/2), r); !errors.Is(err, wire.ErrMoved) {
		t.Error(err)
	}
	holds(t, c, key, string(long))
}

// A site cannot ask which buckets there are; it tells one that is missing from a
// broker that keeps nothing.
func TestASiteSeesThatABucketIsMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c, s := w.connect(w.coordinatorOptions()), w.connect(w.siteOptions("north"))
	key := wire.TaskKey(study, "north")
	if _, _, err := s.Get(within(t), key); err == nil || !strings.Contains(err.Error(), "keeps nothing") {
		t.Errorf("a broker that keeps nothing: %v", err)
	}
	if _, err := s.Put(within(t), wire.AnswerKey(study, "north"), nil, 0); err == nil || errors.Is(err, wire.ErrMoved) {
		t.Errorf("a site has made a bucket: %v", err)
	}
	put(t, c, wire.TaskKey("control", "south"), "x", 0)
	if value, revision, err := s.Get(within(t), key); value != nil || revision != 0 || err != nil {
		t.Errorf("a bucket that is missing: %q %d %v", value, revision, err)
	}
	put(t, c, key, "task", 0)
	holds(t, s, key, "task")
	testkit.Do(t, c.Remove(within(t), study))
	if err := c.Remove(within(t), study); err != nil {
		t.Error(err)
	}
	if _, revision, err := s.Get(within(t), key); revision != 0 || err != nil {
		t.Errorf("a bucket that was removed: %d %v", revision, err)
	}
}

// A put that is repeated, because the answer to it came too late, wakes whoever waits for the value.
func TestALateAnswerWakes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.connect(w.coordinatorOptions())
	s := testkit.Get(connect(w.siteOptions("north"), time.Hour))(t)
	defer s.Close()
	key, p := wire.TaskKey(study, "north"), place{bucketOf(study), "task.north"}
	after := put(t, c, key, "one", 0)
	came := make(chan string, 1)
	go func() {
		value, _, err := s.Wait(within(t), key, after)
		came <- fmt.Sprint(string(value), err)
	}()
	eventually(t, "the site waits", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		watch := s.watched[p.wake()]
		return watch != nil && watch.seen == after && watch.looked == watch.wakes
	})
	if _, err := c.publish(within(t), p, expecting(p, p, after), encodeShort([]byte("two"))); err != nil { // no wake
		t.Fatal(err)
	}
	if _, err := c.Put(within(t), key, []byte("two"), after); !errors.Is(err, wire.ErrMoved) {
		t.Fatal(err)
	}
	if got := <-came; got != "two<nil>" {
		t.Error(got)
	}
}

// Without wakes readers look by themselves.
func TestWakesAreHintsOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.connect(w.coordinatorOptions())
	s := testkit.Get(connect(w.siteOptions("north"), 50*time.Millisecond))(t)
	defer s.Close()
	key := wire.TaskKey(study, "north")
	p := place{bucketOf(study), "task.north"}
	after := put(t, c, key, "one", 0)
	came := make(chan string, 1)
	go func() {
		value, _, err := s.Wait(within(t), key, after)
		came <- fmt.Sprint(string(value), err)
	}()
	if _, err := c.publish(within(t), p, expecting(p, p, after), encodeShort([]byte("two"))); err != nil { // no wake
		t.Fatal(err)
	}
	if got := <-came; got != "two<nil>" {
		t.Error(got)
	}
	// Wakes that lie cost a few looks, and hide nothing.
	_, now, err := s.Get(within(t), key)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		value, _, err := s.Wait(within(t), key, now)
		came <- fmt.Sprint(string(value), err)
	}()
	for i := range 1000 {
		c.announce(p, now+1+uint64(i), nil)
	}
	put(t, c, key, "three", now)
	if got := <-came; got != "three<nil>" {
		t.Error(got)
	}
}

// A short value comes with its wake, without being asked for; a longer one, or one above the limit, does not.
func TestWakesBringShortValues(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c, s := w.connect(w.coordinatorOptions()), w.connect(w.siteOptions("north"))
	key := wire.TaskKey(study, "north")
	after := put(t, c, key, "one", 0)
	s.Limit(key, 10<<10)
	sent := func() uint64 {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.nc.Stats().OutMsgs
	}
	for _, size := range []int{3, 10 << 10, 20 << 10} {
		type found struct {
			size     int
			revision uint64
		}
		came := make(chan found, 1)
		seen := after
		go func() {
			value, revision, _ := s.Wait(within(t), key, seen)
			came <- found{len(value), revision}
		}()
		eventually(t, "the site waits", func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			watch := s.watched[place{bucketOf(study), "task.north"}.wake()]
			return watch != nil && watch.seen == seen && watch.looked == watch.wakes
		})
		before := sent()
		after = put(t, c, key, strings.Repeat("x", size), after)
		got, want, asks := <-came, found{size, after}, uint64(0)
		if size > 10<<10 {
			want.size, asks = 0, 1
		}
		if asked := sent() - before; got != want || asked != asks {
			t.Errorf("a value of %d bytes: %v after %d questions, want %v after %d", size, got, asked, want, asks)
		}
	}
}

// Many wait at once, each for its own, over one subscription.
func TestManySites(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.coordinatorOptions()
	o.URLs, o.Server = nil, w.server
	c := w.connect(o)
	const sites, rounds = 50, 5
	var group sync.WaitGroup
	for i := range sites {
		name := fmt.Sprintf("s%d", i)
		so := w.siteOptions(name)
		so.Log = nil
		s := w.connect(so)
		group.Go(func() { // the site
			var seen, put uint64
			for range rounds {
				task, r, err := s.Wait(within(t), wire.TaskKey(study, name), seen)
				if err == nil {
					put, err = s.Put(within(t), wire.AnswerKey(study, name), append(task, '!'), put)
				}
				if err != nil {
					t.Error(name, err)
					return
				}
				seen = r
			}
		})
		group.Go(func() { // the coordinator's link to it
			var seen, put uint64
			for round := range rounds {
				task := fmt.Sprint(name, " ", round)
				r, err := c.Put(within(t), wire.TaskKey(study, name), []byte(task), put)
				var answer []byte
				if err == nil {
					put = r
					answer, seen, err = c.Wait(within(t), wire.AnswerKey(study, name), seen)
				}
				if err != nil || string(answer) != task+"!" {
					t.Errorf("%s: %q %v", name, answer, err)
					return
				}
			}
		})
	}
	group.Wait()
}

func FuzzHead(f *testing.F) {
	f.Add([]byte{})
	f.Add(encodeShort([]byte("value")))
	f.Add(encodeParts(3, bytes.Repeat([]byte("x"), 100)))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := decodeHead(data)
		switch {
		case err != nil:
		case h.parts == 0:
			if !bytes.Equal(encodeShort(h.short), data) {
				t.Errorf("%x decodes to %x", data, h.short)
			}
		case h.parts > maxParts || h.size > MaxValue || h.size < h.parts || len(data) != 38:
			t.Errorf("%x is believed: %+v", data, h)
		}
	})
}

// What one task costs: put, wake and read, at the socket of the site and at that of
// the coordinator.
func BenchmarkPutAndWait(b *testing.B) {
	for _, size := range []int{100, 10_000, 1_000_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			w := newWorld(b)
			co, so := w.coordinatorOptions(), w.siteOptions("north")
			co.Log, so.Log = nil, nil
			c, s := w.connect(co), w.connect(so)
			key := wire.TaskKey(study, "north")
			after := put(b, c, key, "", 0)
			holds(b, s, key, "")
			value := make([]byte, size)
			ctx := context.Background()
			in1, out1 := c.Bytes()
			in2, out2 := s.Bytes()
			b.ReportAllocs()
			for b.Loop() {
				r := testkit.Get(c.Put(ctx, key, value, after))(b)
				if _, _, err := s.Wait(ctx, key, after); err != nil {
					b.Fatal(err)
				}
				after = r
			}
			in3, out3 := c.Bytes()
			in4, out4 := s.Bytes()
			b.ReportMetric(float64(in3-in1+out3-out1)/float64(b.N), "B-writer/op")
			b.ReportMetric(float64(in4-in2+out4-out2)/float64(b.N), "B-reader/op")
		})
	}
}
