package sketch

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"parley/methods/mixture/gmm"
)

const (
	starts = 20 // of each width that is tried
	// meanPriorScale is how much wider than all rows together the prior of means is in a search.
	meanPriorScale = 1.3
	// width is the standard deviation of a component's log standard deviation in a search, around the common one.
	width = 0.25
)

// start is where a search has come to.
type start struct {
	t     []float64
	value float64 // with ½ ln |H|
}

// search finds mixtures of spherical components that come near what was observed, the best first, from random places.
// Components that are put one by one where the rest is largest (Keriven and others, algorithm 1) led nowhere better for
// 3 to 20 components in 2 to 10 dimensions, and for 20 to worse.
func (f *Frequencies) search(o Observation, k int, seed uint64) (model, []start) {
	w := f.diagonal(o)
	mean, sd := f.whole(o, w)
	m := f.model(k, true)
	near := make([]float64, f.Dim)
	for i, s := range sd {
		near[i] = meanPriorScale * max(s, 0.7)
	}
	prior := func(logSD, logWidth float64) *searchPrior { return &searchPrior{m, mean, near, logSD, logWidth} }

	// The common width is what a few searches with each of some find best.
	widths := []float64{math.Log(0.4), 0, math.Log(2)}
	tried := each(len(widths)*starts, func(i int) start {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		p := prior(widths[i/starts], 0.5)
		t := make([]float64, m.len())
		for k := range m.k {
			p.place(r, m.means(t, k), 0.7+0.8*r.Float64())
			m.covs(t, k)[0] = p.logSD
		}
		t, v := m.fit(o.Mean, w, p, t, 30, 1e-2)
		return start{t, v}
	})
	slices.SortStableFunc(tried, byValue)
	common := 0.0
	for k, pi := range m.weights(tried[0].t) {
		common += pi * m.covs(tried[0].t, k)[0]
	}
	p := prior(min(max(common, math.Log(0.1)), math.Log(6)), width)

	// The better of those starts go on with the common width.
	found := each(starts, func(i int) start {
		t, v := m.fit(o.Mean, w, p, tried[i].t, 30, 1e-3)
		return start{t, v + m.evidence(o.Mean, w, p, t)}
	})
	slices.SortStableFunc(found, byValue)
	return m, found
}

func byValue(a, b start) int { return cmp.Compare(a.value, b.value) }

// each computes n results.
func each(n int, one func(i int) start) []start {
	out := make([]start, n)
	divide(n, func() func(int) { return func(i int) { out[i] = one(i) } })
	return out
}

// Work is divided among so many goroutines, whatever the machine has.
const threads = 4

// divide calls what each goroutine makes for itself for i from 0 to n − 1.
func divide(n int, worker func() func(i int)) {
	var wait sync.WaitGroup
	for first := range threads {
		wait.Go(func() {
			do := worker()
			for i := first; i < n; i += threads {
				do(i)
			}
		})
	}
	wait.Wait()
}

// diagonal is a metric before anything is known of the rows: a cosine has a variance of ½ at
// most, near ½ where the characteristic function is small.
func (f *Frequencies) diagonal(o Observation) *white {
	return &white{root: slices.Repeat([]float64{1 / math.Sqrt(o.NoiseVar+0.4/o.Rows)}, f.Len())}
}

// whole is the mean and the standard deviations of all rows, by one normal distribution,
// from the shortest frequencies to the longer ones.
func (f *Frequencies) whole(o Observation, w *white) (mean, sd []float64) {
	m := f.model(1, false)
	lengths := make([]float64, m.m)
	for j := range lengths {
		lengths[j] = math.Sqrt(gmm.Squares(f.Omega[j*m.d:][:m.d]))
	}
	sorted := slices.Sorted(slices.Values(lengths))
	p := &searchPrior{m, make([]float64, m.d), slices.Repeat([]float64{1.5 * f.half}, m.d), math.Log(0.4 * f.half), 1}
	_, t := f.model(1, true).lift(append(make([]float64, m.d), p.logSD))
	for _, far := range []float64{2, 4, 8} {
		few := &white{root: make([]float64, 2*m.m)}
		most := max(far/f.half, sorted[min(2*m.d, m.m-1)])
		for j, l := range lengths {
			if l <= most {
				few.root[j], few.root[m.m+j] = w.root[j], w.root[m.m+j]
			}
		}
		t, _ = m.fit(o.Mean, few, p, t, 25, 1e-3)
	}
	l := make([]float64, m.d*m.d)
	m.factor(t, 0, l)
	for i := range m.d {
		sd = append(sd, math.Sqrt(gmm.Squares(l[i*m.d:][:m.d])))
	}
	return append([]float64(nil), m.means(t, 0)...), sd
}

// place draws a mean around all rows.
func (p *searchPrior) place(r *rand.Rand, mu []float64, spread float64) {
	for i := range mu {
		mu[i] = p.mean[i] + spread*p.sd[i]/meanPriorScale*r.NormFloat64()
		mu[i] = min(max(mu[i], -1.5*p.f.half), 1.5*p.f.half)
	}
}
