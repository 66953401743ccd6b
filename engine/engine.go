// Package engine runs a study: rounds, quorum, checkpoints, resumption. It is
// written once for every method and every way of reaching a site, and knows
// neither.
//
// The [Coordinator] gives tasks to sites and folds what they release; a [Site]
// answers each task once. Both pass bytes over a [Link]. What the coordinator
// folds, in which order, and who leaves, is its history ([Record]). The state is
// a function of the plan and of the releases that the history counts: a run that
// was killed at any moment continues from its last checkpoint to the same bits,
// because sites answer a repeated task with the bytes that they stored; and a
// coordinator that has lost everything rebuilds the same state from the history
// that a site has kept, and the sites' outboxes.
//
// A site leaves a study by its own refusal, by a release that is not valid, by
// the plan's deadline, which its link keeps, or by a person's word; never by a
// broken connection.
package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"parley/internal/wire"
	"parley/method"
	"parley/privacy"
)

// Reply is what comes back over a link.
type Reply struct {
	Release []byte // sealed
	Ledger  Mark   // of the site, after it
	Key     string // name of the public key that the site has signed with; empty where nothing is signed
	Records int    // of the history that the site has kept
}

// Link reaches one site. Exchange may be called again with a task that was
// sent before, in this process or an earlier one, and then returns the same
// release. It tries until there is an answer or ctx ends. A [*Refusal] means
// that the site will not answer; any other error ends the run, which can be
// continued.
type Link interface {
	Exchange(ctx context.Context, task []byte, past History) (Reply, error)
}

// Coordinator is the loop on the coordinator's side.
type Coordinator struct {
	Study    string // hexadecimal digest of the plan
	Revision int    // of the method
	Sites    []string
	Quorum   int // sites that must stay, 1 ≤ Quorum ≤ len(Sites)
	Method   method.Coordinator
	// Requests is what the plan lists for each site: nothing else is taken.
	Requests map[string][]privacy.Listed
	Links    map[string]Link
	// Checkpoints may be nil: then the run cannot be resumed.
	Checkpoints Checkpoints
	// Observe, if not nil, is called from Run's goroutine.
	Observe func(Event)
	// Simulation takes releases whose noise came from a seed, and folds the
	// answers of asynchronous schedules in simulated time; otherwise they are
	// folded as they arrive.
	Simulation bool
	// Follow is a history that the run is to repeat before it goes on: the
	// longest that a site has kept. Without a checkpoint, the coordinator that has
	// lost everything rebuilds its state so.
	Follow [][]byte
	// Grace is how long the first answer of an asynchronous schedule waits for those to the other
	// tasks: where the checkpoint is an older copy, they say so before another history is made.
	Grace time.Duration

	mu        sync.Mutex
	dropped   map[string]bool
	following bool                               // Follow has not been repeated to its end
	cancel    map[string]context.CancelCauseFunc // of the outstanding task
}

// errDropped lets a site leave as a refusal does.
var errDropped = errors.New("it was dropped by a person")

// invalidError is what is wrong with a release.
type invalidError struct{ err error }

func (e *invalidError) Error() string { return "its release is not valid: " + e.err.Error() }
func (e *invalidError) Unwrap() error { return e.err }

// Drop makes a site leave: at once if it has a task to answer, and otherwise
// when it would get the next one. While a history is repeated, that decides who
// takes part, and the site leaves at its end. It is a person's word, and may be
// called while the study runs.
func (c *Coordinator) Drop(site string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dropped == nil {
		c.dropped = map[string]bool{}
	}
	c.dropped[site] = true
	if !c.following {
		c.giveUp(site)
	}
}

// giveUp waits for a site's answer no more; the caller holds c.mu.
func (c *Coordinator) giveUp(site string) {
	if cancel := c.cancel[site]; cancel != nil {
		cancel(errDropped)
	}
}

