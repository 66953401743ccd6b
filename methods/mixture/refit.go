package mixture

import (
	"context"

	"parley/method"
	"parley/methods/mixture/options"
	"parley/study"
)

var _ method.Refitter = Method{}

// Chooses implements [method.Refitter].
func (Method) Chooses() string { return chosen }

// ReleasedFile implements [method.Refitter]. The sums that sites release do not depend on the number of
// components.
func (Method) ReleasedFile(p *study.Plan) (string, error) {
	s, err := options.New(p)
	if err != nil {
		return "", err
	}
	return Released(s.Options)
}

// Refit implements [method.Refitter].
func (m Method) Refit(p *study.Plan, releases []byte, components int) (*method.Result, error) {
	s, err := m.released(p)
	if err != nil {
		return nil, err
	}
	return refitted(s, releases, components)
}

// SelectReleased implements [method.Refitter] by [selected].
func (m Method) SelectReleased(ctx context.Context, p *study.Plan, releases []byte, c method.SelectConfig) (*method.Selection, error) {
	s, err := m.released(p)
	if err != nil {
		return nil, err
	}
	return selected(ctx, s, releases, c)
}

// released is what follows from a plan whose releases are enough for another mixture.
func (m Method) released(p *study.Plan) (*options.Setup, error) {
	if _, err := m.ReleasedFile(p); err != nil {
		return nil, err
	}
	return options.New(p)
}
