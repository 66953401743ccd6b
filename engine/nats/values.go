package nats

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"parley/engine/wire"
)

var (
	errNobody = errors.New("the broker has nobody who answers this")
	ErrSlow   = errors.New("the broker does not answer in time")
	errBroke  = errors.New("the connection to the broker broke meanwhile")
	errBusy   = errors.New("too much waits to be stored at the broker")
)

// call is a request that is on its way.
type call struct {
	cancel context.CancelCauseFunc
	size   int // of what is sent
}

// request sends one request and waits for its reply: five seconds, and longer for
// as long as a slow line needs for a long value.
func (c *Conn) request(ctx context.Context, subject string, header nats.Header, payload []byte) (*nats.Msg, error) {
	nc, err := c.connection(ctx)
	if err != nil {
		return nil, err
	}
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	this := &call{cancel, len(payload)}
	c.mu.Lock()
	if c.pending[subject] == nil {
		c.pending[subject] = map[*call]struct{}{}
	}
	c.pending[subject][this] = struct{}{}
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if delete(c.pending[subject], this); len(c.pending[subject]) == 0 {
			delete(c.pending, subject)
		}
	}()
	stop := c.limit(cancel, len(payload))
	defer stop()
	msg, err := nc.RequestMsgWithContext(inner, &nats.Msg{Subject: subject, Header: header, Data: payload})
	switch {
	case err == nil:
		return msg, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case inner.Err() != nil:
		return nil, context.Cause(inner)
	case errors.Is(err, nats.ErrNoResponders):
		return nil, errNobody
	case errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, nats.ErrBadSubscription):
		return nil, errBroke
	}
	return nil, fmt.Errorf("asking the broker: %w", err)
}

// limit ends a request that takes too long. A reply may be long, too: as long as
// enough comes in, there is more time for it. After a request that took too long the
// next have twice the time, until one needs a quarter of it: a broker that is busy is not
// helped by what is sent again.
func (c *Conn) limit(cancel context.CancelCauseFunc, size int) (stop func() bool) {
	within := max(requestWithin, time.Duration(c.within.Load()))
	began, before, latest := time.Now(), c.t.in.Load(), time.Now().Add(requestMost)
	var mu sync.Mutex
	var t *time.Timer
	mu.Lock()
	defer mu.Unlock()
	// A value is stored behind those of all sites, which may come at once.
	first := within + time.Duration(size)*time.Second/slowest + time.Duration(min(size, 1))*requestWithin
	t = time.AfterFunc(first, func() {
		mu.Lock()
		defer mu.Unlock()
		now := c.t.in.Load()
		if now-before < slowest/2 || time.Now().After(latest) {
			c.within.Store(int64(min(2*within, requestMost)))
			cancel(ErrSlow)
			return
		}
		before = now
		t.Reset(requestWithin)
	})
	return func() bool {
		if time.Since(began) < within/4 {
			c.within.Store(int64(within / 2))
		}
		return t.Stop()
	}
}

// look returns the message of a place, with revision 0 if there is none.
func (c *Conn) look(ctx context.Context, p place) ([]byte, uint64, error) {
	msg, err := c.request(ctx, p.get(), nil, nil)
	if errors.Is(err, errNobody) {
		return nil, 0, c.missing(ctx, p)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("reading %s: %w", p.subject(), err)
	}
	// The headers of who put the message come first, and may hold anything; those of
	// the server stand behind them.
	revision, bad := strconv.ParseUint(last(msg.Header, "Nats-Sequence"), 10, 64)
	switch status := msg.Header.Get("Status"); {
	case bad == nil && revision > 0 && last(msg.Header, "Nats-Subject") == p.subject():
		return msg.Data, revision, nil
	case status == "404":
		return nil, 0, nil
	default:
		return nil, 0, fmt.Errorf("reading %s: the broker answers with something else: %s %s", p.subject(), status,
			msg.Header.Get("Description"))
	}
}

