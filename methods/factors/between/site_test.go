package between

import (
	"math/rand/v2"
	"testing"

	"parley/methods/factors/factorstest"
	"parley/methods/factors/ppca"
)

// The posterior of rows by eigenvectors, for noise by feature, is that by a factorisation for
// each noise variance, also where sites do not differ at all.
func TestEigenvectorsServeEveryNoise(t *testing.T) {
	for _, zero := range []bool{false, true} {
		l := factorstest.Shape(t, ppca.NoisePerView, 9, 6)
		r := rand.New(rand.NewPCG(3, 1))
		tr := factorstest.NewTruth(r, l, 3, 0.3)
		rows := tr.Subjects(r, 60)
		factorstest.Lacking(l, rows[:20], 1)
		prior := factorstest.Must(ppca.Weak(l, &tr.P))(t)
		if zero {
			clear(prior.VarW)
		}
		blocks := factorstest.BlocksOf(t, l, rows)
		want := factorstest.Must(NewSite(l, blocks, prior, nil))(t)
		got := factorstest.Must(NewSite(l, blocks, prior, nil))(t)
		for i := range got.cells {
			c := &got.cells[i]
			if !c.oneNoise {
				t.Fatal("features of a view have several noise variances")
			}
			c.oneNoise = false
			c.allocate(got)
		}
		for range 6 {
			for _, h := range []*Site{want, got} {
				if err := h.Step(); err != nil {
					t.Fatal(err)
				}
			}
		}
		for name, x := range map[string][2][]float64{
			"rows": {got.post, want.post}, "noise": {got.noise, want.noise}, "residuals": {got.ss, want.ss},
			"means of the factors": {got.nu, want.nu}, "their covariance": {got.xi, want.xi}, "sum of V": {got.cells[0].sum, want.cells[0].sum},
		} {
			if w := factorstest.Worst(x[0], x[1]); w > 1e-11 {
				t.Errorf("no variance of loadings: %t: %s differ by %.1e", zero, name, w)
			}
		}
	}
}
