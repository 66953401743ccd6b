package statistics

import (
	"fmt"

	"parley/internal/wire"
	"parley/methods/factors/moments"
	"parley/methods/factors/options"
	"parley/privacy"
)

// Task asks for the release: the plan says all of it.
type Task struct{}

// Answer is what a site sends beside its sums. The lenses follow from
// the sums, but are sent, so that processors that round otherwise see the same
// ones.
type Answer struct {
	Lenses []lensMessage `cbor:"lenses"` // those of the coarse sum, then as many of the fine one
}

// siteSums is what the coordinator keeps of a site's release.
type siteSums struct {
	Overview privacy.Noised `cbor:"overview" json:"overview"`
	Coarse   privacy.Noised `cbor:"coarse" json:"coarse"` // blocks of the released patterns alone, in the order of the lenses
	Fine     privacy.Noised `cbor:"fine" json:"fine"`
	Lenses   []lensMessage  `cbor:"lenses" json:"lenses"`
}

// lensMessage is a Lens as it travels and is kept.
type lensMessage struct {
	Views    []int       `cbor:"views" json:"views"`
	Numbers  wire.Vector `cbor:"numbers" json:"numbers"` // count, its variance, bound, constant
	Scale    wire.Vector `cbor:"scale" json:"scale"`
	Centre   wire.Vector `cbor:"centre" json:"centre"`
	Axes     wire.Vector `cbor:"axes" json:"axes"`
	Squeeze  wire.Vector `cbor:"squeeze" json:"squeeze"`
	Strength wire.Vector `cbor:"strength" json:"strength"`
}

func packLens(n *moments.Whitening) lensMessage {
	return lensMessage{n.Views, wire.Vector{n.Count, n.CountVar, n.Bound, n.Constant}, n.Scale, n.Centre, n.Axes, n.Shrinkage, n.Strength}
}

func (m *lensMessage) lens() (moments.Whitening, error) {
	if len(m.Numbers) != 4 {
		return moments.Whitening{}, fmt.Errorf("a lens has %d numbers of its own, not 4", len(m.Numbers))
	}
	return moments.Whitening{Views: m.Views, Count: m.Numbers[0], CountVar: m.Numbers[1], Bound: m.Numbers[2], Constant: m.Numbers[3],
		Scale: m.Scale, Centre: m.Centre, Axes: m.Axes, Shrinkage: m.Squeeze, Strength: m.Strength}, nil
}

// CheckTask asks how well the finished model predicts views at a site, by a
// share of the total that the plan sets aside.
type CheckTask struct {
	Model options.Params `cbor:"model"`
	Doubt wire.Vector    `cbor:"doubt"` // privacy noise adds to the variance of each feature's predictions
}

// checkAnswer is the noised sum as the coordinator keeps it.
type checkAnswer struct {
	Sum privacy.Noised `cbor:"sum" json:"sum"`
}

func (a *checkAnswer) check(p *declared) error { return a.Sum.Check(*p.check) }
