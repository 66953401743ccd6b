package fedmvppca

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"
	"pgregory.net/rapid"

	"parley/internal/linalg"
	"parley/internal/testkit"
	"parley/method/methodtest"
	"parley/methods/factors/factorstest"
	"parley/methods/factors/ppca"
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
		prior := testkit.Get(weak(l, &tr.P))(t)
		if rapid.Bool().Draw(rt, "no prior") {
			prior = nil
		}
		got := map[string]ppca.Params{}
		for name, blocks := range factorstest.Forms(l, rows) {
			s := testkit.Get(newEM(l, blocks, q, start.W, start.Noise))(t)
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
	prior := testkit.Get(weak(l, &center))(t)
	prior.VarMu[0], prior.VarMu[1], prior.VarW[0] = 0.3, 0.01, 0.2
	start := factorstest.NewTruth(r, l, 2, 1).P
	s := testkit.Get(newEM(l, factorstest.BlocksOf(t, l, rows), 2, start.W, start.Noise))(t)
	testkit.Do(t, s.step(prior))
	got := s.params()
	normal := func(x, mean, variance float64) float64 { return -(x - mean) * (x - mean) / (2 * variance) }

	for k := range l.Views() {
		lo, hi := l.View(k)
		view := l.FeaturesOf([]int{k})
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
	post := testkit.Get(testkit.Get(ppca.NewPredictor(l, &moments))(t).Given(l.AllFeatures()))(t)
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
	s := testkit.Get(newEM(l, blocks, 2, start.W, start.Noise))(t)
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
	prior := testkit.Get(weak(l, &tr.P))(t)
	clear(prior.VarMu)
	clear(prior.VarW)
	s := testkit.Get(newEM(l, factorstest.BlocksOf(t, l, tr.Subjects(r, 20)), 2, tr.P.W, tr.P.Noise))(t)
	testkit.Do(t, s.step(prior))
	if p := s.params(); factorstest.Worst(p.W, tr.P.W) != 0 || factorstest.Worst(p.Mu, tr.P.Mu) != 0 {
		t.Error("variances of zero between sites, and yet the site has values of its own")
	}
}

// clipped is a plan of three sites under differential privacy, of which the second lacks a view.
const clipped = `
parley: 1
name: small
seed: 5
privacy: {protection: differential, unit: subject, adjacency: replace-one, per_release: {epsilon: 10, delta: 0.01}}
views:
  - {name: v0, features: [{name: a, range: [-20, 20]}, {name: b, range: [-20, 20]}, {name: c, range: [-20, 20]}]}
  - {name: v1, features: [{name: d, range: [-20, 20]}, {name: e, range: [-20, 20]}]}
sites: [site-0, site-1, site-2]
method:
  name: fed-mv-ppca
  latent: 2
  rounds: 3
  patterns: [{site: site-1, views: [v0]}]
`

// What the session is given to clip at 1 is what [clipDifference], which the
// vectors hold, clips at g.
func TestChangeInUnitsOfTheClip(t *testing.T) {
	set := testkit.Get(setUp(methodtest.Plan(t, Name, Method{}.Options(), clipped)))(t)
	l, c := set.Layout, testkit.Get(newReleases(set, "site-0"))(t)
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		constant := rapid.Float64Range(0.01, 3).Draw(t, "constant")
		set.own.Clipping = &clipping{Mean: gaussianPart{Constant: constant}, Loadings: gaussianPart{Constant: constant},
			Noise: laplacePart{Constant: constant}}
		prior, own := drawPrior(r, l), drawPrior(r, l).Params
		for k := range l.Views() {
			mu, w, noise := clipDifference(l, &own, prior, k, 10, 0.01, constant)
			for i, pt := range c.parts {
				if pt.view != k {
					continue
				}
				v := make([]float64, pt.length)
				c.change(prior, &own, i, v)
				want := map[parameter]clippedDifference{ofMeans: mu, ofLoadings: w, ofVariance: noise}[pt.kind]
				lo, _ := l.View(k)
				whole := ppca.Params{Rank: prior.Rank, W: make([]float64, len(prior.W)),
					Mu: make([]float64, len(prior.Mu)), Noise: make([]float64, l.Views())}
				copy(whole.W[lo*prior.Rank:], w.value) // columns that are zero by rule are not released
				copy(whole.Mu[lo:], mu.value)
				whole.Noise[k] = noise.value[0]
				g, clipped := c.radius(prior, pt), make([]float64, pt.length)
				pt.read(l, &whole, clipped)
				length := max(1, math.Sqrt(floats.Dot(v, v)))
				for n, x := range v {
					x /= length
					if math.Abs(g*x-clipped[n]) > 1e-12*g {
						t.Fatalf("view %d, %s: entry %d is %v, want %v", k, pt.kind, n, g*x, clipped[n])
					}
				}
				if sd := g * c.sums[i].Mechanism.Noise; math.Abs(sd-want.noise) > 1e-12*sd {
					t.Fatalf("view %d, %s: noise %v", k, pt.kind, sd)
				}
			}
		}
	})
}

