package privacy_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"parley/privacy"
	"parley/privacy/account"
	"parley/privacy/internal/noise"
)

// fault is a release that is wrong, beside the right one. Both are held to the
// same claim on the same neighbours.
type fault struct {
	name string
	neighbours
	right, wrong release
	claim        privacy.Sum // what is charged, for a subject under add-remove
	runs         int         // auditRuns, or a share of it where that is plenty
}

// both makes two releases about each data set, which the adversary adds up.
func both(one, two release) release {
	return func(t testing.TB, seed uint64, data [][]float64, n int) []float64 {
		t.Helper()
		a, b := one(t, seed, data, n), two(t, seed+100, data, n)
		for i := range a {
			a[i] += b[i]
		}
		return a
	}
}

// difference asks one session for the records and another for their negatives,
// and takes what noise the two have in common away.
func difference(s site) release {
	return func(t testing.TB, seed uint64, data [][]float64, n int) []float64 {
		t.Helper()
		a := s.release(t, seed, data, n)
		s.round++
		s.prepare = func(_ *rand.Rand, data [][]float64) (out [][]float64) {
			for _, v := range data {
				out = append(out, []float64{-v[0], -v[1]})
			}
			return out
		}
		b := s.release(t, seed, data, n)
		for i := range a {
			a[i] -= b[i]
		}
		return a
	}
}

// blind is noise of the right size that is drawn whatever is summed, and for
// whichever task: the same for every gate that has the seed.
func blind(seed uint64, sum privacy.Sum) noise.Simulation {
	r := rand.New(rand.NewPCG(seed, 7))
	sd := sum.Mechanism.Noise * sum.Bound / sum.Step() // in steps
	return noise.Simulation{
		Key: func(string) [noise.KeySize]byte { return [noise.KeySize]byte{} },
		Release: func(_ string, exact [][]int64) (noised [][]int64) {
			for _, block := range exact {
				out := make([]int64, len(block))
				for i, x := range block {
					out[i] = x + int64(math.Round(sd*r.NormFloat64()))
				}
				noised = append(noised, out)
			}
			return noised
		},
	}
}

// unclippedUnlessLonger clips like code that asks "is the norm above 1?": that
// of (10⁹, NaN) is not. NaN then becomes 0, as it does where floats are
// converted to integers on some processors.
func unclippedUnlessLonger(_ *rand.Rand, data [][]float64) (out [][]float64) {
	for _, v := range data {
		w := []float64{v[0], v[1]}
		if n := math.Sqrt(v[0]*v[0] + v[1]*v[1]); n > 1 {
			w[0], w[1] = w[0]/n, w[1]/n
		}
		for i, x := range w {
			if x != x {
				w[i] = 0
			}
		}
		out = append(out, w)
	}
	return out
}

// summedFirst hands the session one vector of all records, to be clipped.
func summedFirst(_ *rand.Rand, data [][]float64) [][]float64 {
	total := []float64{0, 0}
	for _, v := range data {
		total[0] += v[0]
		total[1] += v[1]
	}
	return [][]float64{total}
}

// oneOf draws a batch of exactly one record.
func oneOf(r *rand.Rand, data [][]float64) [][]float64 {
	i := r.IntN(len(data))
	return data[i : i+1]
}

// steps simulates the sum over T sampled steps with noise σ a step: in a step
// that draws the target it moves by shift, so that the sum is
// shift·Bin(T, q) + N(0, Tσ²), or the Gaussian alone without a target.
func steps(count int, rate, sigma, shift float64) release {
	return func(_ testing.TB, seed uint64, data [][]float64, n int) []float64 {
		source := rand.NewPCG(seed, 5)
		r := rand.New(source)
		drawn := distuv.Binomial{N: float64(count), P: rate, Src: source}
		out := make([]float64, n)
		for i := range out {
			out[i] = sigma * math.Sqrt(float64(count)) * r.NormFloat64()
			if len(data) > 0 {
				out[i] += shift * drawn.Rand()
			}
		}
		return out
	}
}

