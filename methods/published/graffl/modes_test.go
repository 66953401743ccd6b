package graffl

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"
	"pgregory.net/rapid"

	"parley/internal/testkit"
	"parley/methods/mixture/gmm"
)

// The density of two points has the modes that are known of two equal normal
// densities: two where they lie more than two bandwidths apart, which solve
// x = a tanh(ax) in units of the bandwidth, and one in the middle where they do not.
func TestModesOfTwoPoints(t *testing.T) {
	h := []float64{0.5, 3}
	at := func(a float64) []mode { return modes([]float64{1 - a*h[0], 7, 1 + a*h[0], 7}, h, 4) }
	for _, a := range []float64{1.5, 2, 3} {
		x := a
		for range 200 {
			x = a * math.Tanh(a*x)
		}
		modes := at(a)
		if len(modes) != 2 {
			t.Fatalf("half distance %v: %d modes", a, len(modes))
		}
		slices.SortFunc(modes, func(m, n mode) int {
			if m.At[0] < n.At[0] {
				return -1
			}
			return 1
		})
		for i, want := range []float64{1 - x*h[0], 1 + x*h[0]} {
			if m := modes[i]; math.Abs(m.At[0]-want) > 1e-4 || math.Abs(m.At[1]-7) > 1e-9 ||
				math.Abs(m.Density-1) > 1e-9 {
				t.Errorf("half distance %v: mode %+v, want it at %v, 7", a, m, want)
			}
		}
	}
	if modes := at(0.8); len(modes) != 1 || math.Abs(modes[0].At[0]-1) > 1e-3 {
		t.Errorf("two points that are near have the modes %+v, want one between them", modes)
	}
}

// What is returned are peaks, highest first, wherever the points are.
func TestModesArePeaks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.IntRange(1, 3).Draw(t, "d")
		n := rapid.IntRange(1, 40).Draw(t, "n")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		points, h := make([]float64, n*d), make([]float64, d)
		for i := range points {
			points[i] = 10 * r.NormFloat64()
		}
		for i := range h {
			h[i] = 1 + 5*r.Float64()
		}
		modes := modes(points, h, 3)
		if len(modes) < 1 || len(modes) > 3 || modes[0].Density != 1 {
			t.Fatalf("modes %+v of %d points", modes, n)
		}
		k := NewKernelDensity(points, h)
		density := func(x []float64) float64 {
			u := make([]float64, d)
			for c := range u {
				u[c] = x[c] / h[c]
			}
			return k.At(u, nil)
		}
		top := density(modes[0].At)
		for i, m := range modes {
			here := density(m.At)
			if math.Abs(here/top-m.Density) > 1e-9 || i > 0 && m.Density > modes[i-1].Density {
				t.Fatalf("mode %d of %+v has the density %v of the first's", i, modes, here/top)
			}
			for range 20 {
				x := slices.Clone(m.At)
				for c := range x {
					x[c] += 0.01 * h[c] * r.NormFloat64()
				}
				// Kernels end where exp(−12.5) is left of them.
				if density(x) > here+1e-5*float64(n) {
					t.Fatalf("mode %+v is lower than a place beside it", m)
				}
			}
		}
	})
}

func TestModeBandwidth(t *testing.T) {
	// By hand: E Σ is 0.02·24² on the diagonal, and 1000 parameters of 3 components
	// are 333⅓ means for each.
	h, err := modeBandwidth(toyPrior, 1000)
	want := math.Pow(4./6, 1./8) * math.Pow(1000./3, -1./8) * math.Sqrt(2*0.02*24*24)
	if err != nil || math.Abs(h[0]-want) > 1e-12 || h[1] != h[0] {
		t.Errorf("%v (%v), want %v twice", h, err, want)
	}
	p := toyPrior
	p.Nu = 3
	if _, err := modeBandwidth(p, 1000); err == nil {
		t.Error("a bandwidth of a prior without a mean covariance")
	}
}

// distances simulates the sets of proposals and asks the sites.
func distances(t testing.TB, s *SMC, d discrepancy, proposals [][]float64, sites [][]float64) []float64 {
	t.Helper()
	dim := s.Prior.Dim()
	out, set := make([]float64, len(proposals)), make([]float64, s.Choices.Rows*dim)
	counts := make([]int, len(sites))
	for j, rows := range sites {
		counts[j] = len(rows) / dim
	}
	for i, u := range proposals {
		if err := s.Set(u, i, set); err != nil {
			out[i] = math.NaN()
			continue
		}
		across := make([]float64, len(sites))
		for j, rows := range sites {
			across[j] = d.Cross(set, rows, dim)
		}
		out[i] = d.Over(d.Cross(set, set, dim), across, counts)
	}
	return out
}

