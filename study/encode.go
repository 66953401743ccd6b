package study

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/fxamacker/cbor/v2"

	"parley/internal/wire"
	"parley/problem"
)

// Digest names a plan: the SHA-256 of its canonical encoding.
type Digest [sha256.Size]byte

// String returns all 64 hexadecimal digits.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// Short returns the first twelve digits, for people to compare.
func (d Digest) Short() string { return d.String()[:12] }

// Digest returns the digest of the plan's canonical encoding; of [Plan.Cohort], that of the plan that it is of.
func (p *Plan) Digest() (Digest, error) {
	b, err := p.Whole().Encode()
	return sha256.Sum256(b), err
}

// Encode returns the plan's canonical encoding: CBOR in core deterministic
// encoding (RFC 8949, section 4.2.1) of the plan without Local, every field
// under its name in YAML, the method's options under method.options. Empty
// optional fields are left out.
func (p *Plan) Encode() ([]byte, error) {
	b, err := wire.Marshal(p)
	if err == nil && len(b) > MaxBytes {
		err = fmt.Errorf("%d bytes are above the limit of %d", len(b), MaxBytes)
	}
	if err != nil {
		return nil, fmt.Errorf("encoding the plan: %w", err)
	}
	return b, nil
}

// Decode reads the canonical encoding of a plan and checks it as [Parse] does.
// It refuses whatever Encode would not have written: unknown or repeated
// fields, another order, options left to their defaults, excess depth or size.
// Thus the digest of a decoded plan is the SHA-256 of the bytes.
func Decode(b []byte, methods Methods) (*Plan, error) {
	if len(b) > MaxBytes {
		return nil, fmt.Errorf("decoding the plan: %d bytes are above the limit of %d", len(b), MaxBytes)
	}
	p := new(Plan)
	if err := wire.Unmarshal(b, p); err != nil {
		return nil, fmt.Errorf("decoding the plan: %w", err)
	}
	// Until here, options are bytes, since only the name says what they are.
	encoded, _ := p.Method.Options.(cbor.RawMessage)
	p.Method.Options = nil
	if options, ok := newOptions(methods, p.Method.Name); ok {
		if err := wire.Unmarshal(encoded, options); err != nil {
			return nil, fmt.Errorf("decoding the options of method %s: %w", p.Method.Name, err)
		}
		p.Method.Options = options
	}
	var problems problem.List
	check(p, methods, func(string) bool { return false }, func(path, what, hint string) {
		problems.Add(problem.Problem{Where: path, What: what, Hint: hint})
	})
	if err := problems.Err(); err != nil {
		return nil, fmt.Errorf("checking the plan: %w", err)
	}
	again, err := p.Encode()
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(again, b) {
		return nil, errors.New("decoding the plan: not in canonical encoding, or with options left out")
	}
	return p, nil
}

// MarshalCBOR encodes the name and the options.
func (m Method) MarshalCBOR() ([]byte, error) {
	return wire.Marshal(struct {
		Name    string `json:"name"`
		Options any    `json:"options"`
	}{m.Name, m.Options})
}

// UnmarshalCBOR decodes the name and leaves the options encoded.
func (m *Method) UnmarshalCBOR(b []byte) error {
	var e struct {
		Name    string          `json:"name"`
		Options cbor.RawMessage `json:"options"`
	}
	err := wire.Unmarshal(b, &e)
	m.Name, m.Options = e.Name, e.Options
	return err
}
