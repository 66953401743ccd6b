package fedmvppca

import (
	"math"
	"math/rand/v2"
	"testing"

	"parley/internal/linalg"
	"parley/internal/testkit"
	"parley/methods/factors/factorstest"
	"parley/methods/factors/ppca"

	"pgregory.net/rapid"
)

// drawLayout draws a small layout; every view can take all q factors.
func drawLayout(t *rapid.T, q int, noise ppca.Noise) ppca.Layout {
	dims := rapid.SliceOfN(rapid.IntRange(q+1, q+5), 1, 3).Draw(t, "dims")
	return ppca.Layout{Dims: dims, Noise: noise}
}

func TestPublishedIterationsAgreeInEveryForm(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		q := rapid.IntRange(1, 4).Draw(rt, "q")
		l := drawLayout(rt, q, ppca.NoisePerView)
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		tr := factorstest.NewTruth(r, l, q, 0.5)
		// With hardly more subjects than factors the likelihood has no maximum,
		// and rounding grows without bound on the way there.
		rows := tr.Subjects(r, rapid.IntRange(2*q+6, 40).Draw(rt, "n"))
		start := factorstest.NewTruth(r, l, q, 1).P
		prior := factorstest.Must(ppca.Weak(l, &tr.P))(t)
		if rapid.Bool().Draw(rt, "no prior") {
			prior = nil
		}
		got := map[string]ppca.Params{}
		for name, blocks := range factorstest.Forms(l, rows) {
			s := factorstest.Must(newEM(l, blocks, q, start.W, start.Noise))(t)
			for range 6 {
				testkit.Do(rt, s.step(prior))
			}
			got[name] = s.params()
		}
		want := got["rows"]
		for name, p := range got {
			if e := factorstest.WorstParams(&want, &p); e > 1e-10 {
				rt.Fatalf("%s differ from rows by %.1e", name, e)
			}
		}
	})
}

// TestPublishedUpdatesAreStationary checks each update of one MAP iteration
// against what it is to maximise, written down row by row.
func TestPublishedUpdatesAreStationary(t *testing.T) {
	l := factorstest.Shape(t, ppca.NoisePerView, 4, 3)
	r := rand.New(rand.NewPCG(5, 1))
	tr := factorstest.NewTruth(r, l, 2, 0.5)
	rows := tr.Subjects(r, 20)
	center := factorstest.NewTruth(r, l, 2, 0.7).P
	prior := factorstest.Must(ppca.Weak(l, &center))(t)
	prior.VarMu[0], prior.VarMu[1], prior.VarW[0] = 0.3, 0.01, 0.2
	start := factorstest.NewTruth(r, l, 2, 1).P
	s := factorstest.Must(newEM(l, factorstest.BlocksOf(t, l, rows), 2, start.W, start.Noise))(t)
	testkit.Do(t, s.step(prior))
	got := s.params()
	normal := func(x, mean, variance float64) float64 { return -(x - mean) * (x - mean) / (2 * variance) }

	for k := range l.Views() {
		lo, hi := l.View(k)
		view := factorstest.Must(l.FeaturesOf([]int{k}))(t)
		cov := factorstest.Covariance(l, &start, view)
		marginal := func(mu []float64) float64 { // (10) with the old W and noise, and the prior (4)
			v := 0.0
			for _, row := range rows {
				v += factorstest.LogDensity(row[lo:hi], mu, cov)
			}
			for i, x := range mu {
				v += normal(x, prior.Mu[lo+i], prior.VarMu[k])
			}
			return v
		}
		if g := factorstest.Gradient(marginal, got.Mu[lo:hi]); g > 1e-5 {
			t.Errorf("view %d: (11) is not stationary, %.1e", k, g)
		}
	}
	// The moments: old W and noise, new μ.
	moments := start.Clone()
	moments.Mu = got.Mu
	post := factorstest.Must(factorstest.Must(ppca.NewPredictor(l, &moments))(t).Given(l.AllFeatures()))(t)
	expected := func(w, noise []float64, k int) float64 {
		lo, hi := l.View(k)
		v := 0.0
		x := make([]float64, 2)
		for _, row := range rows {
			post.Latent(x, row)
			for j := lo; j < hi; j++ {
				wj := w[(j-lo)*2:][:2]
				res := row[j] - got.Mu[j] - wj[0]*x[0] - wj[1]*x[1]
				v -= math.Log(noise[0])/2 + (res*res+linalg.Quadratic(post.Cov, 2, wj, wj))/(2*noise[0])
			}
		}
		return v
	}
	for k := range l.Views() {
		lo, hi := l.View(k)
		w := func(w []float64) float64 {
			v := expected(w, start.Noise[k:k+1], k)
			for i, x := range w {
				v += normal(x, prior.W[lo*2+i], prior.VarW[k])
			}
			return v
		}
		if g := factorstest.Gradient(w, got.W[lo*2:hi*2]); g > 1e-5 {
			t.Errorf("view %d: W is not stationary, %.1e", k, g)
		}
		noise := func(s []float64) float64 {
			return expected(got.W[lo*2:hi*2], s, k) - (prior.Alpha[k]+1)*math.Log(s[0]) - prior.Beta[k]/s[0]
		}
		if g := factorstest.Gradient(noise, got.Noise[k:k+1]); g > 1e-3 { // not quadratic
			t.Errorf("view %d: the noise is not stationary, %.1e", k, g)
		}
	}
}

