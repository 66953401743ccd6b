package ppca_test

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"parley/methods/mvppca/internal/synthetic"
	"parley/methods/mvppca/ppca"
)

// TestHostileModelsGiveErrors changes valid blocks and parameters at random: whatever
// comes out is an error or finite numbers, and never a panic.
func TestHostileModelsGiveErrors(t *testing.T) {
	l := synthetic.Shape(t, ppca.NoisePerView, 3, 2)
	r := rand.New(rand.NewPCG(71, 1))
	tr := synthetic.NewTruth(r, l, 1, 0.3)
	blocks := synthetic.BlocksOf(t, l, tr.Subjects(r, 20))
	for range 400 {
		p, bl := tr.P.Clone(), synthetic.Moments(blocks...)[:1]
		synthetic.Mutate(r, reflect.ValueOf(&p).Elem())
		synthetic.Mutate(r, reflect.ValueOf(&bl[0]).Elem())
		if b, err := ppca.Condense(l, bl, 1, 0, ppca.FitOptions{MaxIter: 20}); err == nil {
			if f, err := ppca.Fit(l, b, 1, nil, ppca.FitOptions{MaxIter: 20}); err == nil {
				synthetic.FiniteResult(t, "fit", f.W, f.Mu, f.Noise, []float64{f.LogLik})
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
