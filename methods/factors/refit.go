package factors

import (
	"context"

	"parley/dataset"
	"parley/method"
	"parley/methods/factors/options"
	"parley/methods/factors/selection"
	"parley/methods/factors/statistics"
	"parley/problem"
	"parley/study"
)

var (
	_ method.Selector = Method{}
	_ method.Refitter = Method{}
)

// Chooses implements [method.Selector].
func (Method) Chooses() string { return "latent" }

// Select implements [method.Selector] by [selection.Select]. It chooses latent in the plan.
func (Method) Select(ctx context.Context, p *study.Plan, data map[string]dataset.Source, c method.SelectConfig) (*method.Selection, error) {
	set, err := options.SetUp(p)
	if err != nil {
		return nil, err
	}
	return selection.Select(ctx, set, data, c)
}

// ReleasedFile implements [method.Refitter]. Only [options.MechanismStatistics] releases
// what is enough for another model.
func (Method) ReleasedFile(p *study.Plan) (string, error) {
	set, err := options.SetUp(p)
	if err != nil {
		return "", err
	}
	if set.Options.Mechanism != options.MechanismStatistics {
		return "", problem.Problem{Where: "privacy.protection", What: "without differential protection a site's answers depend on the number of factors, so no other model can be made of them",
			Hint: "only a private study releases statistics that any number of factors can be fitted to"}
	}
	return statistics.ReleasedName, nil
}

// Refit implements [method.Refitter].
func (m Method) Refit(p *study.Plan, releases []byte, latent int) (*method.Result, error) {
	r, err := m.read(p, releases)
	if err != nil {
		return nil, err
	}
	return r.Refit(latent)
}

// SelectReleased implements [method.Refitter] by [selection.SelectReleased].
func (m Method) SelectReleased(ctx context.Context, p *study.Plan, releases []byte, c method.SelectConfig) (*method.Selection, error) {
	r, err := m.read(p, releases)
	if err != nil {
		return nil, err
	}
	return selection.SelectReleased(ctx, r.Setup, r.Sites, r.Releases, c)
}

// read reads what the sites of a plan's study released.
func (m Method) read(p *study.Plan, releases []byte) (*statistics.Study, error) {
	if _, err := m.ReleasedFile(p); err != nil {
		return nil, err
	}
	set, err := options.SetUp(p)
	if err != nil {
		return nil, err
	}
	return statistics.ReadReleased(set, releases)
}
