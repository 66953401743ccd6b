package regression

import (
	"slices"
	"testing"

	"parley/internal/wire"
	"parley/method"
	"parley/method/methodtest"
	"parley/methods/regression/fitted"
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
)

func pack(t testing.TB, v any) []byte {
	t.Helper()
	b, err := wire.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func constant(n int, x float64) wire.Vector { return slices.Repeat(wire.Vector{x}, n) }

// States come back from checkpoints, which may be damaged.
func TestDamagedStates(t *testing.T) {
	for _, plans := range []map[string]driven{exactPlans, privatePlans} {
		for name, x := range plans {
			t.Run(name, func(t *testing.T) {
				p := x.plan(t)
				methodtest.Damaged(t, Method{}, p, dataFor(t, p), 60)
			})
		}
	}
}

func FuzzTasks(f *testing.F) {
	p := exactPlans["exact, logistic"].plan(f)
	half, err := Method{}.Site(p, "a")
	if err != nil {
		f.Fatal(err)
	}
	rows := rowsFor(f, p, "a", 8)
	prior := options.Pack(glm.Isotropic(6, 0, 1))
	f.Add(pack(f, options.UpdateTask{Q: prior, Factor: options.Pack(glm.Flat(6)), Update: 1, Scale: &options.Scale{Centre: constant(2, 0), Scale: constant(2, 1)}}))
	f.Add(pack(f, options.AssessTask{Q: prior, Scale: &options.Scale{Centre: constant(2, 0), Scale: constant(2, 1)}}))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, kind := range []string{options.TaskUpdate, options.TaskAssess} {
			methodtest.Once(t, Method{}, p, half, rows, method.Task{Site: "a", Kind: kind, Body: body})
		}
		half.Report(t.Context(), body, rows)
	})
}

func FuzzModel(f *testing.F) {
	c, err := options.New(privatePlans["softmax"].plan(f))
	if err != nil {
		f.Fatal(err)
	}
	m, err := fitted.New(c.Plan, c.Options, c.Prior, c.Prior.Normal(), &c.Encoding)
	if err != nil {
		f.Fatal(err)
	}
	data, err := m.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := fitted.LoadModel(data)
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
