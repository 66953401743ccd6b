package ppca_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"parley/methods/factors/factorstest"
	"parley/methods/factors/ppca"
)

// groups are features of which each group has one variable in common, beside what all have.
type groups struct {
	size []int
	rho  []float64 // by which the features of a group correlate
	all  float64   // standard deviation of what all features have in common
}

func (g groups) subjects(r *rand.Rand, n int) (rows [][]float64) {
	for range n {
		all := g.all * r.NormFloat64()
		var row []float64
		for k, size := range g.size {
			common := r.NormFloat64()
			for range size {
				row = append(row, all+math.Sqrt(g.rho[k])*common+math.Sqrt(1-g.rho[k])*r.NormFloat64())
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// Where more directions are about as strong as each other than a site's factors can describe,
// each site would describe others, and the fit to that was up to nine nats a row behind one to
// all rows. Of a hundred drawn studies of this kind, at most two may be behind now, in training
// or on rows held out.
func TestManyDirectionsOfOneStrength(t *testing.T) {
	const studies, mostBehind, behind = 100, 2, 0.1
	failed := 0
	for seed := range uint64(studies) {
		r := rand.New(rand.NewPCG(seed, 8))
		q, most, alike := 1+r.IntN(4), 2+r.IntN(6), seed%4 < 2
		var g groups
		d := 0
		for want := 20 + r.IntN(180); d < want; {
			size, rho := most, 1-math.Pow(10, -3*r.Float64())/1.5
			if k := len(g.size); alike && k > 0 {
				rho = g.rho[0]
			} else if !alike {
				size = 2 + r.IntN(most-1)
			}
			g.size, g.rho, d = append(g.size, size), append(g.rho, rho), d+size
		}
		if r.IntN(3) == 0 {
			g.all = 1
		}
		l := ppca.Layout{Dims: []int{d / 2, d - d/2}, Noise: ppca.Noise(seed % 2)}
		var sites [][][]float64
		for range 3 + r.IntN(6) {
			sites = append(sites, g.subjects(r, 20+r.IntN(150)))
		}
		central, ours, rows := centralAndOurs(t, l, q, sites)
		worst := 0.0
		for _, b := range [][]ppca.Block{rows, factorstest.BlocksOf(t, l, g.subjects(r, 300))} {
			want, n := logLik(t, l, central, b)
			got, _ := logLik(t, l, ours, b)
			worst = max(worst, (want-got)/n)
		}
		if worst > behind {
			failed++
			t.Logf("seed %d, %d groups, %d factors, noise %d: %.2f nats a row behind one fit to all rows", seed, len(g.size), q, l.Noise, worst)
		}
	}
	if failed > mostBehind {
		t.Errorf("%d of %d studies are more than %g nats a row behind", failed, studies, behind)
	}
}

// Thirty pairs of nearly equal features at sites of sixty subjects, and as many at one large
// site: the matrix is exact, and so is the fit.
func TestPairsAreSaidExactly(t *testing.T) {
	g := groups{size: slices.Repeat([]int{2}, 30), rho: slices.Repeat([]float64{0.999}, 30)}
	r := rand.New(rand.NewPCG(1, 2))
	for _, noise := range []ppca.Noise{ppca.NoisePerView, ppca.NoisePerFeature} {
		l := ppca.Layout{Dims: []int{20, 20, 20}, Noise: noise}
		var sites [][][]float64
		for _, n := range append(slices.Repeat([]int{60}, 10), 400) {
			sites = append(sites, g.subjects(r, n))
		}
		central, ours, rows := centralAndOurs(t, l, 2, sites)
		want, n := logLik(t, l, central, rows)
		if got, _ := logLik(t, l, ours, rows); math.Abs(got-want) > 1e-6*n {
			t.Errorf("noise %d: %g nats a row of one fit to all rows", noise, (got-want)/n)
		}
	}
}

// Where factors are enough, they are all that is said, whatever the plan's number of them.
func TestFactorsThatAreEnough(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 3))
		q := 1 + r.IntN(5)
		l := ppca.Layout{Dims: []int{20 * q, 20 * q}, Noise: ppca.Noise(seed % 2)}
		rows := factorstest.NewTruth(r, l, q, 1).Subjects(r, 60+r.IntN(400))
		said := factorstest.Must(ppca.Condense(l, factorstest.BlocksOf(t, l, rows), 4*q, 0, ppca.FitOptions{Tol: 1e-6}))(t)
		if said[0].Rows() != 4*q || said[0].Rough {
			t.Errorf("seed %d: %d factors of %d, rough %v", seed, said[0].Rows(), 4*q, said[0].Rough)
		}
	}
}

// A matrix that is too large is not sent, and the factors are said not to be enough.
func TestTooLargeToBeExact(t *testing.T) {
	const pairs = 750
	g := groups{size: slices.Repeat([]int{2}, pairs), rho: slices.Repeat([]float64{0.99}, pairs)}
	l := ppca.Layout{Dims: []int{2 * pairs}, Noise: ppca.NoisePerFeature}
	rows := g.subjects(rand.New(rand.NewPCG(4, 4)), 760)
	for _, c := range []struct {
		subjects, factors int
		rough             bool
	}{{300, 299, false}, {760, 4, true}} {
		said := factorstest.Must(ppca.Condense(l, factorstest.BlocksOf(t, l, rows[:c.subjects]), 4, 0, ppca.FitOptions{Tol: 1e-6}))(t)
		if said[0].Rows() != c.factors || said[0].Rough != c.rough {
			t.Errorf("%d subjects: %d factors, rough %v", c.subjects, said[0].Rows(), said[0].Rough)
		}
	}
}
