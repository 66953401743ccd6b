package between

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"parley/methods/factors/factorstest"
	"parley/methods/factors/ppca"
)

// TestHostileMessagesGiveErrors changes valid messages at random: whatever
// comes out is an error or finite numbers, and never a panic.
func TestHostileMessagesGiveErrors(t *testing.T) {
	l := factorstest.Shape(t, ppca.NoisePerView, 3, 2)
	r := rand.New(rand.NewPCG(71, 1))
	tr := factorstest.NewTruth(r, l, 1, 0.3)
	message := func() Message {
		h := factorstest.Must(NewSite(l, factorstest.BlocksOf(t, l, tr.Subjects(r, 20)), factorstest.Must(ppca.Weak(l, &tr.P))(t), nil))(t)
		if err := h.Step(); err != nil {
			t.Fatal(err)
		}
		return *factorstest.Must(h.Message())(t)
	}
	other := message()
	refused := 0
	const tries = 400
	for range tries {
		m := message()
		for range 1 + r.IntN(2) {
			factorstest.Mutate(r, reflect.ValueOf(&m).Elem())
		}
		prior, states, err := Pool(l, []Message{other, m})
		if err != nil {
			refused++
			continue
		}
		factorstest.FiniteResult(t, "prior", prior.W, prior.Mu, prior.Noise, prior.VarW, prior.VarMu, prior.Alpha, prior.Beta)
		for i := range states {
			factorstest.FiniteResult(t, "state", states[i].W, states[i].Mu, states[i].Nu, states[i].Xi)
		}
	}
	if refused < tries/3 {
		t.Errorf("only %d of %d damaged messages were refused", refused, tries)
	}
	blocks := factorstest.BlocksOf(t, l, tr.Subjects(r, 20))
	prior := factorstest.Must(ppca.Weak(l, &tr.P))(t)
	for range tries {
		pr := *prior
		pr.Params = prior.Params.Clone()
		pr.VarW, pr.Alpha = slices.Clone(prior.VarW), slices.Clone(prior.Alpha)
		pr.VarMu, pr.Beta = slices.Clone(prior.VarMu), slices.Clone(prior.Beta)
		factorstest.Mutate(r, reflect.ValueOf(&pr).Elem())
		if h, err := NewSite(l, blocks, &pr, nil); err == nil && h.Step() == nil {
			if m, err := h.Message(); err == nil {
				factorstest.FiniteResult(t, "message", m.Y, m.R, m.Noise, m.SS)
			}
		}
	}
}
