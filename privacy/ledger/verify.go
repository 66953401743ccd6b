package ledger

import (
	"fmt"
	"strconv"
	"strings"

	"parley/privacy"
	"parley/problem"
)

// Verified says what was found to hold.
type Verified struct {
	Lines    int    `json:"lines"`    // of the ledger
	Releases int    `json:"releases"` // that were charged
	Stored   int    `json:"stored"`   // of them, with bytes in the outbox
	Bytes    int64  `json:"bytes"`    // of those
	Head     string `json:"head"`     // hexadecimal SHA-256 that the chain ends with; it tells of every line
}

// Verify holds the outbox against the ledger: each charge can be read, all
// attempts at a release answer one task, and each stored release is of the
// study, site, round and task that were charged, and says of itself that it
// was made as it was charged. That lines are chained, and that no release lacks
// a charge, a store has verified when it opened. What does not hold comes back
// as a problem.List.
func Verify(v Vault) (*Verified, error) {
	charged, err := Read(v)
	if err != nil {
		return nil, err
	}
	lines, err := v.Reservations(0)
	if err != nil {
		return nil, err
	}
	found := &Verified{Lines: len(lines)}
	var wrong problem.List
	no := func(line int, format string, a ...any) {
		wrong.Add(problem.Problem{Where: fmt.Sprintf("line %d", line), What: fmt.Sprintf(format, a...)})
	}
	attempts := map[string][]int{} // indices of the lines of a release
	for i, e := range charged.Entries {
		if e.Round != 0 && e.Round != roundOf(e.Release) { // lines of the first version do not say
			no(e.Line, "charged for round %d under the name %s", e.Round, e.Release)
		}
		attempts[e.Release] = append(attempts[e.Release], i)
		found.Head = e.Hash
	}
	found.Releases = len(attempts)
	for i, e := range charged.Entries {
		all := attempts[e.Release]
		if first := lines[all[0]]; lines[i].Task != first.Task || lines[i].Study != first.Study {
			no(e.Line, "it charges another task than line %d did for the same release", first.Seq)
		}
		if i != all[len(all)-1] {
			continue
		}
		stored, _, err := v.Release(e.Release)
		if err != nil {
			no(e.Line, "%v", err)
			continue
		}
		if stored.Sealed == nil {
			continue
		}
		found.Stored++
		found.Bytes += int64(len(stored.Sealed))
		if err := privacy.CheckStored(lines[i], stored.Sealed); err != nil {
			no(e.Line, "%v", err)
		}
	}
	return found, wrong.Err()
}

// roundOf reads the round at the end of a release's name; 0 if there is none.
func roundOf(release string) int {
	round, err := strconv.Atoi(release[1+strings.LastIndexByte(release, '/'):])
	if err != nil {
		return 0
	}
	return round
}
