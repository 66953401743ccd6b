// Package scarce puts codes and classes around any way to learn a mixture:
// [NewCoordinator] and [NewSite] wrap a sampler's halves, and [Listed] is all that a site
// may then be asked for. A study goes through an encoder that sites share, each site's own
// classifier of the scarce class, the sampler itself, and
// what rows drawn from the mixture are worth at each site; whatever a plan does not ask
// for is left out. [Classifier] is what a site's own report leaves. Beside drawn rows a site tries what it can do alone
// about a class of few rows (oversampling, SMOTE) and another site's classifier: what others offer has to beat these.
//
// What is trained, fitted and scored leaves a site without noise, so that under
// differential protection none of it is asked for.
package scarce

import (
	"fmt"
	"slices"

	"parley/internal/nn"
	"parley/internal/wire"
	"parley/method"
	"parley/methods/mixture/options"
)

// The phases of a study beside the sampler's own. The first, second and last are named
// by the task that sites are given.
const (
	phaseMixture = "mixture" // the sampler's own tasks
)

// coordinator is the coordinator of a plan with codes, classes or calibration. It carries a
// sampler, which knows nothing of them, from one phase to the next:
//
//	encoder      the encoder that all sites share, if one of them trains it
//	classifier   every site's own classifier, a control; not under privacy
//	mixture      the sampler
//	calibration  of the posterior, at the coordinator alone
//	worth        what every site made of it on held rows; not under privacy
type coordinator struct {
	*options.Setup
	sampler options.Sampler
	phases  []string
}

// NewCoordinator is the half of a sampler and what its plan puts around it.
func NewCoordinator(s *options.Setup, v options.Sampler) method.Coordinator {
	if plain(s) {
		return v.Coordinator(s)
	}
	return &coordinator{s, v, phasesOf(s)}
}

// plain says whether a plan has nothing beside its sampler.
func plain(s *options.Setup) bool { return s.Options.Encoder == nil && s.Options.Scarce == nil }

// inner is the sampler's coordinator.
func (c *coordinator) inner() options.Sampled { return c.sampler.Coordinator(c.Setup) }

// phasesOf lists the phases of a plan, and rounds.Done.
func phasesOf(s *options.Setup) (phases []string) {
	if s.Receives() {
		phases = append(phases, taskEncoder)
	}
	if s.Judged() {
		phases = append(phases, taskClassifier)
	}
	phases = append(phases, phaseMixture)
	if s.Tested() {
		phases = append(phases, taskWorth)
	}
	return append(phases, method.Done)
}

// with is the setup once the encoder is known that the sites share.
func with(s *options.Setup, e *nn.Encoder) *options.Setup {
	if e == nil {
		return s
	}
	t := *s
	t.Encoder = e
	return &t
}

// Init implements [method.Coordinator].
func (c *coordinator) Init() (method.State, error) {
	inner, err := c.inner().Init()
	if err != nil {
		return nil, err
	}
	return &state{Phase: c.phases[0], inner: inner, Linear: map[string]*linearAnswer{}, Worth: map[string]*worthAnswer{}}, nil
}

// Next implements [method.Coordinator].
func (c *coordinator) Next(ms method.State) (method.Step, error) {
	s := ms.(*state)
	var info method.Info
	for {
		step, err := c.within(s)
		if err != nil {
			return step, err
		}
		if info == nil {
			info = step.Info
		}
		c.count(s, &step)
		step.State, step.Info = s, info
		if s.Phase == method.Done {
			step.Done = true
			return step, nil
		}
		if !step.Done {
			return step, nil
		}
		s.Phase, s.Asked = c.phases[slices.Index(c.phases, s.Phase)+1], false
	}
}

// within moves the phase on; Done means that it has ended.
func (c *coordinator) within(s *state) (method.Step, error) {
	switch s.Phase {
	case phaseMixture:
		return c.mix(s)
	case method.Done:
		return method.Step{}, nil
	}
	if s.Asked {
		if s.Phase == taskEncoder && s.Encoder == nil {
			return method.Step{}, fmt.Errorf("site %s has not answered with an encoder", c.Options.Encoder.Site)
		}
		return method.Step{Done: true, Progress: 1}, nil
	}
	s.Asked = true
	sites := method.Staying(c.Plan.Sites, s.Left)
	if s.Phase == taskEncoder {
		sites = slices.DeleteFunc(sites, func(site string) bool { return site != c.Options.Encoder.Site })
	}
	tasks, err := method.Ask(s.Phase, sites, func(site string) (any, error) { return c.body(s, site) })
	if s.Phase == taskWorth { // the mixture stands without the sites' scores
		tasks = method.Optional(tasks)
	}
	return method.Step{Tasks: tasks}, err
}

// body makes the task of a phase of its own. Where sites share an encoder it goes with
// every task that needs it: sites keep nothing between tasks.
func (c *coordinator) body(s *state, site string) (task any, err error) {
	switch s.Phase {
	case taskEncoder:
		return encoderTask{}, nil
	case taskClassifier:
		task = linearTask{}
	case taskWorth:
		if task, err = c.worthShare(s, site); err != nil {
			return nil, err
		}
	}
	if !c.Receives() {
		return task, nil
	}
	body, err := wire.Marshal(task)
	return encodedTask{s.Encoder, body}, err
}

