package stages

import (
	"parley/internal/wire"
	"parley/method"
	"parley/methods/graffl/suffiae"
)

// state is what [coordinator] carries: the variant's state, and what the phases around it
// have found.
type state struct {
	Phase   string                   `cbor:"phase"`
	Asked   bool                     `cbor:"asked"` // the phase's tasks are out
	Left    []string                 `cbor:"left"`
	Encoder *suffiae.Encoder         `cbor:"encoder"` // that sites share, trained by one of them
	Linear  map[string]*linearAnswer `cbor:"linear"`
	Ranks   wire.Vector              `cbor:"ranks"` // of calibration, replicate after replicate
	Worth   map[string]*worthAnswer  `cbor:"worth"`
	Variant []byte                   `cbor:"variant"` // inner, encoded

	inner method.State
}

// MarshalBinary implements [method.State].
func (s *state) MarshalBinary() ([]byte, error) {
	inner, err := s.inner.MarshalBinary()
	if err != nil {
		return nil, err
	}
	out := *s
	out.Variant = inner
	return wire.Marshal(&out)
}
