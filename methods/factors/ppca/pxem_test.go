package ppca_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"parley/internal/testkit"
	"parley/methods/factors/factorstest"
	"parley/methods/factors/ppca"

	"pgregory.net/rapid"
)

func TestFitNeverLosesLikelihood(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		q := rapid.IntRange(1, 4).Draw(rt, "q")
		l := drawLayout(rt, q, ppca.Noise(rapid.IntRange(0, 1).Draw(rt, "noise")))
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 3))
		tr := factorstest.NewTruth(r, l, rapid.IntRange(1, 5).Draw(rt, "true q"),
			math.Exp(rapid.Float64Range(-6, 2).Draw(rt, "ln noise")))
		rows := tr.Subjects(r, rapid.IntRange(5, 40).Draw(rt, "n"))
		if rapid.Bool().Draw(rt, "holes") {
			rows = factorstest.Hole(r, rows, 0.2)
		}
		if l.Views() > 1 && rapid.Bool().Draw(rt, "views") {
			factorstest.Lacking(l, rows[:len(rows)/2], l.Views()-1)
		}
		f, err := ppca.Fit(l, factorstest.BlocksOf(t, l, rows), min(q, l.Features()-1), nil,
			ppca.FitOptions{MaxIter: 60})
		if err != nil {
			rt.Fatal(err)
		}
		// Rounding is of the size of signal over noise, which degenerate draws
		// bring to 10⁸.
		rounding := 1e-10
		for _, w := range f.W {
			rounding = max(rounding, 1e-15*w*w/slices.Min(f.Noise))
		}
		for i := 1; i < len(f.Trace); i++ {
			if f.Trace[i] < f.Trace[i-1]-rounding*(1+math.Abs(f.Trace[i])) {
				rt.Fatalf("iteration %d: %v after %v", i, f.Trace[i], f.Trace[i-1])
			}
		}
	})
}

func TestFitIsStationaryAndFindsTheOptimum(t *testing.T) {
	for _, noise := range []ppca.Noise{ppca.NoisePerView, ppca.NoisePerFeature} {
		l := factorstest.Shape(t, noise, 4, 3, 5)
		r := rand.New(rand.NewPCG(12, 1))
		tr := factorstest.NewTruth(r, l, 2, 0.4)
		rows := append(factorstest.Hole(r, tr.Subjects(r, 60), 0.1), factorstest.Lacking(l, tr.Subjects(r, 20), 2)...)
		blocks := factorstest.BlocksOf(t, l, rows)
		tight := testkit.Get(ppca.Fit(l, blocks, 2, nil, ppca.FitOptions{Tol: 1e-13, MaxIter: 20000}))(t)
		if !tight.Converged {
			t.Fatal("did not converge")
		}
		at := func(put func(*ppca.Params, []float64)) func([]float64) float64 {
			return func(x []float64) float64 {
				p := tight.Params.Clone()
				put(&p, x)
				ll, _, err := ppca.LogLik(l, &p, blocks)
				if err != nil {
					t.Fatal(err)
				}
				return ll
			}
		}
		if g := factorstest.Gradient(at(func(p *ppca.Params, x []float64) { p.W = x }), tight.W); g > 1e-2 {
			t.Errorf("noise %d: W is not stationary, %.1e", noise, g)
		}
		if g := factorstest.Gradient(at(func(p *ppca.Params, x []float64) { p.Mu = x }), tight.Mu); g > 1e-2 {
			t.Errorf("noise %d: mu is not stationary, %.1e", noise, g)
		}
		if g := factorstest.Gradient(at(func(p *ppca.Params, x []float64) { p.Noise = x }), tight.Noise); g > 1e-2 {
			t.Errorf("noise %d: noise is not stationary, %.1e", noise, g)
		}
		quick := testkit.Get(ppca.Fit(l, blocks, 2, nil, ppca.FitOptions{}))(t)
		if gap := (tight.LogLik - quick.LogLik) / tight.Subjects; gap > 1e-4 || !quick.Converged {
			t.Errorf("noise %d: the default stops %.1e nats per subject short after %d iterations", noise, gap,
				quick.Iterations)
		}
		// The truth cannot be likelier than the maximum.
		if ll, _, _ := ppca.LogLik(l, &tr.P, blocks); ll > tight.LogLik {
			t.Errorf("noise %d: the truth has log-likelihood %v, the fit %v", noise, ll, tight.LogLik)
		}
	}
}

func TestFitSaysWhenItDidNotConverge(t *testing.T) {
	l := factorstest.Shape(t, ppca.NoisePerView, 4, 3)
	r := rand.New(rand.NewPCG(13, 1))
	f := testkit.Get(ppca.Fit(l, factorstest.BlocksOf(t, l, factorstest.NewTruth(r, l, 2, 0.5).Subjects(r, 30)), 2,
		nil, ppca.FitOptions{MaxIter: 3}))(t)
	if f.Converged || f.Iterations != 3 || len(f.Trace) != 4 {
		t.Errorf("converged %t after %d iterations with a trace of %d", f.Converged, f.Iterations, len(f.Trace))
	}
}

