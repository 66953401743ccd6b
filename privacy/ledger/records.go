package ledger

import (
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"

	"parley/privacy"
	"parley/privacy/account"
	"parley/sitestore"
)

// Vault is a store whose ledger and outbox can be read.
type Vault interface {
	Reader
	Release(id string) (r sitestore.Release, ok bool, err error)
}

// Record is a line of the ledger with everything that an auditor compares. It
// holds hashes and sizes of what left, and nothing of what was in it.
type Record struct {
	Entry
	Task    string `json:"task"`                     // hexadecimal SHA-256 of the task that asked
	Bytes   int    `json:"bytes"`                    // of the release that left; 0 if none did
	Release string `json:"release_sha256,omitempty"` // of those bytes
	// Alone is what the line by itself costs a subject, under both adjacencies;
	// absent without protection, which nothing bounds.
	Alone []Loss `json:"alone,omitempty"`
}

// Records reads the whole ledger for an auditor. What a line costs by itself
// is counted at delta in (0, 1). Only the last attempt at a release has bytes:
// those before it were charged and released nothing.
func Records(v Vault, delta float64) ([]Record, error) {
	if !(delta > 0 && delta < 1) {
		return nil, fmt.Errorf("δ %v is not between 0 and 1", delta)
	}
	charged, err := Read(v)
	if err != nil {
		return nil, err
	}
	lines, err := v.Reservations(0)
	if err != nil {
		return nil, err
	}
	last := map[string]int{} // line of a release's last attempt
	for _, e := range charged.Entries {
		last[e.Release] = e.Line
	}
	records := []Record{}
	for i, e := range charged.Entries {
		r := Record{Entry: e, Task: hex.EncodeToString(lines[i].Task[:])}
		if last[e.Release] == e.Line {
			stored, _, err := v.Release(e.Release)
			if err != nil {
				return nil, err
			}
			if stored.Sealed != nil {
				sum := sha256.Sum256(stored.Sealed)
				r.Bytes, r.Release = len(stored.Sealed), hex.EncodeToString(sum[:])
			}
		}
		switch {
		case e.Request.Protection != privacy.Differential:
		case i > 0 && reflect.DeepEqual(charged.Entries[i-1].Request, e.Request): // rounds are mostly alike
			r.Alone = records[i-1].Alone
		default:
			if r.Alone, err = Losses([]privacy.Request{e.Request}, delta, privacy.Subject); err != nil {
				return nil, fmt.Errorf("line %d of the ledger: %w", e.Line, err)
			}
		}
		records = append(records, r)
	}
	return records, nil
}

var recordColumns = []string{
	"line", "time", "study", "method", "round", "task", "release", "attempt", "protection",
	"guarantee_unit", "guarantee_adjacency", "guarantee_epsilon", "guarantee_delta",
	"sum", "unit", "form", "entries", "bound", "mechanism", "noise", "rate", "diameter", "count",
	"epsilon_alone_add_remove", "epsilon_alone_replace_one", "delta", "seeded", "openers", "quorum", "collusion",
	"bytes", "release_sha256", "task_sha256", "line_sha256",
}

// WriteRecords writes records as CSV: a row for every noised sum of a line, or
// one row for a line that has none. Charges and bytes are of the whole line.
func WriteRecords(w io.Writer, records []Record) error {
	out := csv.NewWriter(w)
	out.Write(recordColumns)
	for _, r := range records {
		sums := r.Request.Sums
		if len(sums) == 0 {
			sums = []privacy.Sum{{}}
		}
		for _, s := range sums {
			out.Write(r.row(s))
		}
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("writing the ledger as CSV: %w", err)
	}
	return nil
}

func (r Record) row(s privacy.Sum) []string {
	number := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
	row := []string{
		strconv.Itoa(r.Line), r.At, r.Study, r.Method, strconv.Itoa(r.Round), r.Kind, r.Entry.Release,
		strconv.Itoa(r.Attempt), string(r.Request.Protection),
	}
	if g := r.Guarantee; g != nil {
		row = append(row, string(g.Unit), string(g.Adjacency), number(g.Epsilon), number(g.Delta))
	} else {
		row = append(row, "", "", "", "")
	}
	if m := s.Mechanism; s.Name != "" {
		row = append(row, s.Name, string(s.Unit), string(s.Form), strconv.Itoa(s.Entries()), number(s.Bound),
			string(m.Kind), number(m.Noise), number(m.Rate), number(m.Diameter), strconv.Itoa(m.Count))
	} else {
		row = append(row, make([]string, 10)...)
	}
	alone := []string{"", "", ""}
	for i, l := range r.Alone {
		if l.Epsilon != nil {
			alone[i] = number(*l.Epsilon)
		}
		alone[2] = number(l.Delta)
	}
	row = append(row, alone...)
	// of a masked release: noise is that of its total, of which the site adds 1/(quorum − collusion) of the variance
	trust := []string{"", "", ""}
	if t := r.Trust; t != nil {
		trust = []string{strings.Join(t.Openers, " "), strconv.Itoa(t.Quorum), ""}
		if t.Collusion >= 0 {
			trust[2] = strconv.Itoa(t.Collusion)
		}
	}
	row = append(append(row, strconv.FormatBool(r.Seeded)), trust...)
	return append(row, strconv.Itoa(r.Bytes), r.Release, r.Task, r.Hash)
}

// NumbersOf is how many numbers a release of the request holds at most: its
// contents, in which a method may or may not have counted the noised sums.
func NumbersOf(r privacy.Request) int {
	contents, sums := 0, 0
	for _, c := range r.Contents {
		contents = account.AddCounts(contents, max(c.Values, 0))
	}
	for _, s := range r.Sums {
		if !s.Kept {
			sums = account.AddCounts(sums, account.MultiplyCounts(s.Entries(), s.Mechanism.Count))
		}
	}
	return max(contents, sums)
}

// BytesOf is what these numbers take: 8 bytes each, or, where they are masked, whole words as many as their grid has.
func BytesOf(r privacy.Request) int {
	words := NumbersOf(r)
	switch {
	case r.Masked:
		words = r.Shape().Words()
	case r.Opens > 0:
		words = r.Opens
	}
	return account.MultiplyCounts(8, words)
}

// All is how many numbers, or bytes, all releases of a list have at most, of those that repeat another the most.
func All(list []privacy.Listed, of func(privacy.Request) int) int {
	n, again := 0, 0
	for _, l := range list {
		if l.Again {
			again = max(again, of(l.Request))
			continue
		}
		n = account.AddCounts(n, account.MultiplyCounts(of(l.Request), l.Times))
	}
	return account.AddCounts(n, again)
}
