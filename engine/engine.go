// Package engine runs a study: rounds, quorum, checkpoints, resumption. It is
// written once for every method and every way of reaching a site, and knows
// neither.
//
// Tasks and releases pass as bytes over a [Link]. What the coordinator folds,
// and in which order, is the manifest; folding follows the plan's order of
// sites or the method's simulated time, never the order of arrival. The coordinator's state is therefore a
// function of the plan and the releases: a run that was killed at any moment
// continues from its last checkpoint to the same bits, because sites answer a
// repeated task with the bytes they stored.
package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"

	"parley/internal/wire"
	"parley/method"
	"parley/privacy"
)

// Link reaches one site. Exchange may be called again with a task that was
// sent before, in this process or an earlier one, and then returns the same
// bytes. An error means that the site will not answer, unless ctx ended.
type Link interface {
	Exchange(ctx context.Context, task []byte) (release []byte, err error)
}

// Coordinator is the loop on the coordinator's side.
type Coordinator struct {
	Study  string // hexadecimal digest of the plan
	Sites  []string
	Quorum int // sites that must stay, 1 ≤ Quorum ≤ len(Sites)
	Method method.Coordinator
	Links  map[string]Link
	// Checkpoints may be nil: then the run cannot be resumed.
	Checkpoints Checkpoints
	// Observe, if not nil, is called from Run's goroutine.
	Observe func(Event)
}

// Event is what an onlooker may see while a study runs.
type Event struct {
	Progress, Of int
	Round        *Round // set when a round has ended
	Resumed      bool   // set once, when a checkpoint was found
	Left         *Left  // set when a site leaves
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
	Site    string          `cbor:"site" json:"site"`
	Kind    string          `cbor:"kind" json:"kind"`
	Down    int             `cbor:"down" json:"bytes_down"` // size of the task
	Up      int             `cbor:"up" json:"bytes_up"`     // size of the release; 0 if the site left
	Release string          `cbor:"release" json:"release_sha256,omitempty"`
	Request privacy.Request `cbor:"request" json:"request"` // what was granted and charged: of noised sums, mechanism, noise and count
	Seeded  bool            `cbor:"seeded,omitempty" json:"seeded,omitempty"`
	// Left says why the site answered no more; empty if it answered. It says no
	// more than others may know: a failure that is not a refusal may have come
	// from the site's data.
	Left string `cbor:"left,omitempty" json:"left,omitempty"`
}

// Outcome is what a finished run leaves.
type Outcome struct {
	Result *method.Result
	Rounds []Round
	Shares map[string][]byte // what each site may have back
	Left   []string
}

// run is the coordinator's loop with everything that a checkpoint and its log
// must hold.
type run struct {
	*Coordinator
	cp       checkpoint
	rounds   []Round
	manifest manifest
	logged   struct{ rounds, entries int } // how many of them the log holds
	state    method.State
	pending  []*pending // outstanding tasks, oldest first
	wg       sync.WaitGroup
}

// pending is a task on its way.
type pending struct {
	outstanding
	answer chan answer // buffered: nobody is left behind when the run ends early
}

type answer struct {
	release []byte
	err     error
}

// Run runs the study to its end, or until ctx ends; then it may be called
// again, in another process too, and continues from the last checkpoint.
func (c *Coordinator) Run(ctx context.Context) (*Outcome, error) {
	ctx, cancel := context.WithCancel(ctx)
	r := &run{Coordinator: c}
	defer func() {
		cancel()
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
	step, err := r.Method.Next(r.state)
	if err != nil {
		return false, fmt.Errorf("after round %d: %w", r.cp.Round, err)
	}
	r.state = step.State
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
		r.send(ctx, o)
	}
	return false, nil
}

// close ends the record of the round before a step.
func (r *run) close(step method.Step) {
	e := Event{Progress: step.Progress, Of: step.Of}
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
		switch {
		case !slices.Contains(r.Sites, t.Site) || slices.Contains(r.cp.Left, t.Site):
			return nil, fmt.Errorf("round %d: the method addressed %q, which is not a site of this study any more", r.cp.Round, t.Site)
		case slices.ContainsFunc(r.cp.Outstanding, func(o outstanding) bool { return o.Site == t.Site }):
			return nil, fmt.Errorf("round %d: the method gave site %q a second task before it answered the first", r.cp.Round, t.Site)
		case !(t.Takes >= 0) || math.IsInf(t.Takes, 1):
			return nil, fmt.Errorf("round %d: the method gave site %q a task that takes %v: want a finite time that is not negative", r.cp.Round, t.Site, t.Takes)
		}
		known := r.cp.Known[t.Site]
		message, err := wire.Marshal(task{
			Version: messageVersion, Study: r.Study, Site: t.Site, Round: r.cp.Round, Kind: t.Kind, Body: t.Body,
			First: known, Manifest: r.manifest[known:],
		})
		if err != nil {
			return nil, fmt.Errorf("encoding the task for site %q: %w", t.Site, err)
		}
		r.cp.Known[t.Site] = len(r.manifest)
		fresh = append(fresh, outstanding{Site: t.Site, Kind: t.Kind, Round: r.cp.Round, Message: message, Ends: r.cp.Now + t.Takes, Optional: t.Optional})
	}
	return fresh, nil
}

