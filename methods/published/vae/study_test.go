package vae

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"parley/dataset"
	"parley/engine/local"
	"parley/internal/testkit"
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
	return testkit.Get(parse("method: {name: vae, latent: 2, rounds: 3, epochs: 4, " + options + "}\n"))(t)
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
			row := dataset.Row{ID: fmt.Sprintf("%s-%02d", name, n),
				Views: [][]float64{make([]float64, 3), make([]float64, 4)}}
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
		table := testkit.Get(dataset.NewTable(p.Schema(), rows))(t)
		out[name] = table
	}
	return out
}

// run returns the model of a whole study behind gates, without what names plan and program.
func run(t testing.TB, p *study.Plan, lacks bool) (*model, *method.Result) {
	t.Helper()
	r := testkit.Get(local.Run(t.Context(), local.Config{Plan: p, Methods: method.Registry{Method{}},
		Data: data(t, p, lacks)}))(t)
	raw := testkit.Get(method.ModelJSON(r.Result.Files))(t)
	m := testkit.Get(loadModel(raw))(t)
	m.Plan, m.Program = "", ""
	return m, r.Result
}

func weights(m *model) string { return fmt.Sprint(m.Weights) }

func TestFedProxWithoutTermIsFedAvg(t *testing.T) {
	for _, kind := range []string{"model: linear", "model: two-layer", "model: multi-channel",
		"model: linear, optimiser: sgd, batch: 5"} {
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
	s := testkit.Get(newSetup(plan(t, "model: multi-channel")))(t)
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
		if n, _, err := m.Transform(t.Context(), rows, &b, method.TransformOptions{}); n != 17 || err != nil ||
			strings.Count(b.String(), "\n") != 18 {
			t.Errorf("%s: %d codes: %v", kind, n, err)
		}
		if n, _, err := m.Impute(t.Context(), rows, &b, method.ImputeOptions{Level: 0.9}); n != 17*4 || err != nil {
			t.Errorf("%s: %d values: %v", kind, n, err)
		}
		central := testkit.Get(Method{}.Central(t.Context(), p, rows))(t)
		if _, err := evaluate.Describe(t.Context(), nil, central, data(t, p, false)["north"], 0.9); err != nil {
			t.Error(err)
		}
		// What is wrong with a file is an error.
		for _, change := range []func(*model){func(m *model) { m.Weights = m.Weights[1:] },
			func(m *model) { m.Options.Latent = 0 }, func(m *model) { m.Views[0].Features[0].Low = 1e9 },
			func(m *model) { m.Weights[0] = 1e9 }} {
			raw, _ := m.encode()
			broken := testkit.Get(loadModel(raw))(t)
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
	if _, err := study.Parse("plan.yaml", []byte(private), method.Registry{Method{}}); err == nil ||
		!strings.Contains(err.Error(), "no noise is put on them") {
		t.Errorf("a private plan: %v", err)
	}
}

// digests of studies, on amd64.
var digests = map[string]string{
	"linear":        "25fb12a233ef45796437e9cc4df88b3e32b07ec9301ce24dd2a14404df91c5cd",
	"two-layer":     "424d10c0a3e0364bdefd5592489ba70846eea55fbf85de976541ff30d982da24",
	"multi-channel": "325d68a1d79b298c645f4a1943c184ed7ab91f649b638aeafb88caa004400656",
}

func cases(t testing.TB) map[string]methodtest.Case {
	all := map[string]methodtest.Case{}
	for kind, digest := range digests {
		p := plan(t, "batch: 7, proximal: 0.1, model: "+kind)
		all[kind] = methodtest.Case{Plan: p, Data: data(t, p, true), Digest: digest}
	}
	return all
}

// diverged says a site of weights that another has made up.
const diverged = "training has diverged"

func TestContract(t *testing.T) {
	methodtest.Run(t, Method{}, cases(t), methodtest.Options{Excuses: []string{diverged}})
}

func FuzzAnswers(f *testing.F) { methodtest.FuzzAnswers(f, Method{}, cases(f), diverged) }

func FuzzTasks(f *testing.F) { methodtest.FuzzTasks(f, Method{}, cases(f)) }

// A file that is a model answers about a subject.
func FuzzModel(f *testing.F) {
	for _, options := range []string{"model: linear", "model: two-layer, hidden: 3", "model: multi-channel"} {
		s := testkit.Get(newSetup(plan(f, options)))(f)
		d := s.net.features
		sc := scale{make(wire.Vector, d), make(wire.Vector, d), make(wire.Vector, d)}
		data := testkit.Get(newModel(s, &sc, s.net.start(s.stream("", 0)), map[string]float64{"north": 3}).encode())(f)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<16 {
			return
		}
		m, err := loadModel(data)
		if err != nil {
			return
		}
		row := dataset.Row{ID: "1"}
		for k, d := range m.dims {
			row.Views = append(row.Views, make([]float64, d))
			row.Views[k][0] = math.NaN()
		}
		table, err := dataset.NewTable(m.Schema(), []dataset.Row{row})
		if err != nil {
			return // columns of one name
		}
		if n, _, err := m.Transform(t.Context(), table, io.Discard, method.TransformOptions{}); err != nil || n != 1 {
			t.Errorf("%d codes, %v", n, err)
		}
		if n, _, err := m.Impute(t.Context(), table, io.Discard, method.ImputeOptions{Level: 0.9}); err != nil ||
			n != len(m.dims) {
			t.Errorf("%d values, %v", n, err)
		}
	})
}
