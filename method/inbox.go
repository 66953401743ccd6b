package method

import (
	"fmt"

	"parley/internal/wire"
)

// Inbox is what sites have answered, by name, until all have.
type Inbox map[string]answered

// answered is a site's answer as it is kept: decoded, or in its encoding since the state was restored.
type answered struct {
	value any
	kept  wire.Raw
}

// MarshalCBOR encodes the answer.
func (a answered) MarshalCBOR() ([]byte, error) {
	if a.value == nil {
		return a.kept, nil
	}
	return wire.Marshal(a.value)
}

// UnmarshalCBOR keeps the encoding until it is known of what.
func (a *answered) UnmarshalCBOR(data []byte) error { return a.kept.UnmarshalCBOR(data) }

// Received decodes and checks an answer, and returns a pointer to it.
func Received[A any](in Contribution, check func(*A) error) (any, error) {
	x := new(A)
	if err := DecodeAnswer(in, x); err != nil {
		return nil, err
	}
	return x, check(x)
}

// Keep puts in an answer of a site, a pointer that nobody changes any more.
func (b Inbox) Keep(site string, x any) { b[site] = answered{value: x} }

// Answers are those of some sites, in their order.
func Answers[A any](b Inbox, sites []string) (all []*A, err error) {
	for _, site := range sites {
		a, ok := b[site]
		if !ok {
			return nil, fmt.Errorf("site %s has not answered", site)
		}
		x, ok := a.value.(*A)
		if !ok {
			x = new(A)
			if err := wire.Unmarshal(a.kept, x); err != nil {
				return nil, fmt.Errorf("site %s: decoding what it said: %w", site, err)
			}
		}
		all = append(all, x)
	}
	return all, nil
}
