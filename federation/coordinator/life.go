package coordinator

import (
	"bytes"
	"context"
	"slices"
	"time"

	"parley/engine"
	"parley/federation"
)

// lived is which process of a site serves. A site's folder may have been copied, and two
// processes would draw two noises for one release: so tasks are for one of them, which
// alone computes, and another takes its place when it has said goodbye or is gone.
type lived struct {
	life   []byte            // of the process that serves; empty for whoever comes first
	gone   bool              // it has said goodbye
	back   time.Time         // until when it may take to connect again after a start of the coordinator
	asks   uint64            // see federation.Board
	asked  time.Time         // since when it is to say that it lives; zero if it has
	within time.Duration     // how long it may take to
	second *federation.Hello // the last of another process; nil without one
	heard  time.Time         // when that came
	two    bool              // the one that serves has been heard since
}

// living is how long a process may take to say that it lives, where its connection may be to
// somebody else's broker, or is open though the process is gone: 40 seconds, for it hears of the
// question at once, or as soon as it has connected again. After a start of the
// coordinator it has three times as long, since it has to connect again, which at the broker of
// this program takes half as long. After that a process that is alone at this broker serves at
// once, whatever became of the one before.
func (d *Daemon) living() time.Duration { return min(40*time.Second, 10*d.Again) }

// begin takes up which process has served; the caller holds m.mu.
func (m *member) begin(life []byte) {
	within := 3 * m.daemon.living()
	if m.daemon.server != nil {
		within = m.daemon.living() / 2
	}
	m.lived = lived{life: life, asks: m.asks, asked: time.Now(), within: within, back: time.Now().Add(within)}
}

// serves takes in who says a hello, and returns whether that process serves; the caller holds
// m.mu.
func (m *member) serves(h *federation.Hello) bool {
	switch now := time.Now(); {
	case bytes.Equal(h.Life, m.life):
		m.gone, m.asked = h.Bye, time.Time{}
		if m.two = m.second != nil; m.other() != nil {
			m.passedOver("", m.twoServe())
		}
	case len(m.life) == 0 || m.gone:
		m.succeed(h)
		return true
	case h.Bye:
		m.second = nil
		m.news.give()
		return false
	// the one that served is gone
	case m.daemon.server != nil && now.After(m.back) && m.daemon.server.Connections(m.joined.User) < 2:
		m.succeed(h)
		return true
	default:
		if m.second, m.heard = h, now; m.asked.IsZero() {
			m.asked, m.within, m.asks = now, m.daemon.living(), m.asks+1
		}
		m.news.give()
		return false
	}
	m.note()
	return true
}

// succeed lets a process serve; the caller holds m.mu.
func (m *member) succeed(h *federation.Hello) {
	m.lived = lived{life: h.Life, gone: h.Bye, asks: m.asks}
	m.note()
}

// note keeps which process serves, for the next start of the coordinator.
func (m *member) note() {
	life := m.life
	if m.gone {
		life = nil
	}
	if bytes.Equal(life, m.joined.Life) {
		return
	}
	m.joined.Life = life
	err := m.daemon.Folder.change(func(r *Registry, _ *Secrets) error {
		if j := r.member(m.site); j != nil && j.Serial == m.joined.Serial {
			j.Life = life
		}
		return nil
	})
	if err != nil {
		m.daemon.Log.Error("site " + m.site + ": which process serves could not be noted: " + err.Error())
	}
}

// between says whether a second process waits to hear that the first is gone: no task reaches
// it until then.
func (m *member) between() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.second != nil && !m.two
}

// other is the life of a second process that is refused; nil without one. The caller holds m.mu.
func (m *member) other() []byte {
	if m.second == nil || !m.two || time.Since(m.heard) > 3*max(m.daemon.Again, m.daemon.living()) {
		return nil
	}
	return m.second.Life
}

func (m *member) twoServe() string {
	return "two machines serve as " + m.site + ", and one is answered: stop the other; a folder whose store lacks " +
		"what others have seen is a stale copy, and is to be removed"
}

// patience ends when the process that serves has had its time to say that it lives.
func (m *member) patience(ctx context.Context) (context.Context, context.CancelFunc) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.second == nil || m.asked.IsZero() {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, m.asked.Add(m.within))
}

// giveWay lets a second process serve if the first is gone.
func (m *member) giveWay() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if h := m.second; h != nil && (m.gone || !m.asked.IsZero() && time.Since(m.asked) >= m.within) {
		m.succeed(h)
		m.hear(*h, true)
	}
}

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
	for _, limit := range []time.Duration{s.plan.Deadline.Duration(), s.plan.ApprovalDeadline.Duration(),
		s.daemon.droppedWithin()} {
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
		people := known && word.Word == federation.Pending || l.waited.For != forHistory &&
			!slices.Contains(s.state.Approved, site)
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
