package vae

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"parley/dataset"
	"parley/engine/local"
	"parley/internal/wire"
	"parley/judge/evaluate"
	"parley/method"
	"parley/method/methodtest"
	"parley/study"
)

var (
	_ method.Opener       = Method{}
	_ method.Transformer  = (*model)(nil)
	_ method.Imputer      = (*model)(nil)
	_ method.Evaluable    = Method{}
	_ method.Centraliser  = Method{}
	_ evaluate.Predictive = (*predictive)(nil)
)

func parse(text string) (*study.Plan, error) {
	return study.Parse("plan.yaml", []byte(`parley: 1
name: small
sites: [north, south]
views:
  - {name: a, features: [a1, a2, a3]}
  - {name: b, features: [b1, b2, b3, b4]}
privacy: {protection: none}
`+text), method.Registry{Method{}})
}

func plan(t testing.TB, options string) *study.Plan {
	t.Helper()
	p, err := parse("method: {name: vae, latent: 2, rounds: 3, epochs: 4, " + options + "}\n")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// data are subjects of one factor; the south lacks view b where it is said to.
func data(t testing.TB, p *study.Plan, lacks bool) map[string]dataset.Source {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	out := map[string]dataset.Source{}
	for i, name := range p.Sites {
		var rows []dataset.Row
		for n := range 12 + 5*i {
			z := rng.NormFloat64()
			row := dataset.Row{ID: fmt.Sprintf("%s-%02d", name, n), Views: [][]float64{make([]float64, 3), make([]float64, 4)}}
			for _, v := range row.Views {
				for j := range v {
					v[j] = 10 + z*float64(j+1) + rng.NormFloat64()
				}
			}
			if lacks && i == 1 {
				row.Views[1] = nil
			}
			rows = append(rows, row)
		}
		table, err := dataset.NewTable(p.Schema(), rows)
		if err != nil {
			t.Fatal(err)
		}
		out[name] = table
	}
	return out
}

// run returns the model of a whole study behind gates, without what names plan and program.
func run(t testing.TB, p *study.Plan, lacks bool) (*model, *method.Result) {
	t.Helper()
	r, err := local.Run(t.Context(), local.Config{Plan: p, Methods: method.Registry{Method{}}, Data: data(t, p, lacks)})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := method.ModelJSON(r.Result.Files)
	if err != nil {
		t.Fatal(err)
	}
	m, err := loadModel(raw)
	if err != nil {
		t.Fatal(err)
	}
	m.Plan, m.Program = "", ""
	return m, r.Result
}

func weights(m *model) string { return fmt.Sprint(m.Weights) }

func TestFedProxWithoutTermIsFedAvg(t *testing.T) {
	for _, kind := range []string{"model: linear", "model: two-layer", "model: multi-channel", "model: linear, optimiser: sgd, batch: 5"} {
		average, _ := run(t, plan(t, kind), false)
		zero, _ := run(t, plan(t, kind+", proximal: 0"), false)
		held, _ := run(t, plan(t, kind+", proximal: 100"), false)
		if weights(average) != weights(zero) {
			t.Errorf("%s: λ = 0 gives other weights than FedAvg", kind)
		}
		if weights(average) == weights(held) {
			t.Errorf("%s: the proximal term does nothing", kind)
		}
	}
}

// The mean is by numbers of subjects, and of a view by those of the sites that have it.
func TestWeightsAreAveragedByRows(t *testing.T) {
	s, err := newSetup(plan(t, "model: multi-channel"))
	if err != nil {
		t.Fatal(err)
	}
	c, st := coordinator{s}, empty()
	st.Weights = make(wire.Vector, len(s.net.places))
	for i, name := range []string{"north", "south"} {
		w := make(wire.Vector, len(st.Weights))
		for j := range w {
			w[j] = float64(4 * (i + 1))
		}
		st.Trained[name] = &trained{w, float64(i)}
		st.Extents[name] = &extent{Rows: [][]float64{{10, 10}, {30, 0}}[i]}
	}
	if loss := c.average(st); loss != 0.75 {
		t.Errorf("loss %v", loss)
	}
	for k, want := range []float64{7, 4} {
		if ch := s.net.channels[k]; st.Weights[ch.at] != want || st.Weights[ch.end-1] != want {
			t.Errorf("channel %d: %v, want %v", k, st.Weights[ch.at], want)
		}
	}
}

func TestModelsAnswer(t *testing.T) {
	for _, kind := range []string{"linear", "two-layer", "multi-channel"} {
		p := plan(t, "model: "+kind)
		m, r := run(t, p, true)
		if len(r.Sections) != 3 || len(r.Verdicts()) != 0 {
			t.Errorf("%s: %d sections, verdicts %v", kind, len(r.Sections), r.Verdicts())
		}
		rows := data(t, p, true)["south"] // lacks view b
		var b bytes.Buffer
		if n, _, err := m.Transform(t.Context(), rows, &b, method.TransformOptions{}); n != 17 || err != nil || strings.Count(b.String(), "\n") != 18 {
			t.Errorf("%s: %d codes: %v", kind, n, err)
		}
		if n, _, err := m.Impute(t.Context(), rows, &b, method.ImputeOptions{Level: 0.9}); n != 17*4 || err != nil {
			t.Errorf("%s: %d values: %v", kind, n, err)
		}
		central, err := Method{}.Central(t.Context(), p, rows)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := evaluate.Describe(t.Context(), nil, central, data(t, p, false)["north"], 0.9); err != nil {
			t.Error(err)
		}
		// What is wrong with a file is an error.
		for _, change := range []func(*model){func(m *model) { m.Weights = m.Weights[1:] }, func(m *model) { m.Options.Latent = 0 }, func(m *model) { m.Views[0].Features[0].Low = 1e9 }, func(m *model) { m.Weights[0] = 1e9 }} {
			raw, _ := m.encode()
			broken, err := loadModel(raw)
			if err != nil {
				t.Fatal(err)
			}
			change(broken)
			raw, _ = broken.encode()
			if _, err := loadModel(raw); err == nil {
				t.Errorf("%s: a broken model was read", kind)
			}
		}
	}
}

func TestPlansAreRefusedInWords(t *testing.T) {
	for text, want := range map[string]string{
		"method: {name: vae, model: linear, latent: 7}\n":                                     "codes of 7 numbers",
		"method: {name: vae, model: linear, latent: 2, hidden: 3}\n":                          "no hidden layer",
		"method: {name: vae, model: deep, latent: 2}\n":                                       "deep",
		"method: {name: vae, model: linear, latent: 2, proximal: -1}\n":                       "proximal",
		"method: {name: vae, model: linear, latent: 2, learning_rate: 0}\n":                   "step size",
		"method: {name: vae, model: linear, latent: 2, rounds: 0}\n":                          "rounds",
		"method: {name: vae, model: linear, latent: 2, hidden: 10001}\n":                      "hidden",
		"method: {name: vae, model: linear, latent: 2, batch: -1, epochs: 0}\n":               "epochs",
		"method: {name: vae, model: linear, latent: 2, optimiser: newton}\n":                  "newton",
		"method: {name: vae, model: multi-channel, latent: 0, learning_rate: 2, epochs: 9}\n": "latent",
	} {
		if _, err := parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	private := `parley: 1
name: small
sites: [north, south]
views: [{name: a, features: [{name: a1, range: [0, 1]}, {name: a2, range: [0, 1]}]}]
privacy: {protection: differential, unit: subject, adjacency: add-remove, total: {epsilon: 1, delta: 1e-5}}
method: {name: vae, model: linear, latent: 1}
`
	if _, err := study.Parse("plan.yaml", []byte(private), method.Registry{Method{}}); err == nil || !strings.Contains(err.Error(), "no noise is put on them") {
		t.Errorf("a private plan: %v", err)
	}
}

// Whatever a site writes is taken whole or refused, and what is refused stops nobody.
func TestHostileAnswersAreRefused(t *testing.T) {
	s, err := newSetup(plan(t, "model: linear"))
	if err != nil {
		t.Fatal(err)
	}
	c := coordinator{s}
	d, n := 7, len(s.net.places)
	v := func(n int, x float64) wire.Vector {
		out := make(wire.Vector, n)
		for i := range out {
			out[i] = x
		}
		return out
	}
	for i, answer := range []struct {
		kind string
		body any
	}{
		{taskScale, extent{v(d, 0), v(d, 1), v(d, 1), v(d-1, 2), v(1, 2)}},
		{taskScale, extent{v(d, 1), v(d, 0), v(d, 1), v(d, 2), v(1, 2)}},
		{taskScale, extent{v(d, 0), v(d, 1), v(d, 9), v(d, 2), v(1, 2)}},
		{taskScale, extent{v(d, 0), v(d, 1e101), v(d, 1), v(d, 2), v(1, 2)}},
		{taskScale, extent{v(d, 0), v(d, 1), v(d, 1), v(d, 2.5), v(1, 2)}},
		{taskScale, extent{v(d, 0), v(d, 1), v(d, 1), v(d, 2), v(1, -2)}},
		{taskTrain, trained{v(n-1, 0), 0}},
		{taskTrain, trained{v(n, 1e7), 0}},
		{taskTrain, trained{v(n, 0), 1e101}},
		{taskAssess, assessed{v(2, 1), v(2, -1), 1, v(2, 0), v(4, 0)}},
		{taskAssess, assessed{v(2, 1), v(2, 1), 1, v(2, 0), v(4, -1)}},
		{taskAssess, assessed{v(2, 1), v(2, 1), 1, v(3, 0), v(4, 0)}},
		{taskTrain, "nothing"},
	} {
		body, err := wire.Marshal(answer.body)
		if err != nil {
			t.Fatal(err)
		}
		st := empty()
		st.Phase = answer.kind
		st.Extents["north"] = &extent{Rows: wire.Vector{3}}
		if _, err := c.Fold(st, method.Contribution{Site: "north", Kind: answer.kind, Body: body}); err == nil {
			t.Errorf("answer %d was taken", i)
		}
	}
	sc := scale{v(d, 0), v(d, 1), v(d, 0)}
	for i, g := range []given{{0, sc, v(n, 0)}, {4, sc, v(n, 0)}, {1, sc, v(n+1, 0)}, {1, sc, v(n, 1e7)}, {1, scale{v(d, 1), v(d, 0), v(d, 0)}, v(n, 0)}, {1, scale{v(d, 0), v(d, 1), v(d, 2)}, v(n, 0)}} {
		if g.check(s, s.Rounds) == nil {
			t.Errorf("task %d was taken", i)
		}
	}
}

// States come back from checkpoints, which may be damaged.
func TestDamagedStates(t *testing.T) {
	for _, kind := range []string{"model: linear", "model: two-layer", "model: multi-channel"} {
		t.Run(kind, func(t *testing.T) {
			p := plan(t, kind)
			methodtest.Damaged(t, Method{}, p, data(t, p, true), 400)
		})
	}
}

// A run that is encoded and decoded at every step ends with the same bytes; the numbers are
// those of the revision, by architecture.
func TestNumbersAreThoseOfTheRevision(t *testing.T) {
	known := map[string]string{
		"amd64": "e814329b3a7646f84ca90faa373d57e79dea4190d94fccfc863de8ad91dd70d4",
	}
	if (Method{}).Revision() != 1 {
		t.Fatal("bring this test up to the revision")
	}
	h := sha256.New()
	for _, kind := range []string{"linear", "two-layer", "multi-channel"} {
		p := plan(t, "batch: 7, proximal: 0.1, model: "+kind)
		m, _ := run(t, p, true)
		again := resumed(t, p)
		if weights(m) != weights(again) {
			t.Errorf("%s: a run that was restored at every step gives other weights", kind)
		}
		if err := json.NewEncoder(h).Encode(m); err != nil {
			t.Fatal(err)
		}
	}
	if got := hex.EncodeToString(h.Sum(nil)); known[runtime.GOARCH] != "" && got != known[runtime.GOARCH] {
		t.Errorf("the numbers have changed: raise Revision, and put %s here", got)
	}
}

// resumed runs a study whose coordinator is encoded and decoded at every step.
func resumed(t testing.TB, p *study.Plan) *model {
	t.Helper()
	r, err := local.Run(t.Context(), local.Config{Plan: p, Methods: method.Registry{forgetful{}}, Data: data(t, p, true)})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := method.ModelJSON(r.Result.Files)
	if err != nil {
		t.Fatal(err)
	}
	m, err := loadModel(raw)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

type forgetful struct{ Method }

func (forgetful) Coordinator(p *study.Plan) (method.Coordinator, error) {
	c, err := Method{}.Coordinator(p)
	return forgetting{c}, err
}

type forgetting struct{ method.Coordinator }

func (f forgetting) restored(s method.State, err error) (method.State, error) {
	if err != nil {
		return nil, err
	}
	raw, err := s.MarshalBinary()
	if err != nil {
		return nil, err
	}
	return f.Coordinator.Restore(raw)
}

func (f forgetting) Next(s method.State) (method.Step, error) {
	step, err := f.Coordinator.Next(s)
	if err == nil {
		step.State, err = f.restored(step.State, nil)
	}
	return step, err
}

func (f forgetting) Fold(s method.State, in method.Contribution) (method.State, error) {
	return f.restored(f.Coordinator.Fold(s, in))
}
