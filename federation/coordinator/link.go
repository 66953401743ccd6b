package coordinator

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"parley/engine"
	"parley/engine/wire"
	"parley/federation"
	encoding "parley/internal/wire"
	"parley/method"
)

// siteLink is the way to a site in one study. It waits until a person there has
// approved the study, and follows the site when its keys or its process are replaced.
type siteLink struct {
	study  *running
	member *member
	term   uint64

	most int // bytes of a release
	link *wire.Link
	to   Member // as the link was made
	// For the status, under study.mu:
	asked    time.Time // since when the site is asked for something; zero if it is not
	stored   bool      // the broker has it
	answered time.Time
	waiting  string                  // what a person at the site must do
	giveUp   context.CancelCauseFunc // ends the asking; nil without one
	waited   waited
}

var errReplaced = errors.New("the site's keys or its process have been replaced, or it has changed its mind")

// Exchange implements [engine.Link].
func (l *siteLink) Exchange(ctx context.Context, task []byte, past engine.History) (engine.Reply, error) {
	id := engine.TaskID(task)
	var reply engine.Reply
	err := l.ask(ctx, hex.EncodeToString(id[:]), func(ctx context.Context, link *wire.Link) (err error) {
		reply, err = link.Exchange(ctx, task, past)
		return err
	})
	return reply, err
}

// history asks for the history that the site has kept. It is an [*engine.Refusal] if the
// site is not to be waited for.
func (l *siteLink) history(ctx context.Context) (h [][]byte, err error) {
	err = l.ask(ctx, forHistory, func(ctx context.Context, link *wire.Link) (err error) {
		h, err = link.History(ctx)
		return err
	})
	return h, err
}

// ask calls do as with does, for as long as the site is to be waited for.
func (l *siteLink) ask(ctx context.Context, what string, do func(context.Context, *wire.Link) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	l.note(func() {
		l.asked, l.stored, l.waiting, l.giveUp = time.Now(), false, "", cancel
		if l.waited = l.study.state.Waited[l.member.site]; l.waited.For != what {
			l.waited = waited{For: what}
		}
	})
	var began time.Time // once its people have approved
	err := l.with(ctx, func(ctx context.Context, link *wire.Link) error {
		began = time.Now()
		return do(ctx, link)
	})
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	l.note(func() {
		l.asked, l.waiting, l.giveUp = time.Time{}, "", nil
		if err == nil {
			l.answered = time.Now()
			l.member.took.Store(int64(l.answered.Sub(began)))
		}
	})
	return err
}

// end hands the site what it may have. A site that takes no part wants nothing; nor
// does one that has not decided, if there is nothing to be had.
func (l *siteLink) end(ctx context.Context, data []byte, past engine.History, left bool) error {
	if left {
		if s, known := l.word(); known && (s.Word == federation.Pending || s.Word == federation.Unable) {
			return nil
		}
	}
	err := l.with(ctx, func(ctx context.Context, link *wire.Link) error {
		if left {
			return link.Dismiss(ctx, data)
		}
		return link.End(ctx, data, past)
	})
	if refusal := (*engine.Refusal)(nil); errors.As(err, &refusal) {
		return nil
	}
	return err
}

func (l *siteLink) note(change func()) {
	l.study.mu.Lock()
	defer l.study.mu.Unlock()
	change()
}

// with calls do with a link to the site as it is now, again after a change. An
// [*engine.Refusal] means that the site takes no part.
func (l *siteLink) with(ctx context.Context, do func(context.Context, *wire.Link) error) error {
	for {
		joined, peer, err := l.ready(ctx)
		if err != nil {
			return err
		}
		if l.link == nil || !l.to.equal(joined) {
			d := l.study.daemon
			l.to = joined
			l.link = &wire.Link{
				Wire: d.conn, Key: d.Folder.Secrets.Key, Peer: peer, Study: l.study.digest, Site: l.member.site,
				Term: l.term, Life: joined.Life, Again: d.Again, Most: l.most,
				Audit:   func(line string) { l.member.passedOver(l.study.digest, line) },
				Stored:  func() { l.note(func() { l.stored = true }) },
				Waiting: func(what string) { l.note(func() { l.waiting = what }) },
				Busy: func() bool {
					s, known := l.word()
					return known && s.Word == federation.Computing
				},
			}
		}
		inner, cancel := context.WithCancelCause(ctx)
		done := make(chan struct{})
		go func() {
			defer close(done)
			l.watch(inner, joined, cancel)
		}()
		err = do(inner, l.link)
		changed := errors.Is(context.Cause(inner), errReplaced)
		cancel(nil)
		<-done
		if err == nil || ctx.Err() != nil || !changed {
			return err
		}
	}
}

// ready waits until the site takes part: it has joined, fits, and a person there
// has approved the study.
func (l *siteLink) ready(ctx context.Context) (Member, wire.Peer, error) {
	for {
		changed := l.member.news.changed()
		if joined, peer, ok := l.member.state(); ok {
			switch s, known := l.word(); {
			case !known:
			case l.refuses(s.Word):
				return Member{}, wire.Peer{}, &engine.Refusal{Public: publicRefusal(s.Text)}
			case s.Word == federation.Withdrawn || s.Word == federation.Approved || s.Word == federation.Computing ||
				s.Word == federation.Done:
				return joined, peer, nil
			}
		}
		select {
		case <-ctx.Done():
			return Member{}, wire.Peer{}, context.Cause(ctx)
		case <-changed:
		}
	}
}

// heard waits until the site has said where it stands.
func (l *siteLink) heard(ctx context.Context) (standing, bool) {
	for {
		changed := l.member.news.changed()
		if s, known := l.word(); known {
			return s, true
		}
		select {
		case <-ctx.Done():
			return standing{}, false
		case <-changed:
		}
	}
}

