package mixture

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/dataset"
	"parley/internal/wire"
	"parley/method"
	"parley/method/methodtest"
	"parley/methods/mixture/options"
	"parley/methods/mixture/report"
	"parley/privacy"
	"parley/sitestore"
	"parley/study"
)

const hostilePlan = `
parley: 1
name: hostile
sites: [a, b]
views:
  - {name: v, features: [{name: x, range: [-8, 8]}]}
method: {name: graffl, components: 2, %s}
privacy: %s
`

var hostileOptions = map[string]string{
	taskLandmarks:   "draws: 64",
	taskFrequencies: "sketch: {}, draws: 64",
}

const hostilePrivate = "{protection: differential, unit: subject, adjacency: add-remove, total: {epsilon: 5, delta: 1e-5}}"

// half is a site's half, with what it knows from the plan.
type half struct {
	method.Site
	*options.Setup
	Name string
}

// halves are those of a plan: the coordinator's, and that of site a.
func halves(t testing.TB, p *study.Plan) (method.Coordinator, half) {
	t.Helper()
	c, err := Method{}.Coordinator(p)
	if err != nil {
		t.Fatal(err)
	}
	h, err := Method{}.Site(p, "a")
	if err != nil {
		t.Fatal(err)
	}
	s, err := options.New(p)
	if err != nil {
		t.Fatal(err)
	}
	return c, half{h, s, "a"}
}

// hostileHalves are the halves of a plan, and a state that waits for answers.
func hostileHalves(t testing.TB, choices, privacy string) (c method.Coordinator, h half, waiting func() method.State) {
	t.Helper()
	c, h = halves(t, parsePlan(t, fmt.Sprintf(hostilePlan, choices, privacy)))
	return c, h, func() method.State {
		s, err := c.Init()
		if err != nil {
			t.Fatal(err)
		}
		step, err := c.Next(s)
		if err != nil {
			t.Fatal(err)
		}
		return step.State
	}
}

// landmarksOf is how many sums a site of the plan releases.
func landmarksOf(t testing.TB, p *study.Plan) int {
	t.Helper()
	o := p.Method.Options.(*options.Options)
	if o.Sketch != nil {
		return 2 * o.Sketch.Frequencies
	}
	if o.Landmarks == nil {
		return 0
	}
	l, err := o.PlaceLandmarks(p)
	if err != nil {
		t.Fatal(err)
	}
	return l.Len()
}

func constant(n int, x float64) wire.Vector { return slices.Repeat(wire.Vector{x}, n) }

// Whatever another organisation sends is taken as what it is, or comes back as an
// error that says what is wrong.
func TestHostileAnswersAreRefused(t *testing.T) {
	for name, x := range map[string]struct {
		kind, privacy string
		body          func(n int) any
		problem       string // none: it is fine
	}{
		"sums":                {taskLandmarks, "", func(n int) any { return landmarkAnswer{constant(n, 1), 4} }, ""},
		"sums, short":         {taskLandmarks, "", func(n int) any { return landmarkAnswer{constant(n-1, 1), 4} }, "where the plan has"},
		"sums, negative":      {taskLandmarks, "", func(n int) any { return landmarkAnswer{constant(n, -1), 4} }, "each row adds 0 to 1"},
		"sums, too large":     {taskLandmarks, "", func(n int) any { return landmarkAnswer{constant(n, 5), 4} }, "each row adds 0 to 1"},
		"sums, negative rows": {taskLandmarks, "", func(n int) any { return landmarkAnswer{constant(n, 0), -4} }, "-4 rows"},
		"sums, negative lacking": {taskLandmarks, "", func(n int) any {
			return map[string]any{"sums": constant(n, 1), "rows": 4, "lacking": -5}
		}, "-5 rows"},
		"cosines":              {taskFrequencies, "", func(n int) any { return landmarkAnswer{constant(n, -1), 4} }, ""},
		"cosines, too large":   {taskFrequencies, "", func(n int) any { return landmarkAnswer{constant(n, -5), 4} }, "each row adds -1 to 1"},
		"sums, of nothing":     {taskLandmarks, "", func(int) any { return struct{}{} }, "where the plan has"},
		"exact, where private": {taskLandmarks, hostilePrivate, func(n int) any { return landmarkAnswer{constant(n, 1), 4} }, "0 sums"},
		"no sum":               {taskLandmarks, hostilePrivate, func(int) any { return nil }, "0 sums"},
	} {
		if x.privacy == "" {
			x.privacy = "{protection: none}"
		}
		c, h, waiting := hostileHalves(t, hostileOptions[x.kind], x.privacy)
		s := waiting()
		in := method.Contribution{Site: "a", Kind: x.kind, Body: pack(t, x.body(landmarksOf(t, h.Plan)))}
		_, err := c.Fold(s, in)
		if (x.problem == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), x.problem) {
			t.Errorf("%s: got %v, want %q", name, err, x.problem)
		}
		if err != nil {
			continue
		}
		if _, err := c.Fold(s, in); err == nil || !strings.Contains(err.Error(), "already answered") {
			t.Errorf("%s: twice: %v", name, err)
		}
		for site, kind := range map[string]string{"z": x.kind, "b": "else"} {
			if _, err := c.Fold(s, method.Contribution{Site: site, Kind: kind, Body: in.Body}); err == nil {
				t.Errorf("%s: taken from site %s as %q", name, site, kind)
			}
		}
	}
}

