package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"parley/method"
	"parley/privacy"
)

// collect waits for the answers that the step waits for, and folds them: of
// every outstanding task in the plan's order of sites, or of the one that ends
// first.
func (r *run) collect(ctx context.Context) error {
	now, err := r.due(ctx)
	if err != nil {
		return err
	}
	if err := r.arrivals(ctx, now, nil); err != nil {
		return err
	}
	round := Round{Round: now[len(now)-1].Round}
	var contributions []*contribution
	lost := map[*pending]error{}
	for _, p := range now {
		r.cp.Now = max(r.cp.Now, p.Ends)
		if p.left {
			lost[p] = errDropped
			continue
		}
		c, err := r.opened(p)
		if err == nil {
			contributions = append(contributions, c)
		} else if lost[p] = err; r.fatal(p, err) != nil {
			return r.fatal(p, err)
		}
	}
	if contributions, err = r.fold(contributions, lost); err != nil {
		return err
	}
	if err := r.leave(now, lost); err != nil {
		return err
	}
	var releases []folded
	var left []int
	for _, c := range contributions {
		releases = append(releases, folded{slices.Index(r.Sites, c.p.Site), c.p.Round, c.digest})
	}
	for _, p := range now {
		at := slices.Index(r.Sites, p.Site)
		if err := lost[p]; err != nil {
			left = append(left, at)
			// as a checkpoint has it
			round.Sites = append(round.Sites, Exchange{Site: p.Site, Kind: p.Kind, Down: len(p.task),
				Left: publicReason(err), Request: privacy.Request{Contents: []privacy.Content{}}})
			continue
		}
		c := contributions[slices.IndexFunc(contributions, func(c *contribution) bool { return c.p == p })]
		if !r.Simulation { // whose ledgers have no other eyes, and whose files are to be the same each time
			r.cp.Marks[at] = c.reply.Ledger
		}
		round.Sites = append(round.Sites, c.exchange())
	}
	if r.cp.Wait == method.All { // a history that is repeated names those that left last
		slices.SortStableFunc(round.Sites, func(a, b Exchange) int {
			return cmp.Compare(slices.Index(r.Sites, a.Site), slices.Index(r.Sites, b.Site))
		})
	}
	if err := r.record(round.Round, releases, left); err != nil {
		return err
	}
	r.rounds = append(r.rounds, round)
	return nil
}

// fatal is the error that ends the run where asking a site has failed; nil if the site leaves for it.
func (r *run) fatal(p *pending, err error) error {
	switch {
	case !leaves(err):
		return fmt.Errorf("site %s: %w", p.Site, err)
	case r.follows():
		return fmt.Errorf("site %s: %w; the history of the study counts what it has released for round %d, and nobody "+
			"else has that\n  hint: serve the site, and submit the plan again; or bring back a copy of the "+
			"coordinator's folder; or abort the study", p.Site, err, p.Round)
	}
	return nil
}

