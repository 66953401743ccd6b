package privacy

import (
	"fmt"

	"parley/internal/wire"
	"parley/sitestore"
)

// Admit checks a request against the plan's guarantee and the site's policy,
// together with every charge that the ledger holds, and commits its charge to
// the ledger. The charge is durable when Admit returns, and is never taken
// back. ErrRefused is returned if it would exceed what is allowed.
func (g *Gate) Admit(a Ask, r Request) (*Session, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.policy.Check(g.study, r); err != nil {
		return nil, err
	}
	request, err := wire.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encoding the request: %w", err)
	}
	state, err := g.journal.State(a.Study)
	if err != nil {
		return nil, err
	}
	if err := g.journal.Reserve(sitestore.Reservation{Release: a.release(), Study: a.Study, Task: a.Task, Request: request}); err != nil {
		return nil, err
	}
	return &Session{gate: g, ask: a, request: r, state: state}, nil
}
