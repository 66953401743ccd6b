package vae

import (
	"errors"
	"fmt"
	"maps"

	"parley/internal/wire"
	"parley/method"
)

// state is what the coordinator carries.
type state struct {
	Phase   string               `cbor:"phase"`
	Left    []string             `cbor:"left"`
	Round   int                  `cbor:"round"` // rounds that were asked for
	Extents map[string]*extent   `cbor:"extents"`
	Scale   scale                `cbor:"scale"`
	Weights wire.Vector          `cbor:"weights"`
	Trained map[string]*trained  `cbor:"trained"` // answers of this round
	Losses  []wire.Vector        `cbor:"losses"`  // by round: of all sites together, then of each site of the plan that answered
	Answers []wire.Vector        `cbor:"answers"` // by round: 1 for each site of the plan that answered, else 0
	Fit     map[string]*assessed `cbor:"fit"`
}

// MarshalBinary implements [method.State].
func (s *state) MarshalBinary() ([]byte, error) { return wire.Marshal(s) }

type coordinator struct{ *setup }

func empty() *state {
	return &state{Extents: map[string]*extent{}, Trained: map[string]*trained{}, Fit: map[string]*assessed{}}
}

// Init implements [method.Coordinator].
func (coordinator) Init() (method.State, error) { return empty(), nil }

// Restore implements [method.Coordinator].
func (c coordinator) Restore(data []byte) (method.State, error) {
	s, sites := empty(), c.plan.Sites
	if err := wire.Unmarshal(data, s); err != nil {
		return nil, err
	}
	if s.Extents == nil || s.Trained == nil || s.Fit == nil {
		return nil, errors.New("the state lacks what sites have answered")
	}
	if err := errors.Join(
		method.KnownPhase(s.Phase, s.Left, sites, taskScale, taskTrain, taskAssess),
		method.Kept(s.Extents, sites, "values", func(e *extent) error { return e.check(c.net) }),
		method.Kept(s.Trained, sites, "weights", func(t *trained) error { return t.check(c.net) }),
		method.Kept(s.Fit, sites, "errors", func(a *assessed) error { return a.check(c.setup) }),
	); err != nil {
		return nil, err
	}
	for name := range s.Trained {
		if s.Extents[name] == nil {
			return nil, fmt.Errorf("the state has weights of site %s, and nothing of its values", name)
		}
	}
	if s.Phase == "" || s.Phase == taskScale {
		return s, nil
	}
	if err := (&given{0, s.Scale, s.Weights}).check(c.setup, 0); err != nil {
		return nil, fmt.Errorf("the state's model: %w", err)
	}
	if over := s.Phase != taskTrain; s.Round < 1 || s.Round > c.Rounds+1 || over != (s.Round == c.Rounds+1) || len(s.Losses) != s.Round-1 || len(s.Answers) != s.Round-1 {
		return nil, fmt.Errorf("the state has losses of %d rounds in phase %q, round %d", len(s.Losses), s.Phase, s.Round)
	}
	for i := range s.Losses {
		if n := len(sites); len(s.Losses[i]) != n+1 || len(s.Answers[i]) != n || !bounded(s.Losses[i], largestLoss) || !bounded(s.Answers[i], 1) {
			return nil, fmt.Errorf("the state's losses of round %d are not those of the plan's sites", i+1)
		}
	}
	return s, nil
}

