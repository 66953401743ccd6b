package statistics

import (
	"fmt"
	"math"

	"parley/method"
	"parley/methods/factors/halves"
	"parley/methods/factors/moments"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
	"parley/privacy"
	"parley/privacy/account"
)

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
func (p *declared) checkRequest() privacy.Request {
	return privacy.Request{Protection: privacy.Differential, Sums: []privacy.Sum{*p.check}, Contents: []privacy.Content{{
		What:   "noised number of subjects, their errors, squared errors and squared deviations, and how many values lie within predictions, per view predicted from the others",
		Values: p.check.Blocks[0],
	}}}
}

// askCheck asks for the diagnostics of a model that is final.
func (c way) askCheck(s *halves.State) ([]method.Task, error) {
	tasks, err := c.Ask(s, options.TaskCheck, func(string) (any, error) { return CheckTask{Model: s.Model.Params, Doubt: s.Doubt}, nil })
	return method.Optional(tasks), err
}

// checked keeps what the sites that are left said. The model stands without
// them, too.
func (c way) checked(s *halves.State) ([]method.Task, method.Info, error) {
	sites, all, err := halves.Answers(c.Common, s, func(site string, a *sumAnswer) error { return a.Sum.Check(*c.noised[site].check) })
	if err != nil {
		return nil, nil, err
	}
	for i, name := range sites {
		own(s).Checked[name] = all[i]
	}
	s.Phase = method.Done
	return nil, nil, nil
}
