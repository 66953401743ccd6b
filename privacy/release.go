package privacy

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"

	"parley/internal/wire"
	"parley/privacy/account"
)

// Release is a contribution that may leave the site. Only the gate makes one.
type Release struct {
	sealed []byte
}

// Bytes are what is sent, in a copy: nobody but the gate changes a release.
func (r Release) Bytes() []byte { return bytes.Clone(r.sealed) }

// envelope is a release as it travels; its receiver reads it through [Open].
type envelope struct {
	frame
	Request Request     `cbor:"request"`
	Sums    []sentSum   `cbor:"sums,omitempty"`
	Masked  *sentMasked `cbor:"masked,omitempty"`
}

// received is an envelope of which nothing has been decoded yet that takes
// more room in memory than as bytes.
type received struct {
	frame
	Request wire.Raw `cbor:"request"`
	Sums    wire.Raw `cbor:"sums,omitempty"`
	Masked  wire.Raw `cbor:"masked,omitempty"`
}

type frame struct {
	Version int    `cbor:"version"`
	Study   string `cbor:"study"`
	Site    string `cbor:"site"`
	Round   int    `cbor:"round"`
	Kind    string `cbor:"kind"`
	Task    []byte `cbor:"task"`
	Seeded  bool   `cbor:"seeded,omitempty"`
	Body    []byte `cbor:"body"`
}

// sentSum is a noised sum as the session wrote it: integers in steps that
// follow from what was declared.
type sentSum struct {
	Sum    int       `cbor:"sum"` // among those of the request
	Blocks [][]int64 `cbor:"blocks"`
}

// envelopeVersion 2 added sums, the minimum per pattern, and seeded noise;
// version 3 has the noised sums outside the body, or masks.
const envelopeVersion = 3

// Opened is a release as its receiver sees it.
type Opened struct {
	Ask
	Request Request
	Seeded  bool                 // its noise came from a seed: a simulation that protects nobody
	Sums    map[string][]*Noised // by name, in the order in which they were made
	Masked  *Masked              // in place of Sums and Body, if the request is a masked one
	Body    []byte               // the method's own encoding
}

// Open decodes a release's bytes, which answer a task for which declared is
// listed. They come from another organisation: anything malformed, longer than
// what was declared takes, or made from another request is an error, and
// nothing in them is believed further. Decoding takes no more memory than a few
// times what was declared. Noise may differ from what is declared by a
// thousandth: each end calibrates it with its own processor's arithmetic, and
// what counts is what the site says that it has used.
func Open(sealed []byte, declared Request) (Opened, error) {
	o, version, err := open(sealed, &declared)
	if err == nil && version != envelopeVersion {
		err = fmt.Errorf("decoding a release: its version is %d, this program wants version %d", version,
			envelopeVersion)
	}
	if err != nil {
		return Opened{}, err
	}
	return o, nil
}

// open decodes a release of any version; of any request if declared is nil.
func open(sealed []byte, declared *Request) (o Opened, version int, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("decoding a release: %w", err)
		}
	}()
	if declared != nil {
		if most := declared.MaxBytes(); len(sealed) > most {
			return o, 0, fmt.Errorf("it has %d bytes, and what was declared takes at most %d", len(sealed), most)
		}
	}
	var e received
	if err := wire.Unmarshal(sealed, &e); err != nil {
		return o, 0, err
	}
	if e.Version < 1 || e.Version > envelopeVersion {
		return o, 0, fmt.Errorf("its version is %d, this program knows versions up to %d", e.Version, envelopeVersion)
	}
	other := errors.New("it was made from another request than was declared")
	var own []byte // the encoding of what was declared
	if declared != nil {
		// Noise of a few more digits may take 9 bytes where this one's takes 3.
		if own, err = wire.Marshal(declared); err != nil || len(e.Request) > len(own)+6*len(declared.Sums) {
			return o, 0, other
		}
	}
	var request Request
	if err := wire.Unmarshal(e.Request, &request); err != nil {
		return o, 0, fmt.Errorf("its request: %w", err)
	}
	if err := request.Check(); err != nil {
		return o, 0, fmt.Errorf("its request: %w", err)
	}
	if declared != nil && !bytes.Equal(e.Request, own) && !request.agrees(*declared) {
		return o, 0, other
	}
	if len(e.Task) != sha256.Size {
		return o, 0, fmt.Errorf("its task digest has %d bytes, not %d", len(e.Task), sha256.Size)
	}
	o = Opened{Ask: Ask{Study: e.Study, Site: e.Site, Round: e.Round, Kind: e.Kind}, Request: request, Seeded: e.Seeded,
		Body: e.Body}
	copy(o.Task[:], e.Task)
	if request.Masked {
		if e.Sums != nil || len(e.Body) > 0 {
			return o, 0, errors.New("a masked release has numbers beside what is masked")
		}
		o.Masked, err = request.masked(o.Ask, e.Masked)
		return o, e.Version, err
	}
	if e.Masked != nil {
		return o, 0, errors.New("it is masked, and that was not declared")
	}
	o.Sums, err = request.noised(e.Sums)
	return o, e.Version, err
}