// arrivals waits for all answers, or until time is over, and tells an onlooker how many are here. An error ends the
// study, whoever has yet to answer: as where those who refuse leave too few sites.
func (r *run) arrivals(ctx context.Context, now []*pending, over <-chan time.Time) error {
	for before := -1; ; {
		here, lost := 0, map[*pending]error{}
		for _, p := range now {
			if !p.left && !p.here() {
				continue
			}
			if here++; p.left || p.got.err == nil {
				continue
			}
			if err := cmp.Or(context.Cause(ctx), r.fatal(p, p.got.err)); err != nil {
				return err
			}
			lost[p] = p.got.err
		}
		if err := r.enough(now, lost); err != nil {
			return err
		}
		if here > before && len(now) > 1 {
			before = here
			r.observe(Event{Answered: here, Asked: len(now)})
		}
		if here == len(now) {
			return context.Cause(ctx)
		}
		select {
		case <-r.arrived:
		case <-over:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// due takes the tasks whose answers are folded next from those that are pending.
func (r *run) due(ctx context.Context) ([]*pending, error) {
	now := r.pending
	if n := len(r.history.records); n < len(r.Follow) {
		return r.repeat(r.Follow[n])
	}
	if r.cp.Wait == method.All {
		r.pending = nil
		slices.SortStableFunc(now, func(a, b *pending) int {
			return cmp.Compare(slices.Index(r.Sites, a.Site), slices.Index(r.Sites, b.Site))
		})
		return now, nil
	}
	first := slices.MinFunc(now, func(a, b *pending) int { return cmp.Compare(a.Ends, b.Ends) })
	if !r.Simulation {
		if !r.heard {
			r.heard = true
			if err := r.arrivals(ctx, now, time.After(r.Grace)); err != nil {
				return nil, err
			}
		}
		// The first that arrives; of several that have, the oldest.
		arrived := slices.IndexFunc(now, (*pending).here)
		for ; arrived < 0; arrived = slices.IndexFunc(now, (*pending).here) {
			select {
			case <-r.arrived:
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
		first = now[arrived]
	}
	r.pending = slices.DeleteFunc(slices.Clone(now), func(p *pending) bool { return p == first })
	return []*pending{first}, nil
}

// repeat takes those that a record names, in its order: those that contributed,
// then those that left.
func (r *run) repeat(data []byte) (now []*pending, err error) {
	rec, err := decodeRecord(data)
	if err != nil {
		return nil, err
	}
	take := func(at int) error {
		i := slices.IndexFunc(r.pending, func(p *pending) bool {
			return at >= 0 && at < len(r.Sites) && p.Site == r.Sites[at]
		})
		if i < 0 {
			return fmt.Errorf("record %d of the history that is followed names site %d of the plan, which has no task "+
				"to answer: it is not the history of this study", len(r.history.records), at+1)
		}
		now = append(now, r.pending[i])
		r.pending = slices.Delete(slices.Clone(r.pending), i, i+1)
		return nil
	}
	for _, at := range r.history.census.contributors(&rec) {
		if err := take(at); err != nil {
			return nil, err
		}
	}
	for _, at := range rec.Left {
		if err := take(at); err != nil {
			return nil, err
		}
		now[len(now)-1].left = true
	}
	if r.cp.Wait == method.All && len(r.pending) > 0 {
		return nil, fmt.Errorf("record %d of the history that is followed leaves out sites that had a task to answer: "+
			"it is not the history of this study", len(r.history.records))
	}
	return now, nil
}

// contribution is a release that answers its task.
type contribution struct {
	p      *pending
	reply  Reply
	opened privacy.Opened
	digest [32]byte // of the release
}

func (c *contribution) exchange() Exchange {
	return Exchange{
		Site: c.p.Site, Kind: c.p.Kind, Down: len(c.p.task), Up: len(c.reply.Release),
		Release: fmt.Sprintf("%x", c.digest), Key: c.reply.Key,
		Request: c.opened.Request, Seeded: c.opened.Seeded,
	}
}

// opened holds the answer to a task to the task and the plan's list.
func (r *run) opened(p *pending) (*contribution, error) {
	a := p.got
	if a.err != nil {
		return nil, a.err
	}
	declared, _ := r.listed(p.Site, p.Kind)
	o, err := privacy.Open(a.reply.Release, declared)
	switch {
	case err != nil:
	case o.Study != r.Study || o.Site != p.Site || o.Round != p.Round || o.Kind != p.Kind || o.Task != TaskID(p.task):
		err = errors.New("the release does not answer the task that was sent")
	case o.Seeded && !r.Simulation:
		err = errors.New("its noise came from a seed, which protects nobody")
	case o.Masked != nil:
		if alike, _ := common(p.task); o.Masked.Sum.Task != alike {
			err = errors.New("what it masks is not the answer to the task that all sites were sent")
		}
	}
	if err != nil {
		return nil, &invalidError{err}
	}
	return &contribution{p, a.reply, o, digest(a.reply.Release)}, nil
}

// leaves says whether an error is one for which its site leaves.
func leaves(err error) bool {
	var refusal *Refusal
	var invalid *invalidError
	return errors.As(err, &refusal) || errors.As(err, &invalid) || errors.Is(err, errDropped)
}

// fold hands contributions to the method, and returns those that it took. One
// that it does not take leaves no trace: the state is made again without it.
func (r *run) fold(all []*contribution, lost map[*pending]error) (taken []*contribution, err error) {
	for _, c := range all {
		bad := r.take(c)
		if bad == nil {
			taken = append(taken, c)
			continue
		}
		lost[c.p] = &invalidError{bad}
		if r.state, err = r.Method.Restore(r.before); err != nil {
			return nil, fmt.Errorf("restoring the coordinator's state: %w", err)
		}
		for _, c := range taken {
			if err := r.take(c); err != nil {
				return nil, fmt.Errorf("folding the answer of site %s again: %w", c.p.Site, err)
			}
		}
	}
	return taken, nil
}

func (r *run) take(c *contribution) error {
	return guarded(func() error {
		s, err := r.Method.Fold(r.state, method.Contribution{Site: c.p.Site, Kind: c.p.Kind, Body: c.opened.Body,
			Sums: c.opened.Sums, Masked: c.opened.Masked})
		if err == nil {
			r.state = s
		}
		return err
	})
}

// enough fails if too few sites would be left for what is still to be learned.
func (r *run) enough(now []*pending, lost map[*pending]error) error {
	var reasons []error
	needed := false
	for _, p := range now {
		if err := lost[p]; err != nil {
			reasons = append(reasons, fmt.Errorf("site %s: %w", p.Site, err))
			needed = needed || !p.Optional
		}
	}
	staying := len(r.history.census.staying) - len(lost)
	if round := now[len(now)-1].Round; needed && staying < r.Quorum {
		return fmt.Errorf("round %d: %d of %d sites would be left, and the plan's quorum is %d:\n%w\n  hint: once "+
			"enough of them can answer, submit the plan again, and the study goes on where it was; or abort it", round,
			staying, len(r.Sites), r.Quorum, errors.Join(reasons...))
	}
	return nil
}

// leave lets sites go.
func (r *run) leave(now []*pending, lost map[*pending]error) error {
	if err := r.enough(now, lost); err != nil {
		return err
	}
	for _, p := range now {
		reason := lost[p]
		if reason == nil {
			continue
		}
		if err := guarded(func() (err error) { r.state, err = r.Method.Leave(r.state, p.Site); return err }); err !=
			nil {
			return fmt.Errorf("round %d, going on without site %s: %w (it left because: %w)", p.Round,
				p.Site, err, reason)
		}
		r.observe(Event{Left: &Left{Site: p.Site, Reason: reason}})
	}
	return nil
}

// record takes what was done into the history.
func (r *run) record(round int, releases []folded, left []int) error {
	data, err := r.history.describe(round, releases, left)
	if err != nil {
		return err
	}
	if n := len(r.history.records); n < len(r.Follow) && string(r.Follow[n]) != string(data) {
		return fmt.Errorf("record %d of the history that is followed counts other releases than the sites have sent "+
			"now: it is not the history of this study, or a site has lost its store", n)
	}
	if err := r.history.append(data, releases); err != nil {
		return err
	}
	r.follows()
	r.cp.Outstanding = slices.DeleteFunc(r.cp.Outstanding, func(o outstanding) bool {
		at := slices.Index(r.Sites, o.Site)
		return slices.Contains(left, at) || slices.ContainsFunc(releases, func(f folded) bool { return f.site == at })
	})
	return nil
}
