package engine

import (
	"bytes"
	"fmt"
	"slices"

	"parley/sitestore"
)

// verified is the part of a history that is new, and is to be kept.
type verified struct {
	first   int
	records [][]byte
	census  *census
}

// verify holds the past that came with a task against the task, the history
// that was kept, the plan's sites, and this site's own outbox and ledger. It
// changes nothing.
func (s *Site) verify(t task, past Past) (v verified, err error) {
	if v, err = s.continues(past, t.Head); err != nil {
		return v, err
	}
	if n := len(v.census.staying); n < s.Minimum {
		return v, refuse("only %d sites are left in the study, and this site's policy wants at least %d", n, s.Minimum)
	}
	// By its third contribution a site wants to see that others have contributed,
	// too; earlier, those who are slower may not have come to it.
	if n := v.census.contributing(); n < s.Minimum && v.census.times[slices.Index(s.Sites, s.Name)] >= 2 {
		return v, refuse("only %d sites have contributed to the study, and this site's policy wants at least %d",
			n, s.Minimum)
	}
	if err := s.own(past); err != nil {
		return v, err
	}
	// The coordinator counts a round when it gives out tasks, and then folds before it counts the
	// next: a higher one would leave no room for those that follow.
	if most := v.first + len(v.records) + 1; t.Round > most {
		return v, refuse("round %d comes after %d records of the history: it can be at most round %d", t.Round,
			most-1, most)
	}
	return v, nil
}

// Conclude keeps the history of a study that has ended, to its head. The last records
// come with no task; a coordinator that loses everything afterwards asks for them too.
// It is a [*BehindError] if the site wants an earlier past.
func (s *Site) Conclude(past Past, head []byte) error {
	s.one <- struct{}{}
	defer func() { <-s.one }()
	v, err := s.continues(past, head)
	if err == nil {
		err = s.own(past)
	}
	if err != nil {
		return err
	}
	return s.keep(v)
}

// continues holds a past against the history that was kept, the plan's sites, and
// the head that it is to lead to.
func (s *Site) continues(past Past, to []byte) (v verified, err error) {
	kept, head, err := s.Store.Head(s.Study)
	if err != nil {
		return v, err
	}
	if past.First < 0 || len(past.Own) > len(past.Records)+len(s.Sites) {
		return v, refuse("the task's past makes no sense")
	}
	if past.First > kept {
		return v, &BehindError{kept}
	}
	if past.First+len(past.Records) < kept {
		return v, &ForkedError{fmt.Errorf("%w: the task was given out before the last one that this site has seen",
			sitestore.ErrForked)}
	}
	overlap, err := s.Store.Records(s.Study, past.First)
	if err != nil {
		return v, err
	}
	for i, r := range overlap {
		if !bytes.Equal(past.Records[i], r) {
			return v, &ForkedError{fmt.Errorf("%w: record %d differs", sitestore.ErrForked, past.First+i)}
		}
	}
	if err := s.catchUp(kept); err != nil {
		return v, err
	}
	v = verified{first: kept, records: past.Records[len(overlap):], census: s.census.clone()}
	for i, data := range v.records {
		head = sitestore.Next(head, data)
		r, err := decodeRecord(data)
		if err == nil {
			err = v.census.follow(&r)
		}
		if err != nil {
			return v, &Refusal{Public: "the task's past makes no sense", Err: fmt.Errorf("record %d: %w", kept+i, err)}
		}
	}
	if !bytes.Equal(to, head[:]) {
		return v, &ForkedError{fmt.Errorf("%w: the task's past does not lead to where the task says that it does",
			sitestore.ErrForked)}
	}
	return v, nil
}

// own holds what the past says of this site's releases and ledger against them.
func (s *Site) own(past Past) error {
	at := slices.Index(s.Sites, s.Name)
	counted := 0
	for _, data := range past.Records {
		r, err := decodeRecord(data)
		if err != nil {
			return err
		}
		if r.All || slices.Contains(r.Sites, at) {
			counted++
		}
		if slices.Contains(r.Left, at) {
			return refuse("by the coordinator's history this site has left the study")
		}
	}
	if counted != len(past.Own) {
		return refuse("the coordinator's history counts %d releases of this site, and names %d", counted, len(past.Own))
	}
	missing, before := 0, 0
	for _, c := range past.Own {
		if c.Round <= before { // the rounds of a site's tasks rise
			return refuse("the coordinator's history counts a release of this site for round %d after one for round %d",
				c.Round, before)
		}
		before = c.Round
		digest, ok, err := s.Gate.Digest(c.Round)
		switch {
		case err != nil:
			return err
		// of two copies of a store, this is not the one that has answered
		case !ok || !bytes.Equal(c.Digest, digest[:]):
			missing = max(missing, c.Round)
		}
	}
	return s.rolledBack(past.Ledger, missing)
}

// catchUp makes the census that of the kept history.
func (s *Site) catchUp(kept int) error {
	if s.kept == kept {
		return nil
	}
	records, err := s.Store.Records(s.Study, 0)
	if err != nil {
		return err
	}
	c := newCensus(len(s.Sites))
	for _, data := range records {
		r, err := decodeRecord(data)
		if err == nil {
			err = c.follow(&r)
		}
		if err != nil {
			return fmt.Errorf("the history that this site has kept: %w", err)
		}
	}
	s.census, s.kept = c, len(records)
	return nil
}

// History returns the records of the study that this site has kept, for a
// coordinator that has lost its own.
func (s *Site) History() ([][]byte, error) { return s.Store.Records(s.Study, 0) }

// keep makes what was verified part of the kept history.
func (s *Site) keep(v verified) error {
	if err := s.Store.Append(s.Study, v.first, v.records); err != nil {
		return err
	}
	s.census, s.kept = v.census, v.first+len(v.records)
	return nil
}
