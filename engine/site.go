package engine

import (
	"context"
	"crypto/sha256"
	"fmt"

	"parley/method"
	"parley/privacy"
)

// ManifestKeeper keeps what coordinators say they have folded:
// [sitestore.Store] or [sitestore.Memory].
type ManifestKeeper interface {
	// Entry returns an entry that is kept; nil if there is none at seq.
	Entry(study string, seq int) ([]byte, error)
	// Append keeps entries from seq first on. It refuses gaps, and entries that
	// differ from what is kept.
	Append(study string, first int, entries [][]byte) error
}

// Site is the loop at one site of one study: it answers tasks, each at most
// once, through the site's gate. Handle may be called for one task at a time.
type Site struct {
	Name     string
	Study    string // hexadecimal digest of the plan that the site agreed to
	Half     method.Site
	Gate     *privacy.Gate
	Manifest ManifestKeeper
}

// Handle answers an encoded task. A task that was answered before is answered
// with the stored bytes, without reading a row. An error that wraps
// [privacy.ErrRefused] means that the site will not answer.
func (s *Site) Handle(ctx context.Context, encoded []byte) (privacy.Release, error) {
	t, err := decodeTask(encoded)
	if err != nil {
		return privacy.Release{}, err
	}
	if t.Study != s.Study || t.Site != s.Name {
		return privacy.Release{}, fmt.Errorf("task for site %q of study %.12s reached site %q of study %.12s", t.Site, t.Study, s.Name, s.Study)
	}
	if err := s.keep(t); err != nil {
		return privacy.Release{}, err
	}
	ask := privacy.Ask{Study: t.Study, Site: t.Site, Round: t.Round, Kind: t.Kind, Task: sha256.Sum256(encoded)}
	if r, ok, err := s.Gate.Stored(ask); err != nil || ok {
		return r, err
	}
	mt := method.Task{Site: t.Site, Kind: t.Kind, Body: t.Body}
	request, err := s.Half.Request(mt)
	if err != nil {
		return privacy.Release{}, fmt.Errorf("declaring %q: %w", t.Kind, err)
	}
	if err := context.Cause(ctx); err != nil { // nothing is charged for what is not going to be computed
		return privacy.Release{}, err
	}
	session, err := s.Gate.Admit(ask, request)
	if err != nil {
		return privacy.Release{}, err
	}
	if request.Protection == privacy.Differential {
		// From here on the charge is in the ledger for good, and only the stored
		// release is worth it: an interrupt now would spend it on nothing. So what
		// was begun is finished; a program that is killed still forfeits it.
		ctx = context.WithoutCancel(ctx)
	}
	r, err := s.Half.Run(ctx, mt, session)
	if err != nil {
		return privacy.Release{}, fmt.Errorf("computing %q: %w", t.Kind, err)
	}
	return r, nil
}

// keep stores the manifest entries that came with a task, after checking that
// they continue what is kept.
func (s *Site) keep(t task) error {
	if len(t.Manifest) == 0 {
		return nil
	}
	chain := manifest(t.Manifest)
	if t.First > 0 {
		before, err := s.Manifest.Entry(t.Study, t.First-1)
		if err != nil {
			return err
		}
		if before != nil { // otherwise Append says what is missing
			chain = append(manifest{before}, chain...)
		}
	}
	if err := chain.verify(t.First == 0); err != nil {
		return err
	}
	return s.Manifest.Append(t.Study, t.First, t.Manifest)
}
