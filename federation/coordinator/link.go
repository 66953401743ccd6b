package coordinator

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"time"

	"parley/engine"
	"parley/engine/wire"
	"parley/federation"
)

// siteLink is the way to a site in one study. It waits until a person there has
// approved the study, and follows the site when its keys or its process are replaced.
type siteLink struct {
	study  *running
	member *member
	term   uint64

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
	err := l.with(ctx, do)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	l.note(func() {
		l.asked, l.waiting, l.giveUp = time.Time{}, "", nil
		if err == nil {
			l.answered = time.Now()
		}
	})
	return err
}

// end hands the site what it may have. A site that takes no part wants nothing; nor
// does one that has not decided, if there is nothing to be had.
func (l *siteLink) end(ctx context.Context, data []byte, past engine.History, left bool) error {
	if left {
		if s, known := l.heard(ctx); known && (s.Word == federation.Pending || s.Word == federation.Unable) {
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
		if l.link == nil || !l.to.same(joined) {
			d := l.study.daemon
			l.to = joined
			l.link = &wire.Link{
				Wire: d.conn, Key: d.Folder.Secrets.Key, Peer: peer, Study: l.study.digest, Site: l.member.site, Term: l.term, Life: joined.Life, Again: d.Again,
				Audit:   func(line string) { l.member.passedOver(l.study.digest, line) },
				Stored:  func() { l.note(func() { l.stored = true }) },
				Waiting: func(what string) { l.note(func() { l.waiting = what }) },
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
			case s.Word == federation.Withdrawn || s.Word == federation.Approved || s.Word == federation.Computing || s.Word == federation.Done:
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

// same says whether both are the same process with the same keys.
func (m Member) same(as Member) bool { return m.Serial == as.Serial && bytes.Equal(m.Life, as.Life) }

// watch cancels when the link is no longer good.
func (l *siteLink) watch(ctx context.Context, to Member, cancel context.CancelCauseFunc) {
	for {
		changed := l.member.news.changed()
		joined, _, ok := l.member.state()
		s, known := l.word()
		if !ok || !joined.same(to) || known && l.refuses(s.Word) {
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
