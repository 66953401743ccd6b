package regression

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"parley/dataset"
	"parley/method"
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
	"parley/privacy"
	"parley/privacy/privacytest"
	"parley/sitestore"
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
	declaredRows = ", rows: [{site: a, rows: 9}, {site: b, rows: 30}, {site: c, rows: 30}]"
	noProtection = "{protection: none}"
	bySubject    = "{protection: differential, unit: subject, adjacency: add-remove, total: {epsilon: 3, delta: 1e-3}}"
	diagnosed    = "{protection: differential, unit: subject, adjacency: add-remove, diagnostics: 0.2, total: {epsilon: 3, delta: 1e-3}}"
	bySite       = "{protection: differential, unit: site, adjacency: add-remove, total: {epsilon: 3, delta: 1e-3}}"
	// Scales without ranges, so that a row may hold anything.
	boundless  = ", scaling: constants, constants: [{feature: x0, centre: 0, scale: 1}, {feature: x1, centre: 1, scale: 2}]"
	published3 = ", variant: published, published: {noise: 60, steps: 3, draws: 5}, rounds: 4" + declaredRows
)

// driven is a plan by what is written in its brackets.
type driven struct{ method, privacy string }

// privatePlans are every kind of private study.
var privatePlans = map[string]driven{
	"logistic":                         {twoClasses + ", rounds: 3", bySubject},
	"logistic, no intercept":           {twoClasses + ", rounds: 3, intercept: false", bySubject},
	"logistic, diagnostics":            {twoClasses + ", rounds: 3", diagnosed},
	"logistic, boundless":              {twoClasses + ", rounds: 3" + boundless, diagnosed},
	"logistic, missing refused":        {twoClasses + ", rounds: 3, missing: refuse", diagnosed},
	"logistic, replace one":            {twoClasses + ", rounds: 3", strings.Replace(diagnosed, "add-remove", "replace-one", 1)},
	"logistic, sequential":             {twoClasses + ", rounds: 3, schedule: sequential", bySubject},
	"logistic, asynchronous":           {twoClasses + ", rounds: 3, schedule: asynchronous" + declaredRows, diagnosed},
	"logistic, random":                 {twoClasses + ", rounds: 3, schedule: random" + declaredRows, diagnosed},
	"noised, logistic":                 {twoClasses + ", variant: joint, rounds: 6", bySubject},
	"noised, diagnostics":              {twoClasses + ", variant: joint, rounds: 6", diagnosed},
	"noised, boundless":                {twoClasses + ", variant: joint, rounds: 6" + boundless, diagnosed},
	"noised, replace one":              {twoClasses + ", variant: joint, rounds: 6, missing: refuse", strings.Replace(diagnosed, "add-remove", "replace-one", 1)},
	"softmax":                          {threeClasses + ", rounds: 3", bySubject},
	"softmax, diagnostics":             {threeClasses + ", rounds: 3", diagnosed},
	"softmax, boundless":               {threeClasses + ", rounds: 3" + boundless, diagnosed},
	"softmax, asynchronous":            {threeClasses + ", rounds: 3, schedule: asynchronous" + declaredRows, diagnosed},
	"linear":                           {aNumber + ", rounds: 3", bySubject},
	"linear, boundless":                {aNumber + ", rounds: 3" + boundless, bySubject},
	"linear, sequential":               {aNumber + ", rounds: 3, schedule: sequential", bySubject},
	"whole site, logistic":             {twoClasses + ", rounds: 3, clip: 5", bySite},
	"whole site, softmax":              {threeClasses + ", rounds: 3, clip: 5", bySite},
	"whole site, linear":               {aNumber + ", rounds: 3, clip: 5", bySite},
	"published, logistic":              {twoClasses + published3, bySubject},
	"published, logistic, diagnostics": {twoClasses + published3, diagnosed},
	"published, logistic, boundless":   {twoClasses + published3 + boundless, diagnosed},
	"published, softmax, diagnostics":  {threeClasses + published3, diagnosed},
	"published, linear":                {aNumber + published3, bySubject},
	"published, sequential":            {twoClasses + published3 + ", schedule: sequential", bySubject},
	"published, synchronous":           {twoClasses + published3 + ", schedule: synchronous", diagnosed},
	"logistic, vast clip":              {twoClasses + ", rounds: 8, clip: 1e50", bySubject},
	"linear, vast clip":                {"outcome: {column: y}, noise_variance: 1e-50, rounds: 8, clip: 1e50, prior_variance: 1e50", bySubject},
	"published, vast steps":            {twoClasses + strings.Replace(published3, "draws: 5", "draws: 5, learning_rate: 20", 1) + ", damping: 1", bySubject},
	"published, asynchronous":          {twoClasses + published3 + ", schedule: asynchronous", bySubject},
}

