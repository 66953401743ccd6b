package mvppca

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"parley/dataset"
	"parley/internal/wire"
	"parley/method"
	"parley/methods/mvppca/internal/synthetic"
	"parley/methods/mvppca/options"
	"parley/methods/mvppca/ppca"
	"parley/privacy"
)

// audited is a plan of one site with two views of one feature.
func audited(t *testing.T, budget string) *play {
	t.Helper()
	views := "  - {name: a, features: [{name: x, range: [-1, 1]}]}\n  - {name: b, features: [{name: y, range: [-1, 1]}]}\n"
	plan, err := parse(strings.Replace(strings.Replace(planWith(views, "  latent: 1\n"), "{protection: none}", budget, 1), "[north, south]", "[north]", 1))
	if err != nil {
		t.Fatal(err)
	}
	return newPlay(t, &small{plan: plan, data: map[string]*dataset.Table{}})
}

// loss is ln p(release | with the subject)/p(release | nobody) of the whole
// adaptive release of one site: each sum's noise is Gaussian about what the
// subject adds through the lenses that the sums before it led to.
func (p *play) loss(t *testing.T, a *statisticsRecord, row [][]float64) (loss float64) {
	t.Helper()
	plan := p.halves["north"].(*site).way.(*statisticsSite).noised
	r := synthetic.Must(plan.released(a))(t)
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
	one([][]float64{a.Overview.Floats(0)}, a.Overview.SD(), plan.Overview, false)
	one(r.CoarseBlocks, r.CoarseSD, plan.Contribution(r.Coarse), true)
	one(r.FineBlocks, r.FineSD, plan.Contribution(r.Fine), true)
	return loss
}

// The whole release of a site, by its real gate, tells one subject at the ends
// of its ranges from nobody no better than the plan's total says, and nearly as
// well: the likelihood ratio is the best test there is, and the subject reaches
// the bound of every sum. From 2000 releases of each, by Clopper and Pearson at
// 10⁻⁴ on eight events that were fixed before: another seed fails in fewer than
// one of 1000. The same audit has the power to refuse a claim of a third of the
// plan's ε, and the law of the likelihood ratio (Kolmogorov at 10⁻⁴) is that of
// the plan's μ.
func TestAuditOfTheWholeRelease(t *testing.T) {
	const runs, level, epsilon, delta = 2000, 1e-4, 1.0, 0.01
	row := [][]float64{{1}, {-1}}
	p := audited(t, fmt.Sprintf("{protection: differential, unit: subject, adjacency: add-remove, total: {epsilon: %v, delta: %v}}", epsilon, delta))
	release := func(seed uint64, rows []dataset.Row) float64 {
		table, err := dataset.NewTable(p.plan.Schema(), rows)
		if err != nil {
			t.Fatal(err)
		}
		p.data["north"] = table
		p.behindGates(seed)
		p.round = 1
		said, err := p.answer(method.Task{Site: "north", Kind: options.TaskStatistics, Body: synthetic.Must(wire.Marshal(statisticsTask{}))(t)})
		if err != nil {
			t.Fatal(err)
		}
		var a statisticsRecord
		kept := synthetic.Must(p.coordinator.(*coordinator).receive(said))(t)
		if err := wire.Unmarshal(kept, &a); err != nil {
			t.Fatal(err)
		}
		return p.loss(t, &a, row)
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
	for _, s := range p.halves["north"].(*site).way.(*statisticsSite).noised.sums {
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

// Request is declared by the plan alone, whatever the task says: a coordinator
// cannot make a site release more by another model.
func TestDiagnosticsOfAHostileModel(t *testing.T) {
	s := private(statisticsOptions, checkedBudget).study(t)
	p := newPlay(t, s)
	l := p.coordinator.(*coordinator).layout
	honest := synthetic.Must(p.halves["site-0"].(*site).request(options.TaskCheck))(t)
	if honest.Protection != privacy.Differential {
		t.Errorf("protection %q", honest.Protection)
	}
	params := func(change func(*ppca.Params)) paramsMessage {
		m := ppca.Params{Features: l.AllFeatures(), Rank: 2, W: make([]float64, 10), Mu: make([]float64, 5), Noise: []float64{1, 1}}
		change(&m)
		return packParams(l, &m)
	}
	for name, c := range map[string]struct {
		task    checkTask
		refused bool
	}{
		"plain":        {checkTask{Model: params(func(*ppca.Params) {})}, false},
		"large":        {checkTask{Model: params(func(m *ppca.Params) { m.W[0], m.W[3], m.Mu[1] = 1e70, -1e70, 1e70 })}, false},
		"enormous":     {checkTask{Model: params(func(m *ppca.Params) { m.W[0], m.W[3], m.Mu[1] = 1e90, -1e90, 1e90 })}, true},
		"sharp":        {checkTask{Model: params(func(m *ppca.Params) { m.Noise[0], m.Noise[1] = 1e-90, 1e-90 })}, false},
		"another rank": {checkTask{Model: params(func(m *ppca.Params) { m.Rank, m.W = 1, m.W[:5] })}, true},
		"no features":  {checkTask{}, true},
		"doubt":        {checkTask{Model: params(func(*ppca.Params) {}), Doubt: wire.Vector{-1, 0, 0, 0, 0}}, true},
		"endless":      {checkTask{Model: params(func(m *ppca.Params) { m.Mu[0] = math.Inf(1) })}, true},
	} {
		body, err := wire.Marshal(c.task)
		if err != nil { // what cannot be sent
			continue
		}
		task := method.Task{Site: "site-0", Kind: options.TaskCheck, Body: body}
		o, err := p.release(task)
		if (err != nil) != c.refused {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil && fmt.Sprint(o.Request) != fmt.Sprint(honest) {
			t.Errorf("%s: the site asked for %+v", name, o.Request)
		}
	}
}
