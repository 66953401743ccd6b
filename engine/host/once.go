package host

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"parley/dataset"
	"parley/privacy"
)

// Once releases one noised sum over the site's subjects outside of any plan: the one that s
// lists, which must be of a single task with a single sum, asked for once. It is held against
// policy and ledger, charged before a row is summed, and kept in the store like any release.
// What was released under the digest of s is not charged again: the same noised sum comes
// back. [engine.ErrChanged] is returned if it was of other data, and an error that wraps
// [privacy.ErrRefused] if policy or ledger do not allow it. For contribution see
// [privacy.Session.Sum].
func (h *Host) Once(ctx context.Context, s privacy.Study,
	contribution func(row *dataset.Row, v []float64) (block int)) (*privacy.Noised, error) {
	m, ok := h.Methods.Lookup(s.Method)
	if !ok {
		return nil, fmt.Errorf("method %q is not known", s.Method)
	}
	if len(s.Requests) != 1 || s.Requests[0].Times != 1 || len(s.Requests[0].Request.Sums) != 1 {
		return nil, errors.New("what is released once is one sum of one task")
	}
	c, err := h.census(ctx)
	if err != nil {
		return nil, err
	}
	s.Site, s.Subjects, s.Data = h.Site, c.Subjects, func() ([32]byte, error) { return c.Fingerprint, nil }
	if err := h.Store.Bind(h.Site); err != nil {
		return nil, err
	}
	if _, err := h.agree(m, s, h.Policy, true); err != nil {
		return nil, err
	}
	listed := s.Requests[0]
	ask := privacy.Ask{Study: s.Digest, Site: h.Site, Round: 1, Kind: listed.Kind,
		Task: sha256.Sum256([]byte(s.Digest + " " + listed.Kind))}
	gate := h.gate(m, s, h.Policy)
	release, stored, err := gate.Stored(ask)
	if err != nil {
		return nil, err
	}
	name := listed.Request.Sums[0].Name
	if !stored {
		session, err := gate.Admit(ask)
		if err != nil {
			return nil, err
		}
		defer session.Close()
		if _, err := session.Sum(ctx, name, contribution); err != nil {
			return nil, err
		}
		if release, err = session.Seal(nil, nil); err != nil {
			return nil, err
		}
	}
	opened, err := privacy.Open(release.Bytes(), listed.Request)
	if err != nil {
		return nil, err
	}
	if len(opened.Sums[name]) != 1 {
		return nil, fmt.Errorf("the stored release has %d sums %q, not 1", len(opened.Sums[name]), name)
	}
	return opened.Sums[name][0], nil
}
