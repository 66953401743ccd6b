package ppca_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"

	"parley/internal/testkit"
	"parley/methods/factors/factorstest"
	"parley/methods/factors/ppca"
)

// TestSamplingWidensPredictions: with one parameter a feature for the mean and one for each
// factor, and one for its noise where that is its own; subjects without another view say nothing
// of predictions.
func TestSamplingWidensPredictions(t *testing.T) {
	patterns := []ppca.Pattern{{Views: []int{0, 1}, Subjects: 20, Share: 1},
		{Views: []int{0, 1}, Subjects: 40, Share: 0.5}, {Views: []int{1}, Subjects: 1000, Share: 1}}
	l := ppca.Layout{Dims: []int{3, 2, 1}}
	if got, want := ppca.SamplingTimes(l, 3, patterns), []float64{44. / 36, 44. / 36, 4}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	l.Noise = ppca.NoisePerFeature
	if got := ppca.SamplingTimes(l, 3, patterns); got[0] != 45./35 {
		t.Errorf("%v with noise of each feature", got)
	}
	if got := ppca.SamplingTimes(ppca.Layout{Dims: []int{4}}, 1,
		[]ppca.Pattern{{Views: []int{0}, Subjects: 12, Share: 1}}); got[0] != 14./10 {
		t.Errorf("%v of a single view", got)
	}
	tr := factorstest.NewTruth(rand.New(rand.NewPCG(1, 4)), l, 2, 0.5)
	p := testkit.Get(ppca.NewPredictor(l, &tr.P))(t)
	post := testkit.Get(p.Given([]int{0, 1, 2}))(t)
	known, wide := make([]float64, 3), make([]float64, 3)
	post.MissingVar(known)
	testkit.Do(t, p.Sampled([]float64{7, 1.5, 2}))
	post.MissingVar(wide)
	for i, times := range []float64{1.5, 1.5, 2} {
		if math.Abs(wide[i]-times*known[i]) > 1e-12 {
			t.Errorf("feature %d: variance %v, want %v times %v", post.Missing[i], wide[i], times, known[i])
		}
	}
	for _, times := range [][]float64{{1, 2}, {1, 0.9, 1}, {1, math.NaN(), 1}, {1, math.Inf(1), 1}} {
		if p.Sampled(times) == nil {
			t.Errorf("%v was taken", times)
		}
	}
}

// Moments that no data have are refused; those of data, whatever they are, stay as they are to the last bit.
func TestMomentsThatCannotBeAreRefused(t *testing.T) {
	l := factorstest.Shape(t, ppca.NoisePerFeature, 3, 2)
	r := rand.New(rand.NewPCG(81, 1))
	tr := factorstest.NewTruth(r, l, 1, 0.3)
	rows := tr.Subjects(r, 40)
	for i := range rows {
		rows[i][0], rows[i][4] = 1e6+rows[i][0], 7
		rows[i][2] *= 1e-9
	}
	honest := factorstest.Moments(factorstest.BlocksOf(t, l, rows)...)[0]
	for name, lie := range map[string]func(s []float64){
		"":                        func([]float64) {},
		"together more than each": func(s []float64) { s[1], s[5] = 1e9, 1e9 },
		"all against all": func(s []float64) {
			for i := range s {
				if i%6 != 0 {
					s[i] = -1e6
				}
			}
		},
	} {
		b := honest
		b.Scatter = slices.Clone(honest.Scatter)
		lie(b.Scatter)
		said := slices.Clone(b.Scatter)
		if err := b.Take(l); (err == nil) != (name == "") || err == nil && !slices.Equal(b.Scatter, said) {
			t.Errorf("%q: %v, and from %v came %v", name, err, said, b.Scatter)
		}
	}
}

// rotation draws an orthogonal q × q matrix, reflections included.
func rotation(r *rand.Rand, q int) []float64 {
	m := mat.NewDense(q, q, nil)
	m.Apply(func(_, _ int, _ float64) float64 { return r.NormFloat64() }, m)
	var qr mat.QR
	var out mat.Dense
	qr.Factorize(m)
	qr.QTo(&out)
	return out.RawMatrix().Data
}

func TestCanonicalFormForgetsTheRotation(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		q := rapid.IntRange(1, 4).Draw(rt, "q")
		l := drawLayout(rt, q, ppca.Noise(rapid.IntRange(0, 1).Draw(rt, "noise")))
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 5))
		p := factorstest.NewTruth(r, l, q, 0.5).P
		turned := testkit.Get(p.Rotate(rotation(r, q)))(t)
		a, ea, qa, err := ppca.Canonical(l, &p)
		if err != nil {
			rt.Fatal(err)
		}
		b, eb, _, err := ppca.Canonical(l, turned)
		if err != nil {
			rt.Fatal(err)
		}
		if e := factorstest.Worst(ea, eb); e > 1e-11 {
			rt.Fatalf("eigenvalues differ by %.1e", e)
		}
		if !slices.IsSortedFunc(ea, func(x, y float64) int { return int(math.Copysign(1, y-x)) }) {
			rt.Fatalf("eigenvalues %v do not fall", ea)
		}
		gap := 1.0
		for i := 1; i < q; i++ {
			gap = min(gap, ea[i-1]/ea[i]-1)
		}
		if e := factorstest.Worst(a.W, b.W); e > 1e-10/gap {
			rt.Fatalf("loadings differ by %.1e with eigenvalues %v", e, ea)
		}
		if e := factorstest.Worst(factorstest.Covariance(l, &p, p.Features),
			factorstest.Covariance(l, a, p.Features)); e > 1e-12 {
			rt.Fatalf("the covariance changed by %.1e", e)
		}
		again := testkit.Get(p.Rotate(qa))(t)
		if factorstest.Worst(again.W, a.W) != 0 {
			rt.Fatal("the rotation returned is not the one applied")
		}
	})
}

