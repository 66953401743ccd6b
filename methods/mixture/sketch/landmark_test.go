package sketch

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/methods/mixture/gmm"
)

// Bounds are for one data set with fixed seeds: the mean over many is in docs, and a
// single set stays within 1.6 times that with probability above 0.99.
func TestLandmarksRecoverTheToy(t *testing.T) {
	for _, c := range []struct {
		epsilon, within float64
		rows            []int
	}{
		{5, 0.11, toyThirds},
		{1, 0.04, []int{3000, 3000, 3000}},
	} {
		o := toyObserved(t, 3, c.rows, c.epsilon)
		post, err := toyMarks.Posterior(o, toyPrior, Sampling{Particles: 128, Sweeps: 2, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		rmse, covered, _ := judged(post, toyTruth)
		if rmse > c.within || covered < 3 || post.Size < 20 {
			t.Errorf("ε %v, %v rows: RMSE %.3f, want at most %v; %d of 6 intervals hold the truth; effective size %.0f", c.epsilon, c.rows, rmse, c.within, covered, post.Size)
		}
	}
}

func TestLandmarksRecoverUnequalWeights(t *testing.T) {
	o := toyObserved(t, 4, []int{630, 180, 90}, 5)
	post, err := toyMarks.Posterior(o, toyPrior, Sampling{Particles: 128, Sweeps: 2, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	_, _, w := judged(post, toyTruth)
	for k, want := range []float64{0.7, 0.2, 0.1} {
		if math.Abs(w[k]-want) > 0.03 {
			t.Errorf("weight %d is %.3f, want %v within 0.03", k, w[k], want)
		}
	}
}

func TestPosteriorIsTheSameOnAnyNumberOfCores(t *testing.T) {
	o := toyObserved(t, 5, toyThirds, 1)
	opt := Sampling{Particles: 64, Sweeps: 1, Seed: 9}
	var all []*gmm.Posterior
	for _, procs := range []int{1, 3} {
		old := runtime.GOMAXPROCS(procs)
		post, err := toyMarks.Posterior(o, toyPrior, opt)
		runtime.GOMAXPROCS(old)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, post)
	}
	if !reflect.DeepEqual(all[0], all[1]) {
		t.Error("the posterior depends on the number of cores")
	}
	opt.Seed++
	if other, err := toyMarks.Posterior(o, toyPrior, opt); err != nil || reflect.DeepEqual(other, all[0]) {
		t.Errorf("the posterior does not depend on the seed (%v)", err)
	}
}

// drawnBox draws a box of one to three features, and bandwidths up to a multiple of its
// widths.
func drawnBox(t *rapid.T, widest float64) (lo, hi, h []float64) {
	d := rapid.IntRange(1, 3).Draw(t, "d")
	lo, hi, h = make([]float64, d), make([]float64, d), make([]float64, d)
	for i := range d {
		lo[i] = rapid.Float64Range(-10, 10).Draw(t, "lo")
		hi[i] = lo[i] + rapid.Float64Range(0.5, 10).Draw(t, "width")
		h[i] = (hi[i] - lo[i]) * rapid.Float64Range(0.15, widest).Draw(t, "h")
	}
	return lo, hi, h
}

// No row contributes more than the bound, and rows at landmarks come close to it.
func TestNormBoundHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lo, hi, h := drawnBox(t, 2)
		d := len(lo)
		l, err := Grid(lo, hi, h)
		if err != nil {
			t.Fatal(err)
		}
		if rapid.Bool().Draw(t, "scattered") {
			if l, err = Scatter(lo, hi, h, rapid.IntRange(1, 60).Draw(t, "count")); err != nil {
				t.Fatal(err)
			}
		}
		b, phi, x := l.NormBound(), make([]float64, l.Len()), make([]float64, d)
		for i := range x {
			x[i] = rapid.Float64Range(lo[i]-h[i], hi[i]+h[i]).Draw(t, "x")
		}
		l.Features(phi, x)
		if n := math.Sqrt(gmm.Squares(phi)); n > b {
			t.Fatalf("|φ(%v)| = %v, above the bound %v", x, n, b)
		}
	})
	phi := make([]float64, toyMarks.Len())
	toyMarks.Features(phi, toyMarks.Point(70))
	if b, n := toyMarks.NormBound(), math.Sqrt(gmm.Squares(phi)); n < 0.99*b {
		t.Errorf("|φ| at a landmark inside is %v: the bound %v is loose", n, b)
	}
}

// A grid is believed only if its points are one: doubled points double the norm.
func TestNormBoundDoesNotBelieveASpacing(t *testing.T) {
	l := Landmarks{Dim: 1, Points: []float64{0, 0, 0, 0}, Bandwidth: []float64{1}, Spacing: []float64{1}}
	if b := l.NormBound(); b < 2 || b > 2.001 {
		t.Errorf("the bound of four equal landmarks is %v, want 2", b)
	}
}

