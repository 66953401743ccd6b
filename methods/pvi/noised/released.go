package noised

import (
	"math"

	"parley/internal/wire"
)

// released is a noised sum of one site, or of several.
type released struct {
	Values   wire.Vector `cbor:"values"`
	Variance float64     `cbor:"variance"` // of its noise
}

func (r *released) add(o *released) {
	if r.Values == nil {
		r.Values = make(wire.Vector, len(o.Values))
	}
	for i, v := range o.Values {
		r.Values[i] += v
	}
	r.Variance += o.Variance
}

func (r *released) sd() float64 { return math.Sqrt(r.Variance) }