func last(h nats.Header, name string) string {
	values := h.Values(name)
	if len(values) == 0 {
		return ""
	}
	return values[len(values)-1]
}

// missing says whether a bucket is not there, which is no error, or the broker has
// no storage now. An end that may not ask for a list of buckets tries another one.
func (c *Conn) missing(ctx context.Context, p place) error {
	if c.o.Replicas > 0 {
		return nil
	}
	if p.bucket != control {
		_, err := c.request(ctx, place{control, p.rest}.get(), nil, nil)
		if err == nil {
			return nil
		}
		if !errors.Is(err, errNobody) {
			return fmt.Errorf("reading %s: %w", p.subject(), err)
		}
	}
	return fmt.Errorf("reading %s: the broker keeps nothing now\n  hint: it starts, its disk is full, or the "+
		"coordinator has not begun", p.subject())
}

// read returns the value of a place; nil if it is none, or in parts that do not fit
// together (whole is false then).
func (c *Conn) read(ctx context.Context, p place) (value []byte, revision uint64, whole bool, err error) {
	data, revision, err := c.look(ctx, p)
	if err != nil || revision == 0 {
		return nil, 0, true, err
	}
	h, err := decodeHead(data)
	if err != nil {
		return nil, revision, false, nil
	}
	if h.parts == 0 {
		h.size = len(h.short)
	}
	switch {
	case h.size > c.mostOf(p):
		return nil, revision, true, nil
	case h.parts == 0:
		return h.short, revision, true, nil
	}
	// No more is kept than has come.
	var parts [][]byte
	size, hash := 0, sha256.New()
	for i := range h.parts {
		data, r, err := c.look(ctx, p.part(i))
		if err != nil {
			return nil, 0, false, err
		}
		if size += len(data); r == 0 || size > h.size {
			return nil, revision, false, nil
		}
		hash.Write(data)
		parts = append(parts, data)
	}
	if size != h.size || [sha256.Size]byte(hash.Sum(nil)) != h.hash {
		return nil, revision, false, nil
	}
	value = make([]byte, 0, size)
	for _, data := range parts {
		value = append(value, data...)
	}
	return value, revision, true, nil
}

// Limit says how many bytes a value of key may have at most, below [MaxValue]. A longer one is empty to this end, which
// holds no more of it than its head: whoever may put it cannot fill this end's memory.
func (c *Conn) Limit(key string, most int) {
	p, err := locate(key)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.most[p] = most
}

func (c *Conn) mostOf(p place) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if most, ok := c.most[p]; ok {
		return most
	}
	return MaxValue
}

// Get implements [wire.Wire]. What is no value, such as one whose parts another
// put has replaced in part, is empty: its revision says what can be put after it.
func (c *Conn) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	p, err := locate(key)
	if err != nil {
		return nil, 0, err
	}
	for wait := 10 * time.Millisecond; ; wait *= 2 {
		value, revision, whole, err := c.read(ctx, p)
		if err != nil || whole || wait > 100*time.Millisecond {
			return value, revision, err
		}
		if err := wire.Pause(ctx, wait); err != nil { // it may be on its way
			return nil, 0, err
		}
	}
}

// ack is the reply to a publish.
type ack struct {
	Sequence uint64 `json:"seq"`
	Error    *struct {
		Code        int    `json:"err_code"`
		Description string `json:"description"`
	} `json:"error"`
}

// expecting is the header of a message that is stored only if the value is still after.
func expecting(p, value place, after uint64) nats.Header {
	header := nats.Header{"Nats-Expected-Last-Subject-Sequence": {strconv.FormatUint(after, 10)}}
	if p != value {
		header["Nats-Expected-Last-Subject-Sequence-Subject"] = []string{value.subject()}
	}
	return header
}

