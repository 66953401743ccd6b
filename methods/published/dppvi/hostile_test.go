package dppvi

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"parley/dataset"
	"parley/internal/wire"
	"parley/method"
	"parley/method/methodtest"
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
	"parley/methods/regression/predict"
	"parley/privacy"
)

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
	c, err := Method{}.Coordinator(p)
	if err != nil {
		t.Fatal(err)
	}
	h, err := Method{}.Site(p, "a")
	if err != nil {
		t.Fatal(err)
	}
	return c.(coordinator), h.(*siteHalf)
}

var hostilePrivate = []string{"rounds: 3}", "rounds: 3, rows: [{site: a, rows: 5}, {site: b, rows: 5}], update: {noise: 90, steps: 2}}", "{protection: none}", "{protection: differential, unit: subject, adjacency: add-remove, diagnostics: 0.1, total: {epsilon: 1, delta: 1e-5}}"}

// waiting is a state that waits for answers of a kind.
func waiting(t testing.TB, c coordinator, kind string) *state {
	t.Helper()
	ms, err := c.Init()
	if err != nil {
		t.Fatal(err)
	}
	s := ms.(*state)
	s.Phase = kind
	for _, r := range s.Sites {
		r.Asked, r.From = 1, options.Pack(c.Prior)
	}
	return s
}