// exactPlans are every kind of study without privacy.
var exactPlans = map[string]driven{
	"exact, logistic":      {twoClasses + ", rounds: 4", noProtection},
	"exact, range":         {twoClasses + ", rounds: 4, scaling: range", noProtection},
	"exact, softmax":       {threeClasses + ", rounds: 3", noProtection},
	"exact, linear":        {aNumber + ", rounds: 3", noProtection},
	"exact, synchronous":   {twoClasses + ", rounds: 4, schedule: synchronous", noProtection},
	"exact, random":        {twoClasses + ", rounds: 4, schedule: random" + declaredRows, noProtection},
	"exact, asynchronous":  {twoClasses + ", rounds: 4, schedule: asynchronous" + declaredRows, noProtection},
	"joint, logistic":      {twoClasses + ", variant: joint", noProtection},
	"joint, levels":        {twoClasses + ", variant: joint, coding: levels, scaling: range", noProtection},
	"joint, softmax":       {threeClasses + ", variant: joint", noProtection},
	"joint, linear":        {"outcome: {column: y}, variant: joint", noProtection},
	"joint, random":        {twoClasses + ", variant: joint, site_effects: random", noProtection},
	"joint, counts":        {"outcome: {column: y}, likelihood: poisson, variant: joint, interactions: [[x0, k]], splines: [{feature: x1, knots: [-1, 0, 1, 3]}], site_effects: random", noProtection},
	"joint, hazard":        {"outcome: {column: y, event: e, levels: [no, yes], cuts: [0.5, 1, 2]}", noProtection},
	"global":               {twoClasses + ", rounds: 5, variant: global" + declaredRows, noProtection},
	"global, softmax":      {threeClasses + ", rounds: 5, variant: global" + declaredRows, noProtection},
	"global, linear":       {aNumber + ", rounds: 5, variant: global" + declaredRows, noProtection},
	"global, vast steps":   {twoClasses + ", rounds: 14, variant: global, global: {learning_rate: 40}" + declaredRows, noProtection},
	"global, asynchronous": {twoClasses + ", rounds: 5, variant: global, schedule: asynchronous" + declaredRows, noProtection},
}

func (d driven) plan(t testing.TB) *study.Plan {
	t.Helper()
	if !strings.Contains(d.method, "variant:") {
		d.method += ", variant: partitioned"
	}
	text := strings.NewReplacer("[method]", d.method, "[privacy]", d.privacy).Replace(drivenPlan)
	if strings.Contains(d.method, "event:") {
		text = strings.Replace(text, "subjects: [y]", "subjects: [y, e]", 1)
	}
	p, err := study.Parse("plan.yaml", []byte(text), method.Registry{Method{}})
	if err != nil {
		t.Fatal(err)
	}
	return p
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

// drive runs a study as the engine does: state and answers pass as bytes, an answer
// that Fold does not take leaves no trace, and its site leaves.
type drive struct {
	plan   *study.Plan
	data   map[string]dataset.Source
	noise  map[string]privacy.Option // of sites; the others' is seeded
	tamper func(site string, in *method.Contribution)
	passed func(task method.Task, in method.Contribution)

	releases map[string][][]byte // sealed, by site
	left     []string
}

// ends is what a whole study came to.
type ends struct {
	result *method.Result
	shares map[string][]byte
}

// answered is an answer on its way.
type answered struct {
	task method.Task
	ends float64
	in   method.Contribution
}

func (d *drive) run(t testing.TB) (out ends, err error) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	c, err := Method{}.Coordinator(d.plan)
	if err != nil {
		return out, err
	}
	sites := map[string]*drivenSite{}
	for _, name := range d.plan.Sites {
		if sites[name], err = d.site(name); err != nil {
			return out, err
		}
	}
	s, err := c.Init()
	if err != nil {
		return out, err
	}
	d.releases = map[string][][]byte{}
	var pending []answered
	now := 0.0
	for round := 1; ; round++ {
		step, err := c.Next(s)
		if err != nil {
			return out, fmt.Errorf("next: %w", err)
		}
		for name, x := range step.Info {
			if !glm.Finite(x) {
				return out, fmt.Errorf("%s is %v", name, x)
			}
		}
		s = step.State
		before, err := s.MarshalBinary()
		if err != nil {
			return out, fmt.Errorf("encoding the state: %w", err)
		}
		if s, err = c.Restore(before); err != nil {
			return out, fmt.Errorf("restoring: %w", err)
		}
		if step.Done {
			break
		}
		for _, task := range step.Tasks {
			in, err := sites[task.Site].answer(t, d, task, round)
			if err != nil {
				return out, fmt.Errorf("site %s, task %q: %w", task.Site, task.Kind, err)
			}
			pending = append(pending, answered{task, now + task.Takes, in})
		}
		fold := pending
		if step.Wait == method.Any && len(pending) > 0 {
			first := slices.MinFunc(pending, func(a, b answered) int {
				if a.ends < b.ends {
					return -1
				}
				return 1
			})
			now = first.ends
			fold = []answered{first}
		}
		var gone []string
		for _, x := range fold {
			pending = slices.DeleteFunc(slices.Clone(pending), func(y answered) bool { return y.task.Site == x.task.Site })
			next, err := c.Fold(s, x.in)
			if err == nil {
				s = next
				if before, err = s.MarshalBinary(); err != nil {
					return out, fmt.Errorf("encoding the state after an answer of site %s: %w", x.task.Site, err)
				}
				continue
			}
			d.left, gone = append(d.left, x.task.Site), append(gone, x.task.Site)
			if s, err = c.Restore(before); err != nil {
				return out, fmt.Errorf("restoring without site %s: %w", x.task.Site, err)
			}
		}
		for _, site := range gone {
			if s, err = c.Leave(s, site); err != nil {
				return out, err
			}
		}
		if round > 2000 {
			return out, errors.New("the study does not end")
		}
	}
	if out.result, err = c.Result(s); err != nil {
		return out, fmt.Errorf("result: %w", err)
	}
	for name, x := range out.result.Metrics {
		if !glm.Finite(x) {
			return out, fmt.Errorf("metric %s is %v", name, x)
		}
	}
	if a, n := out.result.Metrics["accuracy"], out.result.Metrics["subjects"]; a < 0 || a > 1 || n < 0 || n > 2*options.MostRows*float64(len(d.plan.Sites)) {
		return out, fmt.Errorf("accuracy %v of %v subjects", a, n)
	}
	out.shares = map[string][]byte{}
	for _, name := range d.plan.Sites {
		if out.shares[name], err = c.Share(s, name); err != nil {
			return out, fmt.Errorf("share: %w", err)
		}
		if _, err := sites[name].half.Report(t.Context(), out.shares[name], d.data[name]); err != nil {
			return out, fmt.Errorf("report of site %s: %w", name, err)
		}
	}
	return out, nil
}

