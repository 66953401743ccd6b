package mixture

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"parley/internal/testkit"
	"parley/internal/wire"
	"parley/method"
	"parley/methods/mixture/options"
	"parley/privacy"
	"parley/privacy/privacytest"
	"parley/sitestore"
	"parley/study"
)

// A site's answer to tasks that no study asks: every number of an honest one is
// changed, and the site refuses, or answers with what can be sealed.

// taskTypes are the bodies of tasks, by kind.
var taskTypes = map[string]func() any{
	taskLandmarks:   func() any { return new(landmarkTask) },
	taskFrequencies: func() any { return new(landmarkTask) },
	taskEncoder:     func() any { return new(encoderTask) },
	taskClassifier:  func() any { return new(linearTask) },
	taskWorth:       func() any { return new(worthShare) },
}

// asked are the tasks of an honest study for site a.
func asked(t testing.TB, p *study.Plan) (tasks []method.Task) {
	t.Helper()
	sites := everySite(t, p, rowsOf(t, p), privacytest.Seeded(5))
	a := sites["a"]
	a.half = listening{a.half, &tasks}
	if _, err := play(t, p, sites, honest); err != nil {
		t.Fatal(err)
	}
	return tasks
}

// listening is a half that writes down what it is asked.
type listening struct {
	method.Site
	to *[]method.Task
}

// Run implements [method.Site].
func (l listening) Run(ctx context.Context, t method.Task, s *privacy.Session) (method.Answer, error) {
	*l.to = append(*l.to, t)
	return l.Site.Run(ctx, t, s)
}

func TestTasksThatNoStudyAsksAreRefused(t *testing.T) {
	tries := 400
	if testkit.Sized(true, false) {
		tries = 80
	}
	refused, answered := 0, 0
	for _, name := range slices.Sorted(maps.Keys(studied())) {
		if strings.Contains(name, "replace") { // sites see nothing of it
			continue
		}
		p := parsePlan(t, studied()[name])
		tasks := asked(t, p)
		setup, err := options.New(p)
		if err != nil {
			t.Fatal(err)
		}
		data := rowsOf(t, p)
		for try := range tries {
			r := rand.New(rand.NewPCG(uint64(try), 13))
			task := pickOne(r, tasks)
			body, ok := worsen(t, r, setup, task)
			if !ok {
				continue
			}
			g := behindGate(t, p, "a", sitestore.NewMemory(), data, privacytest.Seeded(5))
			if _, err := g.answer(t, method.Task{Site: "a", Kind: task.Kind, Body: body}); err != nil {
				refused++
			} else {
				answered++
			}
		}
	}
	if refused < 50 || answered < 20 {
		t.Errorf("%d tasks were refused and %d answered: that is hardly a test", refused, answered)
	}
	t.Logf("%d refused, %d answered", refused, answered)
}

// worsen changes what a task holds, or the encoder around it.
func worsen(t testing.TB, r *rand.Rand, s *options.Setup, task method.Task) (body []byte, ok bool) {
	t.Helper()
	outer := &encodedTask{Body: task.Body}
	around := s.Receives() && task.Kind != taskEncoder
	if around {
		if err := method.OpenTask(task, outer); err != nil {
			t.Fatal(err)
		}
	}
	inner := taskTypes[task.Kind]()
	if err := wire.Unmarshal(outer.Body, inner); err != nil {
		t.Fatal(err)
	}
	if around && r.IntN(3) == 0 {
		mutate(r, outer)
	} else if !mutate(r, inner) {
		return nil, false
	}
	var err error
	if outer.Body, err = wire.Marshal(inner); err != nil {
		return nil, false
	}
	if !around {
		return outer.Body, true
	}
	body, err = wire.Marshal(outer)
	return body, err == nil
}

// Numbers beyond the bounds are refused one by one, wherever they stand.
func TestEveryNumberOfATaskIsBounded(t *testing.T) {
	_, s := stagedHalves(t, "components: 1\n  draws: 64")
	share := func() *worthShare {
		return &worthShare{Sample: &options.Sample{Weights: constant(1, 1), Numbers: wire.Vector{1, 0, 0, 1, 0, 0, 1}},
			Classifier: &linearAnswer{Weights: constant(2, 1), Scarce: 1, Other: 1}, From: "b"}
	}
	if _, err := s.ask(t, taskWorth, pack(t, share()), sitestore.NewMemory()); err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]struct {
		problem string
		change  func(w *worthShare)
	}{
		"a mean":     {"no study finds that", func(w *worthShare) { w.Sample.Numbers[1] = 1e75 }},
		"the other":  {"no study finds that", func(w *worthShare) { w.Sample.Numbers[2] = -1e75 }},
		"a variance": {"no study finds that", func(w *worthShare) { w.Sample.Numbers[6] = 1e150 }},
		"draws": {"at most 256", func(w *worthShare) {
			w.Sample.Weights = constant(257, 1./257)
			w.Sample.Numbers = slices.Repeat(w.Sample.Numbers, 257)
		}},
		"a weight":          {"1e+75", func(w *worthShare) { w.Classifier.Weights[0] = 1e75 }},
		"an intercept":      {"-1e+75", func(w *worthShare) { w.Classifier.Intercept = -1e75 }},
		"of nobody":         {"another site of the plan", func(w *worthShare) { w.From = "z" }},
		"of the site's own": {"another site of the plan", func(w *worthShare) { w.From = "a" }},
		"from nowhere":      {"another site of the plan", func(w *worthShare) { w.From = "" }},
		"none of b's":       {"another site of the plan", func(w *worthShare) { w.Classifier = nil }},
		"stages":            {"stages", func(w *worthShare) { w.Sample.Stages = -1 }},
	} {
		w := share()
		x.change(w)
		if _, err := s.ask(t, taskWorth, pack(t, w), sitestore.NewMemory()); err == nil || !strings.Contains(err.Error(), x.problem) {
			t.Errorf("%s: got %v, want %q", name, err, x.problem)
		}
	}
	_, s = stagedHalves(t, stagedOptions[0])
	for name, x := range map[string]struct {
		problem string
		change  func(e *encodedTask)
	}{
		"a weight": {"at most", func(e *encodedTask) { e.Encoder.Layers[1].Weights.Data[0] = 1e75 }},
		"a bias":   {"at most", func(e *encodedTask) { e.Encoder.Layers[0].Bias[1] = -1e75 }},
		"a centre": {"of an input with the mean", func(e *encodedTask) { e.Encoder.Inputs.Centre[0] = 1e200 }},
		"a scale":  {"of an input with the mean", func(e *encodedTask) { e.Encoder.Inputs.Scale[0] = 1e200 }},
		"a limit":  {"moves them to", func(e *encodedTask) { e.Encoder.Inputs.Limit = 1e5 }},
		"a layer": {"layers of", func(e *encodedTask) {
			l := oneEncoder(1, 1, 1).Layers
			e.Encoder.Layers = append(e.Encoder.Layers, l...)
		}},
	} {
		e := &encodedTask{oneEncoder(2, 1, 1), pack(t, linearTask{})}
		x.change(e)
		if _, err := s.ask(t, taskClassifier, pack(t, e), sitestore.NewMemory()); err == nil || !strings.Contains(err.Error(), x.problem) {
			t.Errorf("encoder, %s: got %v, want %q", name, err, x.problem)
		}
	}
}
