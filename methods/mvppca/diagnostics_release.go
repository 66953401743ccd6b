package mvppca

import (
	"fmt"
	"math"

	"parley/internal/wire"
	"parley/method"
	"parley/methods/mvppca/moments"
	"parley/methods/mvppca/options"
	"parley/methods/mvppca/ppca"
	"parley/privacy"
	"parley/privacy/account"
)

// checkTask asks how well the finished model predicts views at a site, by a
// share of the total that the plan sets aside.
type checkTask struct {
	Model paramsMessage `cbor:"model"`
	Doubt wire.Vector   `cbor:"doubt"` // privacy noise adds to the variance of each feature's predictions
}

// checkAnswer is the noised sum as the coordinator keeps it.
type checkAnswer struct {
	Sum privacy.Noised `cbor:"sum" json:"sum"`
}

func (a *checkAnswer) check(p *statisticsPlan) error { return a.Sum.Check(*p.check) }

// besides returns the diagnostics' sum with relative noise, such that it takes
// its share of the squared Gaussian DP parameter of all sums together.
func besides(l ppca.Layout, sums []privacy.Sum, adjacency account.Adjacency, share float64) (privacy.Sum, error) {
	d := moments.DiagnosticsSum(l)
	theirs, ok := account.Mu(mechanisms(sums), adjacency)
	own, both := account.Mu(mechanisms([]privacy.Sum{d}), adjacency)
	if !ok || !both {
		return d, fmt.Errorf("the sums have no Gaussian DP parameter")
	}
	d.Mechanism.Noise = own / theirs * math.Sqrt((1-share)/share)
	return d, nil
}

func mechanisms(sums []privacy.Sum) (ms []account.Mechanism) {
	for _, s := range sums {
		ms = append(ms, s.Mechanism)
	}
	return ms
}

// checkRequest is what a site asks its gate for.
func (p *statisticsPlan) checkRequest() privacy.Request {
	return privacy.Request{Protection: privacy.Differential, Sums: []privacy.Sum{*p.check}, Contents: []privacy.Content{{
		What:   "noised number of subjects, their errors, squared errors and squared deviations, and how many values lie within predictions, per view predicted from the others",
		Values: p.check.Blocks[0],
	}}}
}

// askCheck asks for the diagnostics of a model that is final.
func (c *statisticsRounds) askCheck(s *state) ([]method.Task, error) {
	tasks, _, err := c.ask(s, options.TaskCheck, func(string) (any, error) { return checkTask{Model: s.Model.Params, Doubt: s.Doubt}, nil })
	return tasks, err
}

// checked keeps what the sites that are left said. The model stands without
// them, too.
func (c *statisticsRounds) checked(s *state) ([]method.Task, method.Info, error) {
	sites, all, err := answers(c.coordinator, s, func(_ string, a *checkAnswer) error { return a.check(c.noised) })
	if err != nil {
		return nil, nil, err
	}
	for i, name := range sites {
		s.site(name).Checked = all[i]
	}
	s.Phase = phaseDone
	return nil, nil, nil
}