// publish stores one message.
func (c *Conn) publish(ctx context.Context, p place, header nats.Header, data []byte) (uint64, error) {
	sequence, err := c.api(ctx, p.subject(), header, data)
	if err == nil {
		c.mu.Lock()
		c.stored[p.bucket], c.stored[""] = time.Now(), time.Now()
		c.mu.Unlock()
	}
	return sequence, err
}

// Stored is when the broker last acknowledged a put of this end into the bucket of a key, or into any if that is empty;
// zero if it has not.
func (c *Conn) Stored(key string) time.Time {
	first, _, _ := strings.Cut(key, ".")
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stored[bucketOf(first)]
}

// api asks JetStream for something, and returns the sequence that it acknowledges.
func (c *Conn) api(ctx context.Context, subject string, header nats.Header, payload []byte) (uint64, error) {
	msg, err := c.request(ctx, subject, header, payload)
	if err != nil {
		return 0, err
	}
	var a ack
	if err := json.Unmarshal(msg.Data, &a); err != nil {
		return 0, fmt.Errorf("the broker answers with something else: %w", err)
	}
	if a.Error == nil {
		return a.Sequence, nil
	}
	switch a.Error.Code {
	case 10071, 10164: // wrong last sequence; in a cluster, another put is on its way
		return 0, wire.ErrMoved
	case int(errNoFolder), int(errExists), int(errNoBucket):
		return 0, jsError(a.Error.Code)
	case 10167:
		return 0, errBusy
	case 10023, 10047, 10077, 10008:
		return 0, fmt.Errorf("the broker cannot store it: %s\n  hint: make room on its disk; it starts again by "+
			"itself if it is the coordinator's own", a.Error.Description)
	}
	return 0, fmt.Errorf("the broker refuses it: %s (%d)", a.Error.Description, a.Error.Code)
}

// jsError is an error of JetStream that is looked for here.
type jsError int

const (
	errNoFolder jsError = 10049 // removing another bucket just took the folder of all away
	errExists   jsError = 10058 // with another configuration: its revisions begin at another time
	errNoBucket jsError = 10059
)

func (e jsError) Error() string { return fmt.Sprintf("JetStream's error %d", int(e)) }

// Put implements [wire.Wire].
func (c *Conn) Put(ctx context.Context, key string, value []byte, after uint64) (uint64, error) {
	p, err := locate(key)
	if err != nil {
		return 0, err
	}
	revision, err := c.put(ctx, p, value, after)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return 0, cause
		}
		if errors.Is(err, wire.ErrMoved) {
			// What moved it may be this end's own put, of which nobody has been woken: the answer to it came too late.
			c.announce(p, 0, nil)
			return 0, err
		}
		return 0, fmt.Errorf("putting %s: %w", p.subject(), err)
	}
	c.announce(p, revision, value)
	return revision, nil
}

func (c *Conn) put(ctx context.Context, p place, value []byte, after uint64) (uint64, error) {
	nc, err := c.connection(ctx)
	if err != nil {
		return 0, err
	}
	most := min(int(nc.MaxPayload())-room, maxMessage)
	limit := max(0, min(MaxValue, maxParts*most))
	if c.o.Name != coordinator {
		limit = min(maxAnswer, limit)
	}
	switch {
	case len(value) > limit:
		return 0, fmt.Errorf("%w: it has %d bytes, above the limit of %d of this broker", wire.ErrTooLarge, len(value),
			limit)
	case 1+len(value) <= most:
		return c.store(ctx, p, p, encodeShort(value), after)
	}
	n := 0
	for at := 0; at < len(value); at += most {
		if _, err := c.store(ctx, p.part(n), p, value[at:min(at+most, len(value))], after); err != nil {
			return 0, err
		}
		n++
	}
	return c.store(ctx, p, p, encodeParts(n, value), after)
}