// refuses says whether a site takes no part. One that has withdrawn is still asked
// where the history is repeated, for what it has sent before.
func (l *siteLink) refuses(word string) bool {
	l.study.mu.Lock()
	defer l.study.mu.Unlock()
	return word == federation.Refused || word == federation.Withdrawn && !l.study.state.Rebuild
}

func publicRefusal(text string) string {
	if text == "" {
		return "the site has refused to take part"
	}
	return "the site has refused to take part: " + text
}

// word is where the site stands with the study, as it has said to this life of the
// coordinator.
func (l *siteLink) word() (standing, bool) {
	l.member.mu.Lock()
	defer l.member.mu.Unlock()
	s, ok := l.member.words[l.study.digest]
	return s, ok && l.member.current
}

// equal says whether both are the same process with the same keys.
func (m Member) equal(as Member) bool { return m.Serial == as.Serial && bytes.Equal(m.Life, as.Life) }

// watch cancels when the link is no longer good.
func (l *siteLink) watch(ctx context.Context, to Member, cancel context.CancelCauseFunc) {
	for {
		changed := l.member.news.changed()
		joined, _, ok := l.member.state()
		s, known := l.word()
		if !ok || !joined.equal(to) || known && l.refuses(s.Word) {
			cancel(errReplaced)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// histories asks the sites for the history that they have kept, and returns the longest.
// One that has left by what others have kept needs none; and one that a person drops, or
// that does not answer within the deadline, is done without: what it alone has kept, no
// other site has seen, so no other has answered anything that came after.
func (s *running) histories(ctx context.Context) (longest [][]byte, err error) {
	type answer struct {
		site    string
		history [][]byte
		err     error
	}
	answers := make(chan answer, len(s.plan.Sites))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.mu.Lock()
	links, without := maps.Clone(s.links), map[string]error{}
	for site, l := range links {
		if s.dropped[site] {
			without[site] = errDropped
			continue
		}
		s.daemon.conn.Limit(wire.AnswerKey(s.digest, site), encoding.MaxValue) // a history is as long as the study was
		go func() {
			h, err := l.history(ctx)
			answers <- answer{site, h, err}
		}()
	}
	s.mu.Unlock()
	kept, left := map[string][][]byte{}, map[string]bool{}
	for {
		waiting, staying := 0, 0
		for _, site := range s.plan.Sites {
			if kept[site] == nil && without[site] == nil && !left[site] {
				waiting++
			}
			if without[site] == nil && !left[site] {
				staying++
			}
		}
		if len(without) > 0 && staying < s.plan.Quorum {
			var reasons []error
			for _, site := range slices.Sorted(maps.Keys(without)) {
				reasons = append(reasons, fmt.Errorf("site %s: %w", site, without[site]))
			}
			return nil, fmt.Errorf("the sites were asked for the history of the study: %d of %d would be left, and "+
				"the plan's quorum is %d:\n%w\n  hint: once enough of them can answer, submit the plan again, and the "+
				"study goes on where it was; or abort it", staying, len(s.plan.Sites), s.plan.Quorum,
				errors.Join(reasons...))
		}
		if waiting == 0 {
			return longest, nil
		}
		select {
		case a := <-answers:
			if refusal := (*engine.Refusal)(nil); errors.As(a.err, &refusal) {
				without[a.site] = a.err
				continue
			}
			if a.err != nil {
				return nil, a.err
			}
			kept[a.site] = append([][]byte{}, a.history...)
			if longest, err = wire.Longest(slices.Collect(maps.Values(kept))...); err != nil {
				return nil, fmt.Errorf("%w\n  hint: drop the sites that went another way than the others, and submit "+
					"the plan again; where the quorum does not allow that, abort the study, and run it anew", err)
			}
			took, gone, err := engine.PartsOf(longest, len(s.plan.Sites))
			if err != nil {
				return nil, err
			}
			s.setState(func(st *studyState) {
				for _, at := range took {
					st.approve(s.plan.Sites[at])
				}
				for _, at := range gone {
					left[s.plan.Sites[at]] = true
					st.leave(s.plan.Sites[at], "it left before")
				}
			})
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// waits says for whom a study waits whose history is collected or repeated; the caller holds s.mu.
func (s *running) waits() string {
	sites := slices.DeleteFunc(slices.Clone(s.plan.Sites), func(site string) bool {
		l := s.links[site]
		_, left := s.state.Left[site]
		return l == nil || l.giveUp == nil || left && s.engine == nil
	})
	names := strings.Join(sites, ", ")
	if !s.state.Rebuild || names == "" || s.engine != nil && !s.repeats {
		return ""
	}
	if s.engine != nil {
		return "it waits for what these sites have released, which nobody else has: " + names
	}
	return "it waits for the history that these sites have kept: " + names +
		"; one that does not come back can be dropped"
}

// connect gives the engine the way to each site, and what the plan lets each release.
func (s *running) connect(c *engine.Coordinator, m method.Method) (err error) {
	for _, site := range s.plan.Sites {
		if c.Requests[site], err = method.ForPlan(m, s.plan).Requests(s.plan, site); err != nil {
			return fmt.Errorf("site %s: %w", site, err)
		}
		most := 0
		for _, l := range c.Requests[site] {
			most = max(most, l.Request.MaxBytes())
		}
		s.links[site].most = most
		s.daemon.conn.Limit(wire.AnswerKey(s.digest, site), min(most, wire.PartBytes)+envelope)
		c.Links[site] = s.links[site]
	}
	return nil
}
