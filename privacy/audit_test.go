package privacy_test

// Audits: releases made by the real gate, held against what the ledger says
// they cost. Whoever distinguishes two neighbouring data sets better than that
// has found a fault. A passed audit bounds a loss from below and proves nothing.
//
//	audit_test.go          the distinguishing test: events, bounds, ROC curves
//	audit_session_test.go  the release, made by the gate, on the worst neighbours
//	audit_fault_test.go    planted faults, which the same test must reject
//	audit_onerun_test.go   one run of a whole study, with canaries
//
// # What stands for what
//
// Releases are many at a time: each entry of a noised sum has noise of its own,
// so that one sum over a thousand people, each in entries of her own, is a
// thousand releases about one person each. Sums over whole sites, which have no
// such room, are made one by one. Neighbours are the worst there are, and all
// else of a release than its likelihood ratio between them is thrown away: for
// Gaussian noise the projection on the line between their sums. A composition
// of 3025 sampled steps is simulated in one dimension, by the sum of its steps,
// which has the law of a binomial count with a Gaussian around it; the loss that
// is claimed for it is the accountant's.
//
// # False failures
//
// Each comparison fails for a right release with a probability of at most
// auditLevel = 10⁻⁴ over the choice of the seed, which is fixed; so at other
// seeds one of the about seventy would fail in fewer than 1 % of the runs.
//
// # Which test is meant for which planted fault
//
// Every fault of the table is planted in TestAuditRejectsPlantedFaults, too.
//
//	σ/2                          here; noise.TestFaultySamplersAreCaught for a wrong shape
//	missing factor 2             fixed.TestSmallerClaimsAreCaught (exact sensitivity); here
//	key drawn anew at a retry    TestHistoriesCatchPlantedFaults (crashes); here what it reveals
//	noise that ignores the data  TestHistoriesCatchPlantedFaults (equal draws); here what it reveals
//	fixed-size batch as Poisson  here: one step by the gate, 3025 steps in one dimension
//	unclipped NaN record         fixed.TestFaultySumsAreCaught (exact sensitivity); here
//	clip after summing           fixed.TestFaultySumsAreCaught (exact sensitivity); here

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"testing"

	"gonum.org/v1/gonum/mathext"

	"parley/internal/testkit"
	"parley/privacy"
	"parley/privacy/account"
	"parley/privacy/ledger"
)

// auditLevel is the probability with which a comparison may fail a right release.
const auditLevel = 1e-4

// neighbours are two data sets that differ in one record, or in one site.
type neighbours struct{ d, without [][]float64 }

// release makes n independent releases about a data set, and gives of each a
// score that grows with the likelihood ratio between two neighbours.
type release func(t testing.TB, seed uint64, data [][]float64, n int) []float64

// scores are the releases about each of two neighbours.
type scores struct{ d, without []float64 }

func (r release) on(t testing.TB, n neighbours, runs int) scores {
	return scores{r(t, 1, n.d, runs), r(t, 2, n.without, runs)}
}

// binomialBelow is P(Bin(n, p) ≤ k).
func binomialBelow(n, k int, p float64) float64 {
	if k >= n {
		return 1
	}
	return mathext.RegIncBeta(float64(n-k), float64(k+1), 1-p)
}

