package private

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"parley/methods/regression/glm"
)

// Sites that differ are found by the gradients that they release, and those that do not are left
// alone: also where their rows are others, some are small, or cases are rare. Of 60 studies
// without a fault two per thousand may be said to have one; more than two of 60 are in fewer than
// one of 3000 runs (seeds are fixed). The same numbers find a noise of which a tenth is told: then
// sites that are alike are said to differ.
func TestSitesThatDifferAreFound(t *testing.T) {
	plain := func(_ int, x *glm.Row, y, _ float64) float64 { return y }
	turned := func(site int, _ *glm.Row, y, _ float64) float64 {
		if site == 2 {
			return -y
		}
		return y
	}
	for name, c := range map[string]struct {
		sizes  []int
		rare   float64 // added to the intercept
		apart  float64 // standard deviation of the sites' means of numbers
		change func(site int, x *glm.Row, y, u float64) float64
		mu     float64
		told   float64 // share of the noise's standard deviation that is told
		least  int     // studies of 60 with a verdict
		most   int
		of     int // the column, if one; −1 for any
	}{
		"alike, much noise":   {[]int{300, 300, 300, 300, 300, 300}, 0, 0, plain, 0.27, 1, 0, 2, -1},
		"alike, little noise": {[]int{300, 300, 300, 300, 300, 300}, 0, 0, plain, 8, 1, 0, 2, -1},
		"alike, unequal":      {[]int{30, 60, 100, 300, 600, 1200}, 0, 0, plain, 1.6, 1, 0, 2, -1},
		"alike, rare":         {[]int{300, 300, 300, 300, 300, 300}, -4, 0, plain, 1.6, 1, 0, 2, -1},
		"other rows":          {[]int{300, 300, 300, 300, 300, 300}, 0, 1, plain, 1.6, 1, 0, 2, -1},
		"noise understated":   {[]int{300, 300, 300, 300, 300, 300}, 0, 0, plain, 0.27, 0.1, 20, 60, -1},
		"outcomes turned":     {[]int{300, 300, 300, 300, 300, 300}, -1, 0, turned, 1.6, 1, 55, 60, 7},
		"cases lost": {[]int{300, 300, 300, 300, 300, 300}, 0, 0, func(site int, _ *glm.Row, y, u float64) float64 {
			if site == 2 && u < 0.9 {
				return -1
			}
			return y
		}, 0.8, 1, 50, 60, 7},
		"a number turned": {[]int{300, 300, 300, 300, 300, 300}, 0, 0,
			func(site int, x *glm.Row, y, _ float64) float64 {
				if site == 2 {
					x.Value[0] = -x.Value[0]
				}
				return y
			}, 1.6, 1, 40, 60, 0},
	} {
		t.Run(name, func(t *testing.T) {
			said, right := 0, 0
			for seed := range uint64(60) {
				r := rand.New(rand.NewPCG(seed, 19))
				columns := example(4)
				w := make([]float64, columns.width())
				for j := range w {
					w[j] = 0.7 * r.NormFloat64()
				}
				w[0], w[len(w)-1] = 1, w[len(w)-1]+c.rare
				var sites []data
				for i, n := range c.sizes {
					d := shifted(columns, n, w, c.apart*r.NormFloat64(), r)
					for k := range d.rows {
						d.outcome[k] = c.change(i, &d.rows[k], d.outcome[k], r.Float64())
					}
					sites = append(sites, d)
				}
				found := differing(columns, sites, c.mu, c.told, r)
				if len(found) > 0 {
					said++
				}
				if slices.Contains(found, c.of) {
					right++
				}
			}
			t.Logf("%d of 60, column %d in %d", said, c.of, right)
			if said < c.least || said > c.most || c.of >= 0 && right < c.least*3/4 {
				t.Errorf("a verdict in %d of 60 studies, want %d to %d; column %d in %d", said, c.least,
					c.most, c.of, right)
			}
		})
	}
}

// shifted is [simulate] of rows whose numbers are moved.
func shifted(c *columns, n int, w []float64, by float64, r *rand.Rand) data {
	d := simulate(c, n, w, r)
	for k := range d.rows {
		a := 0.0
		for i, j := range d.rows[k].Index {
			if slices.Contains(c.numbers, int(j)) {
				d.rows[k].Value[i] = min(max(d.rows[k].Value[i]+by, -4), 4)
			}
			a += d.rows[k].Value[i] * w[j]
		}
		d.outcome[k] = -1
		if r.Float64() < 1/(1+math.Exp(-a)) {
			d.outcome[k] = 1
		}
	}
	return d
}

// differing rehearses a study, each site with a signal over noise of mu, and returns the columns in
// which sites differ: the intercept alone if they do in that.
func differing(c *columns, sites []data, mu, told float64, r *rand.Rand) (found []int) {
	d := c.width()
	s0, s := c.totalsBound()/mu/math.Sqrt(shareTotals), c.reach()*c.reach()/mu/math.Sqrt(shareProducts)
	var grams []*gram
	all, both := make([]float64, c.totalsLen()), mat.NewSymDense(d, nil)
	for _, one := range sites {
		totals, products := one.sums(c, 0, s0, s, r)
		grams = append(grams, newGram(c, totals, told*told*s0*s0, products, told*told*s*s, 1))
		for j, v := range totals {
			all[j] += v
		}
		both.AddSym(both, products)
	}
	n := float64(len(sites))
	g := newGram(c, all, n*s0*s0, both, n*s*s, 1)
	f, p, l := newFit(c, 20), priorOf(c), new(lateSums)
	for k := range 20 {
		sd := 1 / mu / math.Sqrt(share(20, k))
		sum, own := make([]float64, d), map[string]*released{}
		for i, one := range sites {
			v := one.gradient(f.Mean, f.Clip, sd, r)
			own[fmt.Sprint(i)] = &released{v, told * told * sd * sd}
			for j := range v {
				sum[j] += v[j]
			}
		}
		if k >= burn(20) {
			l.take(f.at(), own, 0)
		}
		f.Take(g, p, sum, math.Sqrt(n)*sd)
	}
	var of []*surplus
	for i := range sites {
		of = append(of, l.of(grams[i], l.Sums[fmt.Sprint(i)]))
	}
	of = append(of, nil) // one that left
	if differ(of, d-1, 1) != nil {
		return []int{d - 1}
	}
	for j := range d - 1 {
		if differ(of, j, d-1) != nil {
			found = append(found, j)
		}
	}
	return found
}
