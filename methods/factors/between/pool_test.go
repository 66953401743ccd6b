package between

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"parley/internal/linalg"
	"parley/methods/factors/factorstest"
	"parley/methods/factors/ppca"
)

// differingSites draws sites whose loadings and means differ from a common
// model with the given standard deviations.
func differingSites(r *rand.Rand, tr factorstest.Truth, sites, n int, sdW, sdMu float64) [][][]float64 {
	var out [][][]float64
	for range sites {
		own := factorstest.Truth{L: tr.L, P: tr.P.Clone()}
		for i := range own.P.W {
			own.P.W[i] += sdW * r.NormFloat64()
		}
		for i := range own.P.Mu {
			own.P.Mu[i] += sdMu * r.NormFloat64()
		}
		out = append(out, own.Subjects(r, n))
	}
	return out
}

// run runs the default method: one shot, then rounds.
func run(t testing.TB, l ppca.Layout, sites [][]ppca.Block, q, rounds int) (*ppca.Prior, []State) {
	t.Helper()
	one := factorstest.OneShot(t, l, sites, q)
	prior := factorstest.Must(ppca.Weak(l, &one.Params))(t)
	var states []State
	for range rounds {
		prior, states = round(t, l, sites, prior, states, 5)
	}
	return prior, states
}

// TestShiftedPopulationsShareTheirLoadings: sites that differ in their factors
// alone differ in ν, not in W or μ.
func TestShiftedPopulationsShareTheirLoadings(t *testing.T) {
	l := factorstest.Shape(t, ppca.NoisePerView, 15, 8, 10)
	r := rand.New(rand.NewPCG(67, 1))
	tr := factorstest.NewTruth(r, l, 3, 0.02)
	var sites [][]ppca.Block
	for c := range 4 {
		sites = append(sites, factorstest.BlocksOf(t, l, factorstest.Shifted(tr, tr.Subjects(r, 150), 1.5*float64(c))))
	}
	prior, states := run(t, l, sites, 3, 4)
	w, mu := prior.Spread()
	if math.Sqrt(slices.Max(w)) > 0.03 || math.Sqrt(slices.Max(mu)) > 0.05 {
		t.Errorf("variances between sites %v and %v", w, mu)
	}
	apart := 0.0
	for a := range 3 {
		apart += math.Pow(states[0].Nu[a]-states[3].Nu[a], 2)
	}
	if math.Sqrt(apart) < 1 {
		t.Errorf("the first and last population have factors of mean %v and %v", states[0].Nu, states[3].Nu)
	}
}

