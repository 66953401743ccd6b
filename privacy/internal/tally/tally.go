// Package tally adds up mechanisms: [Tally.With] keeps equal ones together, and
// counts that do not fit become too many, never too few. The gate charges with
// it, and whoever reads the ledger adds up with the same.
package tally

import (
	"math"
	"slices"

	"parley/privacy/account"
)

// Tally is a composition: mechanisms with their counts, equal ones together,
// so that an accountant sees each once.
type Tally []account.Mechanism

// With returns the tally with more mechanisms, times over. It leaves t alone.
func (t Tally) With(times int, ms ...account.Mechanism) Tally {
	out := slices.Clone(t)
	for _, m := range ms {
		count := Multiply(m.Count, times)
		if count == 0 {
			continue
		}
		if i := out.find(m); i >= 0 {
			out[i].Count = Add(out[i].Count, count)
		} else {
			m.Count = count
			out = append(out, m)
		}
	}
	return out
}

// find returns where the tally counts a mechanism, −1 if nowhere.
func (t Tally) find(m account.Mechanism) int {
	return slices.IndexFunc(t, func(x account.Mechanism) bool {
		x.Count = m.Count
		return x == m
	})
}

// Within says whether u has everything that t has, at least as often.
func (t Tally) Within(u Tally) bool {
	return !slices.ContainsFunc(t, func(m account.Mechanism) bool {
		i := u.find(m)
		return i < 0 || u[i].Count < m.Count
	})
}

// Add returns a + b for counts, and the largest int where that does not fit.
func Add(a, b int) int {
	if a > math.MaxInt-b {
		return math.MaxInt
	}
	return a + b
}

// Multiply returns a·b for counts, and the largest int where that does not fit.
func Multiply(a, b int) int {
	if a > 0 && b > math.MaxInt/a {
		return math.MaxInt
	}
	return a * b
}
