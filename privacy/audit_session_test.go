package privacy_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"testing"

	"parley/dataset"
	"parley/internal/testkit"
	"parley/privacy"
	"parley/privacy/account"
	"parley/privacy/privacytest"
	"parley/sitestore"
)

// site releases one sum through a gate of its own.
type site struct {
	sum   privacy.Sum // of one block
	score func(entries []float64) float64
	// prepare is what a faulty method does with a data set before it hands the
	// records over, one after the other; nil for nothing.
	prepare func(r *rand.Rand, data [][]float64) [][]float64
	noise   func(seed uint64) privacy.Option // nil for privacytest.Seeded
	round   int
}

// crowd holds copies of a data set, each in a place of its own.
type crowd struct {
	copies int
	data   func() [][]float64 // records of the next copy
}

func (c crowd) Schema() dataset.Schema { return dataset.Schema{} }

// Rows gives each record after the number of its copy.
func (c crowd) Rows(context.Context) iter.Seq2[*dataset.Row, error] {
	return func(yield func(*dataset.Row, error) bool) {
		place := []float64{0}
		row := &dataset.Row{Views: [][]float64{place, nil}}
		for i := range c.copies {
			place[0] = float64(i)
			for _, row.Views[1] = range c.data() {
				if !yield(row, nil) {
					return
				}
			}
		}
	}
}

// One noised sum has room for so many blocks with so many entries.
const crowdBlocks, crowdLength = 32, 32

// release is a [release]. Many copies of the data set take part in each sum, in
// entries of their own.
func (s site) release(t testing.TB, seed uint64, data [][]float64, n int) []float64 {
	t.Helper()
	length := s.sum.Blocks[0] // of one copy
	room := crowdLength / length
	switch {
	case s.sum.Unit == privacy.WholeSite:
		room = 1
	case s.sum.Form == privacy.Moments:
		room, s.sum.Blocks = 1, make([]int, crowdBlocks)
	default:
		s.sum.Blocks = make([]int, crowdBlocks)
	}
	for i := range s.sum.Blocks {
		s.sum.Blocks[i] = room * length
	}
	each := len(s.sum.Blocks) * room
	s.sum.Mechanism.Count = (n + each - 1) / each
	r := rand.New(rand.NewPCG(seed, 3))
	people := crowd{each, func() [][]float64 {
		if s.prepare != nil {
			return s.prepare(r, data)
		}
		return data
	}}
	noise := privacytest.Seeded
	if s.noise != nil {
		noise = s.noise
	}
	gate := privacy.NewGate(study, open, sitestore.NewMemory(), people, noise(seed))
	a := ask
	a.Round += s.round
	session := testkit.Get(gate.AdmitAny(a, privacy.Request{Protection: privacy.Differential,
		Sums: []privacy.Sum{s.sum}}))(t)
	var out []float64
	for len(out) < n {
		noised := testkit.Get(s.use(t.Context(), session, room, length))(t)
		for b := range noised.Blocks() {
			entries := noised.Floats(b)
			for range room {
				mine := entries[:len(entries)/room]
				if s.sum.Form == privacy.Vectors {
					mine, entries = entries[:length], entries[length:]
				}
				out = append(out, s.score(mine))
			}
		}
	}
	return out[:n]
}

// use makes one noised sum.
func (s site) use(ctx context.Context, session *privacy.Session, room, length int) (*privacy.Noised, error) {
	if s.sum.Unit == privacy.WholeSite {
		return session.Whole(ctx, s.sum.Name, func(data dataset.Source, v []float64) error {
			for row := range data.Rows(ctx) {
				copy(v, row.Views[1])
				return nil
			}
			return errors.New("the site holds nothing")
		})
	}
	return session.Sum(ctx, s.sum.Name, func(row *dataset.Row, v []float64) int {
		i := int(row.Views[0][0])
		copy(v[i%room*length:], row.Views[1])
		return i / room
	})
}

// along scores vectors by their projection, the likelihood ratio of Gaussian
// noise around two sums that differ by a multiple of direction.
func along(direction ...float64) func([]float64) float64 {
	return func(entries []float64) (score float64) {
		for i, x := range entries {
			score += direction[i] * x
		}
		return score
	}
}

// alongOuter scores Moments of length 2 by the Frobenius product with a
// matrix (a b; b c): the entry beside the diagonal stands for two, and has half
// the variance.
func alongOuter(a, b, c float64) func([]float64) float64 { return along(a, 2*b, c) }

// between scores by the likelihood ratio of Laplace noise around v and w.
func between(v, w []float64) func([]float64) float64 {
	return func(entries []float64) (score float64) {
		for i, x := range entries {
			score += math.Abs(x-w[i]) - math.Abs(x-v[i])
		}
		return score
	}
}