// noised decodes the sums of a release that was made from the request. Each
// array is counted before it is decoded.
func (r Request) noised(sums wire.Raw) (map[string][]*Noised, error) {
	all := map[string][]*Noised{}
	if sums == nil {
		return all, nil
	}
	most := 0
	for _, s := range r.Sums {
		if !s.Kept {
			most = account.AddCounts(most, s.Mechanism.Count)
		}
	}
	sent, err := wire.Elements(sums, 0, most)
	if err != nil {
		return nil, fmt.Errorf("its sums: %w", err)
	}
	for _, raw := range sent {
		var x struct {
			Sum    int      `cbor:"sum"`
			Blocks wire.Raw `cbor:"blocks"`
		}
		if err := wire.Unmarshal(raw, &x); err != nil {
			return nil, fmt.Errorf("its sums: %w", err)
		}
		if x.Sum < 0 || x.Sum >= len(r.Sums) {
			return nil, fmt.Errorf("it has a sum %d, and %d were declared", x.Sum, len(r.Sums))
		}
		s := r.Sums[x.Sum]
		n, err := s.noised(x.Blocks)
		if err != nil {
			return nil, err
		}
		if all[s.Name] = append(all[s.Name], n); s.Kept || len(all[s.Name]) > s.Mechanism.Count {
			return nil, fmt.Errorf("sum %q was sent more often than declared", s.Name)
		}
	}
	return all, nil
}

// noised decodes the blocks of one noised sum.
func (s Sum) noised(raw wire.Raw) (*Noised, error) {
	grid, err := s.grid()
	if err != nil {
		return nil, err
	}
	blocks, err := wire.Elements(raw, len(s.Blocks), len(s.Blocks))
	if err != nil {
		return nil, fmt.Errorf("sum %q: %w", s.Name, err)
	}
	n := &Noised{step: grid.Step, sd: grid.SD()}
	for i, b := range blocks {
		var entries []int64
		if err = wire.Count(b, s.entries(i), s.entries(i)); err == nil {
			err = wire.Unmarshal(b, &entries)
		}
		if err != nil {
			return nil, fmt.Errorf("sum %q: block %d: %w", s.Name, i, err)
		}
		n.blocks = append(n.blocks, entries)
	}
	return n, n.check(s)
}

// agrees says whether two requests are the same but for what rounding does to
// calibrated noise.
func (r Request) agrees(declared Request) bool {
	if len(r.Sums) != len(declared.Sums) {
		return false
	}
	near := r
	near.Sums = nil
	for i, s := range r.Sums {
		if want := declared.Sums[i].Mechanism.Noise; math.Abs(s.Mechanism.Noise-want) <= want/1000 {
			s.Mechanism.Noise = want
		}
		near.Sums = append(near.Sums, s)
	}
	a, errA := wire.Marshal(near)
	b, errB := wire.Marshal(declared)
	return errA == nil && errB == nil && string(a) == string(b)
}

// MaxBytes is what a release of the request takes at most: 9 bytes an integer,
// and for a number of the body 9 bytes and as many for what names it.
func (r Request) MaxBytes() int {
	const frame = 1 << 14
	n := frame
	if r.Masked || r.Opens > 0 {
		words := r.Opens
		if r.Masked {
			words = r.Shape().Words()
		}
		n = account.AddCounts(n, account.MultiplyCounts(8, words))
		if own, err := wire.Marshal(r); err == nil {
			n = account.AddCounts(n, len(own))
		}
		return min(n, wire.MaxBytes)
	}
	for _, c := range r.Contents {
		n = account.AddCounts(n, account.MultiplyCounts(18, max(c.Values, 0)))
	}
	for _, s := range r.Sums {
		if !s.Kept {
			n = account.AddCounts(n, account.MultiplyCounts(9, account.MultiplyCounts(s.Entries()+len(s.Blocks),
				s.Mechanism.Count)))
		}
	}
	if r.Sums != nil {
		if own, err := wire.Marshal(r); err == nil {
			n = account.AddCounts(n, len(own))
		}
	}
	return min(n, wire.MaxBytes)
}