// A site trusts no task either.
func TestHostileTasksAreRefused(t *testing.T) {
	for kind, bodies := range map[string][]any{
		taskLandmarks:   {1, map[string]int{"points": 3}},
		taskFrequencies: {1, map[string]int{"points": 3}},
	} {
		_, h, _ := hostileHalves(t, hostileOptions[kind], "{protection: none}")
		for _, body := range bodies {
			if _, err := answerOf(t, h, kind, pack(t, body)); err == nil {
				t.Errorf("%s: %+v was answered", kind, body)
			}
		}
		g := behindGate(t, h.Plan, h.Name, sitestore.NewMemory(), threeRows(t, h.Plan))
		if _, err := g.admit(method.Task{Kind: "else"}); !errors.Is(err, privacy.ErrRefused) {
			t.Errorf("%s: a task that the plan does not have: %v", kind, err)
		}
		if _, err := h.Site.Run(t.Context(), method.Task{Kind: "else"}, nil); err == nil {
			t.Errorf("%s: a task that the plan does not have was answered", kind)
		}
	}
}

// answerOf is a fresh site's answer to a task, through its gate.
func answerOf(t testing.TB, h half, kind string, body []byte) (method.Contribution, error) {
	t.Helper()
	return behindGate(t, h.Plan, h.Name, sitestore.NewMemory(), threeRows(t, h.Plan)).answer(t, method.Task{Site: h.Name, Kind: kind, Body: body})
}

// threeRows are what a site of hostilePlan holds.
func threeRows(t testing.TB, p *study.Plan) dataset.Source {
	t.Helper()
	var rows []dataset.Row
	for i, x := range []float64{1, -2, 3.5} {
		rows = append(rows, dataset.Row{ID: fmt.Sprint(i), Views: [][]float64{{x}}})
	}
	data, err := dataset.NewTable(p.Schema(), rows)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// States come back from checkpoints, which may be damaged.
func TestDamagedStates(t *testing.T) {
	for name, text := range studied() {
		t.Run(name, func(t *testing.T) {
			p := parsePlan(t, text)
			data := map[string]dataset.Source{}
			for _, site := range p.Sites {
				data[site] = rowsOf(t, p)
			}
			methodtest.Damaged(t, Method{}, p, data, 40)
		})
	}
}

// Sites take any task, and any shared model, without a panic.
func FuzzTasks(f *testing.F) {
	f.Add(pack(f, landmarkTask{}))
	f.Add(pack(f, report.Shared{Weights: constant(2, .5), Means: constant(2, 0), Covs: constant(2, 1)}))
	f.Fuzz(func(t *testing.T, body []byte) {
		for kind, options := range hostileOptions {
			_, h, _ := hostileHalves(t, options, "{protection: none}")
			if _, err := answerOf(t, h, kind, body); err != nil { // what a site answers can travel
				t.Logf("%s: %v", kind, err)
			}
			data, err := dataset.NewTable(h.Plan.Schema(), []dataset.Row{{ID: "1", Views: [][]float64{{1}}}})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := h.Site.Report(t.Context(), body, data); err != nil {
				t.Logf("%s: %v", kind, err)
			}
		}
	})
}

// A state that is taken back can be gone on from.
func FuzzStates(f *testing.F) {
	for _, options := range hostileOptions {
		_, _, waiting := hostileHalves(f, options, "{protection: none}")
		data, err := waiting().MarshalBinary()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for kind, options := range hostileOptions {
			c, _, _ := hostileHalves(t, options, "{protection: none}")
			s, err := c.Restore(data)
			if err != nil {
				continue
			}
			if _, err := c.Result(s); err != nil {
				t.Logf("%s: %v", kind, err)
			}
			if _, err := c.Next(s); err != nil {
				t.Logf("%s: %v", kind, err)
			}
		}
	})
}

// A model from elsewhere is read whole or refused.
func FuzzModel(f *testing.F) {
	c, h, waiting := hostileHalves(f, hostileOptions[taskLandmarks], "{protection: none}")
	s := waiting()
	for _, site := range []string{"a", "b"} {
		body := pack(f, landmarkAnswer{constant(landmarksOf(f, h.Plan), 0.5), 4})
		if _, err := c.Fold(s, method.Contribution{Site: site, Kind: taskLandmarks, Body: body}); err != nil {
			f.Fatal(err)
		}
	}
	step, err := c.Next(s)
	if err != nil {
		f.Fatal(err)
	}
	r, err := c.Result(step.State)
	if err != nil || r.Files[0].Name != "model/model.json" {
		f.Fatal(err)
	}
	if _, err := report.LoadModel(r.Files[0].Data); err != nil {
		f.Fatal(err)
	}
	f.Add(r.Files[0].Data)
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := report.LoadModel(data)
		if err != nil {
			return
		}
		if _, err := m.Summary(3); err != nil {
			t.Fatal(err)
		}
		m.Schema()
	})
}