func TestPublishedHandlesSubjectsThatLackViews(t *testing.T) {
	l := factorstest.Shape(t, ppca.NoisePerView, 4, 3, 5)
	r := rand.New(rand.NewPCG(6, 1))
	tr := factorstest.NewTruth(r, l, 2, 0.2)
	rows := append(tr.Subjects(r, 60), factorstest.Lacking(l, tr.Subjects(r, 60), 1)...)
	blocks := factorstest.BlocksOf(t, l, rows)
	if len(blocks) != 2 {
		t.Fatalf("%d blocks", len(blocks))
	}
	start := factorstest.NewTruth(r, l, 2, 1).P
	s := factorstest.Must(newEM(l, blocks, 2, start.W, start.Noise))(t)
	last := math.Inf(-1)
	for range 200 {
		testkit.Do(t, s.step(nil))
	}
	// Without a prior every iteration after the first is em with μ fixed.
	for range 20 {
		testkit.Do(t, s.step(nil))
		p := s.params()
		ll, _, err := ppca.LogLik(l, &p, blocks)
		if err != nil || ll < last-1e-9*math.Abs(ll) {
			t.Fatalf("log-likelihood fell from %v to %v (%v)", last, ll, err)
		}
		last = ll
	}
	holes := factorstest.BlocksOf(t, l, factorstest.Hole(r, tr.Subjects(r, 9), 0.2))
	if _, err := newEM(l, holes, 2, start.W, start.Noise); err == nil {
		t.Error("single missing cells were accepted")
	}
}

func TestFrozenPriorIsFollowed(t *testing.T) {
	l := factorstest.Shape(t, ppca.NoisePerView, 4, 3)
	r := rand.New(rand.NewPCG(8, 1))
	tr := factorstest.NewTruth(r, l, 2, 0.2)
	prior := factorstest.Must(ppca.Weak(l, &tr.P))(t)
	clear(prior.VarMu)
	clear(prior.VarW)
	s := factorstest.Must(newEM(l, factorstest.BlocksOf(t, l, tr.Subjects(r, 20)), 2, tr.P.W, tr.P.Noise))(t)
	testkit.Do(t, s.step(prior))
	if p := s.params(); factorstest.Worst(p.W, tr.P.W) != 0 || factorstest.Worst(p.Mu, tr.P.Mu) != 0 {
		t.Error("variances of zero between sites, and yet the site has values of its own")
	}
}
