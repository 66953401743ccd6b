package ledger_test

import (
	"context"
	"fmt"
	"iter"
	"math"
	"testing"

	"parley/dataset"
	"parley/privacy"
	"parley/privacy/account"
	"parley/privacy/policy"
)

var (
	ask     = privacy.Ask{Study: "3fa9", Site: "north", Round: 2, Kind: "fit", Task: [32]byte{1}}
	request = privacy.Request{Protection: privacy.Unprotected, Contents: []privacy.Content{{What: "means", Values: 3}}}
	open    = privacy.SimulationPolicy()
	study   = privacy.Study{Digest: "3fa9", Site: "north", Method: "toy", Sites: 3, Quorum: 3}
)

// subjects is a data set of so many rows without views; ids count from 0.
type subjects int

func (n subjects) Schema() dataset.Schema { return dataset.Schema{} }

func (n subjects) Rows(context.Context) iter.Seq2[*dataset.Row, error] {
	return func(yield func(*dataset.Row, error) bool) {
		for i := range int(n) {
			if !yield(&dataset.Row{ID: fmt.Sprint(i)}, nil) {
				return
			}
		}
	}
}

func at(study string, round int) privacy.Ask {
	return privacy.Ask{Study: study, Site: "north", Round: round, Kind: "fit", Task: [32]byte{byte(round)}}
}

func vectors(noise float64, blocks ...int) privacy.Sum {
	return privacy.Sum{Name: "v", Unit: privacy.Subject, Form: privacy.Vectors, Blocks: blocks, Bound: 5,
		Mechanism: account.Mechanism{Kind: account.Gaussian, Noise: noise, Rate: 1, Diameter: 2, Count: 1}}
}

func differential(sums ...privacy.Sum) privacy.Request {
	return privacy.Request{Protection: privacy.Differential, Sums: sums}
}

func guaranteed(unit privacy.Unit, a account.Adjacency, epsilon, delta float64) privacy.Study {
	s := study
	s.Subjects = 400
	s.Guarantee = &privacy.Guarantee{Unit: unit, Adjacency: a, Budget: account.Budget{Epsilon: epsilon, Delta: delta}}
	return s
}

// admit admits a task to a gate of its own that lists the request for it, as often
// as anybody asks.
func admit(s privacy.Study, p policy.Policy, j privacy.Journal, a privacy.Ask, r privacy.Request,
	options ...privacy.Option) (*privacy.Session, error) {
	s.Requests = []privacy.Listed{{Kind: a.Kind, Times: math.MaxInt, Request: r}}
	return privacy.NewGate(s, p, j, subjects(3), options...).Admit(a)
}

// releaseAt runs one task with a single sum from Admit to Seal.
func releaseAt(t testing.TB, s privacy.Study, j privacy.Journal, a privacy.Ask, sum privacy.Sum,
	options ...privacy.Option) error {
	t.Helper()
	session, err := admit(s, open, j, a, differential(sum), options...)
	if err != nil {
		return err
	}
	n, err := session.Sum(t.Context(), sum.Name, func(*dataset.Row, []float64) int { return 0 })
	if err != nil {
		return err
	}
	_, err = session.Seal(fmt.Append(nil, n.SD()), nil)
	return err
}
