package engine_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"parley/dataset"
	"parley/engine/enginetest"
	"parley/internal/wire"
	"parley/method"
	"parley/privacy"
)

// toy is a small method with everything that the engine must get right: a
// state that grows, rounds, an optional asynchronous schedule, a step without
// tasks, a site that may leave, and a site half that carries a state of its own.
type toy struct {
	sites  []string
	rounds int
	async  bool
	takes  []float64 // of asynchronous tasks, in turn; none takes time if empty
	spares bool      // whether its synchronous tasks are optional
}

type toyState struct {
	Round int      `cbor:"round"`
	Alone bool     `cbor:"alone"` // the coordinator has taken its lonely step
	Asked int      `cbor:"asked"`
	Left  []string `cbor:"left"`
	Trace []string `cbor:"trace"` // everything folded, in order
}

func (s *toyState) MarshalBinary() ([]byte, error) { return wire.Marshal(s) }

func (m toy) Init() (method.State, error) { return &toyState{}, nil }

func (m toy) Restore(b []byte) (method.State, error) {
	s := new(toyState)
	return s, wire.Unmarshal(b, s)
}

func (m toy) Next(state method.State) (method.Step, error) {
	s := state.(*toyState)
	step := method.Step{State: s, Progress: len(s.Trace), Of: m.rounds * len(m.sites),
		Info: method.Info{"folded": float64(len(s.Trace))}}
	switch {
	case !s.Alone:
		s.Alone = true
		return step, nil
	case m.async:
		step.Wait = method.Any
		for i := len(s.Trace) + len(s.Left); s.Asked < m.rounds*len(m.sites) && s.Asked-i < 2; s.Asked++ {
			site := m.sites[s.Asked%len(m.sites)]
			if slices.Contains(s.Left, site) {
				s.Trace = append(s.Trace, "skipped "+site)
				continue
			}
			task := method.Task{Site: site, Kind: "step", Body: []byte(fmt.Sprint(s.Asked))}
			if len(m.takes) > 0 {
				task.Takes = m.takes[s.Asked%len(m.takes)]
			}
			step.Tasks = append(step.Tasks, task)
		}
		step.Done = s.Asked == m.rounds*len(m.sites) && len(s.Trace)+len(s.Left) >= s.Asked
	case s.Round < m.rounds:
		for _, site := range m.sites {
			if !slices.Contains(s.Left, site) {
				step.Tasks = append(step.Tasks, method.Task{Site: site, Kind: "sum", Body: []byte(fmt.Sprint(s.Round)),
					Optional: m.spares})
			}
		}
		s.Round++
	default:
		step.Done = true
	}
	return step, nil
}

func (m toy) Fold(state method.State, c method.Contribution) (method.State, error) {
	s := state.(*toyState)
	s.Trace = append(s.Trace, fmt.Sprintf("%s:%s", c.Site, c.Body))
	return s, nil
}

func (m toy) Leave(state method.State, site string) (method.State, error) {
	s := state.(*toyState)
	s.Left = append(s.Left, site)
	return s, nil
}

func (m toy) Result(state method.State) (*method.Result, error) {
	data, err := state.MarshalBinary()
	return &method.Result{Files: []method.File{{Name: "trace", Data: data}}}, err
}

func (m toy) Share(_ method.State, site string) ([]byte, error) { return []byte("for " + site), nil }

// counted is what the toy's tasks release.
var counted = privacy.Request{Protection: privacy.Unprotected,
	Contents: []privacy.Content{{What: "a count", Values: 1}}}

// listing is the toy's list, by which a site answers so many tasks of each kind.
func listing(times int, r privacy.Request) []privacy.Listed {
	return []privacy.Listed{{Kind: "sum", Times: times, Request: r}, {Kind: "step", Times: times, Request: r}}
}

// toySite answers with the task, the number of its rows, how often it has
// answered (its carried state), and noise that differs at every computation:
// so a release computed twice would show.
type toySite struct{ steady bool }

func (t toySite) Run(ctx context.Context, task method.Task, s *privacy.Session) (method.Answer, error) {
	data, err := s.Data()
	if err != nil {
		return method.Answer{}, err
	}
	n := 0
	for _, err := range data.Rows(ctx) {
		if err != nil {
			return method.Answer{}, err
		}
		n++
	}
	times := len(s.State()) + 1
	body := fmt.Sprintf("%s/%d/%d", task.Body, n, times)
	if !t.steady {
		body += fmt.Sprintf("/%x", rand.Uint64())
	}
	return method.Answer{Body: []byte(body), State: make([]byte, times)}, nil
}

func (t toySite) Report(context.Context, []byte, dataset.Source) (*method.Result, error) {
	return nil, errors.New("the toy has no report")
}

// rows is a data set of so many subjects.
type rows = enginetest.ToyRows

var toyStudy = fmt.Sprintf("%x", sha256.Sum256([]byte("toy")))
