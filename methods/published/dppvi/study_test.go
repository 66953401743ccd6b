package dppvi

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"parley/dataset"
	"parley/internal/testkit"
	"parley/internal/wire"
	"parley/method"
	"parley/method/methodtest"
	"parley/methods/regression/glm"
	"parley/study"
)

// drivenPlan has numbers, a category and two views; bracketed words are filled in.
const drivenPlan = `
parley: 1
name: driven
sites: [a, b, c]
views:
  - {name: v, features: [{name: x0, range: [-2, 2]}, {name: k, kind: category, levels: [u, w, z]}]}
  - {name: w, features: [{name: x1, range: [-1, 3]}]}
subjects: [y]
method: {name: dp-pvi, [method]}
privacy: [privacy]
`

const (
	twoClasses   = "outcome: {column: y, levels: [p, q]}"
	aNumber      = "outcome: {column: y}, noise_variance: 0.5"
	declaredRows = ", rows: [{site: a, rows: 9}, {site: b, rows: 30}, {site: c, rows: 30}]"
	noProtection = "{protection: none}"
	bySubject    = "{protection: differential, unit: subject, adjacency: add-remove, total: {epsilon: 3, delta: 1e-3}}"
	diagnosed    = "{protection: differential, unit: subject, adjacency: add-remove, diagnostics: 0.2, total: " +
		"{epsilon: 3, delta: 1e-3}}"
	// Scales without ranges, so that a row may hold anything.
	boundless = ", scaling: constants, constants: [{feature: x0, centre: 0, scale: 1}, {feature: x1, centre: 1, " +
		"scale: 2}]"
	settings3 = ", update: {noise: 60, steps: 3, draws: 5}, rounds: 4" + declaredRows
	global    = ", rounds: 5, algorithm: global" + declaredRows
)

// driven is a plan by what is written in its brackets, and the digest of its study.
type driven struct{ method, privacy, digest string }

var plans = map[string]driven{
	"private, logistic": {twoClasses + settings3, bySubject,
		"9c749c341bb39ebf2d50d09ec0dded8d8795eebee68d6fefa758697955802210"},
	"private, logistic, diagnostics": {twoClasses + settings3, diagnosed,
		"cf4c0bd8aa8f503c5bf82d7264ac240c13fc3bce89bc220a16eeb04969f39f2b"},
	"private, logistic, boundless": {twoClasses + settings3 + boundless, diagnosed,
		"e2ccd65f3500936041a30beacf166b858667ff8dd079d1ede957c3fc136e19d8"},
	"private, linear": {aNumber + settings3, bySubject,
		"ed7a22d7fd824196fd11b933f7558138f5e26a12cc3156f3708046eb0ecbaa1b"},
	"private, sequential": {twoClasses + settings3 + ", schedule: sequential", bySubject,
		"d84fbf645422cb5cfe91c9561f2ad1614cd6426c2a78095ce208d70761133d08"},
	"private, synchronous": {twoClasses + settings3 + ", schedule: synchronous", diagnosed,
		"1e05689ad98b83febc5bfe67f7dc31404e86cdacbb486542c21bfc16b65ec311"},
	"private, asynchronous": {twoClasses + settings3 + ", schedule: asynchronous", bySubject,
		"e0e2d40bd3867df162710843baba0d14d40b13d69b9ec46ff66c2da4ceb30995"},
	"private, vast steps": {twoClasses + strings.Replace(settings3, "draws: 5", "draws: 5, learning_rate: 20", 1) +
		", damping: 1", bySubject,
		"344d8e0606eaf8b0d7d3808a38b33e425bbcb2f02aac73df497619a9dc15a84f"},
	"gradients, logistic": {twoClasses + ", rounds: 4, update: {steps: 3, draws: 5}" + declaredRows, noProtection,
		"de831d0b285766c513f6d60ee0e9157f6adcf020a509df0d63b73db516f95574"},
	"gradients, vast steps": {aNumber + ", rounds: 4, damping: 1, update: {learning_rate: 20}" + declaredRows,
		noProtection,
		"998b365e3cc810a4dea7753cb17b9fcaf2b5e86746890bae1637c73aae3058df"},
	"exact, logistic": {twoClasses + ", algorithm: exact, rounds: 4", noProtection,
		"c9934dfae80f32cf9ae1d063f766b122360a567cd853dc4a99be2cfb4193e597"},
	"exact, range": {twoClasses + ", algorithm: exact, rounds: 4, scaling: range", noProtection,
		"f62734872d847184441fa394aab05f9c5122fdcfc0fb7c60f14e09b00deaee2c"},
	"exact, linear": {aNumber + ", algorithm: exact, rounds: 3", noProtection,
		"0c3c89081589675bc1407909ee1605758c34766b93bcd820adc7b57c417142bb"},
	"exact, synchronous": {twoClasses + ", algorithm: exact, rounds: 4, schedule: synchronous", noProtection,
		"5b8df10336bf5a5b2b2f02127fbcc1d52e0eeb75520c15c8c69c983ab04b9761"},
	"exact, random": {twoClasses + ", algorithm: exact, rounds: 4, schedule: random" + declaredRows, noProtection,
		"570965d5ab1ea18541e5de850c3f24b79a7cb22cea33ba5bd6175c2f337c82ff"},
	"exact, asynchronous": {twoClasses + ", algorithm: exact, rounds: 4, schedule: asynchronous" + declaredRows,
		noProtection,
		"01d28fe799322401f0f8071a13f2888fcc9cde9df93add79b76869f2bb39dfb0"},
	"global": {twoClasses + global, noProtection,
		"4df54357e56b6639429ebefd4a84063d463f0de4cefdd74d590499a420b4cf94"},
	"global, linear": {aNumber + global, noProtection,
		"8c663e3117de8a9f61139d3a62cfb47d738c235ef3e7542f3b20dada3ca27b2b"},
	"global, vast steps": {twoClasses + ", rounds: 14, algorithm: global, global: {learning_rate: 40}" + declaredRows,
		noProtection,
		"1da1ae384f39446b608c30a36a8ab0fa4587fe26e50ea4833c0dcdd257edaf80"},
	"global, asynchronous": {twoClasses + global + ", schedule: asynchronous", noProtection,
		"42acc6a4d9463ae83f7bc139637ce91d943c9e65012bd693cb4552c1e6215a2f"},
}

