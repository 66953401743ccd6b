package coordinator

import (
	"context"
	"slices"
	"time"

	"parley/engine"
	"parley/federation"
)

// waited is how long a site has been waited for, as long as a coordinator has served. It
// outlives the process, so that no restart makes a limit longer; and no time counts in
// which the site had nobody to answer to.
type waited struct {
	For   string        `json:"for"` // a task's identity in hexadecimal, or forHistory
	Spent time.Duration `json:"spent"`
	// People says that somebody at the site has yet to decide: that is another clock.
	People bool `json:"people,omitempty"`
}

const forHistory = "history"

// refusals of which only the coordinator knows: the site leaves for them, as for its own.
var (
	errLate    = &engine.Refusal{Public: "it did not answer within the plan's deadline"}
	errNobody  = &engine.Refusal{Public: "nobody there approved the study within the plan's approval_deadline"}
	errDropped = &engine.Refusal{Public: "it was dropped by a person"}
)

// droppedWithin is how long a site that was dropped may take to send again what the history
// counts, which nobody else has.
func (d *Daemon) droppedWithin() time.Duration { return min(30*time.Second, 20*d.Again) }

// keepTime gives up sites that have been waited for long enough.
func (s *running) keepTime(ctx context.Context) {
	every := 10 * time.Second // at most so much is forgotten in a crash
	for _, limit := range []time.Duration{s.plan.Deadline.Duration(), s.plan.ApprovalDeadline.Duration(), s.daemon.droppedWithin()} {
		if limit > 0 {
			every = min(every, max(limit/20, time.Millisecond))
		}
	}
	for last := time.Now(); ctx.Err() == nil; {
		select {
		case <-time.After(every):
		case <-ctx.Done():
		}
		now := time.Now()
		s.passed(now.Sub(last))
		last = now
	}
}

// passed counts time for every site that is asked for something.
func (s *running) passed(elapsed time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := false
	for site, l := range s.links {
		word, known := l.word()
		if known && (word.Word == federation.Approved || word.Word == federation.Computing) {
			changed = s.state.approve(site) || changed
		}
		if l.giveUp == nil || l.member.between() { // nobody is answered to, whoever is there
			continue
		}
		// Whether a site has approved, a coordinator that has lost its folder does not know.
		people := known && word.Word == federation.Pending || l.waited.For != forHistory && !slices.Contains(s.state.Approved, site)
		if people != l.waited.People {
			l.waited.People, l.waited.Spent = people, 0
		}
		l.waited.Spent += elapsed
		limit, why := s.plan.Deadline.Duration(), errLate
		if people {
			limit, why = s.plan.ApprovalDeadline.Duration(), errNobody
		}
		if limit > 0 {
			if s.state.Waited == nil {
				s.state.Waited = map[string]waited{}
			}
			s.state.Waited[site], changed = l.waited, true
		}
		if within := s.daemon.droppedWithin(); s.dropped[site] && (limit == 0 || limit > within) {
			limit, why = within, errDropped
		}
		if limit > 0 && l.waited.Spent >= limit {
			l.giveUp(why)
		}
	}
	if changed {
		s.save()
	}
}