// Event is what an onlooker may see while a study runs.
type Event struct {
	Progress, Of    int    // steps of the study
	Answered, Asked int    // sites whose answers to the tasks of this round are here, and all; 0 of 0 outside
	Round           *Round // set when a round has ended
	Resumed         bool   // set once, when a checkpoint was found
	Following       bool   // Follow has not been repeated to its end
	Left            *Left  // set when a site leaves
}

// Left says that a site answers no more, and why.
type Left struct {
	Site   string
	Reason error
}

// Round is what is kept of one exchange with the sites.
type Round struct {
	Round int         `cbor:"round" json:"round"`
	Sites []Exchange  `cbor:"sites" json:"sites"`
	Info  method.Info `cbor:"info" json:"info,omitempty"`
}

// Exchange is what passed between the coordinator and one site in a round.
type Exchange struct {
	Site    string `cbor:"site" json:"site"`
	Kind    string `cbor:"kind" json:"kind"`
	Down    int    `cbor:"down" json:"bytes_down"` // size of the task
	Up      int    `cbor:"up" json:"bytes_up"`     // size of the release; 0 if the site left
	Release string `cbor:"release" json:"release_sha256,omitempty"`
	Key     string `cbor:"key,omitempty" json:"key,omitempty"` // name of the site's public key
	// what was granted and charged: of noised sums, mechanism, noise and count
	Request privacy.Request `cbor:"request" json:"request"`
	Seeded  bool            `cbor:"seeded,omitempty" json:"seeded,omitempty"`
	// Left says why the site answered no more; empty if it answered. It says no
	// more than others may know.
	Left string `cbor:"left,omitempty" json:"left,omitempty"`
}

// Outcome is what a finished run leaves.
type Outcome struct {
	Result  *method.Result
	Rounds  []Round
	Shares  map[string][]byte // what each site may have back
	Left    []string
	History [][]byte           // encoded Records
	Pasts   map[string]History // what each site that stayed may be told of it
}

// run is the coordinator's loop with everything that a checkpoint and its log
// must hold.
type run struct {
	*Coordinator
	cp      checkpoint
	rounds  []Round
	history *manifest
	logged  struct{ rounds, records int } // how many of them the log holds
	state   method.State
	before  []byte     // state, encoded, as it was when answers were last waited for
	pending []*pending // outstanding tasks, oldest first
	seen    Event      // the steps that were told last
	heard   bool       // Grace is over
	stop    context.CancelCauseFunc
	arrived chan struct{} // wakes whoever counts answers
	wg      sync.WaitGroup
}

// pending is a task on its way.
type pending struct {
	outstanding
	task   []byte
	answer chan answer // buffered: nobody is left behind when the run ends early
	left   bool        // by the history that is followed
	got    answer      // if it came
	came   bool
}

// here says whether the answer has come, and takes it up.
func (p *pending) here() bool {
	select {
	case p.got = <-p.answer:
		p.came = true
	default:
	}
	return p.came
}

type answer struct {
	reply Reply
	err   error
}

// Run runs the study to its end, or until ctx ends; then it may be called
// again, in another process too, and continues from the last checkpoint.
func (c *Coordinator) Run(ctx context.Context) (*Outcome, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	r := &run{Coordinator: c, stop: cancel, arrived: make(chan struct{}, 1),
		history: newManifest(len(c.Sites))}
	c.mu.Lock()
	c.cancel, c.following = map[string]context.CancelCauseFunc{}, len(c.Follow) > 0
	c.mu.Unlock()
	defer func() {
		cancel(nil)
		r.wg.Wait()
	}()
	if err := r.resume(ctx); err != nil {
		return nil, err
	}
	for {
		if len(r.pending) == 0 || r.cp.Wait == method.Any {
			done, err := r.step(ctx)
			if err != nil || done {
				return r.outcome(err)
			}
		}
		if len(r.pending) == 0 {
			continue
		}
		if err := r.collect(ctx); err != nil {
			return nil, err
		}
	}
}

