package privacy

import (
	"math"
	"slices"

	"parley/privacy/account"
)

// tally is a composition: mechanisms with their counts, equal ones together,
// so that an accountant sees each once.
type tally []account.Mechanism

// with returns the tally with more mechanisms, times over. It leaves t alone.
func (t tally) with(times int, ms ...account.Mechanism) tally {
	out := slices.Clone(t)
	for _, m := range ms {
		count := multiply(m.Count, times)
		if count == 0 {
			continue
		}
		if i := out.find(m); i >= 0 {
			out[i].Count = add(out[i].Count, count)
		} else {
			m.Count = count
			out = append(out, m)
		}
	}
	return out
}

// find returns where the tally counts a mechanism, −1 if nowhere.
func (t tally) find(m account.Mechanism) int {
	return slices.IndexFunc(t, func(x account.Mechanism) bool {
		x.Count = m.Count
		return x == m
	})
}

// within says whether u has everything that t has, at least as often.
func (t tally) within(u tally) bool {
	return !slices.ContainsFunc(t, func(m account.Mechanism) bool {
		i := u.find(m)
		return i < 0 || u[i].Count < m.Count
	})
}

// Counts that do not fit become too many, never too few.
func add(a, b int) int {
	if a > math.MaxInt-b {
		return math.MaxInt
	}
	return a + b
}

func multiply(a, b int) int {
	if a > 0 && b > math.MaxInt/a {
		return math.MaxInt
	}
	return a * b
}

const maxAhead = 1 << 20

// meter says whether a composition that grows stays within a budget. A tight
// answer may cost a tenth of a second, and a study may ask hundreds of times:
// so the meter looks ahead, at the same charge many times over, and remembers
// the largest composition that it found to be within. Whatever is part of that
// one is within, too.
type meter struct {
	adjacency account.Adjacency
	budget    account.Budget

	safe  tally
	ahead int // times that the last look ahead succeeded with
}

// admits says whether everything spent and proposed is within the budget.
func (m *meter) admits(spent tally, proposed []account.Mechanism) (bool, error) {
	if now := spent.with(1, proposed...); m.safe != nil && now.within(m.safe) {
		return true, nil
	}
	for times := min(max(1, 2*m.ahead), maxAhead); ; times = max(1, times/4) {
		far := spent.with(times, proposed...)
		epsilon, err := account.Epsilon(far, m.adjacency, m.budget.Delta)
		if err != nil {
			return false, err
		}
		if epsilon <= m.budget.Epsilon {
			m.safe, m.ahead = far, times
			return true, nil
		}
		if times == 1 {
			m.ahead = 0
			return false, nil
		}
	}
}
