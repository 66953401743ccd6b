package halves

import (
	"slices"

	"parley/internal/wire"
	"parley/methods/regression/options"
	"parley/methods/regression/predict"
)

// State is what the coordinator carries, whichever its variant. Where the posterior is the
// prior times the factors, it is nowhere in it, so that no change can be in q and not in a
// factor.
type State struct {
	Phase string `cbor:"phase"`
	Turn  int    `cbor:"turn"`  // sequential: place in the plan's sites of the next to be asked
	Round int    `cbor:"round"` // sequential, synchronous: complete rounds
	Asked int    `cbor:"asked"` // updates asked for, of all sites
	// Of all sites: updates folded, the divergence that the last one made, and how
	// many weights a factor was projected in, over all updates.
	Folded    int                    `cbor:"folded"`
	LastKL    float64                `cbor:"last_kl"`
	Projected int                    `cbor:"projected"`
	Left      []string               `cbor:"left"`
	Scale     *options.Scale         `cbor:"scale"`
	Sites     map[string]*siteRecord `cbor:"sites"`
	Trace     []tracePoint           `cbor:"trace"`
	Stride    int                    `cbor:"stride"` // of the trace; 0 is 1
	Own       any                    `cbor:"-"`      // what [Variant.Record] made
	Kept      wire.Raw               `cbor:"own"`    // its encoding, in that of the state
}

// siteRecord is what the coordinator knows of one site.
type siteRecord struct {
	Factor  options.Gaussian     `cbor:"factor"`
	From    options.Gaussian     `cbor:"from"`  // q as the site was sent it with the update that it works on
	Asked   int                  `cbor:"asked"` // updates asked for
	Folded  int                  `cbor:"folded"`
	Moved   float64              `cbor:"moved"`  // by its last update, before damping: see moved
	Before  float64              `cbor:"before"` // the same of the update before that
	Moments *options.ScaleAnswer `cbor:"moments"`
	Report  *predict.Assessment  `cbor:"report"`
}

// tracePoint is what one update did.
type tracePoint struct {
	Update int     `cbor:"update"` // the study's count, from 1
	KL     float64 `cbor:"kl"`     // of the new q from the old, in nats
}

// maxTrace bounds what a checkpoint holds of a long study.
const maxTrace = 1000

// follow keeps a point of the trace; of a long study only every second, fourth, …
func (s *State) follow(kl float64) {
	s.Folded++
	s.LastKL = kl
	stride := max(s.Stride, 1)
	if s.Folded%stride != 0 {
		return
	}
	s.Trace = append(s.Trace, tracePoint{s.Folded, kl})
	if len(s.Trace) > maxTrace {
		s.Stride = 2 * stride
		s.Trace = slices.DeleteFunc(s.Trace, func(p tracePoint) bool { return p.Update%s.Stride != 0 })
	}
}

// MarshalBinary implements [method.State].
func (s *State) MarshalBinary() (_ []byte, err error) {
	kept := *s
	if kept.Kept, err = wire.Marshal(s.Own); err != nil {
		return nil, err
	}
	return wire.Marshal(&kept)
}

// waits says whether an update of the site is on its way.
func (s *State) waits(site string) bool { return s.Sites[site].Asked > s.Sites[site].Folded }
