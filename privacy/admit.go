package privacy

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"parley/internal/wire"
	"parley/privacy/internal/noise"
	"parley/sitestore"
)

// Check says whether Admit would grant a task, and changes nothing. A
// [*RefusalError], which is ErrRefused, says why not; ErrConflict that the
// release was charged for another task.
func (g *Gate) Check(a Ask) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	kept, err := g.find(a)
	if err != nil || kept.Key != nil || kept.Sealed != nil {
		return err
	}
	r, err := g.listed(a)
	if err != nil {
		return err
	}
	return g.allow(a, r)
}

// Admit grants a task what the plan lists for it, if the plan's guarantee and
// the site's policy allow that together with every charge that the ledger
// holds, and commits its charge to the ledger with a fresh key for its noise.
// Both are durable when Admit returns. A task that has been charged, and whose
// computation did not finish, gets the same session again, at no new charge; an
// earlier session for it ends.
//
// A [*RefusalError], which is ErrRefused, is returned if it would exceed what is
// allowed; ErrConflict if the release was charged for another task.
func (g *Gate) Admit(a Ask) (*Session, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	kept, err := g.find(a)
	if err != nil {
		return nil, err
	}
	if kept.Sealed != nil {
		return nil, fmt.Errorf("round %d of study %.12s has been answered: send what is stored", a.Round, a.Study)
	}
	r, err := g.listed(a)
	if err != nil {
		return nil, err
	}
	s := &Session{gate: g, ask: a, request: r, used: map[string]int{}}
	if s.state, err = g.journal.State(a.Study); err != nil {
		return nil, err
	}
	if r.Protection == Differential && r.Opens == 0 && !g.study.Noised() {
		s.state = nil // an exact task of the study may have sealed it
	}
	if kept.Key != nil {
		err = g.asCharged(a, r)
		s.key = [noise.KeySize]byte(kept.Key)
	} else {
		s.key, err = g.reserve(a, r)
	}
	if err == nil && g.study.Data != nil {
		s.data, err = g.study.Data()
	}
	if err != nil {
		return nil, err
	}
	if g.live != nil && g.live.ask == a {
		g.live.Close()
	}
	g.live = s
	return s, nil
}

// asCharged holds a task that comes again against what was charged for it.
func (g *Gate) asCharged(a Ask, r Request) error {
	if err := g.book.read(g.journal); err != nil {
		return err
	}
	c := g.book.charged[a.release()]
	charged, err := wire.Marshal(c.Request)
	if err != nil {
		return err
	}
	listed, err := wire.Marshal(r)
	if err != nil {
		return err
	}
	if c.Kind != a.Kind || !bytes.Equal(charged, listed) {
		return fmt.Errorf("round %d of study %.12s was charged for task %q as it was listed then: %w", a.Round, a.Study,
			c.Kind, ErrConflict)
	}
	return nil
}

// listed returns the request that the plan lists for a task.
func (g *Gate) listed(a Ask) (Request, error) {
	i := slices.IndexFunc(g.study.Requests, func(l Listed) bool { return l.Kind == a.Kind })
	if i < 0 {
		no := &RefusalError{}
		no.add("", fmt.Sprintf("the plan has no task %q for this site", a.Kind), "")
		return Request{}, no
	}
	return g.study.Requests[i].Request, nil
}

// reserve charges a request, after it was checked against the ledger as it
// then stands.
func (g *Gate) reserve(a Ask, r Request) (key [noise.KeySize]byte, err error) {
	line, err := g.charge(a, r)
	if err != nil {
		return key, err
	}
	if key, err = g.newKey(a); err != nil {
		return key, err
	}
	// Declared bounds may be far above what is sent: a few MB too few show when the
	// release is stored, at no further charge.
	if err := g.journal.Free(int64(min(r.MaxBytes(), 16<<20))); err != nil {
		return key, err
	}
	for {
		if err := g.allow(a, r); err != nil {
			return key, err
		}
		err := g.journal.Reserve(sitestore.Reservation{
			Seq: g.book.lines + 1, Release: a.release(), Study: a.Study, Task: a.Task, Request: line,
		}, key)
		if !errors.Is(err, sitestore.ErrMoved) { // otherwise another study of this site has charged meanwhile
			return key, err
		}
	}
}

func (g *Gate) newKey(a Ask) ([noise.KeySize]byte, error) {
	if g.simulated != nil {
		return g.simulated.Key(a.release()), nil
	}
	return noise.NewKey()
}

// allow holds a request against the list, the guarantee and the policy.
func (g *Gate) allow(a Ask, r Request) error {
	if g.limits == nil {
		l, err := limitsOf(g.policy, g.study)
		if err != nil {
			return err
		}
		g.limits = l
	}
	if err := g.book.read(g.journal); err != nil {
		return err
	}
	no := &RefusalError{}
	// A task whose charge was forfeited by a program that kept no keys may come
	// again: it is one of those that are counted.
	again := g.book.attempts[a.release()] > 0
	repeats, one := false, 0 // whether this task repeats another, and how many did so far
	for _, l := range g.study.Requests {
		if l.Again {
			repeats, one = repeats || l.Kind == a.Kind, one+g.book.kinds[l.Kind]
		}
		if n := g.book.kinds[l.Kind]; l.Kind == a.Kind && n >= l.Times && !again {
			no.add("", fmt.Sprintf("the plan lists task %q %s, and this site has answered it as often", a.Kind,
				times(l.Times)), "")
		}
	}
	if repeats && one > 0 && !again {
		no.add("", "the plan repeats one task, and this site has answered one that did", "")
	}
	if most := g.study.Rounds; most > 0 && a.Round > most {
		no.add("", fmt.Sprintf("round %d is above the %d that the plan comes to", a.Round, most), "")
	}
	if last := g.book.round; a.Round < 1 || a.Round <= last && !again {
		no.add("", fmt.Sprintf("round %d comes after round %d: rounds rise", a.Round, last), "")
	}
	if r.Opens > 0 {
		g.allowOpening(no, a)
	}
	if err := no.err(); err != nil {
		return err
	}
	return g.limits.check(g.book, r)
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