// step asks the method what comes next, checkpoints that, and sends the tasks.
func (r *run) step(ctx context.Context) (done bool, err error) {
	if err := context.Cause(ctx); err != nil {
		return false, err
	}
	var step method.Step
	if err := guarded(func() (err error) { step, err = r.Method.Next(r.state); return err }); err != nil {
		return false, fmt.Errorf("after round %d: %w", r.cp.Round, err)
	}
	r.state = step.State
	if r.before, err = r.state.MarshalBinary(); err != nil {
		return false, fmt.Errorf("encoding the coordinator's state: %w", err)
	}
	r.cp.Wait = step.Wait
	r.close(step)
	if step.Done {
		return true, r.save()
	}
	if len(step.Tasks) == 0 {
		// What the coordinator works out alone may take long: a crash must not lose it.
		if len(r.pending) == 0 {
			return false, r.save()
		}
		return false, nil
	}
	r.cp.Round++
	fresh, err := r.address(step.Tasks)
	if err != nil {
		return false, err
	}
	r.cp.Outstanding = append(r.cp.Outstanding, fresh...)
	if err := r.save(); err != nil {
		return false, err
	}
	for _, o := range fresh {
		if err := r.send(ctx, o); err != nil {
			return false, err
		}
	}
	return false, nil
}

// guarded calls a method's half. A panic there ends the call, not the program.
func guarded(call func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the method panicked: %v", p)
		}
	}()
	return call()
}

// close ends the record of the round before a step.
func (r *run) close(step method.Step) {
	r.seen = Event{Progress: step.Progress, Of: step.Of}
	e := Event{}
	if n := len(r.rounds); n > 0 && r.rounds[n-1].Info == nil {
		last := &r.rounds[n-1]
		last.Info = method.Info{}
		maps.Copy(last.Info, step.Info)
		e.Round = last
	}
	r.observe(e)
}

// address turns a method's tasks into messages.
func (r *run) address(tasks []method.Task) ([]outstanding, error) {
	fresh := make([]outstanding, 0, len(tasks))
	for _, t := range tasks {
		at := slices.Index(r.Sites, t.Site)
		switch {
		case at < 0 || !slices.Contains(r.history.census.staying, at):
			return nil, fmt.Errorf("round %d: the method addressed %q, which is not a site of this study any more",
				r.cp.Round, t.Site)
		case slices.ContainsFunc(r.cp.Outstanding, func(o outstanding) bool { return o.Site == t.Site }):
			return nil, fmt.Errorf("round %d: the method gave site %q a second task before it answered the first",
				r.cp.Round, t.Site)
		case !(t.Takes >= 0) || math.IsInf(t.Takes, 1):
			return nil, fmt.Errorf("round %d: the method gave site %q a task that takes %v: want a finite time that "+
				"is not negative", r.cp.Round, t.Site, t.Takes)
		}
		if _, ok := r.listed(t.Site, t.Kind); !ok {
			return nil, fmt.Errorf("round %d: the method gave site %q a task %q, which the plan does not list",
				r.cp.Round, t.Site, t.Kind)
		}
		fresh = append(fresh, outstanding{
			Site: t.Site, Kind: t.Kind, Round: r.cp.Round, Records: len(r.history.records), Ends: r.cp.Now + t.Takes,
			Optional: t.Optional, body: t.Body,
		})
	}
	return fresh, nil
}

func (r *run) listed(site, kind string) (privacy.Request, bool) {
	for _, l := range r.Requests[site] {
		if l.Kind == kind {
			return l.Request, true
		}
	}
	return privacy.Request{}, false
}

