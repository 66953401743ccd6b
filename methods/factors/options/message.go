package options

import (
	"parley/methods/factors/ppca"
)

// Scale is a [ppca.Scale] as it travels and is kept.
type Scale struct {
	ppca.Scale
	// Effects of covariates are taken out of the values before; none where the plan adjusts
	// for nothing.
	Effects *Effects `cbor:"effects,omitempty"`
}
