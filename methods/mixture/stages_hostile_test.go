package mixture

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"parley/dataset"
	"parley/internal/wire"
	"parley/method"
	"parley/methods/mixture/augment"
	"parley/methods/mixture/options"
	"parley/methods/mixture/scarce"
	"parley/methods/mixture/suffiae"
	"parley/privacy"
	"parley/sitestore"
	"parley/study"
)

const stagedPlan = `
parley: 1
name: hostile
sites: [a, b]
quorum: 1
privacy: {protection: none}
views:
  - {name: v, features: [{name: x, range: [-8, 8]}, {name: y, range: [-8, 8]}]}
subjects: [sick]
method:
  name: graffl
  scarce: {outcome: {column: sick, levels: [no, yes]}, held: 0.3}
  %s
`

const stagedEncoder = "encoder: {dimension: 1, hidden: [2], epochs: 1}"

var stagedOptions = []string{stagedEncoder + "\n  draws: 64", stagedEncoder + "\n  sketch: {}\n  draws: 64"}

func stagedHalves(t testing.TB, options string) (method.Coordinator, half) {
	t.Helper()
	return halves(t, parsePlan(t, fmt.Sprintf(stagedPlan, options)))
}

// patients are rows that a plan of two features takes.
func patients(t testing.TB, p *study.Plan) dataset.Source {
	t.Helper()
	r := rand.New(rand.NewPCG(4, 4))
	var rows []dataset.Row
	for i := range 30 {
		level := []string{"no", "yes", ""}[i%3]
		rows = append(rows, dataset.Row{ID: fmt.Sprintf("%03d", i), Views: [][]float64{{r.NormFloat64(), r.NormFloat64()}}, Subject: []string{level}})
	}
	data, err := dataset.NewTable(p.Schema(), rows)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// ask has a fresh half answer a task, on what its store has kept.
func (h half) ask(t testing.TB, kind string, body []byte, store *sitestore.Memory) ([]byte, error) {
	t.Helper()
	in, err := behindGate(t, h.Plan, h.Name, store, patients(t, h.Plan)).answer(t, method.Task{Site: h.Name, Kind: kind, Body: body})
	return in.Body, err
}

// phases are a study's states as they wait for answers, by phase, and the honest answers to
// each of site a.
func phases(t testing.TB, c method.Coordinator, h half) (waiting map[string][]byte, answers map[string][]byte, done []byte) {
	t.Helper()
	waiting, answers = map[string][]byte{}, map[string][]byte{}
	s, err := c.Init()
	if err != nil {
		t.Fatal(err)
	}
	sites := everySite(t, h.Plan, patients(t, h.Plan))
	for range 100 {
		step, err := c.Next(s)
		if err != nil {
			t.Fatal(err)
		}
		if s = step.State; step.Done {
			if done, err = s.MarshalBinary(); err != nil {
				t.Fatal(err)
			}
			return waiting, answers, done
		}
		data, err := s.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		phase := unpack[stagedState](t, data).Phase
		waiting[phase] = data
		for _, task := range step.Tasks {
			in, err := sites[task.Site].answer(t, task)
			if err != nil {
				t.Fatalf("%s: %v", task.Kind, err)
			}
			if task.Site == "a" {
				answers[phase] = in.Body
			}
			if s, err = c.Fold(s, in); err != nil {
				t.Fatalf("%s: %v", task.Kind, err)
			}
		}
	}
	t.Fatal("the study does not end")
	return nil, nil, nil
}

// oneEncoder is of the layers that stagedEncoder has.
func oneEncoder(inputs, d int, weight float64) *suffiae.Encoder {
	layer := func(in, out int) suffiae.Layer {
		return suffiae.Layer{Weights: wire.Matrix{Rows: out, Cols: in, Data: constant(out*in, weight)}, Bias: constant(out, 0)}
	}
	e := &suffiae.Encoder{Inputs: suffiae.Inputs{Limit: options.InputLimit}, Layers: []suffiae.Layer{layer(inputs, 2), layer(2, d)}}
	for range inputs {
		e.Inputs.Centre, e.Inputs.Scale = append(e.Inputs.Centre, 0), append(e.Inputs.Scale, 1)
	}
	return e
}

// What sites answer in the phases around a sampler is taken as what it is, or refused.
func TestHostileAnswersOfPhasesAreRefused(t *testing.T) {
	c, h := stagedHalves(t, stagedOptions[0])
	waiting, honest, _ := phases(t, c, h)
	auc := func(x float64) []augment.Result { return []augment.Result{{Arm: augment.Raw, AUC: &x}} }
	for name, x := range map[string]struct {
		phase, site string
		answer      any
		problem     string
	}{
		"no encoder":            {taskEncoder, "a", encoderAnswer{}, "there is no encoder"},
		"of other features":     {taskEncoder, "a", encoderAnswer{oneEncoder(3, 1, 1)}, "where the plan has 2 features"},
		"of longer codes":       {taskEncoder, "a", encoderAnswer{oneEncoder(2, 2, 1)}, "codes of 1"},
		"huge weights":          {taskEncoder, "a", encoderAnswer{oneEncoder(2, 1, 1e7)}, "at most"},
		"not the trainer":       {taskEncoder, "b", encoderAnswer{oneEncoder(2, 1, 1)}, "not asked for an encoder"},
		"a long classifier":     {taskClassifier, "a", linearAnswer{Weights: constant(2, 1), Scarce: 1, Other: 1}, "with 2 weights"},
		"of one class":          {taskClassifier, "a", linearAnswer{Weights: constant(1, 1), Scarce: 0, Other: 1}, "it takes both"},
		"of negative rows":      {taskClassifier, "a", linearAnswer{Scarce: -1}, "-1 rows"},
		"no intercept":          {taskClassifier, "a", linearAnswer{Weights: constant(1, 1), Intercept: math.NaN(), Scarce: 1, Other: 1}, "the number NaN"},
		"a huge weight":         {taskClassifier, "a", linearAnswer{Weights: constant(1, 1e300), Scarce: 1, Other: 1}, "the number 1e+300"},
		"another task's answer": {taskClassifier, "a", worthAnswer{}, "decoding"},
		"too many held":         {taskWorth, "a", worthAnswer{Held: 1, HeldScarce: 2}, "among 1"},
		"another verdict":       {taskWorth, "a", worthAnswer{Verdict: "<b>kept</b>"}, "which is none"},
		"a gain of 2":           {taskWorth, "a", worthAnswer{Gain: 2}, "a gain of 2"},
		"an AUC of 2":           {taskWorth, "a", worthAnswer{Arms: auc(2)}, "from 0 to 1"},
		"an arm twice":          {taskWorth, "a", worthAnswer{Arms: append(auc(0.5), auc(0.5)...)}, "out of place"},
		"another arm":           {taskWorth, "a", worthAnswer{Arms: []augment.Result{{Arm: "magic"}}}, "not known"},
		"words":                 {taskWorth, "a", worthAnswer{Arms: []augment.Result{{Arm: augment.Raw, Problem: "patient 3"}}}, "with words"},
		"a positive log score":  {taskWorth, "a", worthAnswer{Arms: []augment.Result{{Arm: augment.Raw, Held: &augment.HeldScore{LogScore: new(float64), F1: -1}}}}, "from 0 to 1"},
		"many rows added":       {taskWorth, "a", worthAnswer{Arms: []augment.Result{{Arm: augment.Raw, Added: -1}}}, "-1 rows were added"},
		"honest, encoder":       {taskEncoder, "a", nil, ""},
		"honest, classifier":    {taskClassifier, "a", nil, ""},
		"honest, mixture":       {phaseMixture, "a", nil, ""},
		"honest, scores":        {taskWorth, "a", nil, ""},
	} {
		s, err := c.Restore(waiting[x.phase])
		if err != nil {
			t.Fatal(err)
		}
		kind, body := x.phase, honest[x.phase]
		if x.phase == phaseMixture {
			kind = taskLandmarks
		}
		if x.answer != nil {
			body = pack(t, x.answer)
		}
		in := method.Contribution{Site: x.site, Kind: kind, Body: body}
		s, err = c.Fold(s, in)
		if (x.problem == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), x.problem) {
			t.Errorf("%s: got %v, want %q", name, err, x.problem)
		}
		if err != nil {
			continue
		}
		if _, err := c.Fold(s, in); err == nil || !strings.Contains(err.Error(), "already answered") {
			t.Errorf("%s: twice: %v", name, err)
		}
		for _, wrong := range []method.Contribution{{Site: "z", Kind: kind, Body: body}, {Site: "b", Kind: "else", Body: body}} {
			if _, err := c.Fold(s, wrong); err == nil {
				t.Errorf("%s: taken from site %s as %q", name, wrong.Site, wrong.Kind)
			}
		}
	}
}

