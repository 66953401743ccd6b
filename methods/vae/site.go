package vae

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"parley/dataset"
	"parley/figure"
	"parley/internal/wire"
	"parley/method"
	"parley/method/rounds"
	"parley/privacy"
)

// given is a model as it travels to a site: with the round in a task to train, and 0 else.
type given struct {
	Round   int         `cbor:"round"`
	Scale   scale       `cbor:"scale"`
	Weights wire.Vector `cbor:"weights"`
}

func (g *given) check(s *setup, rounds int) error {
	switch {
	case g.Round < min(rounds, 1) || g.Round > rounds:
		return errors.New("a round that the plan does not have")
	case len(g.Weights) != len(s.net.places):
		return fmt.Errorf("%d weights, and the plan's model has %d", len(g.Weights), len(s.net.places))
	case !bounded(g.Weights, 2*largestWeight): // a mean of what was bounded, rounded
		return errors.New("a weight is no number, or too large")
	}
	return g.Scale.check(s.net)
}

// trained is what a site says at the end of a round.
type trained struct {
	Weights wire.Vector `cbor:"weights"`
	Loss    float64     `cbor:"loss"` // mean negative bound of the last epoch, in nats a subject
}

func (t *trained) check(n *network) error {
	if len(t.Weights) != len(n.places) {
		return fmt.Errorf("%d weights of %d", len(t.Weights), len(n.places))
	}
	if !bounded(t.Weights, largestWeight) || !(math.Abs(t.Loss) <= largestLoss) {
		return errors.New("a weight or the loss is no number, or too large")
	}
	return nil
}

// assessed is how a model describes the subjects of a site.
type assessed struct {
	Values wire.Vector `cbor:"values"` // number of values, by view
	Error  wire.Vector `cbor:"error"`  // sum of absolute errors of reconstruction, by view, in parts of the features' ranges
	Rows   float64     `cbor:"rows"`   // subjects with a value
	Code   wire.Vector `cbor:"code"`   // mean of their codes
	Cov    wire.Vector `cbor:"cov"`    // and covariance, q × q
}

func (a *assessed) check(s *setup) error {
	k, q := len(s.dims), s.Latent
	if len(a.Values) != k || len(a.Error) != k || len(a.Code) != q || len(a.Cov) != q*q {
		return errors.New("other numbers of views or codes than the plan has")
	}
	for _, v := range [][]float64{a.Values, a.Error, a.Code, a.Cov, {a.Rows}} {
		if !bounded(v, largestLoss) {
			return errors.New("a number is none, or too large")
		}
	}
	for i := range k {
		if a.Values[i] < 0 || a.Error[i] < 0 || a.Rows < 0 {
			return errors.New("a number is negative")
		}
	}
	for i := range q {
		if a.Cov[i*q+i] < 0 {
			return errors.New("a variance is negative")
		}
	}
	return nil
}

// stream returns the draws of one place and round. They are no noise for privacy.
func (s *setup) stream(site string, round int) *rand.Rand {
	h := sha256.Sum256(fmt.Appendf(nil, "vae/%s/%d", site, round))
	return rand.New(rand.NewPCG(s.plan.Seed, binary.LittleEndian.Uint64(h[:])))
}

type site struct {
	*setup
	name string
}

// Run implements [method.Site].
func (h site) Run(ctx context.Context, t method.Task, session *privacy.Session) (method.Answer, error) {
	data, err := session.Data()
	if err != nil {
		return method.Answer{}, err
	}
	if t.Kind == taskScale {
		e, err := h.net.extentOf(ctx, h.dims, data)
		if err != nil {
			return method.Answer{}, err
		}
		return rounds.Answer(t, e, nil)
	}
	var g given
	if err := rounds.Open(t, &g); err != nil {
		return method.Answer{}, err
	}
	last := 0
	if t.Kind == taskTrain {
		last = h.Rounds
	}
	if err := g.check(h.setup, last); err != nil {
		return method.Answer{}, err
	}
	subjects, err := g.Scale.subjects(ctx, h.dims, data)
	if err != nil {
		return method.Answer{}, err
	}
	switch t.Kind {
	case taskTrain:
		w, loss, err := h.net.fit(ctx, h.options, g.Weights, subjects, h.Epochs, h.stream(h.name, g.Round))
		if err != nil {
			return method.Answer{}, err
		}
		return rounds.Answer(t, trained{w, loss}, nil)
	case taskAssess:
		a, _ := h.assess(&g, subjects)
		return rounds.Answer(t, a, nil)
	}
	return method.Answer{}, fmt.Errorf("a task %q, which vae does not have", t.Kind)
}

// assess describes subjects by the model, and returns the codes of those with a value.
func (s *setup) assess(g *given, subjects []subject) (*assessed, [][]float64) {
	k, q := len(s.dims), s.Latent
	a := &assessed{Values: make(wire.Vector, k), Error: make(wire.Vector, k), Code: make(wire.Vector, q), Cov: make(wire.Vector, q*q)}
	m := s.net.inferrer(g.Weights)
	var codes [][]float64
	for i := range subjects {
		x, seen, j, any := m.infer(&subjects[i]), subjects[i].seen, 0, false
		for v, d := range s.dims {
			for range d {
				if seen[j] {
					any = true
					a.Values[v]++
					a.Error[v] += math.Abs(x.mean[j] - subjects[i].x[j])
				}
				j++
			}
		}
		if any {
			codes = append(codes, x.code)
		}
	}
	a.Rows = float64(len(codes))
	n := max(a.Rows, 1)
	for _, z := range codes {
		for i, x := range z {
			a.Code[i] += x / n
		}
	}
	for _, z := range codes {
		for i := range q {
			for j := range q {
				a.Cov[i*q+j] += (z[i] - a.Code[i]) * (z[j] - a.Code[j]) / n
			}
		}
	}
	return a, codes
}

// Report implements [method.Site]: the codes of the site's own subjects.
func (h site) Report(ctx context.Context, shared []byte, data dataset.Source) (*method.Result, error) {
	var g given
	if err := wire.Unmarshal(shared, &g); err != nil {
		return nil, err
	}
	if err := g.check(h.setup, 0); err != nil {
		return nil, err
	}
	subjects, err := g.Scale.subjects(ctx, h.dims, data)
	if err != nil {
		return nil, err
	}
	_, codes := h.assess(&g, subjects)
	if h.Latent < 2 || len(codes) == 0 {
		return &method.Result{}, nil
	}
	group := figure.Group{Name: h.name}
	for _, z := range codes {
		group.X, group.Y = append(group.X, z[0]), append(group.Y, z[1])
	}
	return &method.Result{Sections: []figure.Section{{ID: "latent-space", Title: "Latent space", Lead: "Each point is one of your subjects. This picture stays here.",
		Items: []figure.Item{{Figure: latentSpace([]figure.Group{group}, "The first two numbers of each subject's code.")}}}}}, nil
}
