package vae

import (
	"io"
	"math"
	"testing"

	"parley/dataset"
	"parley/internal/wire"
	"parley/method"
)

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