// A site trusts no task, and above all takes one encoder in a study.
func TestHostileTasksOfPhasesAreRefused(t *testing.T) {
	_, h := stagedHalves(t, stagedOptions[0])
	with := func(e *suffiae.Encoder, task any) []byte { return pack(t, encodedTask{e, pack(t, task)}) }
	good := oneEncoder(2, 1, 1)
	for name, x := range map[string]struct {
		kind string
		body []byte
	}{
		"no encoder around it":   {taskLandmarks, pack(t, landmarkTask{})},
		"nothing in it":          {taskLandmarks, with(good, 3)},
		"an encoder of others":   {taskClassifier, with(oneEncoder(3, 1, 1), linearTask{})},
		"no encoder":             {taskClassifier, with(nil, linearTask{})},
		"no sample":              {taskWorth, with(good, worthShare{})},
		"a sample of nothing":    {taskWorth, with(good, worthShare{Sample: &options.Sample{}})},
		"a broken sample":        {taskWorth, with(good, worthShare{Sample: &options.Sample{Weights: constant(1, 1), Numbers: wire.Vector{1, 0, -1}}})},
		"a classifier of others": {taskWorth, with(good, worthShare{Sample: &options.Sample{Weights: constant(1, 1), Numbers: wire.Vector{1, 0, 1}}, Classifier: &linearAnswer{Weights: constant(4, 1), Scarce: 1, Other: 1}})},
		"train on what I say":    {taskEncoder, pack(t, map[string]int{"epochs": 3})},
		"a task of no plan":      {"else", nil},
	} {
		if _, err := h.ask(t, x.kind, x.body, sitestore.NewMemory()); err == nil {
			t.Errorf("%s: it was answered", name)
		}
	}
	for i, e := range []*suffiae.Encoder{oneEncoder(2, 1, 2), good} {
		store := sitestore.NewMemory()
		if _, err := h.ask(t, taskClassifier, with(good, linearTask{}), store); err != nil {
			t.Fatal(err)
		}
		_, err := h.ask(t, taskLandmarks, with(e, landmarkTask{}), store)
		if second := i == 0; second != (err != nil) || second && !strings.Contains(err.Error(), "not the one that this study began with") {
			t.Errorf("encoder %d: %v", i+1, err)
		}
	}
	b := behindGate(t, h.Plan, "b", sitestore.NewMemory(), patients(t, h.Plan))
	if _, err := b.admit(method.Task{Kind: taskEncoder}); !errors.Is(err, privacy.ErrRefused) {
		t.Errorf("site b was asked for an encoder: %v", err)
	}
}

