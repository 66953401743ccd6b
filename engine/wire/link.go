package wire

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"parley/engine"
	encoding "parley/internal/wire"
	"parley/sitestore"
)

// Link is the coordinator's way to one site over a [Wire]. It implements
// [engine.Link]. Its methods are called one at a time.
type Link struct {
	Wire  Wire
	Key   *Key // the coordinator's
	Peer  Peer // the site's
	Study string
	Site  string
	Term  uint64 // of this coordinator: see [Claim]
	Life  []byte // of the site's process that is to answer: see [Server]
	// Again is after how long a message is put again that has no answer, the next times
	// after twice as long, and how long an error of the wire is waited out that has come again and again.
	Again time.Duration
	// Audit, if not nil, is told of what had no effect, and why: one line each.
	Audit func(line string)
	// Waiting, if not nil, is told what a person at the site must do.
	Waiting func(what string)
	// Most is how many bytes a release may have: a site that says that its own is longer is refused. 0 is the
	// most that can be decoded.
	Most int
	// Stored, if not nil, is called when the wire has stored a message.
	Stored func()
	// Busy, if not nil, says whether the site has told that it is at work on an answer: nothing is sent again then.
	Busy func() bool

	put  uint64 // revision of the value that this link has put; 0 before
	seen uint64 // revision of the last answer that was looked at
	have int    // records of the history that the site has kept, as far as is known
}

// ErrFenced means that another coordinator has taken over.
var ErrFenced = errors.New("another coordinator has written to this study's sites since: this one stops")

// EarlierError means that the site has seen a later term, which this coordinator's key has
// signed, and the wire knows of none: a clock was ahead, and the wire has lost its values.
type EarlierError struct{ Seen uint64 }

func (e *EarlierError) Error() string {
	return fmt.Sprintf("a site has seen the later term %d of this coordinator, which is to be claimed again", e.Seen)
}

// Exchange implements [engine.Link].
func (l *Link) Exchange(ctx context.Context, task []byte, past engine.History) (engine.Reply, error) {
	for {
		p := past.Since(l.have)
		head := past.Head()
		answer, err := l.ask(ctx, down{Say: sayTask, Body: task, Past: p, Head: head[:]})
		if err != nil {
			return engine.Reply{}, err
		}
		switch answer.Say {
		case sayRelease:
			release, err := l.whole(ctx, nameOf(l.Life, task), answer)
			if errors.Is(err, errParts) { // the site has begun anew, or does not tell the truth
				if err := Pause(ctx, l.Again); err != nil {
					return engine.Reply{}, err
				}
				continue
			}
			if err != nil {
				return engine.Reply{}, err
			}
			l.have = min(max(answer.Records, 0), past.Len())
			return engine.Reply{Release: release, Ledger: answer.Ledger, Key: l.Peer.Name(), Records: answer.Records},
				nil
		case sayRefuse:
			return engine.Reply{}, &engine.Refusal{Public: Words(answer.Body)}
		case sayBehind:
			if answer.Records >= 0 && answer.Records < p.First {
				l.have = answer.Records
				continue
			}
			// It was sent that: the answer is an old one, delivered again.
			if err := Pause(ctx, l.Again); err != nil {
				return engine.Reply{}, err
			}
		case sayForked:
			return engine.Reply{}, &engine.ForkedError{Err: fmt.Errorf("site %s: %s", l.Site, Words(answer.Body))}
		}
	}
}

// mostParts is how many parts a release may have.
const mostParts = 64

var errParts = errors.New("the parts of a release do not fit together")

// whole asks for the rest of a release, part by part, of which an answer has the first.
func (l *Link) whole(ctx context.Context, name []byte, first up) ([]byte, error) {
	if most := cmp.Or(l.Most, encoding.MaxBytes); max(first.Size, len(first.Body)) > most {
		return nil, &engine.Refusal{Public: fmt.Sprintf("its release has more than the %d bytes that the plan needs",
			most)}
	}
	if first.Size > mostParts*len(first.Body) { // each would be a put of this end
		return nil, &engine.Refusal{Public: fmt.Sprintf("its release of %d bytes comes in parts of %d", first.Size,
			len(first.Body))}
	}
	release := first.Body
	for len(release) < first.Size {
		next, err := l.ask(ctx, down{Say: sayMore, Body: partOf(name, len(release))})
		if err != nil {
			return nil, err
		}
		if next.Say != sayRelease || next.Size != first.Size ||
			len(next.Body) != min(len(first.Body), first.Size-len(release)) {
			return nil, errParts
		}
		release = append(release, next.Body...)
	}
	return release, nil
}