// A run goes on from its bytes, with threshold and generation, to the same end, however
// many proposals are asked for at a time.
func TestSetsGoOnFromTheirState(t *testing.T) {
	sites := toySites(1, []int{5, 5, 5})
	run := func(through bool) *SMC {
		s := testkit.Get(newSMC(toyPrior, SetOptions{Particles: 32, Proposals: 700, Rows: 10, Keep: 0.5}, 3))(t)
		for s.Stopped == running {
			testkit.Do(t, s.Fold(distances(t, s, discrepancy{Kind: byMMD, Bandwidth: 4}, s.Propose(20), sites)))
			if !through {
				continue
			}
			data := testkit.Get(cbor.Marshal(s))(t)
			s = &SMC{}
			testkit.Do(t, cbor.Unmarshal(data, s))
		}
		return s
	}
	a, b := run(false), run(true)
	if !reflect.DeepEqual(a, b) {
		t.Error("a run that was stored on its way ends elsewhere")
	}
	if a.Used != 700 || a.Stopped != allProposed || a.Generation < 2 || a.Propose(1) != nil {
		t.Errorf("used %d, stopped for %q in generation %d", a.Used, a.Stopped, a.Generation)
	}
}

// Where every discrepancy is alike, particles stay draws of the prior, though sites are
// not asked about moves that the prior refuses. Shares of 1000 particles below the
// prior's quartiles have a standard deviation of 0.016 from being few, and about 0.02
// from copies: with the fixed seed the largest error is 0.035. If chance decides instead
// of the prior's ratio, it is 0.083.
func TestMovesKeepThePrior(t *testing.T) {
	s := testkit.Get(newSMC(toyPrior, SetOptions{Particles: 1000, Proposals: 8000, Rows: 2, Keep: 0.9}, 5))(t)
	for s.Stopped == running {
		testkit.Do(t, s.Fold(make([]float64, len(s.Propose(100)))))
	}
	if asked := s.Used - 1000; float64(asked) > 0.9*float64(s.Moves-1000) {
		t.Errorf("asked about %d of %d moves", asked, s.Moves-1000)
	}
	r, sampler, m := rand.New(rand.NewPCG(1, 6)), NewSampler(toyPrior), gmm.NewMixture(3, 2)
	c := s.coordinates()
	for name, value := range map[string]func(m gmm.Mixture) float64{ // whatever the order of components
		"largest weight":    func(m gmm.Mixture) float64 { return slices.Max(m.Weights) },
		"spread of means":   func(m gmm.Mixture) float64 { return gmm.Squares(m.Means) },
		"smallest variance": func(m gmm.Mixture) float64 { return min(m.Covs[0], m.Covs[4], m.Covs[8]) },
	} {
		draws := make([]float64, 4000)
		for i := range draws {
			sampler.Draw(r, m)
			draws[i] = value(m)
		}
		slices.Sort(draws)
		for _, q := range []float64{0.25, 0.5, 0.75} {
			at, below := draws[int(q*4000)], 0.0
			for _, p := range s.Particles {
				c.From(m, p.U)
				if value(m) <= at {
					below += 1. / 1000
				}
			}
			if math.Abs(below-q) > 0.07 {
				t.Errorf("%.3f of the particles are below the quantile %v of the prior's %s", below, q, name)
			}
		}
	}
}

// What is carried does not grow with proposals.
func TestSetStateIsFlat(t *testing.T) {
	sites := toySites(1, []int{5, 5, 5})
	s := testkit.Get(newSMC(toyPrior, SetOptions{Particles: 32, Proposals: 4000, Rows: 10, Keep: 0.5}, 3))(t)
	var sizes []int
	for s.Stopped == running {
		testkit.Do(t, s.Fold(distances(t, s, discrepancy{Kind: byEnergy}, s.Propose(20), sites)))
		data := testkit.Get(cbor.Marshal(s))(t)
		if s.Generation > 0 {
			sizes = append(sizes, len(data))
		}
	}
	// Counters may take some bytes more.
	if least, most := slices.Min(sizes), slices.Max(sizes); s.Used != 4000 || most > least+16 {
		t.Errorf("a state has %d to %d bytes over %d proposals", least, most, s.Used)
	}
}

