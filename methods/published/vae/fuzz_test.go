package vae

import (
	"io"
	"math"
	"testing"

	"parley/dataset"
	"parley/internal/wire"
	"parley/method"
)

func pack(t testing.TB, body any) []byte {
	t.Helper()
	data, err := wire.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// The coordinator takes any bytes without a panic, and what it takes in fails no later step.
func FuzzAnswers(f *testing.F) {
	s, err := newSetup(plan(f, "model: multi-channel"))
	if err != nil {
		f.Fatal(err)
	}
	c := coordinator{s}
	n := len(s.net.places)
	constant := func(n int, x float64) wire.Vector {
		v := make(wire.Vector, n)
		for i := range v {
			v[i] = x
		}
		return v
	}
	extents := &extent{constant(7, 0), constant(7, 1), constant(7, 1), constant(7, 3), constant(2, 3)}
	f.Add(pack(f, extents))
	f.Add(pack(f, trained{constant(n, 0.5), 3}))
	f.Add(pack(f, assessed{constant(2, 4), constant(2, 1), 3, constant(2, 0), wire.Vector{1, 0, 0, 1}}))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, kind := range []string{taskScale, taskTrain, taskAssess} {
			st := empty()
			st.Phase, st.Round, st.Weights = kind, 1, constant(n, 0)
			st.Scale = scale{constant(7, 0), constant(7, 1), constant(7, 0.5)}
			if kind != taskScale {
				st.Extents["north"], st.Extents["south"] = extents, extents
			}
			if kind == taskAssess {
				st.Losses, st.Answers = []wire.Vector{constant(3, 1)}, []wire.Vector{constant(2, 1)}
			}
			folded, err := c.Fold(st, method.Contribution{Site: "north", Kind: kind, Body: body})
			if err != nil {
				continue
			}
			step, err := c.Next(folded)
			if err != nil {
				t.Fatalf("%s: %v", kind, err)
			}
			for _, task := range step.Tasks {
				var g given
				if err := wire.Unmarshal(task.Body, &g); err != nil {
					t.Fatal(err)
				}
				if err := g.check(s, s.Rounds); task.Kind == taskTrain && err != nil {
					t.Fatalf("%s: an honest site refuses the next task: %v", kind, err)
				}
			}
			if !step.Done {
				continue
			}
			if _, err := c.Result(step.State); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A file that is a model answers about a subject.
func FuzzModel(f *testing.F) {
	for _, options := range []string{"model: linear", "model: two-layer, hidden: 3", "model: multi-channel"} {
		s, err := newSetup(plan(f, options))
		if err != nil {
			f.Fatal(err)
		}
		d := s.net.features
		sc := scale{make(wire.Vector, d), make(wire.Vector, d), make(wire.Vector, d)}
		data, err := newModel(s, &sc, s.net.start(s.stream("", 0)), map[string]float64{"north": 3}).encode()
		if err != nil {
			f.Fatal(err)
		}
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
		if n, _, err := m.Impute(t.Context(), table, io.Discard, method.ImputeOptions{Level: 0.9}); err != nil || n != len(m.dims) {
			t.Errorf("%d values, %v", n, err)
		}
	})
}
