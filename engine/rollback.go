package engine

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// RolledBackError says that a site's store is not the one that it was: others
// have seen more of it. A person must decide whether the site may go on with
// what there is; until then it answers nothing. See [RolledBackError.Decision].
type RolledBackError struct {
	Shown Mark // of the ledger, as others have seen it; zero if it agrees
	Round int  // up to which releases are missing or others; 0 if none is
	Told  Mark // of the ledger, as the coordinator was told, if that is another than Shown
}

func (e *RolledBackError) Error() string {
	what := "an older or other copy of this site's store is in its place"
	if e.Shown.Lines > 0 {
		what += fmt.Sprintf(": its ledger has had %d lines, and does not have these", e.Shown.Lines)
	}
	if e.Round > 0 {
		what += fmt.Sprintf("; releases up to round %d are missing, or are others than have been sent", e.Round)
	}
	return what + "\n  hint: bring the right store back; if another machine has served as this site meanwhile, this " +
		"folder is a stale copy: remove it, and serve the other; or, if the right store is lost, a person must " +
		"decide to go on without it"
}

// Decision is what a person decides who lets a site go on after a loss. It goes
// into the site's store.
func (e *RolledBackError) Decision() string {
	data, err := json.Marshal(loss{e.Shown.Lines, hex.EncodeToString(e.Shown.Hash), e.Round, e.Told.Lines,
		hex.EncodeToString(e.Told.Hash)})
	if err != nil {
		panic(err) // numbers and a string
	}
	return lossDecision + string(data)
}

const lossDecision = "go on after a loss: "

type loss struct {
	Lines int    `json:"ledger_lines"`
	Hash  string `json:"ledger_hash"`
	Round int    `json:"releases_to_round"`

	ToldLines int    `json:"told_lines,omitempty"`
	ToldHash  string `json:"told_hash,omitempty"`
}

// covers says whether a decision lets a loss pass, in part or whole.
func (l loss) covers(e *RolledBackError) (ledger, releases bool) {
	hash := hex.EncodeToString(e.Shown.Hash)
	return l.Lines == e.Shown.Lines && l.Hash == hash || l.ToldLines == e.Shown.Lines && l.ToldHash == hash,
		l.Round >= e.Round
}

// whole adds to a loss that the marks have shown what a past shows of it, so that a person
// decides once.
func (s *Site) whole(err error, past Past, head []byte) error {
	e, more := (*RolledBackError)(nil), (*RolledBackError)(nil)
	if !errors.As(err, &e) {
		return err
	}
	behind := (*BehindError)(nil)
	if _, err := s.continues(past, head); errors.As(err, &behind) {
		return err // the past before it may show more
	}
	if errors.As(s.own(past), &more) {
		e.Round, e.Told = more.Round, more.Shown
	}
	return e
}

// lost says whether a person has let the site go on after a loss. What it answers again has other masks than
// before, and a sum that it had opened could be opened for a second set.
func (s *Site) lost() (bool, error) {
	decisions, err := s.Store.Decisions(s.Study)
	return slices.ContainsFunc(decisions, func(d string) bool { return strings.HasPrefix(d, lossDecision) }), err
}

// rolledBack returns a [*RolledBackError] if the ledger is not the one that was
// shown, or releases up to a round are missing, and nobody has decided to go on.
func (s *Site) rolledBack(shown Mark, missing int) error {
	e := &RolledBackError{Round: missing}
	if shown.Lines > 0 {
		lines, err := s.Store.Reservations(shown.Lines - 1)
		if err != nil {
			return err
		}
		if len(lines) == 0 || !bytes.Equal(lines[0].Hash[:], shown.Hash) {
			e.Shown = shown
		}
	}
	if e.Shown.Lines == 0 && e.Round == 0 {
		return nil
	}
	decisions, err := s.Store.Decisions(s.Study)
	if err != nil {
		return err
	}
	for _, d := range decisions {
		text, ok := strings.CutPrefix(d, lossDecision)
		var l loss
		if !ok || json.Unmarshal([]byte(text), &l) != nil {
			continue
		}
		ledger, releases := l.covers(e)
		if ledger {
			e.Shown = Mark{}
		}
		if releases {
			e.Round = 0
		}
	}
	if e.Shown.Lines == 0 && e.Round == 0 {
		return nil
	}
	return e
}
