package halves

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"parley/dataset"
	"parley/internal/testkit"
	"parley/method"
	"parley/privacy"
)

// audited is a study of one site with two views of one feature.
const audited = `
parley: 1
name: audited
seed: 1
privacy: {protection: differential, unit: subject, adjacency: add-remove, total: {epsilon: %v, delta: %v}}
views:
  - {name: a, features: [{name: x, range: [-1, 1]}]}
  - {name: b, features: [{name: y, range: [-1, 1]}]}
sites: [north]
method: {name: factors, latent: 1}
`

// loss is ln p(release | with the subject)/p(release | nobody) of the whole
// adaptive release of one site: each sum's noise is Gaussian about what the
// subject adds through the whitenings that the sums before it led to.
func loss(t *testing.T, plan *declared, s *State, row [][]float64) (loss float64) {
	t.Helper()
	a := s.Noised.Released["north"]
	whitenings := s.Noised.Whitenings
	r := testkit.Get(plan.released(a, whitenings))(t)[0]
	v := make([]float64, 64)
	one := func(blocks [][]float64, sd float64, write func([][]float64, []float64) int, squares bool) {
		clear(v)
		at := write(row, v)
		if at < 0 {
			t.Fatal("the subject adds nothing")
		}
		if !squares {
			for i, y := range blocks[at] {
				loss += (y*v[i] - v[i]*v[i]/2) / (sd * sd)
			}
			return
		}
		d, k := int(math.Sqrt(float64(2*len(blocks[at])))), 0 // n for n (n+1)/2 entries
		for i := range d {
			for j := i; j < d; j++ {
				x, variance := v[i]*v[j], sd*sd
				if i != j {
					variance /= 2
				}
				loss += (blocks[at][k]*x - x*x/2) / variance
				k++
			}
		}
	}
	one([][]float64{a[0].Floats(0)}, a[0].SD(), plan.Overview, false)
	one([][]float64{r.Coarse.Sums}, r.Coarse.SD, plan.Contribution(whitenings[0]), true)
	one([][]float64{r.Fine.Sums}, r.Fine.SD, plan.Contribution(whitenings[1]), true)
	return loss
}

// The whole release of a site, by its real gate, tells one subject at the ends
// of its ranges from nobody no better than the plan's total says, and nearly as
// well: the likelihood ratio is the best test there is, and the subject reaches
// the bound of every sum. From 4000 releases of each, by Clopper and Pearson at
// 10⁻⁴ on eight events that were fixed before: another seed fails in fewer than
// one of 1000. The same audit has the power to refuse a claim of a third of the
// plan's ε, and the law of the likelihood ratio (Kolmogorov at 10⁻⁴) is that of
// the plan's μ.
func TestAuditOfTheWholeRelease(t *testing.T) {
	const runs, level, epsilon, delta = 4000, 1e-4, 1.0, 0.01
	row := [][]float64{{1}, {-1}}
	p := newPlay(t, fmt.Sprintf(audited, epsilon, delta))
	release := func(seed uint64, rows []dataset.Row) float64 {
		p.behindGates(map[string]*dataset.Table{"north": testkit.Get(dataset.NewTable(p.Plan.Schema(), rows))(t)},
			seed)
		c := p.way
		state := testkit.Get(c.Init())(t)
		for round := range kinds { // without the model, which tells nothing more
			step := testkit.Get(c.Next(state))(t)
			state = testkit.Get(c.Fold(step.State, p.answer(round+1, step.Tasks[0])))(t)
		}
		s := state.(*State)
		s.Noised.Released["north"] = append(s.Noised.Released["north"],
			testkit.Get(method.Answers[privacy.Noised](s.Inbox, []string{"north"}))(t)[0])
		return loss(t, p.way.noised["north"], s, row)
	}
	var with, without []float64
	for i := range uint64(runs) {
		with = append(with, release(2*i, []dataset.Row{{ID: "a", Views: row}}))
		without = append(without, release(2*i+1, nil))
	}
	count := func(losses []float64, above float64) (n float64) {
		for _, x := range losses {
			if x > above {
				n++
			}
		}
		return n
	}
	found := 0.0
	for _, at := range []float64{0, 0.5, 1, 1.5} {
		for _, pair := range [][2][]float64{{with, without}, {negative(without), negative(with)}} {
			likely, unlikely := count(pair[0], at), count(pair[1], at)
			low := distuv.Beta{Alpha: max(likely, 1e-9), Beta: runs - likely + 1}.Quantile(level / 2)
			high := distuv.Beta{Alpha: unlikely + 1, Beta: max(runs-unlikely, 1e-9)}.Quantile(1 - level/2)
			if low > delta {
				found = max(found, math.Log((low-delta)/high))
			}
		}
	}
	t.Logf("at least ε = %.3f of %v at δ = %v", found, epsilon, delta)
	if found > epsilon {
		t.Errorf("the release tells a subject from nobody at ε = %.3f, and the plan promised %v", found, epsilon)
	}
	if found < epsilon/3 {
		t.Errorf("the audit finds ε = %.3f of %v: it has no power", found, epsilon)
	}
	// The losses are those of a Gaussian mechanism at the plan's own μ: N(±μ²/2, μ²).
	mu := 0.0
	for _, s := range p.way.noised["north"].sums {
		mu += 1 / (s.Mechanism.Noise * s.Mechanism.Noise)
	}
	mu = math.Sqrt(mu)
	slices.Sort(with)
	worst := 0.0
	for i, x := range with {
		worst = max(worst, math.Abs(distuv.UnitNormal.CDF((x-mu*mu/2)/mu)-(float64(i)+0.5)/runs))
	}
	if limit := 2.23 / math.Sqrt(runs); worst > limit { // Kolmogorov's law at 10⁻⁴
		t.Errorf("the losses are %.4f away from a Gaussian of μ = %.3f, more than %.4f", worst, mu, limit)
	}
}

func negative(x []float64) (out []float64) {
	for _, v := range x {
		out = append(out, -v)
	}
	return out
}
