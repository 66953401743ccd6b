package engine

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
)

// RolledBackError says that a site's store is not the one that it was: others
// have seen more of it. A person must decide whether the site may go on with
// what there is; until then it answers nothing. See [RolledBackError.Decision].
type RolledBackError struct {
	Shown Mark // of the ledger, as others have seen it; zero if it agrees
	Round int  // up to which releases are missing; 0 if none is
}

func (e *RolledBackError) Error() string {
	what := "an older or other copy of this site's store is in its place"
	if e.Shown.Lines > 0 {
		what += fmt.Sprintf(": its ledger has had %d lines, and does not have these", e.Shown.Lines)
	}
	if e.Round > 0 {
		what += fmt.Sprintf("; releases up to round %d are missing", e.Round)
	}
	return what + "\n  hint: bring the right store back; or, if it is lost, a person must decide to go on without it"
}

// Decision is what a person decides who lets a site go on after a loss. It goes
// into the site's store.
func (e *RolledBackError) Decision() string {
	data, err := json.Marshal(loss{e.Shown.Lines, hex.EncodeToString(e.Shown.Hash), e.Round})
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
}

// covers says whether a decision lets a loss pass, in part or whole.
func (l loss) covers(e *RolledBackError) (ledger, releases bool) {
	return l.Lines == e.Shown.Lines && l.Hash == hex.EncodeToString(e.Shown.Hash), l.Round >= e.Round
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
