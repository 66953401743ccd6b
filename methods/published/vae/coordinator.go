package vae

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	"parley/figure"
	"parley/internal/wire"
	"parley/method"
)

// state is what the coordinator carries.
type state struct {
	Phase   string              `cbor:"phase"`
	Left    []string            `cbor:"left"`
	Round   int                 `cbor:"round"` // rounds that were asked for
	Extents map[string]*extent  `cbor:"extents"`
	Scale   scale               `cbor:"scale"`
	Weights wire.Vector         `cbor:"weights"`
	Trained map[string]*trained `cbor:"trained"` // answers of this round
	// by round: of all sites together, then of each site of the plan that answered
	Losses  []wire.Vector        `cbor:"losses"`
	Answers []wire.Vector        `cbor:"answers"` // by round: 1 for each site of the plan that answered, else 0
	Fit     map[string]*assessed `cbor:"fit"`
}

// MarshalBinary implements [method.State].
func (s *state) MarshalBinary() ([]byte, error) { return method.SealState(s) }

type coordinator struct{ *setup }

func empty() *state {
	return &state{Extents: map[string]*extent{}, Trained: map[string]*trained{}, Fit: map[string]*assessed{}}
}

// Init implements [method.Coordinator].
func (coordinator) Init() (method.State, error) { return empty(), nil }

// Restore implements [method.Coordinator].
func (coordinator) Restore(data []byte) (method.State, error) {
	s := empty()
	return s, method.OpenState(data, s)
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

// pictures is the result but for its files.
func (c coordinator) pictures(s *state) *method.Result {
	rounds := len(s.Losses)
	last := s.Losses[rounds-1][0]
	loss := figure.Lines{X: figure.Axis{Label: "round", Count: true}, Y: figure.Axis{Label: "loss (nats a subject)"}}
	for i := range len(c.plan.Sites) + 1 {
		line := figure.Line{Name: "all sites"}
		if i > 0 {
			line.Name = c.plan.Sites[i-1]
		}
		for r, losses := range s.Losses {
			if i == 0 || s.Answers[r][i-1] == 1 {
				line.X, line.Y = append(line.X, float64(r+1)), append(line.Y, losses[i])
			}
		}
		if len(line.X) > 0 {
			loss.Series = append(loss.Series, line)
		}
	}

	heat := figure.Heatmap{Legend: "mean absolute error (parts of the range)", Format: figure.Score}
	for _, v := range c.plan.Views {
		heat.Columns = append(heat.Columns, v.Name)
	}
	var facet figure.Facet
	var groups []figure.Group
	sum, n, q := 0.0, 0.0, c.Latent
	for _, name := range c.plan.Sites {
		a := s.Fit[name]
		if a == nil {
			continue
		}
		row := figure.Numbers{}
		for k := range a.Values {
			sum, n = sum+a.Error[k], n+a.Values[k]
			row = append(row, a.Error[k]/a.Values[k]) // NaN where the site lacks the view
		}
		heat.Rows, facet.Values = append(heat.Rows, name), append(facet.Values, row)
		if q >= 2 && a.Rows > 1 {
			groups = append(groups, figure.Group{Name: name, Mean: figure.Numbers{a.Code[0], a.Code[1]},
				Cov: figure.Numbers{a.Cov[0], a.Cov[1], a.Cov[q+1]}})
		}
	}
	heat.Facets = []figure.Facet{facet}

	r := &method.Result{Metrics: map[string]float64{"loss_nats": last, "rounds": float64(rounds)}}
	r.Found = fmt.Sprintf("The model describes each subject by a code of %d numbers, and decodes from it what the "+
		"subject's measurements should be.", q)
	r.Sure = "No site said how far decoded values are from its own, so nothing on this page measures how good the " +
		"model is."
	r.Headline = []figure.Fact{{Name: "model", Value: c.Model}, {Name: "code", Value: fmt.Sprintf("%d numbers", q)},
		{Name: "rounds", Value: fmt.Sprint(rounds)}}
	section := func(id, title, lead string, f *figure.Figure) {
		r.Sections = append(r.Sections, figure.Section{ID: id, Title: title, Lead: lead,
			Items: []figure.Item{{Figure: f}}})
	}
	section("training", "Training", "The loss is the negative evidence lower bound, with one draw of each code: it "+
		"falls as the model improves, and wavers by those draws.",
		&figure.Figure{ID: "loss", Title: "Loss by round", Caption: "Over the last epoch of each round at each site, " +
			"before weights are averaged.", Alt: fmt.Sprintf("Lines of the loss over %d rounds, which end at %s.",
			rounds, figure.General.Text(last)), Chart: loss})
	if n > 0 {
		mae := sum / n
		r.Metrics["mae"] = mae
		r.Sure = fmt.Sprintf("Decoded values are off by %s of a feature's range in the mean. The subjects took part "+
			"in the fit; others are described a little worse. There are no intervals.", figure.Score.Text(mae))
		r.Headline = append(r.Headline, figure.Fact{Name: "mean absolute error, in parts of the ranges" + method.OfFit,
			Value: figure.Score.Text(mae)})
		section("reconstruction", "Reconstruction", "How far the decoded means are from what was observed, in parts "+
			"of each feature's range over all sites. These subjects had a part in the fit.",
			&figure.Figure{ID: "reconstruction", Title: "Error of reconstruction",
				Caption: "By site and view; a view that a site lacks has none.",
				Alt:     fmt.Sprintf("A table of errors by site and view, %s in the mean.", figure.Score.Text(mae)),
				Chart:   heat})
	}
	if len(groups) > 0 {
		section("latent-space", "Latent space", "Where the sites' subjects lie by the first two numbers of their "+
			"codes.", latentSpace(groups, "Ellipses hold half and nine tenths of a normal law with the mean and "+
			"covariance of a site's codes."))
	}
	var lacking []string
	for j, low := range s.Scale.Low {
		if low == s.Scale.High[j] {
			lacking = append(lacking, c.feature(j))
		}
	}
	if len(lacking) > 0 {
		r.Sections = append(figure.Verdicts([]figure.Note{
			{Title: fmt.Sprintf("%d of the features have one value or none at all sites, so that nothing is learned "+
				"of them: %s", len(lacking), strings.Join(lacking[:min(len(lacking), 8)], ", ")),
				Text: "What the model says of them is that value. See whether the sites' files have the right " +
					"columns."}}),
			r.Sections...)
	}
	return r
}

// feature names a feature by its place.
func (c coordinator) feature(j int) string {
	for k, d := range c.dims {
		if j < d {
			return c.plan.Views[k].Features[j].Name
		}
		j -= d
	}
	return ""
}

func latentSpace(groups []figure.Group, caption string) *figure.Figure {
	return &figure.Figure{ID: "latent-space", Title: "Latent space", Caption: caption,
		Alt:   fmt.Sprintf("Codes of %d sites in a plane.", len(groups)),
		Chart: figure.Scatter{X: figure.Axis{Label: "code 1"}, Y: figure.Axis{Label: "code 2"}, Groups: groups}}
}