func faults() []fault {
	sum := declared(privacy.Subject, privacy.Vectors, mechanism(account.Gaussian, 1.25, 2), 2)
	plain := site{sum: sum, score: along(1, 0)}
	far := [][]float64{{1e9, 0}}
	with := func(change func(*site)) release {
		s := plain
		change(&s)
		return s.release
	}
	noisy := func(factor float64) release {
		return with(func(s *site) { s.sum.Mechanism.Noise *= factor })
	}
	twice := sum
	twice.Mechanism.Count = 2
	reused := plain
	reused.noise = func(seed uint64) privacy.Option { return privacy.Simulate(blind(seed, sum)) }
	// In units of a bound of 2²⁰ the same noise is tiny, and nothing is clipped.
	unbounded := func(s *site) {
		s.sum.Bound, s.sum.Mechanism.Noise = 1<<20, s.sum.Mechanism.Noise/(1<<20)
		s.prepare = unclippedUnlessLonger
	}
	quarter := mechanism(account.Gaussian, 1, 2)
	quarter.Rate = 0.25
	poisson := declared(privacy.Subject, privacy.Vectors, quarter, 2)
	everybody := poisson
	everybody.Mechanism.Rate = 1
	long := poisson
	long.Mechanism = account.Mechanism{Kind: account.Gaussian, Noise: 5, Rate: 0.02, Diameter: 2, Count: 25 * 121}

	return []fault{
		{"σ/2", neighbours{far, nil}, plain.release, noisy(0.5), sum, auditRuns / 4},
		// Replacing a record moves the sum by 2, which only twice the noise would
		// hide as well as the charge says.
		{"missing factor 2", neighbours{far, [][]float64{{-1e9, 0}}}, noisy(2), plain.release, sum, auditRuns / 4},
		// An answer was lost, and the retry has a key of its own: two releases went out.
		{"key drawn anew at a retry, charged once", neighbours{far, nil}, plain.release,
			both(plain.release, plain.release), sum, auditRuns / 2},
		{"noise that ignores the data, twice", neighbours{far, nil}, difference(plain), difference(reused), twice,
			auditRuns / 4},
		// The target among three at the other end of the ball. With a batch of one
		// record, another takes its place.
		{"fixed-size batch charged as Poisson, one step", neighbours{[][]float64{{1, 0}, {-1, 0}, {-1, 0}, {-1, 0}},
			[][]float64{{-1, 0}, {-1, 0}, {-1, 0}}},
			site{sum: poisson, score: along(1, 0)}.release,
			site{sum: everybody, score: along(1, 0), prepare: oneOf}.release, poisson, auditRuns / 4},
		{"fixed-size batch charged as Poisson, 3025 steps", neighbours{far, nil}, steps(3025, 0.02, 5, 1),
			steps(3025, 0.02, 5, 2), long, auditRuns},
		{"unclipped NaN record", neighbours{[][]float64{{1e9, math.NaN()}}, nil}, plain.release, with(unbounded), sum,
			auditRuns / 4},
		// Three records pull the sum to one end of the ball, and the target to the
		// other: the clipped sum moves by 2, not by 1.
		{"clip after summing", neighbours{[][]float64{{-1e9, 0}, {-1e9, 0}, {-1e9, 0}, {1e10, 0}},
			[][]float64{{-1e9, 0}, {-1e9, 0}, {-1e9, 0}}},
			plain.release, with(func(s *site) { s.prepare = summedFirst }), sum, auditRuns / 4},
	}
}

// The audit passes what is right and rejects what is not, by the bound on ε at
// one of three δ. That of a right release is exceeded with a probability of at
// most 3·auditLevel.
func TestAuditRejectsPlantedFaults(t *testing.T) {
	for _, f := range faults() {
		t.Run(f.name, func(t *testing.T) {
			right, wrong := f.right.on(t, f.neighbours, f.runs), f.wrong.on(t, f.neighbours, f.runs)
			deltas, rejected := []float64{1e-4, 1e-2, 1e-1}, false
			good, bad := right.epsilons(deltas...), wrong.epsilons(deltas...)
			for i, delta := range deltas {
				claimed := *claim(t, f.claim, privacy.Subject, account.AddRemove, delta).Epsilon
				t.Logf("δ %v: claimed %.3f, right at least %.3f, faulty at least %.3f", delta, claimed, good[i], bad[i])
				if good[i] > claimed {
					t.Errorf("the right release is rejected: at δ %v ε is at least %v, and %v is claimed", delta,
						good[i], claimed)
				}
				rejected = rejected || bad[i] > claimed
			}
			if !rejected {
				t.Error("the planted fault is not seen")
			}
		})
	}
}

// A few per cent of the noise that are missing, or too much, show in the curve.
func TestAuditCurveSeesAFewPerCent(t *testing.T) {
	sum := declared(privacy.Subject, privacy.Vectors, mechanism(account.Gaussian, 1.25, 2), 2)
	for _, factor := range []float64{1 - auditShare, 1 + auditShare} {
		s := site{sum: sum, score: along(1, 0)}
		s.sum.Mechanism.Noise *= factor
		n := neighbours{[][]float64{{1e9, 0}}, nil}
		if err := release(s.release).on(t, n, auditRuns).roc(1 / 1.25); err == nil {
			t.Errorf("noise times %v is not seen", factor)
		} else {
			t.Log(err)
		}
	}
}
