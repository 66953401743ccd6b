package ppca_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"parley/internal/testkit"
	"parley/methods/factors/factorstest"
	"parley/methods/factors/ppca"
)

// What a site tells along the directions of a model makes it as likely as all products do, with the same E step, and no
// other model likelier: whatever subjects lack, in either form of the sums, and after it has travelled about zero.
func TestDirectionsTellTheEStep(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		q := rapid.IntRange(1, 3).Draw(rt, "q")
		l := ppca.Layout{Dims: rapid.SliceOfN(rapid.IntRange(q, 9), 1, 3).Draw(rt, "dims"), Noise: ppca.NoisePerFeature}
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		truth, other := factorstest.NewTruth(r, l, q, 0.4), factorstest.NewTruth(r, l, q, 0.4)
		rows := factorstest.Hole(r, truth.Subjects(r, rapid.IntRange(10, 40).Draw(rt, "rows")),
			rapid.SampledFrom([]float64{0, 0.1}).Draw(rt, "missing"))
		for _, j := range []int{0, l.Features() - 1} { // somebody has each
			rows[0][j] = 1
		}
		blocks := factorstest.BlocksOf(rt, l, rows)
		surplus := rapid.IntRange(0, 3).Draw(rt, "surplus")
		v := ppca.DirectionsOf(l, &truth.P, q, surplus)
		exact := testkit.Get(ppca.Describe(l, &truth.P, blocks, nil, ppca.Bound{Numbers: 1 << 20}))(rt)
		said := testkit.Get(ppca.Describe(l, &truth.P, blocks, nil, ppca.Bound{Numbers: 0, Along: v}))(rt)
		if len(said.Blocks) != len(exact.Blocks) || said.LogLik != exact.LogLik || said.Filled != exact.Filled {
			rt.Fatalf("%d blocks, where there are %d", len(said.Blocks), len(exact.Blocks))
		}
		for i := range exact.Blocks {
			b := &said.Blocks[i]
			if b.Products == nil {
				rt.Fatal("products of two features are told")
			}
			b.AboutZero(v, false)
			b.AboutZero(v, true)
			told := testkit.Get(b.Resolve(v))(rt)
			testkit.Do(rt, told.Check(l))
			step, md := ppca.NewEStep(q, []ppca.Block{exact.Blocks[i], told}), ppca.NewModel(l, q)
			md.Load(&truth.P)
			testkit.Do(rt, step.Run(md, &exact.Blocks[i]))
			sums := func() []float64 { return slices.Concat(step.STX, step.SXX, step.Square, step.X) }
			want := sums()
			testkit.Do(rt, step.Run(md, &told))
			if e := factorstest.Worst(sums(), want); e > 1e-7 {
				rt.Errorf("block %d: the E step is off by %.1e", i, e)
			}
			for _, p := range []*ppca.Params{&truth.P, &other.P} {
				all, n, err := ppca.LogLik(l, p, exact.Blocks[i:i+1])
				testkit.Do(rt, err)
				some, _, err := ppca.LogLik(l, p, []ppca.Block{told})
				testkit.Do(rt, err)
				if d := (some - all) / n; d > 1e-7 || p == &truth.P && d < -1e-7 {
					rt.Errorf("block %d: a log-likelihood of %v a subject, and all sums have %v", i, some/n, all/n)
				}
			}
		}
	})
}

// Sums along directions that no subjects have are refused, and none make anything that cannot be fitted.
func TestDirectionsOfNoSubjects(t *testing.T) {
	l := ppca.Layout{Dims: []int{6, 5}, Noise: ppca.NoisePerFeature}
	r := rand.New(rand.NewPCG(4, 1))
	truth := factorstest.NewTruth(r, l, 2, 0.4)
	v := ppca.DirectionsOf(l, &truth.P, 2, 2)
	refused := 0
	for range 400 {
		b := factorstest.BlocksOf(t, l, truth.Subjects(r, 30))[0]
		b = b.Along(v)
		switch k := r.IntN(len(b.Products)); r.IntN(4) {
		case 0:
			b.Products[k] = -b.Products[k]
		case 1:
			b.Products[k] *= 1e300
		case 2:
			b.Products = b.Products[:k]
		case 3:
			clear(b.Diag)
		}
		told, err := b.Resolve(v)
		if err != nil {
			refused++
		} else if err := told.Check(l); err != nil {
			t.Errorf("what passed cannot be fitted: %v", err)
		}
	}
	if refused < 350 {
		t.Errorf("only %d of 400 are refused", refused)
	}
}
