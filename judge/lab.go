package judge

import (
	"context"
	"fmt"

	"parley/dataset"
	"parley/engine/local"
	"parley/method"
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
