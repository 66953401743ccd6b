package vae

import (
	"errors"
	"fmt"
	"math"

	"parley/internal/wire"
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
	// sum of absolute errors of reconstruction, by view, in parts of the features' ranges
	Error wire.Vector `cbor:"error"`
	Rows  float64     `cbor:"rows"` // subjects with a value
	Code  wire.Vector `cbor:"code"` // mean of their codes
	Cov   wire.Vector `cbor:"cov"`  // and covariance, q × q
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