// Coordinators and sites take any bytes in any phase without a panic.
func FuzzPhases(f *testing.F) {
	var coordinators []method.Coordinator
	var sites []half
	var waits []map[string][]byte
	for i, options := range stagedOptions {
		c, h := stagedHalves(f, options)
		waiting, honest, done := phases(f, c, h)
		coordinators, sites, waits = append(coordinators, c), append(sites, h), append(waits, waiting)
		for _, data := range waiting {
			f.Add(uint8(i), data)
		}
		for _, data := range honest {
			f.Add(uint8(i), data)
		}
		f.Add(uint8(i), done)
		s, err := c.Restore(done)
		if err != nil {
			f.Fatal(err)
		}
		share, err := c.Share(s, "a")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(i), share)
	}
	f.Fuzz(func(t *testing.T, which uint8, data []byte) {
		at := int(which) % len(sites)
		c, h, states := coordinators[at], sites[at], waits[at]
		if s, err := c.Restore(data); err == nil {
			for _, site := range []string{"a", "b"} {
				if _, err := c.Share(s, site); err != nil {
					t.Logf("sharing: %v", err)
				}
			}
			if _, err := c.Result(s); err != nil {
				t.Logf("result: %v", err)
			}
			// FuzzStates goes on from the sampler's own.
			if unpack[stagedState](t, data).Phase != phaseMixture {
				if _, err := c.Next(s); err != nil {
					t.Logf("next: %v", err)
				}
			}
		}
		for _, phase := range []string{taskEncoder, taskClassifier, taskWorth} {
			s, err := c.Restore(states[phase])
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Fold(s, method.Contribution{Site: "a", Kind: phase, Body: data}); err != nil {
				t.Logf("%s: %v", phase, err)
			}
		}
		for _, kind := range []string{taskEncoder, taskClassifier, taskWorth, taskLandmarks} {
			if _, err := h.ask(t, kind, data, sitestore.NewMemory()); err != nil {
				t.Logf("%s: %v", kind, err)
			}
		}
		if _, err := h.Report(t.Context(), data, patients(t, h.Plan)); err != nil {
			t.Logf("report: %v", err)
		}
	})
}

// A classifier from elsewhere is read whole or refused.
func FuzzClassifier(f *testing.F) {
	c, h := stagedHalves(f, stagedOptions[0])
	_, _, done := phases(f, c, h)
	s, err := c.Restore(done)
	if err != nil {
		f.Fatal(err)
	}
	share, err := c.Share(s, "a")
	if err != nil {
		f.Fatal(err)
	}
	r, err := h.Report(f.Context(), share, patients(f, h.Plan))
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range r.Files {
		if file.Name == "model/model.json" {
			if _, err := scarce.LoadClassifier(file.Data); err != nil {
				f.Fatal(err)
			}
			f.Add(file.Data)
		}
	}
	f.Fuzz(func(t *testing.T, model []byte) {
		c, err := scarce.LoadClassifier(model)
		if err != nil {
			return
		}
		if _, err := c.Summary(1); err != nil {
			t.Fatal(err)
		}
		row := dataset.Row{ID: "1"}
		for _, v := range c.Views {
			row.Views = append(row.Views, make([]float64, len(v.Columns)))
		}
		data, err := dataset.NewTable(c.Schema(), []dataset.Row{row})
		if err != nil { // columns that no table has
			return
		}
		if _, _, err := c.Predict(t.Context(), data, io.Discard, method.PredictOptions{}); err != nil {
			t.Fatal(err)
		}
	})
}
