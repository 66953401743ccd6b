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
	greedyStarts = 6
	randomStarts = 20 // of each width that is tried
	candidates   = 400
	// meanPriorScale is how much wider than all rows together the prior of means is in a search.
	meanPriorScale = 1.3
	// width is the standard deviation of a component's log standard deviation in a search, around
	// the common one.
	width = 0.25
)

// start is where a search has come to.
type start struct {
	t     []float64
	value float64 // with ½ ln |H|
}

// search finds mixtures of spherical components that come near to what was observed, the
// best first: from random places, and greedily, one component after the other where
// the rest is largest, replacing the lightest until none gets better (Keriven and others,
// algorithm 1).
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
	tried := each(len(widths)*randomStarts, func(i int) start {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		p := prior(widths[i/randomStarts], 0.5)
		t := make([]float64, m.len())
		for k := range m.k {
			p.place(r, m.means(t, k), 0.7+0.8*r.Float64())
			m.covs(t, k)[0] = p.logSD
		}
		t, v := m.fit(o.Mean, w, p, t, 30, 1e-2)
		return start{t, v}
	})
	best := slices.MinFunc(tried, func(a, b start) int { return cmp.Compare(a.value, b.value) })
	common := 0.0
	for k, pi := range m.weights(best.t) {
		common += pi * m.covs(best.t, k)[0]
	}
	p := prior(min(max(common, math.Log(0.1)), math.Log(6)), width)

	// The better of those starts go on with the common width, beside greedy ones.
	slices.SortStableFunc(tried, func(a, b start) int { return cmp.Compare(a.value, b.value) })
	tried = tried[:randomStarts]
	found := each(len(tried)+greedyStarts, func(i int) start {
		if i < len(tried) {
			t, v := m.fit(o.Mean, w, p, tried[i].t, 30, 1e-3)
			return start{t, v}
		}
		return p.greedy(o.Mean, w, rand.New(rand.NewPCG(seed, uint64(i)+1<<32)))
	})
	for i, s := range found {
		found[i].value = s.value + m.evidence(o.Mean, w, p, s.t)
	}
	slices.SortStableFunc(found, func(a, b start) int { return cmp.Compare(a.value, b.value) })
	return m, found
}

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
	w := &white{root: make([]float64, f.Len())}
	for i := range w.root {
		w.root[i] = 1 / math.Sqrt(o.NoiseVar+0.4/o.Rows)
	}
	return w
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
	t := make([]float64, m.len())
	at := -1
	for i := range m.d {
		at += i + 1
		m.covs(t, 0)[at] = p.logSD
	}
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

// greedy puts components one by one where the rest is largest.
func (p *searchPrior) greedy(y []float64, w *white, r *rand.Rand) start {
	rest := append([]float64(nil), y...)
	best := start{value: math.Inf(1)}
	var t []float64
	for now := 0; now < 2*p.k; now++ {
		k := min(now+1, p.k)
		m := p.f.model(k, true)
		next := make([]float64, m.len())
		old := p.f.model(k-1, true)
		weights := make([]float64, k)
		if k > 1 {
			keep := 0
			from := p.f.model(min(now, p.k), true)
			pi := from.weights(t)
			order := gmm.BySize(pi)
			for _, j := range order[:old.k] {
				weights[keep] = pi[j]
				copy(m.means(next, keep), from.means(t, j))
				m.covs(next, keep)[0] = from.covs(t, j)[0]
				keep++
			}
		}
		weights[k-1] = 1 / float64(k)
		for j := range k - 1 {
			next[j] = math.Log(max(weights[j], 0.03) / weights[k-1])
		}
		m.covs(next, k-1)[0] = p.logSD
		p.atom(rest, w, r, m.means(next, k-1))
		q := *p
		q.model = m
		steps := 12
		if now == 2*p.k-1 {
			steps = 40
		}
		var v float64
		t, v = m.fit(y, w, &q, next, steps, 1e-3)
		m.mean(t, rest, nil)
		for i, x := range y {
			rest[i] = x - rest[i]
		}
		if k == p.k && v < best.value {
			best = start{t, v}
		}
	}
	return best
}

// atom writes the mean of one component that correlates best with a rest.
func (p *searchPrior) atom(rest []float64, w *white, r *rand.Rand, mu []float64) {
	m, d := p.m, p.d
	// The sum of c_j cos ω_j·μ + s_j sin ω_j·μ is what is sought the top of.
	c, s := make([]float64, m), make([]float64, m)
	for j := range m {
		a := math.Exp(-gmm.Squares(p.f.Omega[j*d:][:d]) * math.Exp(2*p.logSD) / 2)
		c[j], s[j] = a*rest[j]*w.root[j]*w.root[j], a*rest[m+j]*w.root[m+j]*w.root[m+j]
	}
	height := func(mu, slope []float64) (h float64) {
		clear(slope)
		for j := range m {
			om := p.f.Omega[j*d:][:d]
			sin, cos := math.Sincos(dot(om, mu))
			h += c[j]*cos + s[j]*sin
			if slope != nil {
				g := s[j]*cos - c[j]*sin
				for i, x := range om {
					slope[i] += g * x
				}
			}
		}
		return h
	}
	type place struct {
		mu []float64
		h  float64
	}
	places := make([]place, candidates)
	for i := range places {
		places[i].mu = make([]float64, d)
		p.place(r, places[i].mu, 0.5+1.1*r.Float64())
		places[i].h = height(places[i].mu, nil)
	}
	slices.SortStableFunc(places, func(a, b place) int { return cmp.Compare(b.h, a.h) })
	best := math.Inf(-1)
	slope, next, nextSlope := make([]float64, d), make([]float64, d), make([]float64, d)
	for _, at := range places[:3] {
		h := height(at.mu, slope)
		rate := 0.3 / max(math.Sqrt(gmm.Squares(slope)), 1e-300)
		for range 60 {
			for i, g := range slope {
				next[i] = min(max(at.mu[i]+rate*g, -1.5*p.f.half), 1.5*p.f.half)
			}
			if up := height(next, nextSlope); up > h {
				h = up
				copy(at.mu, next)
				copy(slope, nextSlope)
				rate *= 1.5
			} else if rate /= 3; rate*math.Sqrt(gmm.Squares(slope)) < 1e-3 {
				break
			}
		}
		if h > best {
			best = h
			copy(mu, at.mu)
		}
	}
}
