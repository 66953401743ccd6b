package privacy

import (
	"crypto/sha256"
	"fmt"

	"parley/internal/wire"
)

// Release is a contribution that may leave the site. Only the gate makes one.
type Release struct {
	sealed []byte
}

// Bytes are what is sent; they must not be changed.
func (r Release) Bytes() []byte { return r.sealed }

// envelope is a release as it travels; its receiver reads it through [Open].
type envelope struct {
	Version int     `cbor:"version"`
	Study   string  `cbor:"study"`
	Site    string  `cbor:"site"`
	Round   int     `cbor:"round"`
	Kind    string  `cbor:"kind"`
	Task    []byte  `cbor:"task"`
	Request Request `cbor:"request"`
	Seeded  bool    `cbor:"seeded,omitempty"`
	Body    []byte  `cbor:"body"`
}

// envelopeVersion 2 added sums, the minimum per pattern, and seeded noise.
const envelopeVersion = 2

// Opened is a release as its receiver sees it.
type Opened struct {
	Ask
	Request Request
	Seeded  bool   // its noise came from a seed: a simulation that protects nobody
	Body    []byte // the method's own encoding
}

// Open decodes a release's bytes. They come from another organisation:
// anything malformed is an error, and nothing in them is believed further.
func Open(sealed []byte) (Opened, error) {
	var e envelope
	if err := wire.Unmarshal(sealed, &e); err != nil {
		return Opened{}, fmt.Errorf("decoding a release: %w", err)
	}
	if e.Version < 1 || e.Version > envelopeVersion {
		return Opened{}, fmt.Errorf("decoding a release: its version is %d, this program knows versions up to %d", e.Version, envelopeVersion)
	}
	if err := e.Request.check(); err != nil {
		return Opened{}, fmt.Errorf("decoding a release: its request: %w", err)
	}
	o := Opened{Ask: Ask{Study: e.Study, Site: e.Site, Round: e.Round, Kind: e.Kind}, Request: e.Request, Seeded: e.Seeded, Body: e.Body}
	if len(e.Task) != sha256.Size {
		return Opened{}, fmt.Errorf("decoding a release: its task digest has %d bytes, not %d", len(e.Task), sha256.Size)
	}
	copy(o.Task[:], e.Task)
	return o, nil
}