// store publishes, and makes the bucket first if there is none: a broker may have
// lost its disk in the middle of a study.
func (c *Conn) store(ctx context.Context, p, value place, data []byte, after uint64) (uint64, error) {
	for wait := 20 * time.Millisecond; ; wait *= 2 {
		this := &putting{p, expecting(p, value, after), data, 0, nil, make(chan struct{})}
		revision, err := c.together(ctx, this)
		if errors.Is(err, errBusy) && wait < requestMost {
			if err := wire.Pause(ctx, min(wait, time.Second)); err != nil {
				return 0, err
			}
			continue
		}
		if !errors.Is(err, errNobody) {
			return revision, err
		}
		if c.o.Replicas == 0 || wait > time.Second {
			return 0, fmt.Errorf("the broker keeps nothing of this name now\n  hint: it starts, its disk is full, or " +
				"the coordinator has not begun")
		}
		if err := c.create(ctx, p); err != nil && !errors.Is(err, errNoFolder) {
			return 0, err
		}
		if wait > 20*time.Millisecond { // servers of a cluster have yet to tell each other
			if err := wire.Pause(ctx, wait); err != nil {
				return 0, err
			}
		}
	}
}

// create makes a bucket. Its revisions begin at the time in milliseconds, so that
// those of a bucket that was lost do not come again.
func (c *Conn) create(ctx context.Context, p place) error {
	config, err := json.Marshal(map[string]any{
		"name": p.stream(), "subjects": []string{"$KV." + p.bucket + ".>"},
		"retention": "limits", "storage": "file", "discard": "new", "duplicate_window": 0,
		"max_consumers": -1, "max_msgs": maxMessages, "max_bytes": -1, "max_age": 0, "max_msgs_per_subject": 1,
		"max_msg_size": -1, "num_replicas": c.o.Replicas, "allow_direct": true, "deny_delete": true,
		"first_seq": time.Now().UnixMilli(), "allow_atomic": c.o.Server != nil,
	})
	if err != nil {
		return err
	}
	_, err = c.api(ctx, "$JS.API.STREAM.CREATE."+p.stream(), nil, config)
	if errors.Is(err, errExists) {
		return nil
	}
	if errors.Is(err, errNobody) {
		return errors.New("the broker keeps nothing now\n  hint: JetStream is not running: is its disk full?")
	}
	if err != nil {
		return fmt.Errorf("making the bucket %s: %w", p.bucket, err)
	}
	return nil
}

// maxMessages bounds what an end could fill with replies to itself: see
// [Authority]. Values that stand there can still be replaced.
const maxMessages = 1 << 16

// Remove forgets a bucket (a study's digest, or another first part of keys) with
// all its values.
func (c *Conn) Remove(ctx context.Context, bucket string) error {
	p := place{bucketOf(bucket), ""}
	if !token.MatchString(p.bucket) {
		return fmt.Errorf("%.100q names no bucket", bucket)
	}
	if _, err := c.api(ctx, "$JS.API.STREAM.DELETE."+p.stream(), nil, nil); err != nil && !errors.Is(err, errNoBucket) {
		return fmt.Errorf("removing the bucket %s: %w", p.bucket, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.most, func(at place, _ int) bool { return at.bucket == p.bucket })
	maps.DeleteFunc(c.watched, func(subject string, w *watch) bool {
		return len(w.waiting) == 0 && strings.HasPrefix(subject, p.wake())
	})
	return nil
}

// withWake is how many bytes a value of the coordinator may have to travel with the wake, so that no site need ask.
// The broker would hold longer ones for all sites at once; a site's own value would pass its line twice.
const withWake = 16 << 10

// announce wakes those who wait for a value, here and elsewhere.
func (c *Conn) announce(p place, revision uint64, value []byte) {
	c.wake(p.wake(), revision, nil)
	if c.o.Name != coordinator || len(value) > withWake {
		value = nil
	}
	c.mu.Lock()
	nc := c.nc
	c.mu.Unlock()
	if nc != nil {
		// If it is lost, readers look by themselves.
		nc.Publish(p.wake(), append(binary.BigEndian.AppendUint64(nil, revision), value...))
	}
}
