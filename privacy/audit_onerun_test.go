package privacy_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"parley/dataset"
	"parley/internal/testkit"
	"parley/privacy"
	"parley/privacy/account"
	"parley/privacy/privacytest"
	"parley/sitestore"
)

// canaries are people each of whom is in the data or not by the toss of a coin.
// Everybody is as visible as may be: alone in an entry, at the bound.
type canaries []bool

// onerunCanaries are as many as are in or out, onerunGuesses those of whom the
// auditor says which; of all others it says nothing.
const onerunCanaries, onerunGuesses = 1000, 200

func toss(seed uint64) canaries {
	r := rand.New(rand.NewPCG(seed, 9))
	c := make(canaries, onerunCanaries)
	for i := range c {
		c[i] = r.IntN(2) == 1
	}
	return c
}

// people are the canaries that are in.
func (c canaries) people() dataset.Source {
	var in [][]float64
	for i, present := range c {
		if present {
			in = append(in, []float64{float64(i)})
		}
	}
	return crowd{1, func() [][]float64 { return in }}
}

// correct is how many guesses are right: the highest scores are said to be in,
// and as many of the lowest out.
func (c canaries) correct(scores []float64) (n int) {
	order := make([]int, len(scores))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(scores[i], scores[j]) })
	for k := range onerunGuesses / 2 {
		if !c[order[k]] {
			n++
		}
		if c[order[len(order)-1-k]] {
			n++
		}
	}
	return n
}

// plausible is a bound on the probability that v of r guesses about m canaries
// are right, for any auditor of an (ε, δ)-differentially private study, add-remove:
//
//	P(W ≥ v) ≤ P(B ≥ v) + 2mδ·max_{1 ≤ i ≤ v} P(v > B ≥ v − i)/i,  B ~ Bin(r, e^ε/(1 + e^ε))
//
// (Steinke, Nasr and Jagielski, "Privacy auditing with one (1) training run",
// NeurIPS 2023, theorem 5.2).
func plausible(m, r, v int, b account.Budget) float64 {
	right := 1 / (1 + math.Exp(-b.Epsilon))
	below := func(k int) float64 { // P(B < k)
		if k <= 0 {
			return 0
		}
		return binomialBelow(r, k-1, right)
	}
	most := 0.0
	for i := 1; i <= v; i++ {
		most = max(most, (below(v)-below(v-i))/float64(i))
	}
	return min(1, 1-below(v)+2*float64(m)*b.Delta*most)
}

// onerunStudy is what a private study asks of a site: one sum of moments, two
// of vectors, and ten of sampled vectors, a task each, with the noise that all
// of them together need for the guarantee.
func onerunStudy(t testing.TB, g privacy.Guarantee) []privacy.Request {
	t.Helper()
	sampled := account.Mechanism{Kind: account.Gaussian, Noise: 0.5, Rate: 0.2, Diameter: 2, Count: 10}
	two := mechanism(account.Gaussian, 1, 2)
	two.Count = 2
	ms := []account.Mechanism{mechanism(account.Gaussian, 1, 1.5), two, sampled}
	factor := testkit.Get(account.Scale(ms, g.Adjacency, g.Budget))(t)
	each, all := slices.Repeat([]int{1}, onerunCanaries), []int{onerunCanaries}
	sums := []privacy.Sum{
		{Name: "squares", Form: privacy.Moments, Blocks: each},
		{Name: "gradients", Form: privacy.Vectors, Blocks: all},
		{Name: "batches", Form: privacy.Vectors, Blocks: all},
	}
	var requests []privacy.Request
	for i, s := range sums {
		s.Unit, s.Bound, s.Mechanism = privacy.Subject, 3, ms[i]
		s.Mechanism.Noise *= factor
		requests = append(requests, privacy.Request{Protection: privacy.Differential, Sums: []privacy.Sum{s}})
	}
	return requests
}