// mix moves the sampler on.
func (c *coordinator) mix(s *state) (method.Step, error) {
	step, err := c.inner().Next(s.inner)
	if err != nil {
		return step, err
	}
	s.inner = step.State
	if !c.Receives() {
		return step, nil
	}
	for i, t := range step.Tasks {
		if step.Tasks[i].Body, err = wire.Marshal(encodedTask{s.Encoder, t.Body}); err != nil {
			return step, err
		}
	}
	return step, nil
}

// length is how many steps a phase has.
func (c *coordinator) length(phase string) int {
	switch phase {
	case phaseMixture:
		return c.sampler.Steps(c.Setup)
	case method.Done:
		return 0
	}
	return 1
}

// count turns a step's progress within its phase into that of the study.
func (c *coordinator) count(s *state, step *method.Step) {
	step.Of = 0
	at := slices.Index(c.phases, s.Phase)
	for i, phase := range c.phases {
		n := c.length(phase)
		step.Of += n
		if i < at {
			step.Progress += n
		}
	}
}

// Fold implements [method.Coordinator].
func (c *coordinator) Fold(ms method.State, in method.Contribution) (method.State, error) {
	s := ms.(*state)
	err := method.Member(c.Plan.Sites, in.Site)
	if err != nil {
		return nil, err
	}
	switch {
	case s.Phase == phaseMixture:
		var inner method.State
		if inner, err = c.inner().Fold(s.inner, in); err == nil {
			s.inner = inner
		}
	case in.Kind != s.Phase || !s.Asked:
		err = fmt.Errorf("an answer to %q in phase %q of the study", in.Kind, s.Phase)
	case s.Phase == taskEncoder:
		err = c.foldEncoder(s, in)
	case s.Phase == taskClassifier:
		err = method.Take(s.Linear, in, func(a *linearAnswer) error { return a.check(len(c.Names)) })
	case s.Phase == taskWorth:
		err = method.Take(s.Worth, in, (*worthAnswer).check)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (c *coordinator) foldEncoder(s *state, in method.Contribution) error {
	if in.Site != c.Options.Encoder.Site {
		return fmt.Errorf("site %s was not asked for an encoder", in.Site)
	}
	if s.Encoder != nil {
		return method.Once(in, true)
	}
	a := new(encoderAnswer)
	if err := method.DecodeAnswer(in, a); err != nil {
		return err
	}
	if err := checkEncoder(c.Setup, a.Encoder); err != nil {
		return err
	}
	s.Encoder = a.Encoder
	return nil
}

// Leave implements [method.Coordinator]. A study whose encoder will not be trained ends: no
// other site has agreed to release one.
func (c *coordinator) Leave(ms method.State, site string) (method.State, error) {
	s := ms.(*state)
	left, err := method.Leave(c.Plan.Sites, s.Left, site)
	if err != nil {
		return nil, err
	}
	if s.Phase == taskEncoder && site == c.Options.Encoder.Site && s.Encoder == nil {
		return nil, fmt.Errorf("site %s was to train the encoder, and the plan names no other: another plan may, under encoder.site", site)
	}
	if slices.Index(c.phases, s.Phase) <= slices.Index(c.phases, phaseMixture) {
		inner, err := c.inner().Leave(s.inner, site)
		if err != nil {
			return nil, err
		}
		s.inner = inner
	}
	s.Left = left
	return s, nil
}

// Share gives a site what the sampler shares, the encoder, and what it needs to see what
// synthetic rows are worth to it.
func (c *coordinator) Share(ms method.State, site string) ([]byte, error) {
	s := ms.(*state)
	inner, err := c.inner().Share(s.inner, site)
	if err != nil {
		return nil, err
	}
	out := siteShare{Sampler: inner, Encoder: s.Encoder}
	if c.Options.Scarce != nil {
		if out.Worth, err = c.worthShare(s, site); err != nil {
			return nil, err
		}
	}
	return wire.Marshal(out)
}

// worthShare is what a site needs to compare what it can do about the scarce class (worth.go). The borrowed classifier is the
// one that was fitted to most rows of the class: nothing weaker is a control.
func (c *coordinator) worthShare(s *state, site string) (*worthShare, error) {
	p, err := c.inner().Draws(s.inner)
	if err != nil {
		return nil, err
	}
	d := len(c.Names)
	each := c.Options.Components * (1 + d + d*d)
	w := &worthShare{Sample: options.PackSample(p.Thin(min(maxShared, max(1, maxSharedNumbers/each))))}
	for _, other := range c.Plan.Sites {
		a := s.Linear[other]
		if other == site || a.classifier() == nil {
			continue
		}
		if w.Classifier == nil || a.Scarce > w.Classifier.Scarce {
			w.Classifier, w.From = a, other
		}
	}
	return w, nil
}

// state is what [coordinator] carries: the sampler's state, and what the phases around it
// have found.
type state struct {
	Phase   string                   `cbor:"phase"`
	Asked   bool                     `cbor:"asked"` // the phase's tasks are out
	Left    []string                 `cbor:"left"`
	Encoder *nn.Encoder              `cbor:"encoder"` // that sites share, trained by one of them
	Linear  map[string]*linearAnswer `cbor:"linear"`
	Worth   map[string]*worthAnswer  `cbor:"worth"`
	Sampler []byte                   `cbor:"variant"` // inner, encoded

	inner method.State
}

// MarshalBinary implements [method.State].
func (s *state) MarshalBinary() ([]byte, error) {
	inner, err := s.inner.MarshalBinary()
	if err != nil {
		return nil, err
	}
	out := *s
	out.Sampler = inner
	return wire.Marshal(&out)
}