// TestWithoutSpreadTheEstimateIsThePooledStep: at variances of zero the
// coordinator's estimate is the M step from the summed statistics,
// (Σ B_c/σ²_c)(Σ R_c/σ²_c)⁻¹.
func TestWithoutSpreadTheEstimateIsThePooledStep(t *testing.T) {
	l := factorstest.Shape(t, ppca.NoisePerView, 5, 4)
	r := rand.New(rand.NewPCG(66, 1))
	tr := factorstest.NewTruth(r, l, 2, 0.1)
	sumR, sumB := make([]float64, 9), make([]float64, 5*3)
	var messages []Message
	for n := range 3 {
		h := factorstest.Must(NewSite(l, factorstest.BlocksOf(t, l, tr.Subjects(r, 30+10*n)), factorstest.Must(ppca.Weak(l, &tr.P))(t), nil))(t)
		if err := h.Step(); err != nil {
			t.Fatal(err)
		}
		m := *factorstest.Must(h.Message())(t)
		messages = append(messages, m)
		for a := range 9 {
			sumR[a] += m.R[a] / m.Noise[0]
		}
		for j := range 5 {
			for a := range 3 {
				for b := range 3 {
					sumB[j*3+a] += m.Y[j*3+b] * m.R[b*3+a] / m.Noise[0]
				}
			}
		}
	}
	linalg.Cholesky(sumR, 3, 3)
	p := factorstest.Must(newPool(l, 2, messages))(t)
	err := p.view(0).estimate(0, 0, func(j int, row []float64) {
		want := sumB[j*3:][:3]
		linalg.CholSolve(sumR, 3, 3, want)
		if e := factorstest.Worst(want, row); e > 1e-11 {
			t.Errorf("feature %d differs by %.1e", j, e)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Whatever is within the limits is pooled: where sites are further apart than
// numbers are fine, each starts the next round afresh.
func TestSitesFarApartArePooled(t *testing.T) {
	l := factorstest.Shape(t, ppca.NoisePerView, 5, 4)
	r := rand.New(rand.NewPCG(64, 1))
	tr := factorstest.NewTruth(r, l, 2, 0.1)
	message := func() Message {
		h := factorstest.Must(NewSite(l, factorstest.BlocksOf(t, l, tr.Subjects(r, 60)), factorstest.Must(ppca.Weak(l, &tr.P))(t), nil))(t)
		if err := h.Step(); err != nil {
			t.Fatal(err)
		}
		return *factorstest.Must(h.Message())(t)
	}
	scale := func(x []float64, f float64) {
		for i := range x {
			x[i] *= f
		}
	}
	for name, lie := range map[string]func(*Message){
		"factors far off":    func(m *Message) { scale(m.Nu, 1e30) },
		"factors wide":       func(m *Message) { scale(m.Xi, 1e60) },
		"factors narrow":     func(m *Message) { scale(m.Xi, 1e-60) },
		"loadings far off":   func(m *Message) { scale(m.Y, 1e30) },
		"precise":            func(m *Message) { scale(m.R, 1e60) },
		"imprecise":          func(m *Message) { scale(m.R, 1e-60) },
		"noiseless":          func(m *Message) { scale(m.Noise, 1e-60) },
		"noisy":              func(m *Message) { scale(m.Noise, 1e60) },
		"far off, and noisy": func(m *Message) { scale(m.Nu, -1e20); scale(m.Y, 1e20); scale(m.Noise, 1e40) },
	} {
		m := message()
		lie(&m)
		if err := errors.Join(m.Check(l), m.Measured()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		prior, states, err := Pool(l, []Message{message(), m, message()})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := prior.Check(l); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for i := range states {
			if err := states[i].Check(l); err != nil {
				t.Errorf("%s, site %d: %v", name, i, err)
			}
		}
	}
}

func TestGaugeLeavesEverySiteAsItWas(t *testing.T) {
	l := factorstest.Shape(t, ppca.NoisePerView, 5, 4)
	r := rand.New(rand.NewPCG(63, 1))
	tr := factorstest.NewTruth(r, l, 2, 0.1)
	var messages []Message
	for c := range 3 {
		rows := factorstest.Shifted(tr, tr.Subjects(r, 60), 2*float64(c))
		h := factorstest.Must(NewSite(l, factorstest.BlocksOf(t, l, rows), factorstest.Must(ppca.Weak(l, &tr.P))(t), nil))(t)
		for range 5 {
			if err := h.Step(); err != nil {
				t.Fatal(err)
			}
		}
		messages = append(messages, *factorstest.Must(h.Message())(t))
	}
	p := factorstest.Must(newPool(l, 2, messages))(t)
	prior := factorstest.Must(ppca.Weak(l, &tr.P))(t)
	before := p.states(prior)
	after := p.states(prior)
	moved := factorstest.Must(ppca.Weak(l, &tr.P))(t)
	if err := p.gauge(moved, after); err != nil {
		t.Fatal(err)
	}
	// Mean W ν + μ and covariance W Ξ Wᵀ of every site are the same as before.
	law := func(s *State) (out []float64) {
		for j := range l.Features() {
			w := s.W[j*2:][:2]
			out = append(out, s.Mu[j]+w[0]*s.Nu[0]+w[1]*s.Nu[1], linalg.Quadratic(s.Xi, 2, w, w))
		}
		return out
	}
	pooledNu, pooledXi, n := make([]float64, 2), make([]float64, 4), 0.0
	for i := range after {
		if e := factorstest.Worst(law(&before[i]), law(&after[i])); e > 1e-11 {
			t.Errorf("site %d changed by %.1e", i, e)
		}
		s := &after[i]
		n += messages[i].Subjects
		for a := range 2 {
			pooledNu[a] += messages[i].Subjects * s.Nu[a]
			for c := range 2 {
				pooledXi[a*2+c] += messages[i].Subjects * (s.Xi[a*2+c] + s.Nu[a]*s.Nu[c])
			}
		}
	}
	for i := range pooledXi {
		pooledXi[i] /= n
	}
	if factorstest.Worst(pooledNu, []float64{0, 0}) > 1e-11 || factorstest.Worst(pooledXi, []float64{1, 0, 0, 1}) > 1e-11 {
		t.Errorf("the pooled factors have mean %v and covariance %v", pooledNu, pooledXi)
	}
	if math.Abs(after[2].Nu[0])+math.Abs(after[2].Nu[1]) < 0.3 {
		t.Errorf("the shifted population has factors of mean %v", after[2].Nu)
	}
}

// TestMinimiseFindsTheBottom compares with a fine search over both variances.
func TestMinimiseFindsTheBottom(t *testing.T) {
	l := factorstest.Shape(t, ppca.NoisePerView, 12, 4)
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 64))
		sd := []float64{0, 0.05, 0.3, 1}[seed]
		var messages []Message
		tr := factorstest.NewTruth(r, l, 2, 0.05)
		for c, rows := range differingSites(r, tr, 3, 60, sd, 0.5*sd) {
			if c == 2 {
				factorstest.Lacking(l, rows, 1)
			}
			h := factorstest.Must(NewSite(l, factorstest.BlocksOf(t, l, rows), factorstest.Must(ppca.Weak(l, &tr.P))(t), nil))(t)
			for range 3 {
				if err := h.Step(); err != nil {
					t.Fatal(err)
				}
			}
			messages = append(messages, *factorstest.Must(h.Message())(t))
		}
		p := factorstest.Must(newPool(l, 2, messages))(t)
		for k := range l.Views() {
			re := p.view(k)
			w, mu := re.minimise()
			at := re.objective(w, mu)
			scaleW, scaleMu := re.scale()
			for i := -160; i <= 40; i++ {
				for j := -160; j <= 40; j += 4 {
					x, y := scaleW*math.Pow(10, float64(i)/20), scaleMu*math.Pow(10, float64(j)/20)
					if v := re.objective(x, y); v < at-1e-6*(1+math.Abs(at)) {
						t.Fatalf("seed %d, view %d: %v at (%v, %v) is below %v at (%v, %v)", seed, k, v, x, y, at, w, mu)
					}
				}
			}
			if re.objective(0, 0) < at {
				t.Errorf("seed %d, view %d: zero is better", seed, k)
			}
		}
	}
}

// TestMinimiseIsNotTrapped: with few sites, what differs in the means can pass for a
// difference in the loadings, and the other way round. No pair of whole decades is better
// than what is found.
func TestMinimiseIsNotTrapped(t *testing.T) {
	for seed := range uint64(120) {
		r := rand.New(rand.NewPCG(seed, 99))
		l := factorstest.Shape(t, []ppca.Noise{ppca.NoisePerView, ppca.NoisePerFeature}[seed%2], 2+r.IntN(12), 1+r.IntN(5))
		q, sizes := 1+r.IntN(3), []float64{0, 0.01, 0.05, 0.3, 1, 3}
		tr := factorstest.NewTruth(r, l, q, 0.05)
		var messages []Message
		for _, rows := range differingSites(r, tr, 2+r.IntN(8), 10+r.IntN(60), sizes[r.IntN(6)], sizes[r.IntN(6)]) {
			h := factorstest.Must(NewSite(l, factorstest.BlocksOf(t, l, rows), factorstest.Must(ppca.Weak(l, &tr.P))(t), nil))(t)
			for range 3 {
				if err := h.Step(); err != nil {
					t.Fatal(err)
				}
			}
			messages = append(messages, *factorstest.Must(h.Message())(t))
		}
		p := factorstest.Must(newPool(l, q, messages))(t)
		for k := range l.Views() {
			re := p.view(k)
			w, mu := re.minimise()
			found := re.objective(w, mu)
			scaleW, scaleMu := re.scale()
			for i := -remlBelow; i <= remlAbove; i++ {
				for j := -remlBelow; j <= remlAbove; j++ {
					for _, v := range [][2]float64{
						{scaleW * math.Pow(10, float64(i)), scaleMu * math.Pow(10, float64(j))},
						{0, scaleMu * math.Pow(10, float64(j))}, {scaleW * math.Pow(10, float64(i)), 0},
					} {
						if at := re.objective(v[0], v[1]); at < found-1e-6*(1+math.Abs(found)) {
							t.Fatalf("seed %d, view %d: %v at %v is below %v at (%v, %v)", seed, k, at, v, found, w, mu)
						}
					}
				}
			}
		}
	}
}

// state returns a site's current values.
func state(h *Site) State {
	return State{Params: h.md.Params(h.layout, h.Features), Nu: slices.Clone(h.nu), Xi: packed(h.xi, h.Q, h.LD)}
}

// TestCoordinatorKnowsTheSitesPosterior: under the prior that the site had, the
// coordinator's combination of message and prior is the site's own result.
func TestCoordinatorKnowsTheSitesPosterior(t *testing.T) {
	for _, noise := range []ppca.Noise{ppca.NoisePerView, ppca.NoisePerFeature} {
		l := factorstest.Shape(t, noise, 5, 4)
		r := rand.New(rand.NewPCG(68, 1))
		tr := factorstest.NewTruth(r, l, 2, 0.1)
		center := factorstest.NewTruth(r, l, 2, 0.1).P
		prior := factorstest.Must(ppca.Weak(l, &center))(t)
		h := factorstest.Must(NewSite(l, factorstest.BlocksOf(t, l, factorstest.Hole(r, tr.Subjects(r, 60), 0.1)), prior, nil))(t)
		// Holding the noise, so that the message and the result use the same.
		for g := range prior.Alpha {
			prior.Alpha[g], prior.Beta[g] = 1e12, 1e12*prior.Noise[g]
		}
		for range 3 {
			if err := h.Step(); err != nil {
				t.Fatal(err)
			}
		}
		p := factorstest.Must(newPool(l, 2, []Message{*factorstest.Must(h.Message())(t)}))(t)
		states := p.states(prior)
		own := state(h)
		if e := factorstest.WorstParams(&own.Params, &states[0].Params); e > 1e-7 {
			t.Errorf("noise %d: the coordinator's view of the site differs by %.1e", noise, e)
		}
		if factorstest.Worst(own.Nu, states[0].Nu) != 0 || factorstest.Worst(own.Xi, states[0].Xi) != 0 {
			t.Errorf("noise %d: the law of the factors differs", noise)
		}
	}
}

func TestAViewOfOneSiteHasNoSpread(t *testing.T) {
	l := factorstest.Shape(t, ppca.NoisePerView, 5, 4)
	r := rand.New(rand.NewPCG(65, 1))
	tr := factorstest.NewTruth(r, l, 2, 0.1)
	sites := [][]ppca.Block{
		factorstest.BlocksOf(t, l, tr.Subjects(r, 60)),
		factorstest.BlocksOf(t, l, factorstest.Lacking(l, tr.Subjects(r, 60), 1)),
	}
	prior, _ := run(t, l, sites, 2, 2)
	if prior.VarW[1] != 0 || prior.VarMu[1] != 0 || prior.Alpha[1] != maxSharedAlpha {
		t.Errorf("view 1: variances %v and %v, alpha %v", prior.VarW[1], prior.VarMu[1], prior.Alpha[1])
	}
	if !slices.Equal(prior.Features, l.AllFeatures()) {
		t.Errorf("the prior describes features %v", prior.Features)
	}
	// A view that nobody has is not described, and everything else goes on.
	third := factorstest.Shape(t, ppca.NoisePerView, 5, 4, 3)
	rows := tr.Subjects(r, 60)
	for i := range rows {
		rows[i] = append(rows[i], math.NaN(), math.NaN(), math.NaN())
	}
	half := [][]ppca.Block{factorstest.BlocksOf(t, third, rows[:30]), factorstest.BlocksOf(t, third, rows[30:])}
	prior, _ = run(t, third, half, 2, 2)
	if len(prior.Features) != 9 || prior.Noise[2] != 0 {
		t.Errorf("the prior describes features %v with noise %v", prior.Features, prior.Noise)
	}
}