func (d driven) plan(t testing.TB) *study.Plan {
	t.Helper()
	return parse(t, strings.NewReplacer("[method]", d.method, "[privacy]", d.privacy).Replace(drivenPlan))
}

func parse(t testing.TB, text string) *study.Plan {
	t.Helper()
	return testkit.Get(study.Parse("plan.yaml", []byte(text), method.Registry{Method{}}))(t)
}

// dataFor draws rows for a plan: some without a view, some without a cell.
func dataFor(t testing.TB, p *study.Plan) map[string]dataset.Source {
	t.Helper()
	data := map[string]dataset.Source{}
	o := p.Method.Options.(*Options)
	for n, site := range p.Sites {
		r := rand.New(rand.NewPCG(uint64(site[0]), 5))
		var rows []dataset.Row
		for i := range 12 + 4*n {
			x0, x1, k := r.NormFloat64(), 1+r.NormFloat64(), float64(r.IntN(3))
			f := 1.5*x0 - x1 + k - 1
			y := fmt.Sprint(f + 0.7*r.NormFloat64())
			if levels := o.Outcome.Levels; len(levels) > 0 {
				y = levels[min(max(int(math.Round(f+r.NormFloat64()))+1, 0), len(levels)-1)]
			}
			row := dataset.Row{ID: fmt.Sprintf("%04d", i), Views: [][]float64{{x0, k}, {x1}}, Subject: []string{y}}
			switch {
			case i%7 == 3 && o.Missing == glm.Neutral:
				row.Views[1] = nil
			case i%7 == 5 && o.Missing == glm.Neutral:
				row.Views[0][0], row.Views[0][1] = math.NaN(), math.NaN()
			}
			rows = append(rows, row)
		}
		table := testkit.Get(dataset.NewTable(p.Schema(), rows))(t)
		data[site] = table
	}
	return data
}

func cases(t testing.TB) map[string]methodtest.Case {
	all := map[string]methodtest.Case{}
	for name, x := range plans {
		p := x.plan(t)
		all[name] = methodtest.Case{Plan: p, Data: dataFor(t, p), Digest: x.digest}
	}
	return all
}

func TestContract(t *testing.T) {
	methodtest.Run(t, Method{}, cases(t), methodtest.Options{Studies: 2})
}

func FuzzAnswers(f *testing.F) { methodtest.FuzzAnswers(f, Method{}, cases(f)) }

func FuzzTasks(f *testing.F) { methodtest.FuzzTasks(f, Method{}, cases(f)) }

const hostilePlan = `
parley: 1
name: hostile
sites: [a, b]
views:
  - {name: v, features: [{name: x0, range: [0, 1]}, {name: x1, range: [0, 1]}]}
subjects: [y]
method: {name: dp-pvi, outcome: {column: y, levels: [no, yes]}, rounds: 3}
privacy: {protection: none}
`

func hostileSetup(t testing.TB, change ...string) (coordinator, *siteHalf) {
	t.Helper()
	text := strings.NewReplacer(change...).Replace(hostilePlan)
	p := parse(t, text)
	c := testkit.Get(Method{}.Coordinator(p))(t)
	h := testkit.Get(Method{}.Site(p, "a"))(t)
	return c.(coordinator), h.(*siteHalf)
}

func pack(t testing.TB, v any) []byte {
	t.Helper()
	return testkit.Get(wire.Marshal(v))(t)
}

func constant(n int, x float64) wire.Vector { return slices.Repeat(wire.Vector{x}, n) }

// Steps that all lead one way, each as long as may be, end where sites can still
// work.
func TestStepsEndWhereSitesCanWork(t *testing.T) {
	rows := "rounds: 3, algorithm: global, rows: [{site: a, rows: 5}, {site: b, rows: 5}], global: {learning_rate: "
	for rate, signs := range map[float64][]float64{40: {1, 1}, 50: {1, -1}, 1e20: {-1, 1}, 1e40: {-1, -1}} {
		c, h := hostileSetup(t, "rounds: 3}", rows+fmt.Sprint(rate)+"}}")
		ms := testkit.Get(c.Init())(t)
		s := ms.(*State)
		s.Phase = TaskUpdate
		for range 30 {
			s.Sites["a"].Asked++
			step := append(constant(3, signs[0]*rate), constant(3, signs[1]*rate)...)
			if _, err := c.Fold(s, method.Contribution{Site: "a", Kind: TaskUpdate,
				Body: pack(t, stepAnswer{step})}); err != nil {
				t.Fatalf("rate %v: %v", rate, err)
			}
			q, err := c.posterior(s)
			if err != nil {
				t.Fatalf("rate %v: %v", rate, err)
			}
			task := updateTask{Q: q, Factor: flat(3), Update: 1,
				Scale: &scale{Centre: constant(2, 0), Scale: constant(2, 1)}}
			if _, err := h.open(method.Task{Kind: TaskUpdate, Body: pack(t, task)}, nil); err != nil {
				t.Fatalf("rate %v: %v", rate, err)
			}
		}
	}
}
