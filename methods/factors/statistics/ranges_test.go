package statistics

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"parley/dataset"
	"parley/internal/testkit"
	"parley/internal/wire"
	"parley/methods/factors/factorstest"
	"parley/methods/factors/fitted"
	"parley/methods/factors/halves"
	"parley/methods/factors/moments"
	"parley/methods/factors/ppca"
)

// ranged is a private study of three sites with rows subjects each and 15 features in three views:
// two factors, means 0 and standard deviations 1 to 2, changed by to. It returns what is said of values
// beyond ranges, and of features that hardly vary in them.
func ranged(t *testing.T, seed uint64, rows int, epsilon string, lo, hi float64, to func(j int, x float64) float64) (over, still fitted.Verdict) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 29))
	l := factorstest.Shape(t, ppca.NoisePerView, 5, 5, 5)
	turn := make([]float64, l.Features())
	for i := range turn {
		turn[i] = 2 * math.Pi * r.Float64()
	}
	plan := &strings.Builder{}
	fmt.Fprintf(plan, "parley: 1\nname: small\nsites: [a, b, c]\nprivacy: {protection: differential, unit: subject, adjacency: add-remove, total: {epsilon: %s, delta: 1e-5}}\nviews:\n", epsilon)
	for k := range l.Dims {
		fmt.Fprintf(plan, "  - name: v%d\n    features:\n", k)
		for at, end := l.View(k); at < end; at++ {
			fmt.Fprintf(plan, "      - {name: f%d, range: [%v, %v]}\n", at, lo, hi)
		}
	}
	fmt.Fprint(plan, "method:\n  name: mvppca\n  latent: 2\n")
	p := newPlay(t, plan.String())
	data := map[string]*dataset.Table{}
	for _, site := range p.Plan.Sites {
		var all [][]float64
		for range rows {
			f, g := r.NormFloat64(), r.NormFloat64()
			var row []float64
			for j := range l.Features() {
				row = append(row, to(j, math.Sqrt(0.7)*(math.Cos(turn[j])*f+math.Sin(turn[j])*g)+math.Sqrt(0.3)*r.NormFloat64()))
			}
			all = append(all, row)
		}
		var mine []dataset.Row
		for k, views := range factorstest.SplitAll(l, all) {
			mine = append(mine, dataset.Row{ID: fmt.Sprintf("%s%05d", site, k), Views: views})
		}
		data[site] = factorstest.Must(dataset.NewTable(p.Plan.Schema(), mine))(t)
	}
	p.behindGates(data, seed)
	state, _ := p.run()
	return p.way.beyondVerdict(own(state).Beyond), p.way.stillVerdict(own(state).Still)
}

// spread gives the features standard deviations from 1 to 2, and over is 1 beyond c and 0 below.
func spread(j int, x float64) float64 { return x * (1 + float64(j)/14) }

func over(c, x float64) float64 {
	if x > c {
		return 1
	}
	return 0
}

// Ranges that cut off a third of the values or more are named, with the end.
func TestRangesThatCutValuesAreNamed(t *testing.T) {
	named, all := 0, 0
	for _, c := range []struct {
		lo, hi float64
		says   string
	}{{0, 12, "count: below that of f"}, {2, 9, "count: below that of f"}, {-12, 0, "count: above that of f"}, {-0.5, 0.5, "count: on both sides of that of f"}, {-1, 1, "count: on both sides of that of f"}} {
		for _, epsilon := range []string{"3", "8"} {
			for seed := range uint64(2) {
				all++
				v, _ := ranged(t, 30+seed, 500, epsilon, c.lo, c.hi, spread)
				if v.Says != "" && strings.Contains(v.Says, c.says) && len(v.Views) > 0 && len(v.Voids) == len(v.Views) {
					named++
				} else {
					t.Logf("%v to %v, epsilon %s, seed %d: %+v", c.lo, c.hi, epsilon, seed, v)
				}
			}
		}
	}
	t.Logf("%d of %d", named, all)
	if named < all-2 {
		t.Errorf("%d of %d wrong ranges are named", named, all)
	}
}

// One range that cuts off more than half of the values is named, and no other. What clipping left of such a
// feature, of which the variance in its range is far from that of the others, was once made up for too
// much, as if it were always at the one end or the other.
func TestOneRangeThatCutsValuesIsNamed(t *testing.T) {
	named, all := 0, 0
	for _, c := range []struct {
		lo, hi float64
		says   string
	}{{-0.5, 0.5, "on both sides of that of f3"}, {0, 1, "on both sides of that of f3"}, {0, 2.5, "below that of f3"}, {-4, 0, "above that of f3"}} {
		for _, n := range []struct {
			rows    int
			epsilon string
		}{{700, "8"}, {2000, "3"}} {
			for seed := range uint64(3) {
				all++
				v, _ := ranged(t, 330+seed, n.rows, n.epsilon, -4, 4, func(j int, x float64) float64 {
					if j == 3 { // as it would lie in a range from −4 to 4
						return 8*(max(c.lo, min(c.hi, x))-c.lo)/(c.hi-c.lo) - 4
					}
					return x
				})
				if v.Says != "" && strings.HasSuffix(v.Says, ": "+c.says) {
					named++
				} else {
					t.Logf("%v to %v, %+v, seed %d: %+v", c.lo, c.hi, n, seed, v)
				}
			}
		}
	}
	t.Logf("%d of %d", named, all)
	if named < all-2 {
		t.Errorf("%d of %d wrong ranges are named", named, all)
	}
}

