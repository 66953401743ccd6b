package regression

import (
	"testing"

	"parley/methods/regression/fitted"
	"parley/methods/regression/options"
)

func FuzzModel(f *testing.F) {
	c, err := options.New(exactPlans["joint, softmax"].plan(f))
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
