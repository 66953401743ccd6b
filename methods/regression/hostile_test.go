package regression

import (
	"testing"

	"parley/internal/testkit"
	"parley/methods/regression/fitted"
	"parley/methods/regression/options"
)

func FuzzModel(f *testing.F) {
	c := testkit.Get(options.New(exactPlans["joint, softmax"].plan(f)))(f)
	m := testkit.Get(fitted.New(c.Plan, c.Options, c.Prior, c.Prior.Normal(), &c.Encoding))(f)
	data := testkit.Get(m.Encode())(f)
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := fitted.LoadModel(data)
		if err != nil {
			return
		}
		if _, err := m.Summary(3); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Files(); err != nil {
			t.Fatal(err)
		}
	})
}