// send gives a task to its site.
func (r *run) send(ctx context.Context, o outstanding) error {
	message, err := wire.Marshal(task{
		Version: taskVersion, Study: r.Study, Revision: r.Revision, Site: o.Site, Round: o.Round, Kind: o.Kind,
		Body: o.body, Head: r.history.head(o.Records),
	})
	if err != nil {
		return fmt.Errorf("encoding the task for site %q: %w", o.Site, err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	p := &pending{outstanding: o, task: message, answer: make(chan answer, 1)}
	r.pending = append(r.pending, p)
	at := slices.Index(r.Sites, o.Site)
	past := r.history.until(at, o.Records, r.cp.Marks[at])
	link, following := r.Links[o.Site], r.follows()
	alone := r.cp.Wait == method.Any && !following && !r.Simulation
	r.mu.Lock()
	r.Coordinator.cancel[o.Site] = cancel
	if r.dropped[o.Site] && !following {
		cancel(errDropped)
	}
	r.mu.Unlock()
	if following && r.goes(at) { // it is charged for nothing that will not count
		cancel(nil)
		p.answer <- answer{err: errDropped}
		return nil
	}
	r.wg.Go(func() {
		defer cancel(nil)
		reply, err := link.Exchange(ctx, message, past)
		if cause := context.Cause(ctx); err != nil && cause != nil {
			err = cause
		}
		if alone && err == nil && reply.Records > o.Records {
			err = &ForkedError{fmt.Errorf("it has seen %d records of the history, and its task was given out after %d",
				reply.Records, o.Records)}
		}
		if forked := (*ForkedError)(nil); errors.As(err, &forked) { // before anything else is folded
			r.stop(fmt.Errorf("site %s: %w", o.Site, err))
		}
		p.answer <- answer{reply, err}
		select {
		case r.arrived <- struct{}{}:
		default: // whoever counts will look at all answers
		}
	})
	return nil
}

// goes says whether a site leaves by the history that is followed before it answers again.
func (r *run) goes(at int) bool {
	for _, data := range r.Follow[len(r.history.records):] {
		rec, err := decodeRecord(data)
		if left := slices.Contains(rec.Left, at); err != nil || left || rec.All || slices.Contains(rec.Sites, at) {
			return left
		}
	}
	return false
}

// follows says whether the history that is followed has yet to be repeated to its end.
// From then on, those leave whom a person has dropped.
func (r *run) follows() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.following && len(r.history.records) >= len(r.Follow) {
		r.following = false
		for site := range r.dropped {
			r.giveUp(site)
		}
	}
	return r.following
}

// publicReason is why a site left, as far as others may know it.
func publicReason(err error) string {
	var refusal *Refusal
	var invalid *invalidError
	switch {
	case errors.As(err, &refusal):
		return refusal.Public
	case errors.As(err, &invalid):
		return "its release was not valid"
	}
	return errDropped.Error()
}

func (r *run) observe(e Event) {
	if r.Observe != nil {
		e.Progress, e.Of, e.Following = r.seen.Progress, r.seen.Of, r.follows()
		r.Observe(e)
	}
}

// outcome asks the method for its result and for what each site may have back.
func (r *run) outcome(err error) (*Outcome, error) {
	if err != nil {
		return nil, err
	}
	if n := len(r.history.records); n < len(r.Follow) {
		return nil, fmt.Errorf("the study is done after %d of the %d records of the history that is followed: it is "+
			"not the history of this study", n, len(r.Follow))
	}
	o := &Outcome{Rounds: r.rounds, Shares: map[string][]byte{}, History: r.history.records,
		Pasts: map[string]History{}}
	if err := guarded(func() (err error) { o.Result, err = r.Method.Result(r.state); return err }); err != nil {
		return nil, fmt.Errorf("forming the result: %w", err)
	}
	for i, site := range r.Sites {
		if !slices.Contains(r.history.census.staying, i) {
			o.Left = append(o.Left, site)
			continue
		}
		if err := guarded(func() (err error) {
			o.Shares[site], err = r.Method.Share(r.state, site)
			return err
		}); err != nil {
			return nil, fmt.Errorf("forming what site %s gets back: %w", site, err)
		}
		o.Pasts[site] = r.history.until(i, len(r.history.records), r.cp.Marks[i])
	}
	return o, nil
}
