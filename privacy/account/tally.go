package account

import (
	"math"
	"slices"
)

// Tally is a composition: mechanisms with their counts, equal ones together,
// so that an accountant sees each once.
type Tally []Mechanism

// With returns the tally with more mechanisms, times over. It leaves t alone.
func (t Tally) With(times int, ms ...Mechanism) Tally {
	out := slices.Clone(t)
	for _, m := range ms {
		count := MultiplyCounts(m.Count, times)
		if count == 0 {
			continue
		}
		if i := out.find(m); i >= 0 {
			out[i].Count = AddCounts(out[i].Count, count)
		} else {
			m.Count = count
			out = append(out, m)
		}
	}
	return out
}

// find returns where the tally counts a mechanism, −1 if nowhere.
func (t Tally) find(m Mechanism) int {
	return slices.IndexFunc(t, func(x Mechanism) bool {
		x.Count = m.Count
		return x == m
	})
}

// Within says whether u has everything that t has, at least as often.
func (t Tally) Within(u Tally) bool {
	return !slices.ContainsFunc(t, func(m Mechanism) bool {
		i := u.find(m)
		return i < 0 || u[i].Count < m.Count
	})
}

// AddCounts returns a + b for counts, and the largest int where that does not fit.
func AddCounts(a, b int) int {
	if a > math.MaxInt-b {
		return math.MaxInt
	}
	return a + b
}

// MultiplyCounts returns a·b for counts, and the largest int where that does not fit.
func MultiplyCounts(a, b int) int {
	if a > 0 && b > math.MaxInt/a {
		return math.MaxInt
	}
	return a * b
}
