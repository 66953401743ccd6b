package regression

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
method: {name: pvi, [method]}
privacy: [privacy]
`

const (
	twoClasses   = "outcome: {column: y, levels: [p, q]}"
	threeClasses = "outcome: {column: y, levels: [p, q, r]}"
	aNumber      = "outcome: {column: y}, noise_variance: 0.5"
	noProtection = "{protection: none}"
	bySubject    = "{protection: differential, unit: subject, adjacency: add-remove, total: {epsilon: 3, delta: 1e-3}}"
	diagnosed    = "{protection: differential, unit: subject, adjacency: add-remove, diagnostics: 0.2, total: {epsilon: 3, delta: 1e-3}}"
	bySite       = "{protection: differential, unit: site, adjacency: add-remove, total: {epsilon: 3, delta: 1e-3}}"
	// Scales without ranges, so that a row may hold anything.
	boundless   = ", scaling: constants, constants: [{feature: x0, centre: 0, scale: 1}, {feature: x1, centre: 1, scale: 2}]"
	independent = " " // see MakeIndependent
)

// driven is a plan by what is written in its brackets.
type driven struct{ method, privacy string }

// privatePlans are every kind of private study.
var privatePlans = map[string]driven{
	"logistic":                  {twoClasses + ", rounds: 3, damping: 0.5", bySubject},
	"logistic, no intercept":    {twoClasses + ", rounds: 3, intercept: false", bySubject},
	"logistic, diagnostics":     {twoClasses + ", rounds: 3, damping: 0.5", diagnosed},
	"logistic, boundless":       {twoClasses + ", rounds: 3, damping: 0.5" + boundless, diagnosed},
	"logistic, missing refused": {twoClasses + ", rounds: 3, damping: 0.5, missing: refuse", diagnosed},
	"logistic, replace one":     {twoClasses + ", rounds: 3, damping: 0.5", strings.Replace(diagnosed, "add-remove", "replace-one", 1)},
	"logistic, sequential":      {twoClasses + ", rounds: 3, schedule: sequential", bySubject},
	"linear, sequential":        {aNumber + ", rounds: 3, schedule: sequential", bySubject},
	"noised, logistic":          {twoClasses + ", rounds: 6", bySubject},
	"noised, diagnostics":       {twoClasses + ", rounds: 6", diagnosed},
	"noised, boundless":         {twoClasses + ", rounds: 6" + boundless, diagnosed},
	"noised, replace one":       {twoClasses + ", rounds: 6, missing: refuse", strings.Replace(diagnosed, "add-remove", "replace-one", 1)},
	"softmax":                   {threeClasses + ", rounds: 3", bySubject},
	"softmax, diagnostics":      {threeClasses + ", rounds: 3", diagnosed},
	"softmax, boundless":        {threeClasses + ", rounds: 3" + boundless, diagnosed},
	"linear":                    {aNumber + ", rounds: 3", bySubject},
	"linear, boundless":         {aNumber + ", rounds: 3" + boundless, bySubject},
	"whole site, logistic":      {twoClasses + ", rounds: 3, clip: 5", bySite},
	"whole site, softmax":       {threeClasses + ", rounds: 3, clip: 5", bySite},
	"whole site, linear":        {aNumber + ", rounds: 3, clip: 5", bySite},
	"logistic, vast clip":       {twoClasses + ", rounds: 8, clip: 1e50", bySubject},
	"linear, vast clip":         {"outcome: {column: y}, noise_variance: 1e-50, rounds: 8, clip: 1e50, prior_variance: 1e50", bySubject},
}

// exactPlans are every kind of study without privacy.
var exactPlans = map[string]driven{
	"exact, logistic": {twoClasses + ", rounds: 4" + independent, noProtection},
	"exact, range":    {twoClasses + ", rounds: 4, scaling: range" + independent, noProtection},
	"exact, softmax":  {threeClasses + ", rounds: 3" + independent, noProtection},
	"exact, linear":   {aNumber + ", rounds: 3" + independent, noProtection},
	"joint, logistic": {twoClasses + "", noProtection},
	"joint, levels":   {twoClasses + ", coding: levels, scaling: range", noProtection},
	"joint, softmax":  {threeClasses + "", noProtection},
	"joint, linear":   {"outcome: {column: y}", noProtection},
	"joint, random":   {twoClasses + ", site_effects: random", noProtection},
	"joint, counts":   {"outcome: {column: y}, likelihood: poisson, interactions: [[x0, k]], splines: [{feature: x1, knots: [-1, 0, 1, 3]}], site_effects: random", noProtection},
	"joint, hazard":   {"outcome: {column: y, event: e, levels: [no, yes], cuts: [0.5, 1, 2]}", noProtection},
}

func (d driven) plan(t testing.TB) *study.Plan {
	t.Helper()
	text := strings.NewReplacer("[method]", d.method, "[privacy]", d.privacy).Replace(drivenPlan)
	if strings.Contains(d.method, "event:") {
		text = strings.Replace(text, "subjects: [y]", "subjects: [y, e]", 1)
	}
	p, err := study.Parse("plan.yaml", []byte(text), method.Registry{Method{}})
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(d.method, independent) {
		MakeIndependent(p)
	}
	return p
}

// MakeIndependent makes a plan without privacy one of independent weights, as if there were too many for others.
func MakeIndependent(p *study.Plan) {
	o, tolerance := p.Method.Options.(*options.Options), 1e-3
	o.Form, o.Schedule, o.Damping, o.Tolerance = options.FormIndependent, "sequential", 1, &tolerance
	o.Coding, o.References = options.CodingLevels, nil
	for _, v := range []*float64{&o.PriorVariance, &o.InterceptVariance} {
		if *v == 6.25 || *v == 100 { // the defaults of others
			*v = 1
		}
	}
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
		if opts.Likelihood == options.LikelihoodPoisson {
			y = fmt.Sprint(math.Round(math.Exp(min(f, 3))))
		}
		row := dataset.Row{ID: fmt.Sprintf("%04d", i), Views: [][]float64{{x0, k}, {x1}}, Subject: []string{y}}
		if opts.Outcome.Event != "" {
			row.Subject = []string{fmt.Sprint(math.Abs(f)), y}
		}
		switch {
		case i%7 == 3 && opts.Missing == string(glm.Neutral):
			row.Views[1] = nil
		case i%7 == 5 && opts.Missing == string(glm.Neutral):
			row.Views[0][0], row.Views[0][1] = math.NaN(), math.NaN()
		}
		rows = append(rows, row)
	}
	table, err := dataset.NewTable(p.Schema(), rows)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func dataFor(t testing.TB, p *study.Plan) map[string]dataset.Source {
	t.Helper()
	data := map[string]dataset.Source{}
	for i, site := range p.Sites {
		data[site] = rowsFor(t, p, site, 12+4*i)
	}
	return data
}

// Every kind of study runs to its end.
func TestDrivenStudiesEnd(t *testing.T) {
	for _, plans := range []map[string]driven{privatePlans, exactPlans} {
		for name, x := range plans {
			p := x.plan(t)
			d := methodtest.Drive{Method: Method{}, Plan: p, Data: dataFor(t, p)}
			if _, err := d.Run(t); err != nil || len(d.Left) > 0 {
				t.Errorf("%s: %v, left %v", name, err, d.Left)
			}
		}
	}
}
