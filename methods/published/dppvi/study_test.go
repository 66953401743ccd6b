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
		"8b9ae1c0ba1f6d055a03b403eb9e7c9d35d01d8764201792ce1bab0b7352c161"},
	"private, logistic, diagnostics": {twoClasses + settings3, diagnosed,
		"2664a11a438b14604863a261c5248f042e20667858883b0ec17382ce91feda94"},
	"private, logistic, boundless": {twoClasses + settings3 + boundless, diagnosed,
		"00a3700c8cd07ac2b1f86d170e1944d100a44079dcb5e4e62beff9b37094d1dd"},
	"private, linear": {aNumber + settings3, bySubject,
		"6b54054b9d91407d5ea6ecb0d9554b6659316b8c3ffbd20ecfac917a75eb18d8"},
	"private, sequential": {twoClasses + settings3 + ", schedule: sequential", bySubject,
		"860a2553f2e5766deb59f4c1d94c16864f6843e840faa508c8042f78ee368a07"},
	"private, synchronous": {twoClasses + settings3 + ", schedule: synchronous", diagnosed,
		"eccc2bb78f86ebdf8ffaa021a30996fa02d834d3af8338702dc4a86f46852eb4"},
	"private, asynchronous": {twoClasses + settings3 + ", schedule: asynchronous", bySubject,
		"cc5a50d6d95a272766c93713537f8295ae244e677d4fa94431c07d2da8daa428"},
	"private, vast steps": {twoClasses + strings.Replace(settings3, "draws: 5", "draws: 5, learning_rate: 20", 1) +
		", damping: 1", bySubject,
		"5eb63e8d39d1628f5b22c61a779fe004acd07e9359260f504944801d1cc1531c"},
	"gradients, logistic": {twoClasses + ", rounds: 4, update: {steps: 3, draws: 5}" + declaredRows, noProtection,
		"452ae306ba3f960e74e48c02783b183dd10f25b8641e5416dad17789a7500d07"},
	"gradients, vast steps": {aNumber + ", rounds: 4, damping: 1, update: {learning_rate: 20}" + declaredRows,
		noProtection,
		"fdfa319fdbe57504dbe377777fcc0f631efcaa49a191fb0bb3a3483d1c567ab9"},
	"exact, logistic": {twoClasses + ", algorithm: exact, rounds: 4", noProtection,
		"528428dc9fb159d0cb52988efe559ffe59a39c15d79ce3dcc02a57804ef4bb8c"},
	"exact, range": {twoClasses + ", algorithm: exact, rounds: 4, scaling: range", noProtection,
		"c85ba84fa7c3e6a16009fc0af4d9b9611990e694cdc7b9eeeb40d31275bb87de"},
	"exact, linear": {aNumber + ", algorithm: exact, rounds: 3", noProtection,
		"b599aff5619b75df0b0ed6b2021b0e1249fda268f70cedcdf428c1233bedc322"},
	"exact, synchronous": {twoClasses + ", algorithm: exact, rounds: 4, schedule: synchronous", noProtection,
		"3d8d4e7336b5fed3a80ae49410080a6139bc7276b6ebf7bdf600878615b39c67"},
	"exact, random": {twoClasses + ", algorithm: exact, rounds: 4, schedule: random" + declaredRows, noProtection,
		"924803927828e362cd67856a896f80db99dfb71e479bf9f1307d26e9c7fccd96"},
	"exact, asynchronous": {twoClasses + ", algorithm: exact, rounds: 4, schedule: asynchronous" + declaredRows,
		noProtection,
		"37c05c28916a91f1a3b6ef11d7272924c3e204ad2a7ec42f443b8a604e20a56e"},
	"global": {twoClasses + global, noProtection,
		"6f3f07165314a44b8b8b2df7ccfe5c3475ce89dd07aee6161d008a1f4f2cb7e7"},
	"global, linear": {aNumber + global, noProtection,
		"1160e7ca2688c48379e617cbcab4accfc9db3777207716a7a6ebe8f2c749ac28"},
	"global, vast steps": {twoClasses + ", rounds: 14, algorithm: global, global: {learning_rate: 40}" + declaredRows,
		noProtection,
		"609ed7e0bd36b3ada4352fe740211b05ad2d0624d354476ff563930c1b14a086"},
	"global, asynchronous": {twoClasses + global + ", schedule: asynchronous", noProtection,
		"43d3d80644e151cf1b9e1f0e419b2e68c045bf8410b936ad89831a034b1d858f"},
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
			task := updateTask{Q: q, Factor: glm.Flat(3), Update: 1,
				Scale: &scale{Centre: constant(2, 0), Scale: constant(2, 1)}}
			if _, err := h.open(method.Task{Kind: TaskUpdate, Body: pack(t, task)}, nil); err != nil {
				t.Fatalf("rate %v: %v", rate, err)
			}
		}
	}
}
