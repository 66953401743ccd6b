package dppvi

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"runtime"
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

// driven is a plan by what is written in its brackets, and the digest of what its study says on its
// way and ends with: computed by the program of before this was a method, when it was a variant
// of pvi, without the lines that name either.
type driven struct{ method, privacy, digest string }

var plans = map[string]driven{
	"private, logistic": {twoClasses + settings3, bySubject,
		"c778bdf492062bce6b8842b827bc08cd40e3ffada0bc668cc94dfae80a091bc3"},
	"private, logistic, diagnostics": {twoClasses + settings3, diagnosed,
		"9d2c8d77dac57835d1d44958cd0412880b34d4392eb0e2102309b620f9eb0567"},
	"private, logistic, boundless": {twoClasses + settings3 + boundless, diagnosed,
		"416a2cc72c77b747e93bbbbb40584b7c0c4e01d5794e8540bedf883f968345f8"},
	"private, softmax, diagnostics": {threeClasses + settings3, diagnosed,
		"573725fb0d55cd5ea36fa598ad5fc3df2b6089a2222cad18ab8b0f9da577ebbe"},
	"private, linear": {aNumber + settings3, bySubject,
		"1f2c5aa7ad549469f9f4cb4d812a4c32aa5c2708685de8d8c766a500fa9b5a00"},
	"private, sequential": {twoClasses + settings3 + ", schedule: sequential", bySubject,
		"1d9fa28e646f6e31404ceaba77a8a11b3ec3da60bfaf39ab02f8ab4b6230be1f"},
	"private, synchronous": {twoClasses + settings3 + ", schedule: synchronous", diagnosed,
		"6ab43d7250ef48e187e97484197388bdb61fe12ab39f35d31543fcf1daec881a"},
	"private, asynchronous": {twoClasses + settings3 + ", schedule: asynchronous", bySubject,
		"bd53aebc2b4189534ba3fd521b3d7c87f1dd1347947302706e0e6c5864f592b4"},
	"private, vast steps": {twoClasses + strings.Replace(settings3, "draws: 5", "draws: 5, learning_rate: 20", 1) + ", damping: 1", bySubject,
		"4b70d6f0286b274a5f19a2ce247864c96afc9947b2038343a4692710f938a3f6"},
	"exact, logistic": {twoClasses + ", rounds: 4", noProtection,
		"08c7ea840ee4489927933b175bd39ac2132cc5796403a44134ab80f376bcb38e"},
	"exact, range": {twoClasses + ", rounds: 4, scaling: range", noProtection,
		"14ca97010b34482cbbf757e04d2e2671b885e4e9498c8d191c0c87b9c58b8fd7"},
	"exact, softmax": {threeClasses + ", rounds: 3", noProtection,
		"e4d4081cb76d691be97e9e89adf20f9a659b6b45ab93b94a56bcb8c4df2fc329"},
	"exact, linear": {aNumber + ", rounds: 3", noProtection,
		"9349ba884f079219d698d34a8154051c5dbd28ac15c65ae74c65bd5246f7edd3"},
	"exact, synchronous": {twoClasses + ", rounds: 4, schedule: synchronous", noProtection,
		"d6adb0c0a6ff66bedd8bfec037eea7376277a1a2fb8b3ee3cf9dfc875cb1e219"},
	"exact, random": {twoClasses + ", rounds: 4, schedule: random" + declaredRows, noProtection,
		"c966897cc10a1abbbe83894bf2d8e5d53b2bcd0d34ce549a3d47bd053c123c36"},
	"exact, asynchronous": {twoClasses + ", rounds: 4, schedule: asynchronous" + declaredRows, noProtection,
		"0942dae8df6cda64e14d9196c865b8698b6377356ce5c01357f099777cf17f22"},
	"global": {twoClasses + global, noProtection,
		"3a94df4af30a9b17b013d3a276d07408f006046d865d46d71efc97f0b18c0cb1"},
	"global, softmax": {threeClasses + global, noProtection,
		"e8d6cc98c02244af19c31cdd0037e2a3252b959878ffd6750c72b7707fcbf62c"},
	"global, linear": {aNumber + global, noProtection,
		"35185fdcbca39c8d43f6a13a765abee7e967cb1c3c1b3bc2b24097074494aec0"},
	"global, vast steps": {twoClasses + ", rounds: 14, algorithm: global, global: {learning_rate: 40}" + declaredRows, noProtection,
		"df6ee506c15886739ca261b87d93f773882e88676764bb9e76267166d55cd337"},
	"global, asynchronous": {twoClasses + global + ", schedule: asynchronous", noProtection,
		"72987e4a7e37e1662af8a1d1de1a7d6b6d9ab696f4fbcaf7906e86daf2516812"},
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

// named are lines of a model that name the plan, the method, or what decides no number.
var named = regexp.MustCompile(`(?m)^( "plan_sha256"| "method"|  "variant"|  "algorithm"|  "coding"|  "published"|  "update"): .*\n`)

// The revision stands for the numbers: both ends of a study must have the same one,
// so that it must change with them.
func TestRevisionStandsForTheNumbers(t *testing.T) {
	if got := (Method{}).Revision(); got != 1 {
		t.Fatalf("these digests are those of revision 1, not %d: put in what this test says", got)
	}
	for name, x := range plans {
		p := x.plan(t)
		h := sha256.New()
		d := methodtest.Drive{Method: Method{}, Plan: p, Data: dataFor(t, p), Passed: func(task method.Task, in method.Contribution) {
			fmt.Fprintf(h, "%s %s %d %d\n%s%s", task.Site, task.Kind, len(task.Body), len(in.Body), task.Body, in.Body)
		}}
		out, err := d.Run(t)
		if err != nil || len(d.Left) > 0 {
			t.Fatalf("%s: %v, left %v", name, err, d.Left)
		}
		for _, f := range out.Result.Files {
			data := f.Data
			if strings.HasSuffix(f.Name, ".json") {
				data = named.ReplaceAll(data, nil)
			}
			fmt.Fprintf(h, "%s %d\n%s", f.Name, len(data), data)
		}
		if got := hex.EncodeToString(h.Sum(nil)); got != x.digest && runtime.GOARCH == "amd64" {
			t.Errorf("%q: the numbers have changed, or the form of a message. If that was meant, raise Method.Revision by one, and put in the new digest:\n  %s", name, got)
		}
	}
}
