package options

import (
	"fmt"

	"parley/study"
)

// PublishedOptions are those of Algorithm 2.
type PublishedOptions struct {
	Rounds   int `json:"rounds"`   // in each of which every row is compared with one simulated row (100)
	Accepted int `json:"accepted"` // L, proposals that are kept (1000)
}

const (
	maxRounds   = 100_000
	maxAccepted = 100_000
)

func (o *Options) fillPublished(missing func(key string) bool) {
	if o.Published == nil {
		o.Published = &PublishedOptions{}
	}
	if missing("published.rounds") {
		o.Published.Rounds = 100
	}
	if missing("published.accepted") {
		o.Published.Accepted = 1000
	}
}

func (o *Options) checkPublished(report study.Report) {
	q := o.Published
	switch {
	case q == nil:
		report("published", "missing", "rounds and accepted")
		return
	case q.Rounds < 1 || q.Rounds > maxRounds:
		report("published.rounds", fmt.Sprintf("%d rounds", q.Rounds), fmt.Sprintf("from 1 to %d", maxRounds))
	}
	if q.Accepted < 1 || q.Accepted > maxAccepted {
		report("published.accepted", fmt.Sprintf("%d accepted proposals", q.Accepted), fmt.Sprintf("from 1 to %d", maxAccepted))
	}
}

// Together is how many rounds, from round first on, one task asks for.
func (o *PublishedOptions) Together(first int) int {
	return min(max(o.Rounds-first, 0), o.Batch())
}

// Batch is how many rounds a task has, but for the last. A task costs an entry of the
// ledger and two of the disk's slowest operations, so that some go together; an answer
// is as long as its rounds have rows, so that no more do than keep the tasks few.
func (o *PublishedOptions) Batch() int {
	return max(leastBatch, (o.Rounds+mostTasks-1)/mostTasks)
}

const (
	leastBatch = 16
	mostTasks  = 256
)