// drivenSite is a site with its gate.
type drivenSite struct {
	study privacy.Study
	half  method.Site
	gate  *privacy.Gate
}

func (d *drive) site(name string) (*drivenSite, error) {
	list, err := Method{}.Requests(d.plan, name)
	if err != nil {
		return nil, err
	}
	x := &drivenSite{}
	if x.study, err = privacy.StudyOf(d.plan, name, list); err != nil {
		return nil, err
	}
	x.study.Digest = "driven" // seeded noise goes by it, and a plan's may change with what plans can say
	if x.half, err = (Method{}).Site(d.plan, name); err != nil {
		return nil, err
	}
	noise := d.noise[name]
	if noise == nil {
		noise = privacytest.Seeded(11)
	}
	x.gate = privacy.NewGate(x.study, privacy.SimulationPolicy(), sitestore.NewMemory(), d.data[name], noise)
	return x, nil
}

// once answers a task of site a from rows, through a gate that has seen no other task.
func once(t testing.TB, p *study.Plan, half method.Site, rows dataset.Source, task method.Task) (method.Answer, error) {
	t.Helper()
	d := drive{plan: p, data: map[string]dataset.Source{"a": rows}}
	x, err := d.site("a")
	if err != nil {
		t.Fatal(err)
	}
	session, err := x.gate.Admit(privacy.Ask{Study: x.study.Digest, Site: "a", Round: 1, Kind: task.Kind, Task: sha256.Sum256(task.Body)})
	if err != nil {
		t.Fatal(err)
	}
	return half.Run(t.Context(), task, session)
}

// answer is what a site's release opens to.
func (x *drivenSite) answer(t testing.TB, d *drive, task method.Task, round int) (in method.Contribution, err error) {
	t.Helper()
	session, err := x.gate.Admit(privacy.Ask{Study: x.study.Digest, Site: task.Site, Round: round, Kind: task.Kind, Task: sha256.Sum256(fmt.Append(task.Body, round))})
	if err != nil {
		return in, err
	}
	a, err := x.half.Run(t.Context(), task, session)
	if err != nil {
		return in, err
	}
	release, err := session.Seal(a.Body, a.State)
	if err != nil {
		return in, err
	}
	d.releases[task.Site] = append(d.releases[task.Site], release.Bytes())
	i := slices.IndexFunc(x.study.Requests, func(l privacy.Listed) bool { return l.Kind == task.Kind })
	o, err := privacy.Open(release.Bytes(), x.study.Requests[i].Request)
	if err != nil {
		return in, err
	}
	in = method.Contribution{Site: task.Site, Kind: task.Kind, Body: o.Body, Sums: o.Sums}
	if d.passed != nil {
		d.passed(task, in)
	}
	if d.tamper != nil {
		d.tamper(task.Site, &in)
	}
	return in, nil
}

// Every kind of study runs to its end.
func TestDrivenStudiesEnd(t *testing.T) {
	for _, plans := range []map[string]driven{privatePlans, exactPlans} {
		for name, x := range plans {
			p := x.plan(t)
			d := drive{plan: p, data: dataFor(t, p)}
			if _, err := d.run(t); err != nil || len(d.left) > 0 {
				t.Errorf("%s: %v, left %v", name, err, d.left)
			}
		}
	}
}