// audit is one mechanism on neighbours that it tells apart best.
type audit struct {
	name      string
	sum       privacy.Sum
	adjacency account.Adjacency
	score     func([]float64) float64
	neighbours
}

func declared(unit privacy.Unit, form privacy.Form, m account.Mechanism, length int) privacy.Sum {
	return privacy.Sum{Name: "x", Unit: unit, Form: form, Blocks: []int{length}, Bound: 1, Mechanism: m}
}

func audits() []audit {
	sampled := mechanism(account.Gaussian, 1, 2)
	sampled.Rate = 0.25
	vector := func(unit privacy.Unit, m account.Mechanism) privacy.Sum { return declared(unit, privacy.Vectors, m, 2) }
	gaussian, laplace := mechanism(account.Gaussian, 1.25, 2), mechanism(account.Laplace, 1.25, 2)
	moments := declared(privacy.Subject, privacy.Moments, mechanism(account.Gaussian, 1.25, math.Sqrt2), 2)
	// Records are far beyond the bound, along (0.6, 0.8), and against it.
	far, opposite, across := []float64{3e9, 4e9}, []float64{-3e200, -4e200}, []float64{-4e9, 3e9}
	more := neighbours{[][]float64{far}, nil}
	other := neighbours{[][]float64{far}, [][]float64{opposite}}
	projected := along(0.6, 0.8)
	// Laplace noise is worst at a corner of the l1 ball, and hardly better elsewhere.
	v, w := []float64{3. / 7, 4. / 7}, []float64{-3. / 7, -4. / 7}
	corner := neighbours{[][]float64{{0, 1e9}}, nil}
	return []audit{
		{"vectors", vector(privacy.Subject, gaussian), account.AddRemove, projected, more},
		{"vectors", vector(privacy.Subject, gaussian), account.ReplaceOne, projected, other},
		{"moments", moments, account.AddRemove, alongOuter(0.36, 0.48, 0.64), more},
		// qqᵀ − rrᵀ of the orthogonal q = (0.6, 0.8) and r = (−0.8, 0.6)
		{"moments", moments, account.ReplaceOne, alongOuter(-0.28, 0.96, 0.28),
			neighbours{more.d, [][]float64{across}}},
		{"sampled vectors", vector(privacy.Subject, sampled), account.AddRemove, projected, more},
		{"sampled vectors", vector(privacy.Subject, sampled), account.ReplaceOne, projected, other},
		{"laplace", vector(privacy.Subject, laplace), account.AddRemove, between([]float64{0, 1}, []float64{0, 0}),
			corner},
		{"laplace", vector(privacy.Subject, laplace), account.ReplaceOne, between(v, w), other},
		{"whole site", vector(privacy.WholeSite, gaussian), account.AddRemove, projected, more},
		{"whole site", vector(privacy.WholeSite, gaussian), account.ReplaceOne, projected, other},
		{"whole site, laplace", vector(privacy.WholeSite, laplace), account.ReplaceOne, between(v, w), other},
	}
}

// runs is how often an audit releases. Moments and whole sites, of which
// fewer fit into one sum, take longer.
func (a audit) runs() int {
	if a.sum.Form == privacy.Moments || a.sum.Unit == privacy.WholeSite {
		return auditSlow
	}
	return auditRuns
}

// No two neighbours are told apart better than the ledger says, at any δ; nor
// much worse, so that the test would see it if they were.
func TestAuditOfReleases(t *testing.T) {
	for _, a := range audits() {
		t.Run(fmt.Sprintf("%s %s", a.name, a.adjacency), func(t *testing.T) {
			s := release(site{sum: a.sum, score: a.score}.release).on(t, a.neighbours, a.runs())
			deltas := []float64{1e-5, 1e-2, 1e-1}
			for i, found := range s.epsilons(deltas...) {
				claimed := *claim(t, a.sum, a.sum.Unit, a.adjacency, deltas[i]).Epsilon
				t.Logf("δ %v: ε at least %.3f, claimed %.3f", deltas[i], found, claimed)
				if found > claimed {
					t.Errorf("at δ %v the ledger says ε %v, but it is at least %v", deltas[i], claimed, found)
				}
				if deltas[i] == 1e-2 && found < 0.5*claimed {
					t.Errorf("at δ %v the audit found ε %v of the claimed %v: it is blind, or there is too much noise",
						deltas[i], found, claimed)
				}
			}
			if mu := claim(t, a.sum, a.sum.Unit, a.adjacency, 1e-2).Mu; mu != nil {
				if err := s.roc(*mu); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
