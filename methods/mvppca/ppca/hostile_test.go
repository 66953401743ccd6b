package ppca_test

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"parley/methods/mvppca/internal/synthetic"
	"parley/methods/mvppca/ppca"
)

// mutate changes one number, length or index somewhere inside a message.
func mutate(r *rand.Rand, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		mutate(r, v.Field(r.IntN(v.NumField())))
	case reflect.Slice:
		switch n := v.Len(); {
		case n == 0 || r.IntN(8) == 0:
			if r.IntN(2) == 0 && n > 0 {
				v.Set(v.Slice(0, r.IntN(n)))
			} else {
				v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
			}
		default:
			mutate(r, v.Index(r.IntN(n)))
		}
	case reflect.Int:
		v.SetInt([]int64{-1, 0, 1, v.Int() + 1, v.Int() - 1, 1 << 40}[r.IntN(6)])
	case reflect.Float64:
		v.SetFloat([]float64{0, -1, 1, math.NaN(), math.Inf(1), 1e308, -1e308, 5e-324, -v.Float(), v.Float() * 1e9}[r.IntN(10)])
	}
}

// TestHostileMessagesGiveErrors changes valid messages at random: whatever
// comes out is an error or finite numbers, and never a panic.
func TestHostileMessagesGiveErrors(t *testing.T) {
	l := synthetic.Shape(t, ppca.NoisePerView, 3, 2)
	r := rand.New(rand.NewPCG(71, 1))
	tr := synthetic.NewTruth(r, l, 1, 0.3)
	message := func() ppca.SiteMessage {
		h := synthetic.Must(ppca.NewHierarchical(l, synthetic.BlocksOf(t, l, tr.Subjects(r, 20)), synthetic.Must(ppca.Weak(l, &tr.P))(t), nil))(t)
		if err := h.Step(); err != nil {
			t.Fatal(err)
		}
		return *synthetic.Must(h.Message())(t)
	}
	other := message()
	refused := 0
	const tries = 400
	for range tries {
		m := message()
		for range 1 + r.IntN(2) {
			mutate(r, reflect.ValueOf(&m).Elem())
		}
		prior, states, err := ppca.Pool(l, []ppca.SiteMessage{other, m})
		if err != nil {
			refused++
			continue
		}
		synthetic.FiniteResult(t, "prior", prior.W, prior.Mu, prior.Noise, prior.VarW, prior.VarMu, prior.Alpha, prior.Beta)
		for i := range states {
			synthetic.FiniteResult(t, "state", states[i].W, states[i].Mu, states[i].Nu, states[i].Xi)
		}
	}
	if refused < tries/3 {
		t.Errorf("only %d of %d damaged messages were refused", refused, tries)
	}
	blocks := synthetic.BlocksOf(t, l, tr.Subjects(r, 20))
	prior := synthetic.Must(ppca.Weak(l, &tr.P))(t)
	for range tries {
		p, pr, pt := tr.P.Clone(), *prior, ppca.Patterns(l, blocks)
		pr.Params = prior.Params.Clone()
		pr.VarW, pr.Alpha = slices.Clone(prior.VarW), slices.Clone(prior.Alpha)
		pr.VarMu, pr.Beta = slices.Clone(prior.VarMu), slices.Clone(prior.Beta)
		mutate(r, reflect.ValueOf(&p).Elem())
		mutate(r, reflect.ValueOf(&pr).Elem())
		mutate(r, reflect.ValueOf(&pt[0]).Elem())
		if b, err := ppca.PseudoBlocks(l, &p, pt); err == nil {
			if f, err := ppca.Fit(l, b, 1, nil, ppca.FitOptions{MaxIter: 20}); err == nil {
				synthetic.FiniteResult(t, "fit", f.W, f.Mu, f.Noise, []float64{f.LogLik})
			}
		}
		if out, _, err := ppca.PublishedMaster(l, []ppca.Params{p, tr.P}); err == nil {
			synthetic.FiniteResult(t, "master", out.W, out.Mu, out.Noise, out.VarW, out.VarMu, out.Alpha, out.Beta)
		}
		if h, err := ppca.NewHierarchical(l, blocks, &pr, nil); err == nil && h.Step() == nil {
			if m, err := h.Message(); err == nil {
				synthetic.FiniteResult(t, "message", m.Y, m.R, m.Noise, m.SS)
			}
		}
		if err := pr.Check(l); err == nil {
			if s, err := ppca.NewPublished(l, blocks, 1, tr.P.W, tr.P.Noise); err == nil && s.Step(&pr) == nil {
				q := s.Params()
				synthetic.FiniteResult(t, "published", q.W, q.Mu, q.Noise)
			}
		}
		if _, _, _, err := ppca.Canonical(l, &p); err == nil {
			if pred, err := ppca.NewPredictor(l, &p); err == nil {
				if post, err := pred.Given(p.Features); err == nil {
					synthetic.FiniteResult(t, "posterior", post.Cov)
				}
			}
		}
	}
}

func TestLayoutsThatCannotBe(t *testing.T) {
	for _, dims := range [][]int{nil, {}, {0}, {3, -1}, {1 << 62, 1 << 62}, {1 << 20}} {
		if _, err := ppca.NewLayout(dims, ppca.NoisePerView); err == nil {
			t.Errorf("dimensions %v were accepted", dims)
		}
	}
	if _, err := ppca.NewLayout([]int{1}, 7); err == nil {
		t.Error("an unknown kind of noise was accepted")
	}
}
