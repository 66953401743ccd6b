package dppvi

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"parley/dataset"
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
	threeClasses = "outcome: {column: y, levels: [p, q, r]}"
	aNumber      = "outcome: {column: y}, noise_variance: 0.5"
	declaredRows = ", rows: [{site: a, rows: 9}, {site: b, rows: 30}, {site: c, rows: 30}]"
	noProtection = "{protection: none}"
	bySubject    = "{protection: differential, unit: subject, adjacency: add-remove, total: {epsilon: 3, delta: 1e-3}}"
	diagnosed    = "{protection: differential, unit: subject, adjacency: add-remove, diagnostics: 0.2, total: {epsilon: 3, delta: 1e-3}}"
	// Scales without ranges, so that a row may hold anything.
	boundless = ", scaling: constants, constants: [{feature: x0, centre: 0, scale: 1}, {feature: x1, centre: 1, scale: 2}]"
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
	"private, softmax, diagnostics": {threeClasses + settings3, diagnosed,
		"6ffc90adc142eaad42d1c8d90d8b6a8e3eeda4c5254e4f14f58388cf01795c9d"},
	"private, linear": {aNumber + settings3, bySubject,
		"6b54054b9d91407d5ea6ecb0d9554b6659316b8c3ffbd20ecfac917a75eb18d8"},
	"private, sequential": {twoClasses + settings3 + ", schedule: sequential", bySubject,
		"860a2553f2e5766deb59f4c1d94c16864f6843e840faa508c8042f78ee368a07"},
	"private, synchronous": {twoClasses + settings3 + ", schedule: synchronous", diagnosed,
		"eccc2bb78f86ebdf8ffaa021a30996fa02d834d3af8338702dc4a86f46852eb4"},
	"private, asynchronous": {twoClasses + settings3 + ", schedule: asynchronous", bySubject,
		"cc5a50d6d95a272766c93713537f8295ae244e677d4fa94431c07d2da8daa428"},
	"private, vast steps": {twoClasses + strings.Replace(settings3, "draws: 5", "draws: 5, learning_rate: 20", 1) + ", damping: 1", bySubject,
		"5eb63e8d39d1628f5b22c61a779fe004acd07e9359260f504944801d1cc1531c"},
	"exact, logistic": {twoClasses + ", rounds: 4", noProtection,
		"2bc61d329654c049fb83e43570e87db0ab1080e3973006921612ea6fb9674faa"},
	"exact, range": {twoClasses + ", rounds: 4, scaling: range", noProtection,
		"08d12c83a0c4c59f6ea9c579ec0449450a97b69c83ccd324d694ab72fa5a0103"},
	"exact, softmax": {threeClasses + ", rounds: 3", noProtection,
		"0f258c62a87da412cbe3629c24b84842e98de47d99943bf509ba51a794e8ad70"},
	"exact, linear": {aNumber + ", rounds: 3", noProtection,
		"901aa84087f33b2563ced6d389b0ccb0350c64013c28fc89d65648c138a8112f"},
	"exact, synchronous": {twoClasses + ", rounds: 4, schedule: synchronous", noProtection,
		"789fb9ba50e31a08b1d01673e963478aa2e56e703c2a24698e64afce2418a071"},
	"exact, random": {twoClasses + ", rounds: 4, schedule: random" + declaredRows, noProtection,
		"c4adfa8993247d6e6710698f0da67d14c834f583b93c690d941fa37e922b4692"},
	"exact, asynchronous": {twoClasses + ", rounds: 4, schedule: asynchronous" + declaredRows, noProtection,
		"96852b591947396624f35631cf06bedf328352ea5afe49eb736b088024d4091a"},
	"global": {twoClasses + global, noProtection,
		"dd7c9887e9c7866581c8a9355540819d6ebe4350fb14ad066a1ea999cb66831f"},
	"global, softmax": {threeClasses + global, noProtection,
		"5cde8c6fd83bc0b62cb138a7f085b2d170c8f694dd5dad866dd52082133d6b02"},
	"global, linear": {aNumber + global, noProtection,
		"c72b14008d6120e5263a474b3be94fac8d2450c96322f413c38f87a7cc8c4676"},
	"global, vast steps": {twoClasses + ", rounds: 14, algorithm: global, global: {learning_rate: 40}" + declaredRows, noProtection,
		"4fcd0bbd1d37b90b26a685d698c46ea318579f8f93349d96cbf670cde2353bb3"},
	"global, asynchronous": {twoClasses + global + ", schedule: asynchronous", noProtection,
		"1c6fedff8507aac497ce8df4be06eccce8bd604a509f2723cbb4ba2d63a4d5bf"},
}

func (d driven) plan(t testing.TB) *study.Plan {
	t.Helper()
	return parse(t, strings.NewReplacer("[method]", d.method, "[privacy]", d.privacy).Replace(drivenPlan))
}

func parse(t testing.TB, text string) *study.Plan {
	t.Helper()
	p, err := study.Parse("plan.yaml", []byte(text), method.Registry{Method{}})
	if err != nil {
		t.Fatal(err)
	}
	return p
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
			case i%7 == 3 && o.Missing == string(glm.Neutral):
				row.Views[1] = nil
			case i%7 == 5 && o.Missing == string(glm.Neutral):
				row.Views[0][0], row.Views[0][1] = math.NaN(), math.NaN()
			}
			rows = append(rows, row)
		}
		table, err := dataset.NewTable(p.Schema(), rows)
		if err != nil {
			t.Fatal(err)
		}
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