// A run stops inside a generation when hardly a proposal is accepted.
func TestSetsStopInsideAGeneration(t *testing.T) {
	s := testkit.Get(newSMC(toyPrior, SetOptions{Particles: 16, Proposals: 100000, Rows: 10, Keep: 0.5,
		LeastAcceptance: 0.2}, 3))(t)
	for n := 0.0; s.Stopped == running; {
		d := make([]float64, len(s.Propose(4)))
		for i := range d {
			n++
			d[i] = n // ever worse: nothing is accepted after the first generation
		}
		testkit.Do(t, s.Fold(d))
	}
	if s.Stopped != fewAccepted || s.Generation != 1 || s.Used != 32 {
		t.Errorf("stopped for %q in generation %d after %d proposals", s.Stopped, s.Generation, s.Used)
	}
}

func TestSetsRefuse(t *testing.T) {
	for want, c := range map[string]SetOptions{
		"particles":  {Particles: 1, Proposals: 100, Rows: 10, Keep: 0.5},
		"proposals":  {Particles: 32, Proposals: 10, Rows: 10, Keep: 0.5},
		"rows":       {Particles: 32, Proposals: 100, Rows: 1, Keep: 0.5},
		"share":      {Particles: 32, Proposals: 100, Rows: 10, Keep: 1},
		"acceptance": {Particles: 32, Proposals: 100, Rows: 10, Keep: 0.5, LeastAcceptance: 1},
	} {
		if _, err := newSMC(toyPrior, c, 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	s := testkit.Get(newSMC(toyPrior, defaultSet(), 1))(t)
	if err := s.Fold(make([]float64, 1000)); err == nil {
		t.Error("more discrepancies than proposals were folded")
	}
}

func TestDiscrepancies(t *testing.T) {
	for _, d := range []discrepancy{{Kind: "wasserstein", Bandwidth: 0}, {Kind: byMMD, Bandwidth: 0},
		{Kind: byMMD, Bandwidth: math.NaN()}, {Kind: byEnergy, Bandwidth: 1}} {
		if d.Check() == nil {
			t.Errorf("%+v was taken", d)
		}
	}
	sites := toySites(3, []int{9, 5, 2})
	var pooled []float64
	for _, s := range sites {
		pooled = append(pooled, s...)
	}
	for _, d := range []discrepancy{{Kind: byEnergy}, {Kind: byMMD, Bandwidth: 3}} {
		if err := d.Check(); err != nil {
			t.Error(err)
		}
		if v := d.Between(pooled, pooled, 2); math.Abs(v) > 1e-12 {
			t.Errorf("%s of a set from itself is %v", d.Kind, v)
		}
		// Over differs from the pooled value by the same constant for every set.
		var constant []float64
		for _, g := range sites {
			var across []float64
			for _, s := range sites {
				across = append(across, d.Cross(g, s, 2))
			}
			constant = append(constant, d.Between(g, pooled, 2)-d.Over(d.Cross(g, g, 2), across, []int{9, 5, 2}))
		}
		if math.Abs(constant[0]-constant[1])+math.Abs(constant[0]-constant[2]) > 1e-12 {
			t.Errorf("%s: the constants are %v", d.Kind, constant)
		}
	}
	var back discrepancy
	data, err := json.Marshal(discrepancy{Kind: byMMD, Bandwidth: 3})
	if err != nil || json.Unmarshal(data, &back) != nil || back != (discrepancy{Kind: byMMD, Bandwidth: 3}) {
		t.Errorf("%s became %+v (%v)", data, back, err)
	}
}

// Means over 40 000 draws from a prior, within five standard errors (false failure
// below 1e-5): π, μ, and Σ where it has moments.
func TestPriorDraws(t *testing.T) {
	p := gmm.Prior{Alpha: []float64{0.5, 1, 2.5}, Mean: []float64{1, -2}, Kappa: 0.5, Nu: 9, Psi: []float64{6, 2, 2, 4}}
	testkit.Do(t, p.Check())
	s, m, r := NewSampler(p), gmm.NewMixture(3, 2), rand.New(rand.NewPCG(1, 1))
	const n = 40000
	sum, square := make([]float64, 3+2+4), make([]float64, 9)
	for range n {
		s.Draw(r, m)
		for i, v := range slices.Concat(m.Weights, m.Mean(1), m.Cov(1)) {
			sum[i] += v / n
			square[i] += v * v / n
		}
	}
	want := slices.Concat([]float64{0.125, 0.25, 0.625}, p.Mean, []float64{1, 1. / 3, 1. / 3, 2. / 3})
	for i, w := range want {
		if se := math.Sqrt((square[i] - sum[i]*sum[i]) / n); math.Abs(sum[i]-w) > 5*se {
			t.Errorf("entry %d is %.4f on average, want %.4f ± %.4f", i, sum[i], w, se)
		}
	}
}