func TestPrincipalAnglesAreKnown(t *testing.T) {
	at := func(angle float64) *mat.Dense { // the plane of e₁ and e₂ turned about e₁
		sine, cosine := math.Sincos(angle)
		return mat.NewDense(3, 2, []float64{1, 0.5, cosine, 3 * cosine, sine, 3 * sine})
	}
	for _, want := range []float64{1e-9, 0.3, 1.2} {
		got := testkit.Get(ppca.PrincipalAngles(at(want), at(0)))(t)
		floats.Scale(math.Pi/180, got)
		if math.Abs(got[0]) > 1e-9*want+1e-15 && got[0] > 1e-14 || math.Abs(got[1]-want) > 1e-13 {
			t.Errorf("angles %v, want 0 and %v", got, want)
		}
	}
}

func TestBlocksAreTheirDefinition(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := drawLayout(rt, 2, ppca.NoisePerView)
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 6))
		d := l.Features()
		rows := factorstest.NewTruth(r, l, 2, 0.5).Subjects(r, rapid.IntRange(1, 250).Draw(rt, "n"))
		if rapid.Bool().Draw(rt, "views") {
			factorstest.Lacking(l, rows[len(rows)/3:], 0)
		}
		factorstest.Hole(r, rows, rapid.SampledFrom([]float64{0, 0.05, 0.5}).Draw(rt, "share"))
		scale := &ppca.Scale{Shift: make([]float64, d), Factor: make([]float64, d)}
		for j := range d {
			scale.Shift[j], scale.Factor[j] = r.NormFloat64(), 0.5+r.Float64()
		}
		a := ppca.NewAccumulator(l)
		for _, row := range rows {
			testkit.Do(rt, a.Add(factorstest.Split(l, row)))
		}
		blocks, n := a.Blocks(), 0.0
		for i := range blocks {
			blocks[i] = blocks[i].Scaled(scale)
		}
		if !slices.IsSortedFunc(blocks, func(x, y ppca.Block) int { return slices.Compare(x.Features, y.Features) }) {
			rt.Fatal("blocks are not in canonical order")
		}
		for _, row := range rows {
			if !slices.ContainsFunc(row, func(x float64) bool { return !math.IsNaN(x) }) {
				n++
			}
		}
		for _, b := range blocks {
			testkit.Do(rt, b.Check(l))
			n += b.N
			var own [][]float64
			for _, row := range rows {
				var o []int
				var x []float64
				for j, v := range row {
					if !math.IsNaN(v) {
						o, x = append(o, j), append(x, (v-scale.Shift[j])*scale.Factor[j])
					}
				}
				if slices.Equal(o, b.Features) {
					own = append(own, x)
				}
			}
			p := len(b.Features)
			mean, scatter := make([]float64, p), make([]float64, p*p)
			for _, x := range own {
				for i := range x {
					mean[i] += x[i] / float64(len(own))
				}
			}
			for _, x := range own {
				for i := range x {
					for j := range x {
						scatter[i*p+j] += (x[i] - mean[i]) * (x[j] - mean[j])
					}
				}
			}
			dense := b.Dense()
			if float64(len(own)) != b.N || factorstest.Worst(mean, b.Mean) > 1e-12 ||
				factorstest.Worst(scatter, dense.Scatter) > 1e-11 {
				rt.Fatalf("block on %v differs from its %d rows", b.Features, len(own))
			}
		}
		if n != float64(len(rows)) {
			rt.Fatalf("%v subjects of %d", n, len(rows))
		}
		share := 0.0
		for _, pt := range ppca.Patterns(l, blocks) {
			cells := 0
			for _, k := range pt.Views {
				cells += l.Dims[k]
			}
			share += pt.Share * float64(pt.Subjects) * float64(cells)
		}
		for _, row := range rows {
			for _, x := range row {
				if !math.IsNaN(x) {
					share--
				}
			}
		}
		if math.Abs(share) > 1e-8 {
			rt.Fatalf("patterns count %v cells too many", share)
		}
	})
}

func TestAccumulatorRefusesWhatDoesNotFit(t *testing.T) {
	l := factorstest.Shape(t, ppca.NoisePerView, 2, 1)
	a := ppca.NewAccumulator(l)
	for _, c := range []struct {
		views [][]float64
		want  string
	}{
		{[][]float64{{1, 2}}, "1 views"},
		{[][]float64{{1}, {1}}, "1 values in view 0"},
		{[][]float64{{1, math.Inf(1)}, nil}, "value 2 of view 1 is beyond"},
	} {
		if err := a.Add(c.views); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: error %v, want one with %q", c.views, err, c.want)
		}
	}
	if err := a.Add([][]float64{nil, {math.NaN()}}); err != nil || len(a.Blocks()) != 0 {
		t.Errorf("a subject without values: %v, %d blocks", err, len(a.Blocks()))
	}
}
