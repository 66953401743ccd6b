// Package ledger is what people read of a site's charges: [Read] gives every line,
// [Ledger.Account] what they add up to, [Ledger.Look] both against a policy as
// tables, [Ledger.Admits] what a study would cost before it begins, and [CostOf]
// the same from a plan alone. [Records] and [Verify] are for auditors.
//
// It charges, allows and changes nothing: that is the gate's, in package privacy.
// What people read is never better than what is true: losses are rounded up, and
// what is left is rounded down.
package ledger

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"math"
	"slices"

	"parley/privacy"
	"parley/privacy/account"
	"parley/privacy/policy"
	"parley/sitestore"
)

// Entry is one line of the ledger: a charge, as people read it.
type Entry struct {
	Line      int                `json:"line"`    // from 1
	Study     string             `json:"study"`   // hexadecimal digest of the plan
	Release   string             `json:"release"` // the same for every attempt at one release
	Attempt   int                `json:"attempt"` // from 1: more than one if computations did not finish, each charged
	At        string             `json:"at,omitempty"`
	Method    string             `json:"method,omitempty"`
	Round     int                `json:"round,omitempty"`
	Kind      string             `json:"kind,omitempty"`
	Guarantee *privacy.Guarantee `json:"guarantee,omitempty"` // of the plan; absent if it promised nothing
	Seeded    bool               `json:"seeded,omitempty"`    // the noise came from a seed, and protects nobody
	Opens     int                `json:"opens,omitempty"`     // of an opening: the round of the sum
	Trust     *privacy.Trust     `json:"trust,omitempty"`     // of a masked release: who can open its total
	Request   privacy.Request    `json:"request"`             // with the mechanisms that were charged
	// hexadecimal SHA-256 that chains the line to all before it
	Hash string `json:"hash"`
}

// Reader is a store whose ledger can be read.
type Reader interface {
	Reservations(after int) ([]sitestore.Reservation, error)
}

// Ledger is what a site has ever been charged, in order.
type Ledger struct {
	Entries []Entry `json:"entries"`
}

// Read reads the whole ledger. A line that makes no sense is an error.
func Read(j Reader) (*Ledger, error) {
	lines, err := j.Reservations(0)
	if err != nil {
		return nil, err
	}
	l := &Ledger{Entries: []Entry{}}
	attempts := map[string]int{}
	for _, line := range lines {
		c, err := privacy.ReadCharge(line)
		if err != nil {
			return nil, err
		}
		attempts[line.Release]++
		l.Entries = append(l.Entries, Entry{
			Line: line.Seq, Study: line.Study, Release: line.Release, Attempt: attempts[line.Release],
			At: c.At, Method: c.Method, Round: c.Round, Kind: c.Kind, Guarantee: c.Guarantee, Seeded: c.Seeded,
			Opens: c.Opens, Trust: c.Trust, Request: c.Request, Hash: hex.EncodeToString(line.Hash[:]),
		})
	}
	return l, nil
}

// Check is [privacy.CheckAfter] everything that the ledger holds.
func (l *Ledger) Check(p policy.Policy, s privacy.Study, requests ...privacy.Request) error {
	var before []privacy.Charged
	for _, e := range l.Entries {
		before = append(before, privacy.Charged{Study: e.Study, Request: e.Request})
	}
	return privacy.CheckAfter(p, before, s, requests...)
}

// Loss is what a composition of charges costs one unit under one adjacency.
type Loss struct {
	Unit      privacy.Unit      `json:"unit"`
	Adjacency account.Adjacency `json:"adjacency"`
	Delta     float64           `json:"delta"`
	// Epsilon is the tight upper bound at Delta; absent where there is none,
	// for the reason in Unbounded.
	Epsilon   *float64 `json:"epsilon,omitempty"`
	Unbounded string   `json:"unbounded,omitempty"`
	// Mu is the parameter of Gaussian differential privacy, where all noise is
	// Gaussian on all records: then it is everything there is to say, and holds
	// for releases that were chosen after each other, too.
	Mu *float64 `json:"mu,omitempty"`
}

// StudyAccount is what one study has been charged.
type StudyAccount struct {
	Study       string             `json:"study"`
	Method      string             `json:"method,omitempty"`
	Guarantee   *privacy.Guarantee `json:"guarantee,omitempty"`
	Charges     int                `json:"charges"`     // lines of the ledger
	Forfeited   int                `json:"forfeited"`   // of them, charges of attempts that were made again
	Unprotected int                `json:"unprotected"` // of them, without protection: nothing bounds what they tell
	Seeded      int                `json:"seeded"`      // of them, with noise from a seed, which protects nobody
	// of the protected ones: subjects under both adjacencies, then sites where the guarantee is for sites
	Losses []Loss `json:"losses"`
}

// Account is what a site has been charged, by study and in all.
type Account struct {
	Studies     []StudyAccount `json:"studies"` // in the order of their first charge
	Charges     int            `json:"charges"`
	Unprotected int            `json:"unprotected"`
	// Lifetime is for subjects, over all studies. As a single number it is right
	// for charges that did not depend on earlier answers; what holds for any is
	// a [Spending].
	Lifetime []Loss `json:"lifetime"`
}