// Moments agree with simulation within five standard errors (false failure below 1e-4).
func TestMomentsAgreeWithSimulation(t *testing.T) {
	l, err := Scatter([]float64{-3, -3, -3}, []float64{3, 3, 3}, []float64{1, 2, 1.5}, 7)
	if err != nil {
		t.Fatal(err)
	}
	prior := gmm.Prior{Alpha: []float64{2, 2}, Mean: []float64{0, 0, 0}, Kappa: 1, Nu: 6, Psi: []float64{2, .3, 0, .3, 2, 0, 0, 0, 2}}
	m := gmm.NewMixture(2, 3)
	r := rand.New(rand.NewPCG(3, 4))
	prior.Sampler().Draw(r, m)
	mean, cov, err := l.Moments(m)
	if err != nil {
		t.Fatal(err)
	}
	const n = 40000
	rows, phi := make([]float64, 3*n), make([]float64, 7)
	if err := m.Simulate(r, rows); err != nil {
		t.Fatal(err)
	}
	got, product := make([]float64, 7), make([]float64, 49)
	for k := range n {
		l.Features(phi, rows[3*k:])
		for i, v := range phi {
			got[i] += v / n
			for j, w := range phi {
				product[i*7+j] += (v - mean[i]) * (w - mean[j]) / n
			}
		}
	}
	for i := range 7 {
		if math.Abs(got[i]-mean[i]) > 5*math.Sqrt(cov[i*8]/n) {
			t.Errorf("mean %d is %v, simulated %v", i, mean[i], got[i])
		}
		for j := range 7 {
			if math.Abs(product[i*7+j]-cov[i*7+j]) > 5*math.Sqrt(math.Sqrt(cov[i*8]*cov[j*8])/n) {
				t.Errorf("covariance %d, %d is %v, simulated %v", i, j, cov[i*7+j], product[i*7+j])
			}
		}
	}
}

func TestHostileObservations(t *testing.T) {
	good := toyObserved(t, 1, toyThirds, 1)
	for want, change := range map[string]func(o *Observation, p *gmm.Prior, s *Sampling){
		"0 means": func(o *Observation, _ *gmm.Prior, _ *Sampling) { o.Mean = nil },
		"not finite": func(o *Observation, _ *gmm.Prior, _ *Sampling) {
			o.Mean = append([]float64{math.NaN()}, o.Mean[1:]...)
		},
		"of 0 rows":    func(o *Observation, _ *gmm.Prior, _ *Sampling) { o.Rows = 0 },
		"noise varian": func(o *Observation, _ *gmm.Prior, _ *Sampling) { o.NoiseVar = -1 },
		"a prior in 1": func(_ *Observation, p *gmm.Prior, _ *Sampling) {
			*p, _ = gmm.BoxPrior([]float64{0}, []float64{1}, 2)
		},
		"κ of":        func(_ *Observation, p *gmm.Prior, _ *Sampling) { p.Kappa = 0 },
		"0 particles": func(_ *Observation, _ *gmm.Prior, s *Sampling) { s.Particles = 0 },
	} {
		o, p, s := good, toyPrior, DefaultSampling(1)
		change(&o, &p, &s)
		if _, err := toyMarks.Posterior(o, p, s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	// Means that no row can have made are noise's business: there is an answer.
	wild := good
	wild.Mean = make([]float64, len(good.Mean))
	for i := range wild.Mean {
		wild.Mean[i] = -1e3 * float64(i%3)
	}
	if _, err := toyMarks.Posterior(wild, toyPrior, Sampling{Particles: 64, Sweeps: 1, Seed: 1}); err != nil {
		t.Error(err)
	}
}

// Time goes with draws; with landmarks, like their square, and their cube at the end.
func BenchmarkPosterior(b *testing.B) {
	for _, c := range []struct{ landmarks, draws int }{{49, 384}, {144, 96}, {144, 384}, {144, 1536}, {576, 96}} {
		b.Run(fmt.Sprintf("landmarks=%d/draws=%d", c.landmarks, c.draws), func(b *testing.B) {
			side := math.Sqrt(float64(c.landmarks)) - 1
			h := (toyHi[0] - toyLo[0]) / side / gridStep * (1 + 1e-9)
			marks, err := Grid(toyLo, toyHi, []float64{h, h})
			if err != nil || marks.Len() != c.landmarks {
				b.Fatalf("%d landmarks (%v)", marks.Len(), err)
			}
			sum := make([]float64, marks.Len())
			for _, rows := range toySites(1, toyThirds) {
				for i, v := range sums(marks, rows, 0, nil) {
					sum[i] += v
				}
			}
			o, err := Pool([][]float64{sum}, []int{900}, []float64{5})
			if err != nil {
				b.Fatal(err)
			}
			opt := DefaultSampling(1)
			opt.Particles = c.draws
			b.ReportAllocs()
			for b.Loop() {
				if _, err := marks.Posterior(o, toyPrior, opt); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