// End tells the site that the study has ended and hands over what it may have, with
// the rest of the history. It returns when the site has it.
func (l *Link) End(ctx context.Context, share []byte, past engine.History) error {
	for {
		p := past.Since(l.have)
		head := past.Head()
		answer, err := l.ask(ctx, down{Say: sayEnd, Body: share, Past: p, Head: head[:]})
		if err != nil || answer.Say == sayDone {
			return err
		}
		if answer.Records >= 0 && answer.Records < p.First {
			l.have = answer.Records
			continue
		}
		if err := Pause(ctx, l.Again); err != nil { // an old answer, delivered again
			return err
		}
	}
}

// Dismiss tells a site that has left the study so, and why. It returns when the site
// knows.
func (l *Link) Dismiss(ctx context.Context, why []byte) error {
	_, err := l.ask(ctx, down{Say: sayDropped, Body: why})
	return err
}

// History asks the site for the history that it has kept of the study, as far as
// this coordinator has signed it.
func (l *Link) History(ctx context.Context) ([][]byte, error) {
	nonce := make([]byte, 16)
	rand.Read(nonce)
	a, err := l.ask(ctx, down{Say: sayHistory, Body: nonce})
	if err != nil || len(a.History) == 0 {
		return nil, err
	}
	var r Receipt
	if err := encoding.Unmarshal(a.Body, &r); err != nil {
		return nil, fmt.Errorf("site %s: the receipt of its history: %w", l.Site, err)
	}
	var head [32]byte
	for _, record := range a.History {
		head = sitestore.Next(head, record)
	}
	if r.Study != l.Study || r.Site != l.Site || r.Records != len(a.History) || !bytes.Equal(r.Head, head[:]) {
		return nil, fmt.Errorf("site %s: its receipt is for another history than the one that it sent", l.Site)
	}
	if err := r.Verify(l.Key.Peer()); err != nil {
		return nil, fmt.Errorf("site %s: the receipt of its history: %w", l.Site, err)
	}
	return a.History, nil
}

// Longest returns the longest of the histories that sites have kept. One that
// does not begin as the others do is an error: a site was told another past.
func Longest(histories ...[][]byte) (longest [][]byte, err error) {
	for _, h := range histories {
		if len(h) > len(longest) {
			longest = h
		}
	}
	for _, h := range histories {
		for i, r := range h {
			if !bytes.Equal(r, longest[i]) {
				return nil, fmt.Errorf("two sites have kept different histories of the study, from record %d on", i)
			}
		}
	}
	return longest, nil
}

// final says which answers end the asking.
func final(question, answer int) bool {
	switch question {
	case sayTask:
		return answer == sayRelease || answer == sayRefuse || answer == sayBehind || answer == sayForked
	case sayMore:
		return answer == sayRelease || answer == sayBehind
	case sayHistory:
		return answer == sayKept
	case sayEnd:
		return answer == sayDone || answer == sayBehind
	}
	return answer == sayDone
}

// ask puts a message, again and again, until the site has answered it.
func (l *Link) ask(ctx context.Context, m down) (up, error) {
	m.Version, m.Term, m.Life = messageVersion, l.Term, l.Life
	var message []byte
	if err := Apart(func() (err error) { message, err = l.seal(&m); return err }); err != nil {
		return up{}, fmt.Errorf("sealing a message for site %s: %w", l.Site, err)
	}
	again, trouble := false, l.Again/16
	for within := l.Again; ; {
		a, ok, err := l.answered(ctx, m.Say, nameOf(m.Life, m.Body), message, within, again)
		if earlier := (*EarlierError)(nil); ok || errors.As(err, &earlier) || errors.Is(err, ErrFenced) ||
			errors.Is(err, ErrTooLarge) {
			return a, err
		}
		if err := context.Cause(ctx); err != nil {
			return up{}, err
		}
		again = l.put != 0
		switch {
		case !errors.Is(err, errNoAnswer): // the wire's error: it will come back
			l.audit("tried again: %v", err)
			if within = l.Again; Pause(ctx, trouble) != nil {
				return up{}, context.Cause(ctx)
			}
			trouble = min(2*trouble, l.Again)
		case again: // it was put: what takes long is not sent again all the time
			within = min(2*within, 16*l.Again)
		}
	}
}

