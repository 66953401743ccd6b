package wire

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"parley/engine"
	"parley/internal/files"
	encoding "parley/internal/wire"
	"parley/privacy"
	"parley/sitestore"
)

// Server answers a coordinator's messages at one site of one study.
type Server struct {
	Wire  Wire
	Key   *Key // the site's
	Peer  Peer // the coordinator's
	Site  *engine.Site
	Life  []byte        // drawn by each process of the site; it answers what is for it
	Again time.Duration // after which trouble of the wire, or of this machine, is tried again; the first times sooner
	// Audit, if not nil, is told of what had no effect, and why, and of trouble that
	// is tried again: one line each. It stays at the site.
	Audit func(line string)
	// Keep, if not nil, keeps the last receipt outside of the site's store, and Kept
	// returns it; the zero Receipt before the first.
	Keep func(Receipt) error
	Kept func() (Receipt, error)
	// Working, if not nil, is called before a task is handled and after.
	Working func(begins bool)
	// End keeps what the site may have when the study has ended, perhaps more than once;
	// left says that the site has left it. The coordinator hears that it was kept, so
	// nothing that End does may depend on a row.
	End func(share []byte, left bool) error
	// Over, if not nil, is called when the coordinator has been answered that it was kept.
	Over func()

	Part int // bytes of a release in one answer; 0 is 8 MiB

	put   uint64  // revision of the last answer
	last  []byte  // the message that it answers, and
	said  []byte  // the answer, sealed
	later Receipt // of the highest term that was seen

	receipt Receipt // the last

	release []byte // the last, and
	answers []byte // the name of what it answers
}

// Serve answers until ctx ends, also when the study has ended, since the answer to
// that may be lost; or until a person must decide: then the error is an
// [*engine.RolledBackError], or [engine.ErrChanged].
func (s *Server) Serve(ctx context.Context) error {
	key := TaskKey(s.Site.Study, s.Site.Name)
	var seen uint64
	for trouble := s.Again / 16; ; {
		message, revision, err := s.Wire.Wait(ctx, key, seen)
		if err == nil {
			seen = revision
			if err = s.handle(ctx, message); full(err) && context.Cause(ctx) == nil {
				s.sayFull(ctx, message)
			}
		}
		if rolledBack := (*engine.RolledBackError)(nil); errors.As(err, &rolledBack) ||
			errors.Is(err, engine.ErrChanged) {
			return err
		}
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		if err != nil {
			s.audit("tried again: %v", err)
			seen = 0 // the same message is looked at again
			if err := Pause(ctx, trouble); err != nil {
				return err
			}
			trouble = min(2*trouble, s.Again)
		} else {
			trouble = s.Again / 16
		}
	}
}

// full says whether an error is of a disk that takes no writes. Trouble with reading rows is
// none that others are told of.
func full(err error) bool {
	if unread := (*privacy.ReadError)(nil); err == nil || errors.As(err, &unread) {
		return false
	}
	return errors.Is(err, sitestore.ErrFull) || files.Failed(err) || strings.Contains(err.Error(), "disk I/O error")
}

// sayFull tells the coordinator what has to be mended at the site before it answers. Whether a
// disk takes a write does not hang on rows.
func (s *Server) sayFull(ctx context.Context, message []byte) {
	payload, err := s.Key.Open(s.Peer, TaskKey(s.Site.Study, s.Site.Name), message)
	if err != nil {
		return
	}
	if m, err := decodeDown(payload); err == nil {
		a := up{Version: messageVersion, Say: sayWaiting, To: nameOf(m.Life, m.Body),
			Body: []byte("its disk takes no writes: room has to be made at the site")}
		if err := s.answer(ctx, message, &a); err != nil {
			s.audit("tried again: %v", err)
		}
	}
}

// handle does what a message says. An error is trouble that may pass, but for one
// that wants a person.
func (s *Server) handle(ctx context.Context, message []byte) error {
	if s.last != nil && string(message) == string(s.last) { // put again: the answer may have been lost
		return s.answer(ctx, message, nil)
	}
	payload, err := s.Key.Open(s.Peer, TaskKey(s.Site.Study, s.Site.Name), message)
	var m down
	if err == nil {
		m, err = decodeDown(payload)
	}
	if err != nil {
		s.audit("what stood for a message of the coordinator was passed over: %v", err)
		return nil
	}
	if !bytes.Equal(m.Life, s.Life) {
		return nil // for another process of this site
	}
	a := up{Version: messageVersion, To: nameOf(m.Life, m.Body)}
	if m.Term < s.later.Term {
		s.audit("a message of an earlier coordinator was answered with the term of the later one")
		a.Say = sayLater
		if a.Body, err = encoding.Marshal(s.later); err != nil {
			return err
		}
		return s.answer(ctx, message, &a)
	}
	s.later = receiptOf(&m, s.Site.Study, s.Site.Name)
	switch m.Say {
	case sayTask:
		err = s.task(ctx, m, &a)
	case sayMore:
		s.more(m, &a)
	case sayHistory:
		a.Say = sayKept
		err = s.history(&a)
	case sayEnd:
		err = s.end(m, &a)
	case sayDropped:
		a.Say = sayDone
		if s.End != nil {
			err = s.End(m.Body, true)
		}
	default:
		s.audit("a message of the coordinator was passed over: it says %d, which this program does not know", m.Say)
		return nil
	}
	var rolledBack *engine.RolledBackError
	if errors.As(err, &rolledBack) {
		a.Say, a.Body = sayWaiting, []byte("a person at the site must decide: its store is older than what others "+
			"have seen of it")
		return errors.Join(err, s.answer(ctx, message, &a))
	}
	if err != nil {
		return err
	}
	err = s.answer(ctx, message, &a)
	if errors.Is(err, ErrTooLarge) {
		refusal := up{Version: messageVersion, Say: sayRefuse, To: a.To,
			Body: []byte("its answer: " + ErrTooLarge.Error())}
		err = s.answer(ctx, message, &refusal)
	}
	if err == nil && a.Say == sayDone && s.Over != nil {
		s.Over()
	}
	return err
}

