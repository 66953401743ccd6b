package statistics

import (
	"parley/internal/wire"
	"parley/methods/factors/moments"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
	"parley/privacy"
)

// OverviewTask asks for the first sum: the plan says all of it.
type OverviewTask struct{}

// MomentsTask asks for the coarse or the fine sum. It is the same at every site.
type MomentsTask struct {
	Lenses []lensMessage `cbor:"lenses"` // of every pattern that a site can have
}

// siteSums is what the coordinator keeps of a site's sums, as far as they have come.
type siteSums struct {
	Overview privacy.Noised `cbor:"overview" json:"overview"`
	Coarse   privacy.Noised `cbor:"coarse" json:"coarse"` // a block per pattern of the site, in the plan's order
	Fine     privacy.Noised `cbor:"fine" json:"fine"`
}

// lensMessage is a lens as it travels and is kept.
type lensMessage struct {
	Views    []int       `cbor:"views" json:"views"`
	Bound    float64     `cbor:"bound" json:"bound"`
	Constant float64     `cbor:"constant" json:"constant"`
	Scale    wire.Vector `cbor:"scale" json:"scale"`
	Centre   wire.Vector `cbor:"centre" json:"centre"`
	Axes     wire.Vector `cbor:"axes" json:"axes,omitempty"`
	Squeeze  wire.Vector `cbor:"squeeze" json:"squeeze,omitempty"`
	Strength wire.Vector `cbor:"strength" json:"strength,omitempty"`
}

func packLenses(all []moments.Whitening) (m []lensMessage) {
	for _, n := range all {
		m = append(m, lensMessage{n.Views, n.Bound, n.Constant, n.Scale, n.Centre, n.Axes, n.Shrinkage, n.Strength})
	}
	return m
}

func unpackLenses(l ppca.Layout, all []lensMessage) (lenses []moments.Whitening, err error) {
	for _, m := range all {
		n := moments.Whitening{Views: m.Views, Bound: m.Bound, Constant: m.Constant,
			Scale: m.Scale, Centre: m.Centre, Axes: m.Axes, Shrinkage: m.Squeeze, Strength: m.Strength}
		if err := n.Check(l); err != nil {
			return nil, err
		}
		lenses = append(lenses, n)
	}
	return lenses, nil
}

// CheckTask asks how well the finished model predicts views at a site, by a
// share of the total that the plan sets aside.
type CheckTask struct {
	Model options.Params `cbor:"model"`
	Doubt wire.Vector    `cbor:"doubt"` // privacy noise adds to the variance of each feature's predictions
}

// sumAnswer is a noised sum as the coordinator keeps it until all have come, or of diagnostics.
type sumAnswer struct {
	Sum privacy.Noised `cbor:"sum" json:"sum"`
}
