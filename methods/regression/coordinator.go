package regression

import (
	"parley/method"
	"parley/methods/regression/fitted"
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
)

// coordinator asks for updates of the sites' factors, and how well the model predicts.
type coordinator struct{ *common }

// newIndependent is the coordinator's half of a study.
func newIndependent(s *options.Setup) (method.Coordinator, error) {
	c, err := newCommon(s)
	return coordinator{c}, err
}

// Init implements [method.Coordinator].
func (c coordinator) Init() (method.State, error) { return fitted.NewFactors(c.Setup), nil }

// Restore implements [method.Coordinator].
func (c coordinator) Restore(data []byte) (method.State, error) {
	s, err := fitted.RestoreFactors(c.Setup, data, true)
	if err == nil {
		_, err = c.posterior(s)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// posterior is the prior times the factors, which are tempered by what noise they hold ([glm.NoiseAware]).
func (c coordinator) posterior(s *fitted.Factors) (glm.Gaussian, error) {
	noise := make([]float64, len(c.Plan.Sites))
	for i := range noise {
		noise[i] = c.noised.update.Mechanism.Noise
	}
	q := glm.NoiseAware(c.Prior, c.List(s.Sites), glm.NoiseVariance(*c.Options.Clip, noise, c.Options.Rounds))
	return q, q.CheckProper(c.Weights())
}

// Next implements [method.Coordinator].
func (c coordinator) Next(ms method.State) (method.Step, error) {
	s := ms.(*fitted.Factors)
	step := method.Step{State: s}
	was := s.Phase
	var err error
	switch was {
	case "":
		s.Phase = options.TaskUpdate
	case options.TaskUpdate:
		step.Tasks, err = c.ask(s)
	case options.TaskAssess:
		s.Phase = method.Done
	}
	if err != nil {
		return method.Step{}, err
	}
	step.Done = s.Phase == method.Done
	step.Progress, step.Of = s.Round, c.Options.Rounds+1 // the assessment
	if step.Done || s.Phase == options.TaskAssess {
		step.Progress = step.Of
	}
	if was == options.TaskUpdate && s.Trace.Folded > 0 {
		step.Info = method.Info{"KL to the q before": s.Trace.LastKL}
	}
	return step, nil
}

// ask asks all sites for the next update, or, where that is paid for, how well the model predicts.
func (c coordinator) ask(s *fitted.Factors) ([]method.Task, error) {
	sites := method.Staying(c.Plan.Sites, s.Left)
	more := len(sites) > 0 && s.Round < c.Options.Rounds
	if !more && c.noised.quality == nil {
		s.Phase = method.Done
		return nil, nil
	}
	q, err := c.posterior(s)
	if err != nil {
		return nil, err
	}
	if more {
		s.Round++
		return method.Ask(options.TaskUpdate, sites, func(site string) (any, error) {
			s.Asked++
			return s.Sites[site].Ask(s.Scale, q), nil
		})
	}
	return s.Assess(c.Setup, q)
}

// Fold implements [method.Coordinator].
func (c coordinator) Fold(ms method.State, in method.Contribution) (method.State, error) {
	s := ms.(*fitted.Factors)
	return s, s.Fold(c.Setup, in, true, func() (glm.Gaussian, error) { return c.posterior(s) }, func(r *options.SiteFactor, _ glm.Gaussian) error {
		return c.foldNoised(r, in)
	})
}

// Leave implements [method.Coordinator].
func (c coordinator) Leave(ms method.State, site string) (method.State, error) {
	s := ms.(*fitted.Factors)
	return s, s.Leave(c.Setup, site)
}

// Share gives every site the model: it is the study's result.
func (c coordinator) Share(ms method.State, _ string) ([]byte, error) {
	s := ms.(*fitted.Factors)
	q, err := c.posterior(s)
	if err != nil {
		return nil, err
	}
	return c.Shared(s.Scale, q)
}

// Result implements [method.Coordinator].
func (c coordinator) Result(ms method.State) (*method.Result, error) {
	s := ms.(*fitted.Factors)
	q, err := c.posterior(s)
	if err != nil {
		return nil, err
	}
	return s.Result(c.Setup, q, "")
}

// foldNoised moves the site's factor by a noised natural gradient at the q that it was
// sent. The noise of an honest site may be anything: no integers are refused, and
// what they lead to is cut where nobody could go on from it.
func (c coordinator) foldNoised(r *options.SiteFactor, in method.Contribution) error {
	noised, err := method.OnlySum(in, sumNatural)
	if err != nil {
		return err
	}
	sum := noised.Floats(0)
	for i := range sum {
		sum[i] = glm.Clamp(sum[i], options.FactorLargest)
	}
	factor := r.Factor.Unchecked()
	change, err := c.natural().Change(r.From.Unchecked(), factor, c.Options.Damping, r.Folded, sum)
	if err != nil {
		return err
	}
	factor = factor.Times(change)
	for j := range factor.Eta {
		factor.Eta[j], factor.Lambda[j] = glm.Clamp(factor.Eta[j], options.FactorLargest), glm.Clamp(factor.Lambda[j], options.FactorLargest)
	}
	r.Factor = options.Pack(factor)
	return nil
}
