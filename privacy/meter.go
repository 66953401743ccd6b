package privacy

import (
	"parley/privacy/account"
)

const maxAhead = 1 << 20

// meter says whether a composition that grows stays within a budget. A tight
// answer may cost a tenth of a second, and a study may ask hundreds of times:
// so the meter looks ahead, at the same charge many times over, and remembers
// the largest composition that it found to be within. Whatever is part of that
// one is within, too.
type meter struct {
	adjacency account.Adjacency
	budget    account.Budget

	safe  account.Tally
	ahead int // times that the last look ahead succeeded with
}

// admits says whether everything spent and proposed is within the budget.
func (m *meter) admits(spent account.Tally, proposed []account.Mechanism) (bool, error) {
	if now := spent.With(1, proposed...); m.safe != nil && now.Within(m.safe) {
		return true, nil
	}
	for times := min(max(1, 2*m.ahead), maxAhead); ; times = max(1, times/4) {
		far := spent.With(times, proposed...)
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