// seal signs and seals a message to the site.
func (l *Link) seal(m *down) ([]byte, error) {
	r := receiptOf(m, l.Study, l.Site)
	if err := l.Key.confirm(&r); err != nil {
		return nil, err
	}
	m.Receipt = r.Signature
	payload, err := encoding.Marshal(*m)
	if err != nil {
		return nil, err
	}
	return l.Key.Seal(l.Peer, TaskKey(l.Study, l.Site), payload)
}

// Apart does something on a stack of its own, which is gone afterwards: what a signature makes of one that then waits
// for days would be kept for each site.
func Apart(do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	return <-done
}

var errNoAnswer = errors.New("no answer yet")

// answered puts the message, which may stand there, and waits for the answer for a while.
func (l *Link) answered(ctx context.Context, say int, name, message []byte, within time.Duration,
	again bool) (up, bool, error) {
	if !again || l.Busy == nil || !l.Busy() {
		if err := l.send(ctx, message); err != nil {
			return up{}, false, err
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, within, errNoAnswer)
	defer cancel()
	for {
		value, revision, err := l.Wire.Wait(ctx, AnswerKey(l.Study, l.Site), l.seen)
		if err != nil {
			return up{}, false, err
		}
		l.seen = revision
		var a up
		err = Apart(func() error {
			payload, err := l.Key.Open(l.Peer, AnswerKey(l.Study, l.Site), value)
			if err == nil {
				a, err = decodeUp(payload)
			}
			return err
		})
		switch {
		case err != nil:
			l.audit("what stood for an answer of site %s was passed over: %v", l.Site, err)
		case !bytes.Equal(a.To, name):
			// of an earlier task, or put again
		case a.Say == sayLater:
			var r Receipt
			if encoding.Unmarshal(a.Body, &r) == nil && r.Study == l.Study && r.Term > l.Term &&
				r.Verify(l.Key.Peer()) == nil {
				if err := l.current(ctx); err != nil {
					return up{}, false, err
				}
				return up{}, false, &EarlierError{r.Term}
			}
		case a.Say == sayWaiting:
			if l.Waiting != nil {
				l.Waiting(Words(a.Body))
			}
		case final(say, a.Say):
			return a, true, nil
		default:
			l.audit("an answer of site %s was passed over: it does not say what was asked", l.Site)
		}
	}
}

// send puts the message, unless another coordinator has put something since.
func (l *Link) send(ctx context.Context, message []byte) error {
	key := TaskKey(l.Study, l.Site)
	after := l.put
	if after == 0 { // what stands there is of an earlier process
		if err := l.current(ctx); err != nil {
			return err
		}
		_, now, err := l.Wire.Get(ctx, key)
		if err != nil {
			return err
		}
		after = now
	}
	revision, err := l.Wire.Put(ctx, key, message, after)
	if errors.Is(err, ErrMoved) {
		// Another coordinator has written, or the wire has lost its values, or has
		// brought back an old one: look again.
		l.put = 0
		return errNoAnswer
	}
	if err != nil {
		// It may have been put, by this link: look again before the next try.
		l.put = 0
		return err
	}
	l.put = revision
	if l.Stored != nil {
		l.Stored()
	}
	return nil
}

// current fails if a later coordinator has claimed the study, as far as the wire
// tells; a claim that the wire has lost is made again.
func (l *Link) current(ctx context.Context) error {
	value, _, err := l.Wire.Get(ctx, claimKey(l.Study))
	switch {
	case err != nil:
		return err
	case l.Key.Peer().claimed(l.Study, value) > l.Term:
		return ErrFenced
	}
	return l.Key.claim(ctx, l.Wire, l.Study, l.Term)
}

func (l *Link) audit(format string, a ...any) {
	if l.Audit != nil {
		l.Audit(fmt.Sprintf(format, a...))
	}
}

// Words are what another organisation says, for logs and reports: one line, and not a long one.
func Words[T string | []byte](text T) string {
	line := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, string(text[:min(len(text), MostWords)]))
	return strings.TrimSpace(line)
}

// MostWords is how many bytes they have at most.
const MostWords = 2000

// Pause waits, or fails when ctx ends.
func Pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
