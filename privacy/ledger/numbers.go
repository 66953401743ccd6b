package ledger

import (
	"parley/privacy"
	"parley/privacy/internal/tally"
)

// NumbersOf is how many numbers a release of the request holds at most: its
// contents, in which a method may or may not have counted the noised sums.
func NumbersOf(r privacy.Request) int {
	contents, sums := 0, 0
	for _, c := range r.Contents {
		contents = tally.Add(contents, max(c.Values, 0))
	}
	for _, s := range r.Sums {
		if !s.Kept {
			sums = tally.Add(sums, tally.Multiply(s.Entries(), s.Mechanism.Count))
		}
	}
	return max(contents, sums)
}

// Numbers is how many numbers all releases of a list hold at most.
func Numbers(list []privacy.Listed) int {
	n := 0
	for _, l := range list {
		n = tally.Add(n, tally.Multiply(NumbersOf(l.Request), l.Times))
	}
	return n
}