// atMost is the upper bound of Clopper and Pearson on the probability of what
// happened k times of n: the p with P(Bin(n, p) ≤ k) = level.
func atMost(n, k int, level float64) float64 {
	lo, hi := float64(k)/float64(n), 1.0
	for range 50 {
		mid := (lo + hi) / 2
		if binomialBelow(n, k, mid) > level {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi
}

// atLeast is the lower bound.
func atLeast(n, k int, level float64) float64 { return 1 - atMost(n, n-k, level) }

// event is that a score is at from or above, which speaks for d; or at most
// there, which speaks for the other.
type event struct {
	from  float64
	below bool
}

// counts says how often the event happened: in the data set that it speaks
// for, and in the other. Both scores are sorted.
func (e event) counts(s scores) (likely, unlikely int) {
	count := func(x []float64) int {
		if e.below {
			return sort.Search(len(x), func(i int) bool { return x[i] > e.from })
		}
		return len(x) - sort.Search(len(x), func(i int) bool { return x[i] >= e.from })
	}
	if e.below {
		return count(s.without), count(s.d)
	}
	return count(s.d), count(s.without)
}

// bounds are a lower one on the probability of the event where it is likely,
// and an upper one on that where it is not. For an event that was chosen
// beforehand one of the two is wrong with a probability of at most auditLevel.
func (e event) bounds(s scores) bounds {
	likely, unlikely := e.counts(s)
	return bounds{atLeast(len(s.d), likely, auditLevel/2), atMost(len(s.without), unlikely, auditLevel/2)}
}

type bounds struct{ likely, unlikely float64 }

// epsilon is a lower bound on ε, as P(e) ≤ exp(ε) Q(e) + δ.
func (b bounds) epsilon(delta float64) float64 {
	if b.likely-delta <= b.unlikely {
		return 0
	}
	return math.Log((b.likely - delta) / b.unlikely)
}

// epsilons are lower bounds on ε at each δ from releases about two neighbours.
// Half of them choose the event, by its own bound, among about a hundred of
// all sizes; the bound is that of the other half.
func (s scores) epsilons(deltas ...float64) (found []float64) {
	half := func(from, to int) scores {
		h := scores{slices.Clone(s.d[from:to]), slices.Clone(s.without[from:to])}
		slices.Sort(h.d)
		slices.Sort(h.without)
		return h
	}
	n := len(s.d) / 2
	choice, rest := half(0, n), half(n, 2*n)
	var events []event
	var each []bounds
	for rank := 1; rank <= n; rank = max(rank+1, rank*5/4) {
		for _, e := range []event{{choice.d[n-rank], false}, {choice.without[rank-1], true}} {
			events, each = append(events, e), append(each, e.bounds(choice))
		}
	}
	for _, delta := range deltas {
		best := 0
		for i, b := range each {
			if b.epsilon(delta) > each[best].epsilon(delta) {
				best = i
			}
		}
		found = append(found, events[best].bounds(rest).epsilon(delta))
	}
	return found
}

// roc compares the whole curve of true against false positives with that of
// Gaussian differential privacy, Φ(Φ⁻¹(α) + μ) (Dong, Roth and Su 2022). Both
// empirical distributions are within e of the true ones everywhere, but for a
// probability of 4·exp(−2ne²) = auditLevel (Massart 1990).
func (s scores) roc(mu float64) error {
	d, without := slices.Sorted(slices.Values(s.d)), slices.Sorted(slices.Values(s.without))
	n := float64(len(d))
	e := math.Sqrt(math.Log(4/auditLevel) / (2 * n))
	curve := func(alpha float64) float64 {
		switch {
		case alpha <= 0:
			return 0
		case alpha >= 1:
			return 1
		}
		return math.Erfc(-(mathext.NormalQuantile(alpha)+mu)/math.Sqrt2) / 2
	}
	for i := 0; i < len(without); i += 1 + len(without)/1000 {
		trues, falses := event{from: without[i]}.counts(scores{d, without})
		alpha, power := float64(falses)/n, float64(trues)/n
		if power > curve(alpha+e)+e {
			return fmt.Errorf("at false positives %.4f true ones are %.4f, above %.4f: less noise than was charged for",
				alpha, power, curve(alpha))
		}
		if power < curve(alpha-e)-e {
			return fmt.Errorf("at false positives %.4f true ones are %.4f, below %.4f: more noise than was charged for",
				alpha, power, curve(alpha))
		}
	}
	return nil
}

// claim is what the ledger would say of one release.
func claim(t testing.TB, sum privacy.Sum, unit privacy.Unit, a account.Adjacency, delta float64) ledger.Loss {
	t.Helper()
	losses := testkit.Get(ledger.Losses([]privacy.Request{{Protection: privacy.Differential, Sums: []privacy.Sum{sum}}},
		delta, unit))(t)
	loss := losses[slices.IndexFunc(losses, func(l ledger.Loss) bool { return l.Adjacency == a })]
	if loss.Epsilon == nil {
		t.Fatal(loss.Unbounded)
	}
	return loss
}

// The bounds are where the tail of the binomial distribution, summed term by
// term, is the level.
func TestBoundsOfClopperAndPearson(t *testing.T) {
	mass := func(n, k int, p float64) float64 {
		m := math.Pow(1-p, float64(n-k))
		for i := range k {
			m *= p * float64(n-i) / float64(i+1)
		}
		return m
	}
	for _, n := range []int{1, 7, 50} {
		for k := range n + 1 {
			hi, lo := atMost(n, k, 0.01), atLeast(n, k, 0.01)
			below, above := 0.0, 0.0
			for i := range n + 1 {
				if i <= k {
					below += mass(n, i, hi)
				}
				if i >= k {
					above += mass(n, i, lo)
				}
			}
			if k < n && math.Abs(below-0.01) > 1e-9 || k == n && hi != 1 {
				t.Errorf("%d of %d: at most %v, where P(no more) = %v", k, n, hi, below)
			}
			if k > 0 && math.Abs(above-0.01) > 1e-9 || k == 0 && lo != 0 {
				t.Errorf("%d of %d: at least %v, where P(no less) = %v", k, n, lo, above)
			}
		}
	}
}
