package fedmvppca

import (
	"context"
	"math"

	"github.com/fxamacker/cbor/v2"

	"parley/engine/local"
	"parley/method"
	"parley/methods/published/fedmvppca"
	"parley/papers/deal"
	"parley/study"
)

// watched is Fed-mv-PPCA with its global parameters shown after every round. Of a private study
// the model's file has no spreads, because they are those of the noise; that is what Figure 7 (b)
// and Figure 10 draw.
type watched struct {
	fedmvppca.Method
	seen func(*fedmvppca.PackedPrior)
}

// Coordinator implements [method.Method].
func (w watched) Coordinator(p *study.Plan) (method.Coordinator, error) {
	c, err := w.Method.Coordinator(p)
	return watching{c, w.seen}, err
}

type watching struct {
	method.Coordinator
	seen func(*fedmvppca.PackedPrior)
}

// Next implements [method.Coordinator].
func (w watching) Next(s method.State) (method.Step, error) {
	step, err := w.Coordinator.Next(s)
	if _, ended := step.Info[largest[0]]; err != nil || !ended {
		return step, err
	}
	state, err := step.State.MarshalBinary()
	if err != nil {
		return step, err
	}
	var now struct { // as [method.SealState] has it
		State struct{ Model *fedmvppca.PackedPrior }
	}
	if err := cbor.Unmarshal(state, &now); err != nil {
		return step, err
	}
	w.seen(now.State.Model)
	return step, nil
}

// globals runs a study, and returns its global parameters after every round.
func globals(ctx context.Context, c condition, d *division, seed uint64,
	say says) (all []*fedmvppca.PackedPrior, err error) {
	m, privacy := say(c, d)
	p, err := plan(d.sites, m, privacy, seed)
	if err != nil {
		return nil, err
	}
	with := method.Registry{watched{seen: func(now *fedmvppca.PackedPrior) { all = append(all, now) }}}
	_, err = local.Run(ctx, local.Config{Plan: p, Methods: with, Data: deal.BySite(d.sites)})
	return all, err
}

// spreadsOf are the standard deviations between sites of the loadings, the means and the noise
// variance of a view; of the last NaN where the inverse-gamma law has none.
func spreadsOf(m *fedmvppca.PackedPrior, view int) [3]float64 {
	sd := [3]float64{math.Sqrt(m.VarW[view]), math.Sqrt(m.VarMu[view]),
		math.Sqrt(fedmvppca.InverseGammaVariance(m.Alpha[view], m.Beta[view]))}
	if math.IsInf(sd[2], 0) {
		sd[2] = math.NaN()
	}
	return sd
}