// Account adds up the ledger. Losses are at the δ of each study's guarantee,
// and at delta in (0, 1) otherwise and for the lifetime.
func (l *Ledger) Account(delta float64) (*Account, error) {
	if !(delta > 0 && delta < 1) {
		return nil, fmt.Errorf("δ %v is not between 0 and 1", delta)
	}
	a := &Account{Studies: []StudyAccount{}, Charges: len(l.Entries)}
	var all []privacy.Request
	requests := map[string][]privacy.Request{}
	for _, e := range l.Entries {
		i := slices.IndexFunc(a.Studies, func(s StudyAccount) bool { return s.Study == e.Study })
		if i < 0 {
			i = len(a.Studies)
			a.Studies = append(a.Studies, StudyAccount{Study: e.Study, Method: e.Method, Guarantee: e.Guarantee})
		}
		s := &a.Studies[i]
		s.Charges++
		if e.Attempt > 1 {
			s.Forfeited++
		}
		if e.Seeded {
			s.Seeded++
		}
		if e.Request.Protection != privacy.Differential {
			s.Unprotected++
			a.Unprotected++
		}
		requests[e.Study] = append(requests[e.Study], e.Request)
		all = append(all, e.Request)
	}
	for i := range a.Studies {
		s := &a.Studies[i]
		units, at := []privacy.Unit{privacy.Subject}, delta
		if s.Guarantee != nil {
			at = s.Guarantee.Delta
			if s.Guarantee.Unit == privacy.WholeSite {
				units = append(units, privacy.WholeSite)
			}
		}
		var err error
		if s.Losses, err = Losses(requests[s.Study], at, units...); err != nil {
			return nil, err
		}
	}
	var err error
	a.Lifetime, err = Losses(all, delta, privacy.Subject)
	return a, err
}

// Losses is what requests cost together at δ, for each unit under both
// adjacencies. Those without protection are left out: the caller says how many
// there are.
func Losses(requests []privacy.Request, delta float64, units ...privacy.Unit) ([]Loss, error) {
	losses := []Loss{}
	for _, unit := range units {
		var t account.Tally
		unbounded := ""
		for _, r := range requests {
			if r.Protection != privacy.Differential {
				continue
			}
			ms, err := r.Mechanisms(unit)
			if err != nil {
				unbounded = cmp.Or(unbounded, err.Error())
			}
			t = t.With(1, ms...)
		}
		for _, a := range []account.Adjacency{account.AddRemove, account.ReplaceOne} {
			loss := Loss{Unit: unit, Adjacency: a, Delta: delta, Unbounded: unbounded}
			if unbounded == "" {
				if err := loss.of(t); err != nil {
					return nil, err
				}
			}
			losses = append(losses, loss)
		}
	}
	return losses, nil
}

// of fills in what a composition costs; nothing costs nothing.
func (l *Loss) of(t account.Tally) error {
	epsilon, mu, gaussian := 0.0, 0.0, true
	if len(t) > 0 {
		var err error
		if epsilon, err = account.Epsilon(t, l.Adjacency, l.Delta); err != nil {
			return err
		}
		mu, gaussian = account.Mu(t, l.Adjacency)
	}
	if math.IsInf(epsilon, 1) {
		l.Unbounded = fmt.Sprintf("nothing holds at δ %v", l.Delta)
		return nil
	}
	l.Epsilon = &epsilon
	if gaussian {
		l.Mu = &mu
	}
	return nil
}

// Spending is how much of a policy's lifetime a ledger has used.
type Spending struct {
	Adjacency account.Adjacency `json:"adjacency"`
	Limit     account.Budget    `json:"limit"`
	Filter    policy.FilterName `json:"filter"`
	// Left is the share of what the filter adds up (μ², or the Rényi divergence
	// of its order, not ε) that is left, in [0, 1].
	Left float64 `json:"left"`
	// Unprotected releases are in no filter: nothing bounds what they tell.
	Unprotected int `json:"unprotected"`
}

// Against says what is left of a policy's lifetime, under each adjacency that
// the policy limits; none if it sets no limit.
func (l *Ledger) Against(p policy.Policy) ([]Spending, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	out := []Spending{}
	if p.Lifetime == nil {
		return out, nil
	}
	var all account.Tally
	unprotected := 0
	for _, e := range l.Entries {
		// What was released without a bound is not what a filter limits.
		if ms, err := e.Request.Mechanisms(privacy.Subject); err == nil {
			all = all.With(1, ms...)
		}
		if e.Request.Protection != privacy.Differential {
			unprotected++
		}
	}
	for _, a := range p.Adjacencies() {
		f, err := p.Lifetime.FilterFor(a)
		if err != nil {
			return nil, err
		}
		left, err := f.Left(all)
		if err != nil {
			return nil, err
		}
		out = append(out, Spending{
			Adjacency: a, Limit: account.Budget{Epsilon: p.Lifetime.Epsilon, Delta: p.Lifetime.Delta},
			Filter: cmp.Or(p.Lifetime.Filter, policy.RenyiFilter), Left: left, Unprotected: unprotected,
		})
	}
	return out, nil
}