// end takes in that the study has ended.
func (s *Server) end(m down, to *up) error {
	err := s.Site.Conclude(m.Past, m.Head)
	var behind *engine.BehindError
	switch {
	case errors.As(err, &behind):
		to.Say, to.Records = sayBehind, behind.Have
		return nil
	case err != nil: // what the site has released stands; it may have what came of it
		s.audit("the history with which the study ended was not kept: %v", err)
	default:
		if err := s.confirmed(m); err != nil {
			return err
		}
	}
	to.Say = sayDone
	if s.End == nil {
		return nil
	}
	return s.End(m.Body, false)
}

// task answers a task.
func (s *Server) task(ctx context.Context, m down, to *up) error {
	if s.Working != nil {
		s.Working(true)
		defer s.Working(false)
	}
	a, err := s.Site.Handle(ctx, m.Body, m.Past)
	var refusal *engine.Refusal
	var behind *engine.BehindError
	var forked *engine.ForkedError
	switch {
	case errors.As(err, &forked):
		s.audit("another history: %v", forked.Err)
		to.Say, to.Body = sayForked, []byte(forked.Err.Error())
	case errors.As(err, &refusal):
		s.audit("refused: %v", err)
		to.Say, to.Body = sayRefuse, []byte(refusal.Public)
	case errors.As(err, &behind):
		to.Say, to.Records = sayBehind, behind.Have
	case err != nil:
		return err
	default:
		if err := s.confirmed(m); err != nil {
			return err
		}
		to.Records, to.Ledger = a.Records, a.Ledger
		s.release, s.answers = a.Release.Bytes(), to.To
		s.part(0, to)
	}
	return nil
}

// more sends a part of the last release. One of an earlier process of this site is asked for anew.
func (s *Server) more(m down, to *up) {
	to.Say = sayBehind
	at := len(m.Body) - 8
	if at < 0 || !bytes.Equal(m.Body[:at], s.answers) {
		return
	}
	if from := binary.BigEndian.Uint64(m.Body[at:]); from < uint64(len(s.release)) {
		s.part(int(from), to)
	}
}

// part fills an answer with the last release, from a byte on.
func (s *Server) part(from int, to *up) {
	most := cmp.Or(s.Part, PartBytes)
	to.Say, to.Size = sayRelease, len(s.release)
	to.Body = s.release[from:min(from+most, len(s.release))]
}

// confirmed keeps the receipt that came with a task whose past was found true.
func (s *Server) confirmed(m down) error {
	r := receiptOf(&m, s.Site.Study, s.Site.Name)
	if err := r.Verify(s.Peer); err != nil {
		s.audit("a receipt was passed over: %v", err)
		return nil
	}
	if err := s.lastReceipt(); err != nil {
		return err
	}
	if s.receipt.Study == r.Study && s.receipt.Records > r.Records {
		return nil // a history is repeated: until its end, this is the only word for the rest of it
	}
	s.receipt = r
	if s.Keep == nil {
		return nil
	}
	return s.Keep(r)
}

// lastReceipt reads the receipt that an earlier process has kept.
func (s *Server) lastReceipt() (err error) {
	if s.receipt.Signature == nil && s.Kept != nil {
		s.receipt, err = s.Kept()
	}
	return err
}

// history says what the site has kept, as far as it has a receipt for it.
func (s *Server) history(a *up) (err error) {
	if err := s.lastReceipt(); err != nil {
		return err
	}
	if a.History, err = s.Site.History(); err != nil {
		return err
	}
	if s.receipt.Study != s.Site.Study || s.receipt.Records > len(a.History) {
		a.History = nil
		return nil
	}
	a.History = a.History[:s.receipt.Records]
	a.Body, err = encoding.Marshal(s.receipt)
	return err
}

// answer puts an answer; the last one again if a is nil.
func (s *Server) answer(ctx context.Context, message []byte, a *up) error {
	key := AnswerKey(s.Site.Study, s.Site.Name)
	if a != nil {
		payload, err := encoding.Marshal(a)
		if err != nil {
			return err
		}
		sealed, err := s.Key.Seal(s.Peer, key, payload)
		if err != nil {
			return err
		}
		s.last, s.said = message, sealed
		if a.Say == sayWaiting || a.Say == sayLater { // another answer may follow at any time
			s.last = nil
		}
	}
	for tries := 0; ; tries++ {
		if tries > 0 {
			if err := Pause(ctx, s.Again/100); err != nil {
				return err
			}
		}
		revision, err := s.Wire.Put(ctx, key, s.said, s.put)
		if err == nil {
			s.put = revision
			return nil
		}
		if !errors.Is(err, ErrMoved) {
			return err
		}
		// An earlier process of this site has put something, or the wire has lost
		// its values: nobody else may write here.
		if _, s.put, err = s.Wire.Get(ctx, key); err != nil {
			return err
		}
	}
}

func (s *Server) audit(format string, a ...any) {
	if s.Audit != nil {
		s.Audit(fmt.Sprintf(format, a...))
	}
}
