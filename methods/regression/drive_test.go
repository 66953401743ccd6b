package regression

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"parley/dataset"
	"parley/internal/testkit"
	"parley/method"
	"parley/method/methodtest"
	"parley/methods/regression/fitted"
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
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
method: {name: regression, [method]}
privacy: [privacy]
`

const (
	twoClasses   = "outcome: {column: y, levels: [p, q]}"
	threeClasses = "outcome: {column: y, levels: [p, q, r]}"
	noProtection = "{protection: none}"
	bySubject    = "{protection: differential, unit: subject, adjacency: add-remove, total: {epsilon: 3, delta: 1e-3}}"
	diagnosed    = "{protection: differential, unit: subject, adjacency: add-remove, diagnostics: 0.2, total: " +
		"{epsilon: 3, delta: 1e-3}}"
	// Scales without ranges, so that a row may hold anything.
	boundless = ", scaling: constants, constants: [{feature: x0, centre: 0, scale: 1}, {feature: x1, centre: 1, " +
		"scale: 2}]"
)

// driven is a plan by what is written in its brackets, and the digest of its study, if that is held.
type driven struct{ method, privacy, digest string }

// privatePlans are every kind of private study.
var privatePlans = map[string]driven{
	"noised, logistic": {twoClasses + ", rounds: 6", bySubject,
		"534a0cdadee6d9186f3f3075fec17d63764a7be38b314c5cee28a4fba2a1fb96"},
	"noised, diagnostics": {twoClasses + ", rounds: 6", diagnosed,
		"e9c6e88035abaeaf565cc33f0ea869ad5c1e4e889f3be602a5d3b6367b022946"},
	"noised, softmax": {threeClasses + ", rounds: 6", diagnosed, ""},
	"noised, offset":  {twoClasses + ", rounds: 6, offset: e, offset_range: [-1, 2]", bySubject, ""},
	"noised, number":  {"outcome: {column: y, range: [-9, 9]}, rounds: 6", bySubject, ""},
	"noised, number, offset": {"outcome: {column: y, range: [-9, 9]}, rounds: 6, offset: e, offset_range: [-1, 2]",
		bySubject, ""},
	"noised, boundless": {twoClasses + ", rounds: 6" + boundless, diagnosed, ""},
	"noised, replace one": {twoClasses + ", rounds: 6, missing: refuse",
		strings.Replace(diagnosed, "add-remove", "replace-one", 1), ""},
}

// exactPlans are every kind of study without privacy.
var exactPlans = map[string]driven{
	"joint, logistic": {twoClasses + "", noProtection,
		"3f69e057f384cc44587e107f94a13d73c5c2ce7c021e9549ed221d485dbf670a"},
	"joint, ranges": {twoClasses + ", scaling: range", noProtection, ""},
	"joint, softmax": {threeClasses + "", noProtection,
		"6895632a103538f97414203e4420409ce0bc8ef521d7fb8c1ca1a8d3883d6b27"},
	"joint, linear": {"outcome: {column: y}", noProtection,
		"2f8ac5f42b63c0fe2d1f137b3a83f78e77015cd0ce582c9c150ac32cfe68e6cd"},
	"joint, random": {twoClasses + ", site_effects: random", noProtection, ""},
	"joint, counts": {"outcome: {column: y}, likelihood: poisson, interactions: [[x0, k]], splines: [{feature: x1, " +
		"knots: [-1, 0, 1, 3]}], site_effects: random", noProtection, ""},
	"joint, hazard": {"outcome: {column: y, event: e, levels: [no, yes], cuts: [0.5, 1, 2]}", noProtection, ""},
}

func (d driven) plan(t testing.TB) *study.Plan {
	t.Helper()
	text := strings.NewReplacer("[method]", d.method, "[privacy]", d.privacy).Replace(drivenPlan)
	if strings.Contains(d.method, "event:") || strings.Contains(d.method, "offset:") {
		text = strings.Replace(text, "subjects: [y]", "subjects: [y, e]", 1)
	}
	return testkit.Get(study.Parse("plan.yaml", []byte(text), method.Registry{Method{}}))(t)
}

// rowsFor draws a site's rows for a plan: some without a view, some without a cell.
func rowsFor(t testing.TB, p *study.Plan, site string, n int) *dataset.Table {
	t.Helper()
	opts := p.Method.Options.(*options.Options)
	r := rand.New(rand.NewPCG(uint64(site[0]), 5))
	var rows []dataset.Row
	for i := range n {
		x0, x1, k := r.NormFloat64(), 1+r.NormFloat64(), float64(r.IntN(3))
		f := 1.5*x0 - x1 + k - 1
		y := fmt.Sprint(f + 0.7*r.NormFloat64())
		if levels := opts.Outcome.Levels; len(levels) > 0 {
			y = levels[min(max(int(math.Round(f+r.NormFloat64()))+1, 0), len(levels)-1)]
		}
		if opts.Likelihood == glm.LikelihoodPoisson {
			y = fmt.Sprint(math.Round(math.Exp(min(f, 3))))
		}
		row := dataset.Row{ID: fmt.Sprintf("%04d", i), Views: [][]float64{{x0, k}, {x1}}, Subject: []string{y}}
		if opts.Outcome.Event != "" {
			row.Subject = []string{fmt.Sprint(math.Abs(f)), y}
		}
		if opts.Offset != "" {
			row.Subject = append(row.Subject, fmt.Sprint(x1))
		}
		switch {
		case i%7 == 3 && opts.Missing == glm.Neutral:
			row.Views[1] = nil
		case i%7 == 5 && opts.Missing == glm.Neutral:
			row.Views[0][0], row.Views[0][1] = math.NaN(), math.NaN()
		}
		rows = append(rows, row)
	}
	return testkit.Get(dataset.NewTable(p.Schema(), rows))(t)
}

func dataFor(t testing.TB, p *study.Plan) map[string]dataset.Source {
	t.Helper()
	data := map[string]dataset.Source{}
	for i, site := range p.Sites {
		data[site] = rowsFor(t, p, site, 12+4*i)
	}
	return data
}

func cases(t testing.TB) map[string]methodtest.Case {
	all := map[string]methodtest.Case{}
	for _, plans := range []map[string]driven{exactPlans, privatePlans} {
		for name, x := range plans {
			p := x.plan(t)
			all[name] = methodtest.Case{Plan: p, Data: dataFor(t, p), Digest: x.digest}
		}
	}
	return all
}

func TestContract(t *testing.T) {
	methodtest.Run(t, Method{}, cases(t), methodtest.Options{
		Studies: 1, Draw: awkward, Drawn: 400,
		Excuses: []string{"no site has a single value of it", "so that it cannot be scaled"},
	})
}

func FuzzAnswers(f *testing.F) { methodtest.FuzzAnswers(f, Method{}, cases(f)) }

func FuzzTasks(f *testing.F) { methodtest.FuzzTasks(f, Method{}, cases(f)) }

func FuzzModel(f *testing.F) {
	c := testkit.Get(options.New(exactPlans["joint, softmax"].plan(f)))(f)
	m := testkit.Get(fitted.New(c.Plan, c.Options, c.Prior, c.Prior.Normal(), &c.Encoding))(f)
	data := testkit.Get(m.Encode())(f)
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := fitted.LoadModel(data)
		if err != nil {
			return
		}
		if _, err := m.Summary(3); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Files(); err != nil {
			t.Fatal(err)
		}
	})
}
