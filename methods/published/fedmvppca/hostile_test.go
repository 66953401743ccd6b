package fedmvppca

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"parley/methods/factors/factorstest"
	"parley/methods/factors/ppca"
)

// TestHostilePriorsGiveErrors changes valid parameters and priors at random: whatever
// comes out is an error or finite numbers, and never a panic.
func TestHostilePriorsGiveErrors(t *testing.T) {
	l := factorstest.Shape(t, ppca.NoisePerView, 3, 2)
	r := rand.New(rand.NewPCG(71, 1))
	tr := factorstest.NewTruth(r, l, 1, 0.3)
	blocks := factorstest.BlocksOf(t, l, tr.Subjects(r, 20))
	prior := factorstest.Must(ppca.Weak(l, &tr.P))(t)
	for range 400 {
		p := tr.P.Clone()
		pr := *prior
		pr.Params = prior.Params.Clone()
		pr.VarW, pr.Alpha = slices.Clone(prior.VarW), slices.Clone(prior.Alpha)
		pr.VarMu, pr.Beta = slices.Clone(prior.VarMu), slices.Clone(prior.Beta)
		factorstest.Mutate(r, reflect.ValueOf(&p).Elem())
		factorstest.Mutate(r, reflect.ValueOf(&pr).Elem())
		if out, _, err := updateMaster(l, []ppca.Params{p, tr.P}); err == nil {
			factorstest.FiniteResult(t, "master", out.W, out.Mu, out.Noise, out.VarW, out.VarMu, out.Alpha, out.Beta)
		}
		if err := pr.Check(l); err == nil {
			if s, err := newEM(l, blocks, 1, tr.P.W, tr.P.Noise); err == nil && s.step(&pr) == nil {
				q := s.params()
				factorstest.FiniteResult(t, "published", q.W, q.Mu, q.Noise)
			}
		}
	}
}