// TestDegenerateDataEndSanely fits data that the model does not suit: either a
// clear error or finite parameters must come out.
func TestDegenerateDataEndSanely(t *testing.T) {
	r := rand.New(rand.NewPCG(14, 1))
	for _, noise := range []ppca.Noise{ppca.NoisePerView, ppca.NoisePerFeature} {
		l := factorstest.Shape(t, noise, 4, 3)
		tr := factorstest.NewTruth(r, l, 2, 0.5)
		same := tr.Subject(r)
		constant := tr.Subjects(r, 20)
		constantView := tr.Subjects(r, 20)
		exact := factorstest.NewTruth(r, l, 2, 1e-300).Subjects(r, 20)
		huge := tr.Subjects(r, 20)
		tiny := tr.Subjects(r, 20)
		for i := range 20 {
			constant[i][2] = 0.1
			copy(constantView[i][4:], []float64{1, 2, 3})
			for j := range huge[i] {
				huge[i][j] = 1e9 + huge[i][j]*1e-3
				tiny[i][j] *= 1e-40
			}
		}
		for name, c := range map[string]struct {
			rows   [][]float64
			failed error
		}{
			"one subject":       {tr.Subjects(r, 1), ppca.ErrNoVariance},
			"the same twice":    {[][]float64{same, same}, ppca.ErrNoVariance},
			"two subjects":      {tr.Subjects(r, 2), nil},
			"three subjects":    {tr.Subjects(r, 3), nil},
			"constant feature":  {constant, nil},
			"constant view":     {constantView, nil},
			"rank of the model": {exact, nil},
			"far from zero":     {huge, nil},
			"tiny":              {tiny, nil},
			"single cells":      {factorstest.Hole(r, tr.Subjects(r, 4), 0.6), nil},
			"views never together": {append(factorstest.Lacking(l, tr.Subjects(r, 20), 0),
				factorstest.Lacking(l, tr.Subjects(r, 20), 1)...), nil},
		} {
			for _, q := range []int{1, 2, 6} {
				f, err := ppca.Fit(l, factorstest.BlocksOf(t, l, c.rows), q, nil, ppca.FitOptions{MaxIter: 300})
				if c.failed != nil {
					if !errors.Is(err, c.failed) {
						t.Errorf("%s, q=%d: error %v, want %v", name, q, err, c.failed)
					}
					continue
				}
				if err != nil {
					t.Errorf("%s, q=%d: %v", name, q, err)
					continue
				}
				if err := f.Params.Check(l); err != nil {
					t.Errorf("%s, q=%d: %v", name, q, err)
				}
			}
		}
	}
}

// drawLayout draws a small layout; every view can take all q factors.
func drawLayout(t *rapid.T, q int, noise ppca.Noise) ppca.Layout {
	dims := rapid.SliceOfN(rapid.IntRange(q+1, q+5), 1, 3).Draw(t, "dims")
	return ppca.Layout{Dims: dims, Noise: noise}
}

func TestFitIterationsAgreeInEveryForm(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		q := rapid.IntRange(1, 3).Draw(rt, "q")
		l := drawLayout(rt, q, ppca.Noise(rapid.IntRange(0, 1).Draw(rt, "noise")))
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 2))
		tr := factorstest.NewTruth(r, l, q, 0.5)
		rows := tr.Subjects(r, rapid.IntRange(2*q+6, 40).Draw(rt, "n"))
		start := factorstest.NewTruth(r, l, q, 1).P
		var want *ppca.Fitted
		for _, name := range []string{"rows", "statistics", "mixed", "subjects", "merged"} {
			fit := testkit.Get(ppca.Fit(l, factorstest.Forms(l, rows)[name], q, &start,
				ppca.FitOptions{MaxIter: 6, Window: 7}))(t)
			if want == nil {
				want = fit
			}
			if e := max(factorstest.WorstParams(&want.Params, &fit.Params),
				math.Abs(fit.LogLik-want.LogLik)/math.Abs(want.LogLik)); e > 1e-10 {
				rt.Fatalf("%s differ from rows by %.1e", name, e)
			}
		}
	})
}

// A copy of a feature has no noise of its own, and maximum likelihood would say so; the
// least share is of each feature's own variance, and leaves the others' noise as it is.
func TestNoiseStaysAboveItsLeastShare(t *testing.T) {
	l := factorstest.Shape(t, ppca.NoisePerFeature, 5, 4)
	r := rand.New(rand.NewPCG(8, 8))
	rows := factorstest.NewTruth(r, l, 2, 0.5).Subjects(r, 80)
	for _, row := range rows {
		row[3] = 100 * row[2]
	}
	blocks := factorstest.BlocksOf(t, l, rows)
	variance := make([]float64, l.Features())
	factorstest.Moments(blocks...)[0].Squares(variance)
	free := testkit.Get(ppca.Fit(l, blocks, 3, nil, ppca.FitOptions{}))(t)
	held := testkit.Get(ppca.Fit(l, blocks, 3, nil, ppca.FitOptions{LeastNoise: ppca.LeastNoise}))(t)
	for j, v := range variance {
		least := ppca.LeastNoise * v / 80
		if bound := j == 2 || j == 3; bound != (free.Noise[j] < least) || held.Noise[j] < least*(1-1e-12) {
			t.Errorf("feature %d: noise %v, and %v with a least share, which is %v", j, free.Noise[j],
				held.Noise[j], least)
		}
	}
}