// drawPrior draws a prior whose laws all have a standard deviation, and whose
// views of more features than factors have all columns.
func drawPrior(r *rand.Rand, l ppca.Layout) *Prior {
	d, q := l.Features(), 2
	p := &Prior{Params: ppca.Params{Features: l.AllFeatures(), Rank: q, W: make([]float64, d*q), Mu: make([]float64, d),
		Noise: make([]float64, l.Views())}}
	for i := range p.W {
		p.W[i] = r.NormFloat64()
	}
	for i := range p.Mu {
		p.Mu[i] = r.NormFloat64()
	}
	for k := range l.Views() {
		lo, hi := l.View(k)
		for j := lo; j < hi; j++ { // the column rule
			clear(p.W[j*q+effectiveRank(hi-lo, q):][:q-effectiveRank(hi-lo, q)])
		}
		p.Noise[k] = r.ExpFloat64() + 0.01
		p.VarW, p.VarMu = append(p.VarW, r.ExpFloat64()), append(p.VarMu, r.ExpFloat64())
		p.Alpha, p.Beta = append(p.Alpha, 2.1+r.ExpFloat64()), append(p.Beta, r.ExpFloat64()+0.01)
	}
	return p
}

func TestClipWithoutAStandardDeviation(t *testing.T) {
	set := testkit.Get(setUp(methodtest.Plan(t, Name, Method{}.Options(), clipped)))(t)
	l, c := set.Layout, testkit.Get(newReleases(set, "site-0"))(t)
	prior := drawPrior(rand.New(rand.NewPCG(2, 2)), l)
	prior.Alpha[0], prior.VarW[0] = 2, 0
	own := drawPrior(rand.New(rand.NewPCG(3, 3)), l).Params
	for i, pt := range c.parts {
		v := make([]float64, pt.length)
		c.change(prior, &own, i, v)
		switch {
		case pt.view == 0 && pt.kind == ofVariance:
			if g := c.radius(prior, pt); g != prior.Noise[0] {
				t.Errorf("a law without a spread clips at %v, want its variance %v", g, prior.Noise[0])
			}
		case pt.view == 0 && pt.kind == ofLoadings:
			if g := c.radius(prior, pt); g != 0 || slices.ContainsFunc(v, func(x float64) bool { return x != 0 }) {
				t.Errorf("a prior without spread clips at %v and lets %v through", g, v)
			}
		}
	}
}

func TestASiteHoldsWhatThePlanSays(t *testing.T) {
	c := testkit.Get(newReleases(testkit.Get(setUp(methodtest.Plan(t, Name, Method{}.Options(), clipped)))(t),
		"site-1"))(t)
	views := c.held([][]float64{{1, 2, 3}, {4, 5}})
	if views[0] == nil || views[1] != nil {
		t.Errorf("a site that lacks view v1 uses %v", views)
	}
	if views = c.held([][]float64{{1, math.NaN(), 3}, nil}); views[0] != nil {
		t.Errorf("a view with a missing value is used: %v", views)
	}
}

// Sites can compute with whatever the published update makes of what they say,
// even where noise variances are next to nothing beside the loadings.
func TestSitesCanComputeWithAnyPublishedModel(t *testing.T) {
	c := coordinator{setup: setup{Frame: ppca.Frame{Layout: factorstest.Shape(t, ppca.NoisePerView, 3, 2)}}}
	r := rand.New(rand.NewPCG(82, 1))
	tr := factorstest.NewTruth(r, c.Layout, 2, 0.3)
	blocks := factorstest.BlocksOf(t, c.Layout, tr.Subjects(r, 20))
	for _, factor := range []float64{1, 1e6, 1e12, 1e30} {
		prior := testkit.Get(weak(c.Layout, &tr.P))(t)
		for i := range prior.W {
			prior.W[i] *= factor
			if i%2 == 1 && factor > 1 { // two factors alike: only noise tells them apart
				prior.W[i] = prior.W[i-1]
			}
		}
		if before := slices.Clone(prior.Noise); factor == 1 {
			if c.blur(prior); !slices.Equal(before, prior.Noise) {
				t.Errorf("an honest model was blurred: %v became %v", before, prior.Noise)
			}
		}
		c.blur(prior)
		it := testkit.Get(newEM(c.Layout, blocks, 2, prior.W, prior.Noise))(t)
		for range 3 {
			if err := it.step(prior); err != nil {
				t.Errorf("loadings times %g: %v", factor, err)
				break
			}
		}
	}
}

// weak returns a prior around a model to begin hierarchical rounds with: the
// variances between sites are 1 % of the mean square of the loadings of a view,
// and the noise variances are worth six values (α = 3).
func weak(l ppca.Layout, p *ppca.Params) (*Prior, error) {
	if err := p.Check(l); err != nil {
		return nil, err
	}
	out := &Prior{
		Params: p.Clone(),
		VarW:   make([]float64, l.Views()), VarMu: make([]float64, l.Views()),
		Alpha: make([]float64, l.Groups()), Beta: make([]float64, l.Groups()),
	}
	for k := range l.Views() {
		lo, hi := l.View(k)
		s := 0.0
		for _, w := range p.W[lo*p.Rank : hi*p.Rank] {
			s += w * w
		}
		out.VarW[k] = 0.01 * s / float64((hi-lo)*p.Rank)
		out.VarMu[k] = out.VarW[k]
	}
	for g, v := range p.Noise {
		out.Alpha[g], out.Beta[g] = 3, 3*v
	}
	return out, nil
}