func (r *run) send(ctx context.Context, o outstanding) {
	p := &pending{outstanding: o, answer: make(chan answer, 1)}
	r.pending = append(r.pending, p)
	link := r.Links[o.Site]
	r.wg.Go(func() {
		release, err := link.Exchange(ctx, o.Message)
		p.answer <- answer{release, err}
	})
}

// collect folds what the step waits for: every outstanding answer in the
// plan's order of sites, or only the one that ends first in simulated time.
func (r *run) collect(ctx context.Context) error {
	now := r.pending
	if r.cp.Wait == method.All {
		r.pending = nil
		slices.SortStableFunc(now, func(a, b *pending) int {
			return slices.Index(r.Sites, a.Site) - slices.Index(r.Sites, b.Site)
		})
	} else {
		first := slices.MinFunc(now, func(a, b *pending) int { return cmp.Compare(a.Ends, b.Ends) })
		r.pending = slices.DeleteFunc(slices.Clone(now), func(p *pending) bool { return p == first })
		now = []*pending{first}
	}
	for _, p := range now {
		r.cp.Now = max(r.cp.Now, p.Ends)
	}
	record := Round{Round: now[len(now)-1].Round}
	var lost []error
	for _, p := range now {
		var a answer
		select {
		case a = <-p.answer:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if a.err != nil {
			lost = append(lost, fmt.Errorf("site %s: %w", p.Site, a.err))
			if err := r.leave(p, a.err, lost); err != nil {
				return err
			}
			record.Sites = append(record.Sites, Exchange{Site: p.Site, Kind: p.Kind, Down: len(p.Message), Left: publicReason(a.err)})
			continue
		}
		x, err := r.fold(p, a.release)
		if err != nil {
			return fmt.Errorf("site %s, round %d: %w", p.Site, p.Round, err)
		}
		record.Sites = append(record.Sites, x)
	}
	r.rounds = append(r.rounds, record)
	return nil
}

// fold checks that a release answers its task and hands it to the method.
func (r *run) fold(p *pending, sealed []byte) (Exchange, error) {
	o, err := privacy.Open(sealed)
	if err != nil {
		return Exchange{}, err
	}
	if o.Study != r.Study || o.Site != p.Site || o.Round != p.Round || o.Kind != p.Kind || o.Task != p.digest() {
		return Exchange{}, errors.New("the release does not answer the task that was sent")
	}
	if r.state, err = r.Method.Fold(r.state, method.Contribution{Site: p.Site, Kind: p.Kind, Body: o.Body}); err != nil {
		return Exchange{}, err
	}
	if err := r.manifest.append(p.Round, p.Site, sealed); err != nil {
		return Exchange{}, err
	}
	r.forget(p)
	return Exchange{
		Site: p.Site, Kind: p.Kind, Down: len(p.Message), Up: len(sealed), Release: digestHex(sealed), Request: o.Request, Seeded: o.Seeded,
	}, nil
}

// leave records that a site is gone, unless that leaves too few for what is still to
// be learned.
func (r *run) leave(p *pending, reason error, lost []error) error {
	if stay := len(r.Sites) - len(r.cp.Left) - 1; stay < r.Quorum && !p.Optional {
		return fmt.Errorf("round %d: %d of %d sites would be left, and the plan's quorum is %d:\n%w",
			p.Round, stay, len(r.Sites), r.Quorum, errors.Join(lost...))
	}
	var err error
	if r.state, err = r.Method.Leave(r.state, p.Site); err != nil {
		return fmt.Errorf("round %d, going on without site %s: %w (it left because: %w)", p.Round, p.Site, err, reason)
	}
	r.cp.Left = append(r.cp.Left, p.Site)
	if err := r.manifest.append(p.Round, p.Site, nil); err != nil {
		return err
	}
	r.forget(p)
	r.observe(Event{Left: &Left{Site: p.Site, Reason: reason}})
	return nil
}

// publicReason is why a site left, as far as others may know it.
func publicReason(err error) string {
	if errors.Is(err, privacy.ErrRefused) {
		return err.Error() // policies and ledgers speak of charges, never of data
	}
	return "it failed"
}

func (r *run) forget(p *pending) {
	r.cp.Outstanding = slices.DeleteFunc(r.cp.Outstanding, func(o outstanding) bool { return o.Site == p.Site })
}

func (r *run) observe(e Event) {
	if r.Observe != nil {
		r.Observe(e)
	}
}

// outcome asks the method for its result and for what each site may have back.
func (r *run) outcome(err error) (*Outcome, error) {
	if err != nil {
		return nil, err
	}
	o := &Outcome{Rounds: r.rounds, Left: r.cp.Left, Shares: map[string][]byte{}}
	if o.Result, err = r.Method.Result(r.state); err != nil {
		return nil, fmt.Errorf("forming the result: %w", err)
	}
	for _, site := range r.Sites {
		if slices.Contains(r.cp.Left, site) {
			continue
		}
		if o.Shares[site], err = r.Method.Share(r.state, site); err != nil {
			return nil, fmt.Errorf("forming what site %s gets back: %w", site, err)
		}
	}
	return o, nil
}
