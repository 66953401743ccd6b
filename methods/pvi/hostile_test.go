package pvi

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"parley/dataset"
	"parley/internal/wire"
	"parley/method"
	"parley/methods/pvi/gvi"
	"parley/privacy"
	"parley/study"
)

const hostilePlan = `
parley: 1
name: hostile
sites: [a, b]
views:
  - {name: v, features: [{name: x0, range: [0, 1]}, {name: x1, range: [0, 1]}]}
subjects: [y]
method: {name: pvi, outcome: {column: y, levels: [no, yes]}, rounds: 3}
privacy: {protection: none}
`

func hostileSetup(t testing.TB, change ...string) (*coordinator, *site) {
	t.Helper()
	p, err := study.Parse("plan.yaml", []byte(strings.NewReplacer(change...).Replace(hostilePlan)), method.Registry{Method{}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := Method{}.Coordinator(p)
	if err != nil {
		t.Fatal(err)
	}
	h, err := Method{}.Site(p, "a")
	if err != nil {
		t.Fatal(err)
	}
	return c.(*coordinator), h.(*site)
}

var hostilePrivate = []string{"{protection: none}", "{protection: differential, unit: subject, adjacency: add-remove, diagnostics: 0.1, total: {epsilon: 1, delta: 1e-5}}"}

// waiting is a state that waits for answers of a kind.
func waiting(t testing.TB, c *coordinator, kind string) *state {
	t.Helper()
	ms, err := c.Init()
	if err != nil {
		t.Fatal(err)
	}
	s := ms.(*state)
	s.Phase = kind
	for _, r := range s.Sites {
		r.Asked, r.From = 1, packGaussian(c.prior)
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

// sums are noised sums of a contribution.
type sums map[string][]*privacy.Noised

// noised is a noised sum with chosen integers, as it comes out of a release.
func noised(t testing.TB, s privacy.Sum, block []int64) *privacy.Noised {
	t.Helper()
	return noisedBy(t, s, block, 0.25)
}

func noisedBy(t testing.TB, s privacy.Sum, block []int64, step float64) *privacy.Noised {
	t.Helper()
	data, err := json.Marshal(map[string]any{"blocks": [][]int64{block}, "step": step, "sd": s.Bound * s.Mechanism.Noise})
	if err != nil {
		t.Fatal(err)
	}
	n := new(privacy.Noised)
	if err := json.Unmarshal(data, n); err != nil {
		t.Fatal(err)
	}
	return n
}

func constant(n int, x float64) wire.Vector { return slices.Repeat(wire.Vector{x}, n) }

// Whatever another organisation sends comes back as an error that says what is
// wrong, or leaves a posterior that is a density.
func TestHostileAnswersAreRefused(t *testing.T) {
	c, _ := hostileSetup(t, "rounds: 3}", "rounds: 3, scaling: standard}")
	quality := newAssessment()
	quality.Rows = 1
	wrong := func(change func(a *assessment)) *assessment {
		a := newAssessment()
		a.Rows = 1
		change(a)
		return a
	}
	global, _ := hostileSetup(t, "rounds: 3}", "rounds: 3, variant: global, rows: [{site: a, rows: 5}, {site: b, rows: 5}]}")
	private, _ := hostileSetup(t, hostilePrivate...)
	declared := private.protected["a"]
	for name, x := range map[string]struct {
		c       *coordinator
		kind    string
		body    any
		fine    bool
		problem string
	}{
		"change":               {c, taskUpdate, updateAnswer{gaussianMessage{constant(3, 1), constant(3, 1)}}, true, ""},
		"change, short":        {c, taskUpdate, updateAnswer{gaussianMessage{constant(2, 1), constant(3, 1)}}, false, "want 3"},
		"change, enormous":     {c, taskUpdate, updateAnswer{gaussianMessage{constant(3, 1e308), constant(3, 1e308)}}, false, "beyond all measure"},
		"change, negative":     {c, taskUpdate, updateAnswer{gaussianMessage{constant(3, 9), constant(3, -9)}}, true, ""}, // projected
		"change, of nothing":   {c, taskUpdate, struct{}{}, false, "want 3"},
		"step":                 {global, taskUpdate, stepAnswer{constant(6, 0.5)}, true, ""},
		"step, too far":        {global, taskUpdate, stepAnswer{constant(6, 0.6)}, false, "the rate allows"},
		"step, short":          {global, taskUpdate, stepAnswer{constant(5, 0.5)}, false, "5 coordinates"},
		"moments, enormous":    {c, taskScale, scaleAnswer{constant(2, 4), constant(2, 1e60), constant(2, 1)}, false, "a mean of 1e+60"},
		"moments, of too many": {c, taskScale, scaleAnswer{constant(2, 1e15), constant(2, 1), constant(2, 1)}, false, "count of 1e+15"},
		"moments":              {c, taskScale, scaleAnswer{constant(2, 4), constant(2, 1), constant(2, 1)}, true, ""},
		"moments, others":      {c, taskScale, scaleAnswer{constant(1, 4), constant(1, 1), constant(1, 1)}, false, "the plan has 2"},
		"moments, of parts":    {c, taskScale, scaleAnswer{constant(2, 4.5), constant(2, 1), constant(2, 1)}, false, "count of 4.5"},
		"moments, negative":    {c, taskScale, scaleAnswer{constant(2, 4), constant(2, 1), constant(2, -1)}, false, "squares of -1"},
		"quality":              {c, taskAssess, quality, true, ""},
		"quality, no rows":     {c, taskAssess, newAssessment(), false, "0 rows"},
		"quality, too right":   {c, taskAssess, wrong(func(a *assessment) { a.Correct = 2 }), false, "2 of them correct"},
		"quality, few bins":    {c, taskAssess, wrong(func(a *assessment) { a.Count = nil }), false, "0, 10 and 10 bins"},
		"quality, too much":    {c, taskAssess, wrong(func(a *assessment) { a.Observed[3] = 1 }), false, "bin 4"},
		"another kind":         {c, "else", struct{}{}, false, "not asked for"},
		"noised sum":           {private, taskUpdate, sums{sumNatural: {noised(t, declared.sum, make([]int64, 6))}}, true, ""},
		"noised quality":       {private, taskAssess, sums{sumQuality: {noised(t, *declared.quality, make([]int64, qualityLength))}}, true, ""},
		"noised sum, infinite": {private, taskUpdate, sums{sumNatural: {noisedBy(t, declared.sum, slices.Repeat([]int64{math.MaxInt64}, 6), 1e300)}}, true, ""},
		"quality, infinite":    {private, taskAssess, sums{sumQuality: {noisedBy(t, *declared.quality, slices.Repeat([]int64{math.MaxInt64}, qualityLength), 1e300)}}, true, ""},
		"no sum":               {private, taskUpdate, sums{}, false, "0 sums"},
		"two sums":             {private, taskUpdate, sums{sumNatural: {noised(t, declared.sum, make([]int64, 6)), noised(t, declared.sum, make([]int64, 6))}}, false, "2 sums"},
		"another sum":          {private, taskUpdate, sums{sumNatural: {noised(t, declared.sum, []int64{1})}}, false, "1 numbers"},
		"another quality":      {private, taskAssess, sums{sumQuality: {noised(t, *declared.quality, []int64{1})}}, false, "1 numbers"},
		"exact, where private": {private, taskUpdate, updateAnswer{gaussianMessage{constant(3, 1), constant(3, 1)}}, false, "beside its noised sum"},
		"exact quality":        {private, taskAssess, quality, false, "beside its noised sum"},
	} {
		s := waiting(t, x.c, x.kind)
		in := method.Contribution{Site: "a", Kind: x.kind}
		if noised, ok := x.body.(sums); ok {
			in.Sums = noised
		} else {
			in.Body = pack(t, x.body)
		}
		_, err := x.c.Fold(s, in)
		if x.fine != (err == nil) || err != nil && !strings.Contains(err.Error(), x.problem) {
			t.Errorf("%s: got %v, want %q", name, err, x.problem)
		}
		if _, err := x.c.variant.posterior(s); x.fine && err != nil {
			t.Errorf("%s: the posterior after it: %v", name, err)
		}
	}
	s := waiting(t, c, taskUpdate)
	s.Sites["a"].Asked = 0
	answer := pack(t, updateAnswer{gaussianMessage{constant(3, 1), constant(3, 1)}})
	for site, want := range map[string]string{"a": "was not asked", "z": "not a site"} {
		if _, err := c.Fold(s, method.Contribution{Site: site, Kind: taskUpdate, Body: answer}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("site %s: %v", site, err)
		}
	}
	if len(declared.sum.Blocks) != 1 || declared.quality == nil {
		t.Error("the private plan declares other sums")
	}
}

// Steps that all lead one way, each as long as may be, end where sites can still
// work.
func TestStepsEndWhereSitesCanWork(t *testing.T) {
	rows := "rounds: 3, variant: global, rows: [{site: a, rows: 5}, {site: b, rows: 5}], global: {learning_rate: "
	for rate, signs := range map[float64][]float64{40: {1, 1}, 50: {1, -1}, 1e20: {-1, 1}, 1e40: {-1, -1}} {
		c, h := hostileSetup(t, "rounds: 3}", rows+fmt.Sprint(rate)+"}}")
		ms, err := c.Init()
		if err != nil {
			t.Fatal(err)
		}
		s := ms.(*state)
		s.Phase = taskUpdate
		for range 30 {
			s.Sites["a"].Asked++
			step := append(constant(3, signs[0]*rate), constant(3, signs[1]*rate)...)
			if _, err := c.Fold(s, method.Contribution{Site: "a", Kind: taskUpdate, Body: pack(t, stepAnswer{step})}); err != nil {
				t.Fatalf("rate %v: %v", rate, err)
			}
			q, err := c.variant.posterior(s)
			if err != nil {
				t.Fatalf("rate %v: %v", rate, err)
			}
			task := updateTask{Q: packGaussian(q), Factor: packGaussian(gvi.Flat(3)), Update: 1, Scale: &scaleMessage{constant(2, 0), constant(2, 1)}}
			if _, _, _, err := task.open(h.setup, "a"); err != nil {
				t.Fatalf("rate %v: %v", rate, err)
			}
		}
	}
}

// A site trusts no task either.
func TestHostileTasksAreRefused(t *testing.T) {
	_, h := hostileSetup(t, "rounds: 3}", "rounds: 3, scaling: range}")
	good := updateTask{Q: packGaussian(h.prior), Factor: packGaussian(gvi.Flat(3)), Update: 1}
	if _, _, _, err := good.open(h.setup, "a"); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*updateTask){
		"a scale":         func(u *updateTask) { u.Scale = &scaleMessage{constant(2, 0), constant(2, 1)} },
		"late update":     func(u *updateTask) { u.Update = 4 },
		"vast q":          func(u *updateTask) { u.Q.Eta = constant(3, 1e80) },
		"flat q":          func(u *updateTask) { u.Q.Lambda = constant(3, 1e-80) },
		"vast factor":     func(u *updateTask) { u.Factor.Eta = constant(3, -1e80) },
		"short q":         func(u *updateTask) { u.Q.Eta = constant(2, 0) },
		"improper q":      func(u *updateTask) { u.Q.Lambda = constant(3, -1) },
		"short factor":    func(u *updateTask) { u.Factor = gaussianMessage{} },
		"improper cavity": func(u *updateTask) { u.Factor.Lambda = constant(3, 5) },
		"no update":       func(u *updateTask) { u.Update = 0 },
		"not finite":      func(u *updateTask) { u.Q.Eta = constant(3, math.NaN()) },
	} {
		task := good
		change(&task)
		if _, _, _, err := task.open(h.setup, "a"); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for name, change := range map[string][]string{"exact": nil, "private": hostilePrivate} {
		c, _ := hostileSetup(t, change...)
		list, err := Method{}.Requests(c.plan, "a")
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range list {
			if known := l.Kind == taskUpdate || l.Kind == taskAssess || name == "exact" && l.Kind == taskScale; !known {
				t.Errorf("%s: the plan lists a task %q", name, l.Kind)
			}
			if protected := l.Request.Protection == privacy.Differential; protected != (name == "private") {
				t.Errorf("%s: task %q has protection %q", name, l.Kind, l.Request.Protection)
			}
		}
	}
}

// States come back from checkpoints, which may be damaged.
func TestDamagedStatesAreRefused(t *testing.T) {
	c, _ := hostileSetup(t)
	for name, change := range map[string]func(*state){
		"no site":      func(s *state) { delete(s.Sites, "b") },
		"short factor": func(s *state) { s.Sites["b"].Factor.Eta = nil },
		"improper q":   func(s *state) { s.Sites["b"].From = gaussianMessage{} },
	} {
		s := waiting(t, c, taskUpdate)
		change(s)
		data, err := s.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Restore(data); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := c.Restore([]byte{1, 2}); err == nil {
		t.Error("two bytes were a state")
	}
}

// Coordinator and site take any bytes without a panic; what is folded leaves a
// density.
func FuzzAnswers(f *testing.F) {
	c, _ := hostileSetup(f, "rounds: 3}", "rounds: 3, scaling: standard}")
	private, _ := hostileSetup(f, hostilePrivate...)
	f.Add(pack(f, updateAnswer{gaussianMessage{constant(3, 1), constant(3, 1)}}))
	f.Add(pack(f, scaleAnswer{constant(2, 4), constant(2, 1), constant(2, 1)}))
	f.Add(pack(f, newAssessment()))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, x := range []*coordinator{c, private} {
			for _, kind := range []string{taskScale, taskUpdate, taskAssess} {
				s := waiting(t, x, kind)
				if _, err := x.Fold(s, method.Contribution{Site: "a", Kind: kind, Body: body}); err != nil {
					continue
				}
				if _, err := x.variant.posterior(s); err != nil {
					t.Fatalf("%s: %v", kind, err)
				}
			}
		}
	})
}

func FuzzTasks(f *testing.F) {
	_, h := hostileSetup(f, "rounds: 3}", "rounds: 3, scaling: range}")
	table, err := dataset.NewTable(h.plan.Schema(), []dataset.Row{{ID: "1", Views: [][]float64{{0.5, 0.2}}, Subject: []string{"yes"}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(pack(f, updateTask{Q: packGaussian(h.prior), Factor: packGaussian(gvi.Flat(3)), Update: 1}))
	f.Add(pack(f, assessTask{Q: packGaussian(h.prior)}))
	f.Fuzz(func(t *testing.T, body []byte) {
		h.update(t.Context(), method.Task{Site: "a", Kind: taskUpdate, Body: body}, table, nil)
		h.assess(t.Context(), method.Task{Kind: taskAssess, Body: body}, table)
		h.Report(t.Context(), body, table)
	})
}

func FuzzModel(f *testing.F) {
	c, _ := hostileSetup(f)
	m, err := c.model(c.prior, &c.encoding)
	if err != nil {
		f.Fatal(err)
	}
	data, err := m.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := LoadModel(data)
		if err != nil {
			return
		}
		if _, err := m.Summary(3); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Export("csv"); err != nil {
			t.Fatal(err)
		}
	})
}