// observe runs the study through one gate, and scores each canary by what was
// sent, the sealed bytes, and by nothing else.
func (c canaries) observe(t testing.TB, g *privacy.Gate, requests []privacy.Request) []float64 {
	t.Helper()
	scores := make([]float64, len(c))
	for i, r := range requests {
		a := ask
		a.Round = i + 1
		session := testkit.Get(g.AdmitAny(a, r))(t)
		sum := r.Sums[0]
		for range sum.Mechanism.Count {
			if _, err := session.Sum(t.Context(), sum.Name, func(row *dataset.Row, v []float64) int {
				who := int(row.Views[1][0])
				if len(sum.Blocks) > 1 {
					v[0] = 1e9
					return who
				}
				v[who] = 1e9
				return 0
			}); err != nil {
				t.Fatal(err)
			}
		}
		sealed := testkit.Get(session.Seal(nil, nil))(t)
		opened := testkit.Get(privacy.Open(sealed.Bytes(), r))(t)
		if len(opened.Sums[sum.Name]) != sum.Mechanism.Count {
			t.Fatalf("%d sums were sent, %d were made", len(opened.Sums[sum.Name]), sum.Mechanism.Count)
		}
		for _, n := range opened.Sums[sum.Name] {
			// The likelihood ratio, to first order: how far a canary moves its
			// entry, over the variance of the noise.
			var entries []float64
			for b := range n.Blocks() {
				entries = append(entries, n.Floats(b)...)
			}
			moves := sum.Bound
			if sum.Form == privacy.Moments {
				moves *= sum.Bound
			}
			weight := sum.Mechanism.Rate * moves / (n.SD() * n.SD())
			for j, x := range entries {
				scores[j] += weight * (x - sum.Mechanism.Rate*moves/2)
			}
		}
	}
	return scores
}

// One run of a whole study with a thousand canaries. That so many of 200 guesses
// are right is no less likely than the guarantee allows (at other coins and
// noise, it would be with a probability of auditLevel at most), and a study
// with a tenth or a fifth of its noise is found out. One with half would pass:
// one run sees less than many, and TestAuditOfReleases is the sharp test.
func TestAuditOfAStudyInOneRun(t *testing.T) {
	promise := privacy.Guarantee{Unit: privacy.Subject, Adjacency: account.AddRemove,
		Budget: account.Budget{Epsilon: 1, Delta: 1e-7}}
	requests := onerunStudy(t, promise)
	coins := toss(1)
	guaranteed := study
	guaranteed.Guarantee = &promise
	gate := privacy.NewGate(guaranteed, open, sitestore.NewMemory(), coins.people(), privacytest.Seeded(1))
	right := coins.correct(coins.observe(t, gate, requests))
	p := plausible(onerunCanaries, onerunGuesses, right, promise.Budget)
	t.Logf("%d of %d guesses are right: p = %.3g", right, onerunGuesses, p)
	if p < auditLevel {
		t.Errorf("%d of %d guesses are right, which has a probability of at most %.2g under ε %v", right, onerunGuesses,
			p, promise.Epsilon)
	}
	for _, share := range []float64{0.1, 0.2} {
		faulty := onerunStudy(t, promise)
		for _, r := range faulty {
			r.Sums[0].Mechanism.Noise *= share
		}
		gate := privacy.NewGate(study, open, sitestore.NewMemory(), coins.people(), privacytest.Seeded(1))
		right := coins.correct(coins.observe(t, gate, faulty))
		p := plausible(onerunCanaries, onerunGuesses, right, promise.Budget)
		t.Logf("with noise times %v, %d are right: p = %.3g", share, right, p)
		if p >= auditLevel {
			t.Errorf("with noise times %v, %d of %d guesses are right, and that is not seen", share, right,
				onerunGuesses)
		}
	}
}

// Randomised response is what the bound is tight for: of 2000 auditors of it,
// those who find a probability of at most p are at most a share p, and not many fewer.
// 6 standard deviations: right code would fail at another seed with probability
// 10⁻⁸ each. And δ costs what it may.
func TestGuessesAboutRandomisedResponse(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 0))
	b := account.Budget{Epsilon: 1}
	level := 0.05
	found := 0
	for range 2000 {
		right := 0
		for range onerunGuesses {
			if r.Float64() < 1/(1+math.Exp(-1)) {
				right++
			}
		}
		if plausible(onerunCanaries, onerunGuesses, right, b) <= level {
			found++
		}
	}
	if share := float64(found) / 2000; share > level+6*0.005 || share < level/4 {
		t.Errorf("a share of %v is found at a level of %v", share, level)
	}
	// One guess about one canary at ε = 0 is right with probability ½ + δ/2 at
	// most; the theorem says ½ + 2δ·½.
	for _, delta := range []float64{0, 0.01, 0.1} {
		if got, want := plausible(1, 1, 1, account.Budget{Delta: delta}), 0.5+delta; math.Abs(got-want) > 1e-12 {
			t.Errorf("δ %v: %v, want %v", delta, got, want)
		}
	}
}