// Ranges that hold the values are not, also if these are skewed, coarse, or 0 or 1 and often or rarely
// so. Of 980 such studies (RANGE_SEEDS=14) none was.
func TestRangesThatHoldTheValuesAreNotNamed(t *testing.T) {
	seeds := uint64(1)
	if n, err := strconv.Atoi(os.Getenv("RANGE_SEEDS")); err == nil {
		seeds = uint64(n)
	}
	said, all := 0, 0
	for _, k := range []struct {
		name   string
		lo, hi float64
		to     func(int, float64) float64
	}{
		{"normal", -6, 6, spread}, {"normal, tight", -4, 4, spread}, {"normal, to one side", -3, 9, spread}, {"normal, wide", -60, 60, spread},
		{"0 or 1", 0, 1, func(_ int, x float64) float64 { return over(0, x) }},
		{"0 or 1, an eighth", 0, 1, func(_ int, x float64) float64 { return over(1.1, x) }},
		{"0 or 1, a hundredth", 0, 1, func(_ int, x float64) float64 { return over(2.3, x) }},
		{"0 or 1, hardly any", 0, 1, func(_ int, x float64) float64 { return over(3.4, x) }},
		{"0 or 1, of all rates", 0, 1, func(j int, x float64) float64 { return over(float64(j)/5, x) }},
		{"0 or 1, mostly 1", 0, 1, func(_ int, x float64) float64 { return over(-2, x) }},
		{"0 to 2", 0, 2, func(_ int, x float64) float64 { return over(-0.67, x) + over(0.67, x) }},
		{"uniform", 0, 1, func(_ int, x float64) float64 { return 0.5 * math.Erfc(x/math.Sqrt2) }},
		{"exponential", 0, 8, func(_ int, x float64) float64 { return -math.Log(0.5 * math.Erfc(x/math.Sqrt2)) }},
		{"lognormal", 0, 10, func(_ int, x float64) float64 { return math.Exp(0.5 * x) }},
	} {
		for _, c := range []struct {
			rows    int
			epsilon string
		}{{100, "3"}, {400, "1"}, {400, "3"}, {100, "8"}, {400, "8"}} {
			for seed := range seeds {
				all++
				over, still := ranged(t, 60+seed, c.rows, c.epsilon, k.lo, k.hi, k.to)
				for _, v := range []fitted.Verdict{over, still} {
					if v.Says != "" {
						said++
						t.Logf("%s, %+v, seed %d: %s", k.name, c, seed, v.Says)
					}
				}
			}
		}
	}
	t.Logf("%d of %d", said, all)
	if said > all/50 {
		t.Errorf("%d of %d good ranges are named", said, all)
	}
}

// Features of which no value lies within the range, as in another unit, and those of which the range
// is a hundred times too wide are named, and no others.
func TestFeaturesThatHardlyVaryInTheirRangesAreNamed(t *testing.T) {
	named, all := 0, 0
	for name, to := range map[string]func(float64) float64{
		"all beyond": func(x float64) float64 { return x - 20 },
		"other unit": func(x float64) float64 { return 1000 * (x + 9) },
		"too wide":   func(x float64) float64 { return x / 100 },
	} {
		for _, c := range []struct {
			rows    int
			epsilon string
		}{{700, "3"}, {250, "8"}, {2000, "1"}} {
			for seed := range uint64(2) {
				all++
				_, v := ranged(t, 90+seed, c.rows, c.epsilon, -6, 6, func(j int, x float64) float64 {
					if x = spread(j, x); j == 1 || j == 7 {
						return to(x)
					}
					return x
				})
				if v.Says != "" && strings.HasSuffix(v.Says, ": f1, f7") && fmt.Sprint(v.Views) == "[v0 v1]" && len(v.Voids) == 2 {
					named++
				} else {
					t.Logf("%s, %+v, seed %d: %+v", name, c, seed, v)
				}
			}
		}
	}
	t.Logf("%d of %d", named, all)
	if named < all-3 {
		t.Errorf("%d of %d pairs of features are named", named, all)
	}
}

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
method: {name: mvppca, latent: 1}
`

// loss is ln p(release | with the subject)/p(release | nobody) of the whole
// adaptive release of one site: each sum's noise is Gaussian about what the
// subject adds through the lenses that the sums before it led to.
func loss(t *testing.T, plan *declared, s *halves.State, row [][]float64) (loss float64) {
	t.Helper()
	a := own(s).Released["north"]
	var lenses [2][]moments.Whitening
	for i, packed := range own(s).Lenses {
		lenses[i] = factorstest.Must(unpackLenses(plan.layout, packed))(t)
	}
	r := factorstest.Must(plan.released(a, len(kinds), lenses))(t)[0]
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
	one([][]float64{r.CoarseSums}, r.CoarseSD, plan.Contribution(lenses[0]), true)
	one([][]float64{r.FineSums}, r.FineSD, plan.Contribution(lenses[1]), true)
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
		p.behindGates(map[string]*dataset.Table{"north": factorstest.Must(dataset.NewTable(p.Plan.Schema(), rows))(t)}, seed)
		c := halves.NewCoordinator(p.Setup, p.way)
		state := factorstest.Must(c.Init())(t)
		for round := range kinds { // without the model, which tells nothing more
			step := factorstest.Must(c.Next(state))(t)
			state = factorstest.Must(c.Fold(step.State, p.answer(round+1, step.Tasks[0])))(t)
		}
		s, fine := state.(*halves.State), new(sumAnswer)
		testkit.Do(t, wire.Unmarshal(s.Inbox["north"], fine))
		own(s).Released["north"].Fine = fine.Sum
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
