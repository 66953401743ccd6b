package privacy

import (
	"errors"
	"fmt"

	"parley/sitestore"
)

// Admit checks a request against the plan's guarantee and the site's policy,
// together with every charge that the ledger holds, and commits its charge to
// the ledger. The charge is durable when Admit returns, and is never taken
// back, whatever becomes of the session: a task whose computation did not
// finish is charged again.
//
// A [*RefusalError], which is ErrRefused, is returned if it would exceed what is
// allowed; ErrConflict if the release was charged for another task.
func (g *Gate) Admit(a Ask, r Request) (*Session, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, answered, err := g.Stored(a); err != nil {
		return nil, err
	} else if answered {
		return nil, fmt.Errorf("round %d of study %.12s has been answered: send what is stored", a.Round, a.Study)
	}
	state, err := g.journal.State(a.Study)
	if err != nil {
		return nil, err
	}
	if err := g.allow(a, r); err != nil {
		return nil, err
	}
	attempt := g.book.attempts[a.release()] + 1 // as it was when this one was charged
	return &Session{gate: g, ask: a, request: r, state: state, source: g.noise(fmt.Sprintf("%s/%d", a.release(), attempt)), used: map[string]int{}}, nil
}

// allow checks the request, and charges it in the ledger as it was checked.
func (g *Gate) allow(a Ask, r Request) error {
	if g.limits == nil {
		l, err := g.policy.limits(g.study)
		if err != nil {
			return err
		}
		g.limits = l
	}
	request, err := g.charge(a, r)
	if err != nil {
		return err
	}
	for {
		if err := g.book.read(g.journal); err != nil {
			return err
		}
		if err := g.limits.check(g.book, r); err != nil {
			if refusal := (*RefusalError)(nil); g.book.attempts[a.release()] > 0 && errors.As(err, &refusal) {
				refusal.again()
			}
			return err
		}
		err := g.journal.Reserve(sitestore.Reservation{
			Seq: g.book.lines + 1, Release: a.release(), Study: a.Study, Task: a.Task, Request: request,
		})
		if !errors.Is(err, sitestore.ErrMoved) { // otherwise another study of this site has charged meanwhile
			return err
		}
	}
}
