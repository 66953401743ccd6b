package judge

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"

	"parley/dataset"
	"parley/engine/local"
	"parley/method"
	"parley/privacy"
	"parley/sitestore"
	"parley/study"
)

// laboratory implements [method.Laboratory] with the engine, in memory. Sites follow
// the policy of simulations; their gates draw noise as in a real study.
type laboratory struct{ method method.Method }

// Study implements [method.Laboratory]: it is the coordinator's half that is listened
// to, so that tasks and answers are all there is.
func (l laboratory) Study(ctx context.Context, p *study.Plan,
	data map[string]dataset.Source) ([]method.Exchange, error) {
	t := &tapped{Method: l.method}
	if _, err := local.Run(ctx, local.Config{Plan: p, Methods: method.Registry{t}, Data: data}); err != nil {
		return nil, fmt.Errorf("the attacked study: %w", err)
	}
	return t.seen, nil
}

// tapped is a method whose coordinator keeps what passes.
type tapped struct {
	method.Method
	seen []method.Exchange
}

// Coordinator implements [method.Method].
func (t *tapped) Coordinator(p *study.Plan) (method.Coordinator, error) {
	c, err := t.Method.Coordinator(p)
	return &listening{c, t, map[string]method.Task{}}, err
}

// listening is a coordinator's half that writes along.
type listening struct {
	method.Coordinator
	to    *tapped
	asked map[string]method.Task // of each site, as long as it has not answered
}

// Next implements [method.Coordinator].
func (l *listening) Next(s method.State) (method.Step, error) {
	step, err := l.Coordinator.Next(s)
	for _, t := range step.Tasks {
		l.asked[t.Site] = t
	}
	return step, err
}

// Fold implements [method.Coordinator].
func (l *listening) Fold(s method.State, c method.Contribution) (method.State, error) {
	l.to.seen = append(l.to.seen, method.Exchange{Task: l.asked[c.Site], Answer: c})
	return l.Coordinator.Fold(s, c)
}

// Ask implements [method.Laboratory].
func (l laboratory) Ask(ctx context.Context, p *study.Plan, site string, data dataset.Source,
	tasks ...method.Task) ([]method.Contribution, error) {
	s, err := l.join(p, site, data)
	if err != nil {
		return nil, err
	}
	var answers []method.Contribution
	for i, t := range tasks {
		c, err := s.answer(ctx, i+1, t)
		if err != nil {
			return nil, err
		}
		answers = append(answers, c)
	}
	return answers, nil
}

// member is a site in a study.
type member struct {
	study privacy.Study
	half  method.Site
	gate  *privacy.Gate
}

func (l laboratory) join(p *study.Plan, site string, data dataset.Source) (*member, error) {
	list, err := method.ForPlan(l.method, p).Requests(p, site)
	if err != nil {
		return nil, fmt.Errorf("site %s: %w", site, err)
	}
	s, err := privacy.StudyOf(p, site, list)
	if err != nil {
		return nil, err
	}
	if s.Party, err = method.PartyOf(p, site, nil); err != nil {
		return nil, err
	}
	half, err := method.ForPlan(l.method, p).Site(p, site)
	if err != nil {
		return nil, fmt.Errorf("site %s: %w", site, err)
	}
	return &member{s, half, privacy.NewGate(s, privacy.SimulationPolicy(), sitestore.NewMemory(), data)}, nil
}

// answer passes a task through the gate as the engine does, and opens the release.
func (m *member) answer(ctx context.Context, round int, t method.Task) (c method.Contribution, err error) {
	if err := context.Cause(ctx); err != nil {
		return c, err
	}
	id := sha256.Sum256(t.Body) // the same at all sites that are asked the same
	ask, err := m.gate.Vet(privacy.Ask{Study: m.study.Digest, Site: m.study.Site, Round: round, Kind: t.Kind, Task: id,
		Common: id}, t.Body)
	if err != nil {
		return c, err
	}
	session, err := m.gate.Admit(ask)
	if err != nil {
		return c, err
	}
	a, err := m.half.Run(ctx, t, session)
	if err != nil {
		return c, fmt.Errorf("computing %q: %w", t.Kind, err)
	}
	release, err := session.Seal(a.Body, a.State)
	if err != nil {
		return c, err
	}
	i := slices.IndexFunc(m.study.Requests, func(l privacy.Listed) bool { return l.Kind == t.Kind })
	opened, err := privacy.Open(release.Bytes(), m.study.Requests[i].Request)
	return method.Contribution{Site: m.study.Site, Kind: t.Kind, Body: opened.Body, Sums: opened.Sums,
		Masked: opened.Masked}, err
}