func pack(t testing.TB, v any) []byte {
	t.Helper()
	b, err := wire.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func constant(n int, x float64) wire.Vector { return slices.Repeat(wire.Vector{x}, n) }

// Whatever another organisation sends comes back as an error that says what is
// wrong, or leaves a posterior that is a density.
func TestHostileAnswersAreRefused(t *testing.T) {
	c, _ := hostileSetup(t, "rounds: 3}", "rounds: 3, scaling: standard}")
	quality := predict.NewAssessment()
	quality.Rows = 1
	wrong := func(change func(a *predict.Assessment)) *predict.Assessment {
		a := predict.NewAssessment()
		a.Rows = 1
		change(a)
		return a
	}
	global, _ := hostileSetup(t, "rounds: 3}", "rounds: 3, algorithm: global, rows: [{site: a, rows: 5}, {site: b, rows: 5}]}")
	private, _ := hostileSetup(t, hostilePrivate...)
	for name, x := range map[string]struct {
		c       coordinator
		kind    string
		body    any
		fine    bool
		problem string
	}{
		"change":               {c, options.TaskUpdate, options.UpdateAnswer{Change: options.Gaussian{Eta: constant(3, 1), Lambda: constant(3, 1)}}, true, ""},
		"change, short":        {c, options.TaskUpdate, options.UpdateAnswer{Change: options.Gaussian{Eta: constant(2, 1), Lambda: constant(3, 1)}}, false, "want 3"},
		"change, enormous":     {c, options.TaskUpdate, options.UpdateAnswer{Change: options.Gaussian{Eta: constant(3, 1e308), Lambda: constant(3, 1e308)}}, false, "beyond all measure"},
		"change, negative":     {c, options.TaskUpdate, options.UpdateAnswer{Change: options.Gaussian{Eta: constant(3, 9), Lambda: constant(3, -9)}}, true, ""}, // projected
		"change, of nothing":   {c, options.TaskUpdate, struct{}{}, false, "want 3"},
		"step":                 {global, options.TaskUpdate, stepAnswer{constant(6, 0.5)}, true, ""},
		"step, too far":        {global, options.TaskUpdate, stepAnswer{constant(6, 0.6)}, false, "the rate allows"},
		"step, short":          {global, options.TaskUpdate, stepAnswer{constant(5, 0.5)}, false, "5 coordinates"},
		"moments, enormous":    {c, options.TaskScale, options.ScaleAnswer{N: constant(2, 4), Mean: constant(2, 1e60), Squares: constant(2, 1)}, false, "a mean of 1e+60"},
		"moments, of too many": {c, options.TaskScale, options.ScaleAnswer{N: constant(2, 1e15), Mean: constant(2, 1), Squares: constant(2, 1)}, false, "count of 1e+15"},
		"moments":              {c, options.TaskScale, options.ScaleAnswer{N: constant(2, 4), Mean: constant(2, 1), Squares: constant(2, 1)}, true, ""},
		"moments, others":      {c, options.TaskScale, options.ScaleAnswer{N: constant(1, 4), Mean: constant(1, 1), Squares: constant(1, 1)}, false, "the plan has 2"},
		"moments, of parts":    {c, options.TaskScale, options.ScaleAnswer{N: constant(2, 4.5), Mean: constant(2, 1), Squares: constant(2, 1)}, false, "count of 4.5"},
		"moments, negative":    {c, options.TaskScale, options.ScaleAnswer{N: constant(2, 4), Mean: constant(2, 1), Squares: constant(2, -1)}, false, "squares of -1"},
		"quality":              {c, options.TaskAssess, quality, true, ""},
		"quality, no rows":     {c, options.TaskAssess, predict.NewAssessment(), false, "0 rows"},
		"quality, too right":   {c, options.TaskAssess, wrong(func(a *predict.Assessment) { a.Correct = 2 }), false, "2 of them correct"},
		"quality, few bins":    {c, options.TaskAssess, wrong(func(a *predict.Assessment) { a.Count = nil }), false, "0, 10 and 10 bins"},
		"quality, too much":    {c, options.TaskAssess, wrong(func(a *predict.Assessment) { a.Observed[3] = 1 }), false, "bin 4"},
		"quality, residuals": {c, options.TaskAssess, wrong(func(a *predict.Assessment) {
			a.Residuals = &predict.Residuals{BinNet: constant(1, 0), Score: constant(3, 0)}
		}), false, "were not asked for"},
		"quality, of classes": {c, options.TaskAssess, wrong(func(a *predict.Assessment) { a.Classes = make([]*predict.Residuals, 3) }), false, "were not asked for"},
		"quality, periods":    {c, options.TaskAssess, wrong(func(a *predict.Assessment) { a.Periods = &predict.Periods{Rows: constant(1, 0)} }), false, "were not asked for"},
		"private change":      {private, options.TaskUpdate, options.UpdateAnswer{Change: options.Gaussian{Eta: constant(3, 1), Lambda: constant(3, 1)}}, true, ""},
	} {
		s := waiting(t, x.c, x.kind)
		_, err := x.c.Fold(s, method.Contribution{Site: "a", Kind: x.kind, Body: pack(t, x.body)})
		if x.fine != (err == nil) || err != nil && !strings.Contains(err.Error(), x.problem) {
			t.Errorf("%s: got %v, want %q", name, err, x.problem)
		}
		if _, err := x.c.posterior(s); x.fine && err != nil {
			t.Errorf("%s: the posterior after it: %v", name, err)
		}
	}
	s := waiting(t, c, options.TaskUpdate)
	s.Sites["a"].Asked = 0
	answer := pack(t, options.UpdateAnswer{Change: options.Gaussian{Eta: constant(3, 1), Lambda: constant(3, 1)}})
	for site, want := range map[string]string{"a": "was not asked", "z": "not a site"} {
		if _, err := c.Fold(s, method.Contribution{Site: site, Kind: options.TaskUpdate, Body: answer}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("site %s: %v", site, err)
		}
	}
}

// Steps that all lead one way, each as long as may be, end where sites can still
// work.
func TestStepsEndWhereSitesCanWork(t *testing.T) {
	rows := "rounds: 3, algorithm: global, rows: [{site: a, rows: 5}, {site: b, rows: 5}], global: {learning_rate: "
	for rate, signs := range map[float64][]float64{40: {1, 1}, 50: {1, -1}, 1e20: {-1, 1}, 1e40: {-1, -1}} {
		c, h := hostileSetup(t, "rounds: 3}", rows+fmt.Sprint(rate)+"}}")
		ms, err := c.Init()
		if err != nil {
			t.Fatal(err)
		}
		s := ms.(*state)
		s.Phase = options.TaskUpdate
		for range 30 {
			s.Sites["a"].Asked++
			step := append(constant(3, signs[0]*rate), constant(3, signs[1]*rate)...)
			if _, err := c.Fold(s, method.Contribution{Site: "a", Kind: options.TaskUpdate, Body: pack(t, stepAnswer{step})}); err != nil {
				t.Fatalf("rate %v: %v", rate, err)
			}
			q, err := c.posterior(s)
			if err != nil {
				t.Fatalf("rate %v: %v", rate, err)
			}
			task := options.UpdateTask{Q: options.Pack(q), Factor: options.Pack(glm.Flat(3)), Update: 1, Scale: &options.Scale{Centre: constant(2, 0), Scale: constant(2, 1)}}
			if _, _, err := h.OpenUpdate(&task, 3, true); err != nil {
				t.Fatalf("rate %v: %v", rate, err)
			}
		}
	}
}

// A site trusts no task either.
func TestHostileTasksAreRefused(t *testing.T) {
	_, h := hostileSetup(t, "rounds: 3}", "rounds: 3, scaling: range}")
	good := options.UpdateTask{Q: options.Pack(h.Prior), Factor: options.Pack(glm.Flat(3)), Update: 1}
	if _, _, err := h.OpenUpdate(&good, 3, true); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*options.UpdateTask){
		"a scale":         func(u *options.UpdateTask) { u.Scale = &options.Scale{Centre: constant(2, 0), Scale: constant(2, 1)} },
		"late update":     func(u *options.UpdateTask) { u.Update = 4 },
		"vast q":          func(u *options.UpdateTask) { u.Q.Eta = constant(3, 1e80) },
		"flat q":          func(u *options.UpdateTask) { u.Q.Lambda = constant(3, 1e-80) },
		"vast factor":     func(u *options.UpdateTask) { u.Factor.Eta = constant(3, -1e80) },
		"short q":         func(u *options.UpdateTask) { u.Q.Eta = constant(2, 0) },
		"improper q":      func(u *options.UpdateTask) { u.Q.Lambda = constant(3, -1) },
		"short factor":    func(u *options.UpdateTask) { u.Factor = options.Gaussian{} },
		"improper cavity": func(u *options.UpdateTask) { u.Factor.Lambda = constant(3, 5) },
		"no update":       func(u *options.UpdateTask) { u.Update = 0 },
		"not finite":      func(u *options.UpdateTask) { u.Q.Eta = constant(3, math.NaN()) },
	} {
		task := good
		change(&task)
		if _, _, err := h.OpenUpdate(&task, 3, true); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for name, change := range map[string][]string{"exact": nil, "private": hostilePrivate} {
		c, _ := hostileSetup(t, change...)
		list, err := Method{}.Requests(c.Plan, "a")
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range list {
			if known := l.Kind == options.TaskUpdate || l.Kind == options.TaskAssess || name == "exact" && l.Kind == options.TaskScale; !known {
				t.Errorf("%s: the plan lists a task %q", name, l.Kind)
			}
			if protected := l.Request.Protection == privacy.Differential; protected != (name == "private") {
				t.Errorf("%s: task %q has protection %q", name, l.Kind, l.Request.Protection)
			}
		}
	}
}

// Coordinator and site take any bytes without a panic; what is folded leaves a
// density.
func FuzzAnswers(f *testing.F) {
	c, _ := hostileSetup(f, "rounds: 3}", "rounds: 3, scaling: standard}")
	private, _ := hostileSetup(f, hostilePrivate...)
	f.Add(pack(f, options.UpdateAnswer{Change: options.Gaussian{Eta: constant(3, 1), Lambda: constant(3, 1)}}))
	f.Add(pack(f, options.ScaleAnswer{N: constant(2, 4), Mean: constant(2, 1), Squares: constant(2, 1)}))
	f.Add(pack(f, predict.NewAssessment()))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, x := range []coordinator{c, private} {
			for _, kind := range []string{options.TaskScale, options.TaskUpdate, options.TaskAssess} {
				s := waiting(t, x, kind)
				if _, err := x.Fold(s, method.Contribution{Site: "a", Kind: kind, Body: body}); err != nil {
					continue
				}
				if _, err := x.posterior(s); err != nil {
					t.Fatalf("%s: %v", kind, err)
				}
			}
		}
	})
}

func FuzzTasks(f *testing.F) {
	_, h := hostileSetup(f, "rounds: 3}", "rounds: 3, scaling: range}")
	table, err := dataset.NewTable(h.Plan.Schema(), []dataset.Row{{ID: "1", Views: [][]float64{{0.5, 0.2}}, Subject: []string{"yes"}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(pack(f, options.UpdateTask{Q: options.Pack(h.Prior), Factor: options.Pack(glm.Flat(3)), Update: 1}))
	f.Add(pack(f, options.AssessTask{Q: options.Pack(h.Prior)}))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, kind := range []string{options.TaskUpdate, options.TaskAssess} {
			methodtest.Once(t, Method{}, h.Plan, h, table, method.Task{Site: "a", Kind: kind, Body: body})
		}
		h.Report(t.Context(), body, table)
	})
}