// Next implements [method.Coordinator].
func (c coordinator) Next(ms method.State) (method.Step, error) {
	s := ms.(*state)
	step := method.Step{State: s, Of: c.Rounds + 2}
	switch s.Phase {
	case "":
		s.Phase = taskScale
	case taskScale:
		var said []*extent
		for _, name := range c.plan.Sites {
			if e := s.Extents[name]; e != nil {
				said = append(said, e)
			}
		}
		s.Scale = scaleOf(c.net.features, said)
		s.Weights = c.net.start(c.stream("", 0))
		s.Phase, s.Round = taskTrain, 1
	case taskTrain:
		step.Info = method.Info{"loss": c.average(s)}
		if s.Round++; s.Round > c.Rounds {
			s.Phase = taskAssess
		}
	case taskAssess, method.Done:
		s.Phase = method.Done
		step.Done, step.Progress = true, step.Of
		return step, nil
	}
	step.Progress = s.Round
	var err error
	step.Tasks, err = method.Ask(s.Phase, method.Staying(c.plan.Sites, s.Left), func(string) (any, error) {
		switch s.Phase {
		case taskTrain:
			return given{s.Round, s.Scale, s.Weights}, nil
		case taskAssess:
			return given{0, s.Scale, s.Weights}, nil
		}
		return struct{}{}, nil
	})
	return step, err
}

// average replaces the weights by the mean of where sites ended, and returns the mean
// loss. A channel's weights are averaged over the sites that have it, by their numbers
// of subjects with it (McMahan et al. 2017, Algorithm 1); where none has it they stay.
func (c coordinator) average(s *state) float64 {
	for k, ch := range c.net.channels {
		total := 0.0
		for name := range s.Trained {
			total += s.Extents[name].Rows[k] // whole numbers: the order does not matter
		}
		if total == 0 {
			continue
		}
		clear(s.Weights[ch.at:ch.end])
		for _, name := range c.plan.Sites {
			t := s.Trained[name]
			if t == nil {
				continue
			}
			share := s.Extents[name].Rows[k] / total
			for i := ch.at; i < ch.end; i++ {
				s.Weights[i] += share * t.Weights[i]
			}
		}
	}
	n := len(c.plan.Sites)
	losses, answered := make(wire.Vector, n+1), make(wire.Vector, n)
	rows := 0.0
	for i, name := range c.plan.Sites {
		if t := s.Trained[name]; t != nil {
			r := s.Extents[name].most()
			losses[i+1], answered[i] = t.Loss, 1
			rows += r
			losses[0] += r * t.Loss
		}
	}
	losses[0] /= max(rows, 1)
	s.Losses, s.Answers = append(s.Losses, losses), append(s.Answers, answered)
	clear(s.Trained)
	return losses[0]
}

// Fold implements [method.Coordinator].
func (c coordinator) Fold(ms method.State, in method.Contribution) (method.State, error) {
	s := ms.(*state)
	if err := method.Expect(in, c.plan.Sites, s.Phase); err != nil {
		return nil, err
	}
	switch s.Phase {
	case taskScale:
		return s, method.Take(s.Extents, in, func(e *extent) error { return e.check(c.net) })
	case taskTrain:
		if s.Extents[in.Site] == nil {
			return nil, errors.New("a site that said nothing of its values")
		}
		return s, method.Take(s.Trained, in, func(t *trained) error { return t.check(c.net) })
	}
	return s, method.Take(s.Fit, in, func(a *assessed) error { return a.check(c.setup) })
}

// Leave implements [method.Coordinator]: what the site has said stays.
func (c coordinator) Leave(ms method.State, name string) (method.State, error) {
	s := ms.(*state)
	left, err := method.Leave(c.plan.Sites, s.Left, name)
	s.Left = left
	return s, err
}

// Result implements [method.Coordinator].
func (c coordinator) Result(ms method.State) (*method.Result, error) {
	s := ms.(*state)
	sites := map[string]float64{}
	for name := range maps.Keys(s.Extents) {
		sites[name] = s.Extents[name].most()
	}
	data, err := newModel(c.setup, &s.Scale, s.Weights, sites).encode()
	if err != nil {
		return nil, err
	}
	r := c.pictures(s)
	r.Files = []method.File{{Name: "model/model.json", Data: data}}
	return r, nil
}

// Share implements [method.Coordinator].
func (c coordinator) Share(ms method.State, _ string) ([]byte, error) {
	s := ms.(*state)
	return wire.Marshal(given{0, s.Scale, s.Weights})
}
