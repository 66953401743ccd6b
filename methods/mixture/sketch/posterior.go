package sketch

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"

	"parley/methods/mixture/gmm"
)

const (
	// lifted is how many of the mixtures that a search finds are given full covariances, and
	// refined how many of these their own covariance of what was observed.
	lifted, refined = 8, 4
	// nugget is a share of a row's variance that is added to every mean: without noise the
	// likelihood would otherwise rest on how exactly rows are normal.
	nugget = 0.05
	// apartModes is how far apart, in units of the scale, the means of two modes are.
	apartModes = 1.0
)

// mode is a top of the posterior, and a normal approximation there.
type mode struct {
	t        []float64
	w        *white
	minusLog float64 // of the posterior's mass around it, up to a constant (Laplace)
	root     blas64.Triangular
	believed blas64.Triangular // see [believed]
	value    float64
}

// Posterior samples p(θ | observed means) under a prior whose Ψ follows from the fit ([learned]), on the Gaussian
// likelihood ln N(y | E φ, Cov φ/n + noise). A search from many starts finds its modes; each gets the covariance of
// what was observed that belongs to it, and a normal approximation (Laplace). Draws from these are carried to the
// posterior by sequential Monte Carlo: weights correct what is not normal, and moves that leave the approximation as it
// is (preconditioned Crank–Nicolson) keep draws apart. Components are matched, and the largest is the first. The prior
// is the same for all components, and there are no more parameters than means.
func (f Frequencies) Posterior(o Observation, prior gmm.Prior, particles int, seed uint64) (*gmm.Posterior, error) {
	if err := cmp.Or(prior.Check(), o.Check(f.Len())); err != nil {
		return nil, err
	}
	if p := f.model(prior.Components(), false).len(); particles < 64 || f.Dim != prior.Dim() || p > f.Len() {
		return nil, fmt.Errorf("%d particles of %d parameters, for %d means at frequencies in %d dimensions and a "+
			"prior in %d", particles, p, f.Len(), f.Dim, prior.Dim())
	}
	prior = f.scaled(prior)
	modes, err := f.modes(o, prior, seed)
	if err != nil {
		return nil, err
	}
	full := f.model(prior.Components(), false)
	prior = learned(prior, full.mixture(modes[0].t))
	for i, at := range modes {
		if again, ok := full.refine(o, newPrior(full, prior), at.t); ok {
			modes[i] = again
		}
	}
	slices.SortStableFunc(modes, func(a, b mode) int { return cmp.Compare(a.minusLog, b.minusLog) })
	s := &sampler{model: full, f: &f, o: o, prior: prior, modes: modes, r: rand.New(rand.NewPCG(seed, 1))}
	post := s.sample(particles)
	post.Rivals = s.rivals(modes)
	return post, nil
}

// learned is a prior that takes components to be about as wide as those of a mixture are, in each feature: Ψ is ν
// times the harmonic mean of their variances, where the priors of all together do not lean to wider or narrower
// ones (the mean of variances would make the narrow ones of unlike components wide). A prior that does
// moves weights and means in many dimensions, where sums tell little of each covariance.
func learned(p gmm.Prior, m gmm.Mixture) gmm.Prior {
	d := m.Dim
	p.Psi = make([]float64, d*d)
	for j := range d {
		precision := 0.0
		for k := range m.Weights {
			precision += 1 / m.Cov(k)[j*d+j] / float64(len(m.Weights))
		}
		p.Psi[j*d+j] = p.Nu / precision
	}
	return p
}

// rivals are [gmm.Posterior.Rivals] among modes, the best first.
func (m model) rivals(modes []mode) (below []float64) {
	best := m.mixture(modes[0].t)
	nearest := math.Inf(1)
	for k := range m.k {
		for j := range k {
			nearest = min(nearest, math.Sqrt(gmm.SquaredDistance(best.Mean(k), best.Mean(j))))
		}
	}
	for _, at := range modes[1:] {
		if m.apart(modes[0].t, at.t) >= nearest/2 {
			below = append(below, at.minusLog-modes[0].minusLog)
		}
	}
	return below
}

// scaled is a prior in units of the frequencies.
func (f *Frequencies) scaled(p gmm.Prior) gmm.Prior {
	q := p
	q.Mean, q.Psi = make([]float64, f.Dim), make([]float64, len(p.Psi))
	for i := range f.Dim {
		q.Mean[i] = (p.Mean[i] - f.Centre[i]) / f.Scale[i]
		for j := range f.Dim {
			q.Psi[i*f.Dim+j] = p.Psi[i*f.Dim+j] / (f.Scale[i] * f.Scale[j])
		}
	}
	return q
}

func newPrior(m model, prior gmm.Prior) *modelPrior {
	return &modelPrior{m, gmm.NewUnconstrained(prior), prior.Alpha[0]}
}

// modes are the distinct tops that a search leads to, the one with most of the posterior first.
func (f *Frequencies) modes(o Observation, prior gmm.Prior, seed uint64) ([]mode, error) {
	m, found := f.search(o, prior.Components(), seed)
	var distinct []start
	for _, s := range found {
		if len(distinct) < lifted && !slices.ContainsFunc(distinct, func(q start) bool {
			return m.apart(s.t, q.t) < apartModes/2
		}) {
			distinct = append(distinct, s)
		}
	}
	full, _ := m.lift(found[0].t)
	w := f.diagonal(o)
	distinct = each(len(distinct), func(i int) start {
		_, t := m.lift(distinct[i].t)
		p := newPrior(full, prior)
		t, v := full.fit(o.Mean, w, p, t, 15, 1e-2)
		return start{t, v + full.evidence(o.Mean, w, p, t)}
	})
	slices.SortStableFunc(distinct, byValue)
	p := newPrior(full, prior)
	var modes []mode
	for _, s := range distinct[:min(refined, len(distinct))] {
		at, ok := full.refine(o, p, s.t)
		if ok && !slices.ContainsFunc(modes, func(q mode) bool { return full.apart(at.t, q.t) < apartModes }) {
			modes = append(modes, at)
		}
	}
	if len(modes) == 0 {
		return nil, fmt.Errorf("no mixture of %d components was found that what the sites released could come from",
			prior.Components())
	}
	slices.SortStableFunc(modes, func(a, b mode) int { return cmp.Compare(a.minusLog, b.minusLog) })
	return modes, nil
}

// apart is how far apart the means of two parameters are, at the component where they differ most.
func (m model) apart(a, b []float64) (most float64) {
	x, y := m.mixture(a), m.mixture(b)
	y = y.Reorder(gmm.Match(x, y, nil))
	for k := range m.k {
		most = max(most, math.Sqrt(gmm.SquaredDistance(x.Mean(k), y.Mean(k))))
	}
	return most
}

// mixture is that of a parameter, in units of the frequencies.
func (m model) mixture(t []float64) gmm.Mixture {
	out := gmm.NewMixture(m.k, m.d)
	if m.spherical {
		m, t = m.lift(t)
	}
	gmm.Coordinates{K: m.k, Dim: m.d}.From(out, t)
	return out
}

// spread writes the covariance of what was observed, its upper triangle, given E φ.
func (m model) spread(o Observation, t, mean, cov []float64) {
	m.covariance(t, mean, cov)
	o.spread(mean, cov)
}

// spread makes a row's covariance that of what was observed, given E φ.
func (o Observation) spread(mean, cov []float64) {
	n := len(mean)
	for r := range n {
		row := cov[r*n:][:n]
		for s := r; s < n; s++ {
			row[s] = (row[s] + o.RowsVar/o.Rows*mean[r]*mean[s]) / o.Rows
		}
		row[r] += o.NoiseVar + nugget/o.Rows
	}
}

// refine climbs to a top of the posterior with the covariance that belongs there.
func (m model) refine(o Observation, p *modelPrior, t []float64) (at mode, ok bool) {
	n, q := 2*m.m, m.len()
	mean, cov := make([]float64, n), make([]float64, n*n)
	for range 3 {
		m.mean(t, mean, nil)
		m.spread(o, t, mean, cov)
		if at.w, ok = factorised(cov, n); !ok {
			return at, false
		}
		before := t
		if t, at.value = m.fit(o.Mean, at.w, p, t, 25, 1e-3); m.apart(before, t) < 0.01 {
			break
		}
	}
	at.t = t
	g, h, jac := make([]float64, q), make([]float64, q*q), make([]float64, n*q)
	m.normal(o.Mean, at.w, t, mean, jac, g, h)
	p.add(t, g, h)
	if at.root, ok = lapack64.Potrf(blas64.Symmetric{N: q, Stride: q, Data: h, Uplo: blas.Upper}); !ok {
		return at, false
	}
	basis := blas64.General{Rows: n, Cols: q, Stride: q, Data: jac}
	blas64.Trsm(blas.Right, blas.NoTrans, 1, at.root, basis)
	if at.believed, ok = believed(o, at.w, basis); !ok {
		return at, false
	}
	at.minusLog = at.value + at.w.logDet
	for i := range q {
		at.minusLog += math.Log(h[i*q+i])
	}
	return at, true
}

// believed is what is left of a normal approximation if what was observed is as uncertain as it is without [nugget],
// by an upper triangle u: uᵀz in place of z. The nugget makes the fit robust, and is not believed: the fit is as good
// as its true errors make it (a sandwich, after Huber 1967). basis are whitened derivatives of means by z.
func believed(o Observation, w *white, basis blas64.General) (u blas64.Triangular, ok bool) {
	b, q := basis, basis.Cols
	b.Data = slices.Clone(basis.Data)
	blas64.Trsm(blas.Left, blas.NoTrans, 1, w.upper, b)
	m := blas64.Symmetric{N: q, Stride: q, Data: make([]float64, q*q), Uplo: blas.Upper}
	for i := range q {
		m.Data[i*q+i] = 1
	}
	blas64.Syrk(blas.Trans, -nugget/o.Rows, b, 1, m)
	return lapack64.Potrf(m)
}

// sampler carries draws from the normal approximations to the posterior.
type sampler struct {
	model
	f         *Frequencies
	o         Observation
	prior     gmm.Prior
	modes     []mode
	particles []particle
	r         *rand.Rand
}

// particle is a draw: z of the standard normal law, t = mode + root⁻¹ z.
type particle struct {
	mode int
	z, t []float64
	log  float64 // ln of the posterior over the approximation
	seed uint64
}

const mostStages, moves, lastMoves = 40, 4, 4

// sample is the whole run.
func (s *sampler) sample(count int) *gmm.Posterior {
	q := s.len()
	logs, share := make([]float64, len(s.modes)), make([]float64, len(s.modes))
	for i, m := range s.modes {
		logs[i] = -m.minusLog
	}
	nextWeights(0, 1, logs, share)
	s.particles = make([]particle, count)
	for i, at := range gmm.Systematic(share, count, 0.5) {
		p := &s.particles[i]
		*p = particle{at, make([]float64, q), make([]float64, q), 0, s.r.Uint64()}
		for j := range p.z {
			p.z[j] = s.r.NormFloat64()
		}
	}
	s.all(func(w *worker, group []particle) { w.evaluate(group) })
	weights, post := make([]float64, count), &gmm.Posterior{}
	logs = make([]float64, count)
	reach, beta := 0.5, 0.0
	for beta < 1 {
		for i, p := range s.particles {
			logs[i] = p.log
		}
		next := nextShare(beta, logs, weights)
		if post.Stages++; post.Stages == mostStages {
			next = 1
			nextWeights(beta, 1, logs, weights)
		}
		if beta = next; beta == 1 {
			break
		}
		s.resample(weights)
		post.Acceptance = s.move(beta, reach)
		reach = nextReach(reach, post.Acceptance)
	}
	post.Size = gmm.EffectiveSize(weights)
	if post.Stages > 1 { // resampled ones have few ancestors: they move on, and count equally
		s.resample(weights)
		for range lastMoves {
			post.Acceptance = s.move(1, reach)
			reach = nextReach(reach, post.Acceptance)
		}
		for i := range weights {
			weights[i] = 1 / float64(count)
		}
	}
	post.Weights = weights
	top := slices.MaxFunc(s.particles, func(a, b particle) int { return cmp.Compare(a.log, b.log) })
	reference := s.mixture(top.t)
	for i := range s.particles {
		p := &s.particles[i]
		at := &s.modes[p.mode]
		blas64.Trmv(blas.Trans, at.believed, blas64.Vector{N: len(p.z), Data: p.z, Inc: 1})
		at.place(p)
		m := s.mixture(p.t)
		post.Draws = append(post.Draws, s.f.rescaled(m.Reorder(gmm.Match(reference, m, nil)), false))
	}
	post.LargestFirst()
	return post
}

// nextReach keeps the share of accepted moves near a quarter.
func nextReach(reach, accepted float64) float64 {
	if accepted < 0.15 {
		return max(reach/1.6, 0.01)
	}
	if accepted > 0.4 {
		reach = min(reach*1.4, 0.95)
	}
	return reach
}

// rescaled is a mixture in units of the features, or of one in these in units of the frequencies.
func (f *Frequencies) rescaled(m gmm.Mixture, back bool) gmm.Mixture {
	m = m.Clone()
	for k := range m.Weights {
		mu, cov := m.Mean(k), m.Cov(k)
		for i, unit := range f.Scale {
			if back {
				mu[i] = (mu[i] - f.Centre[i]) / unit
			} else {
				mu[i] = f.Centre[i] + unit*mu[i]
			}
			for j, other := range f.Scale {
				if back {
					cov[i*f.Dim+j] /= unit * other
				} else {
					cov[i*f.Dim+j] *= unit * other
				}
			}
		}
	}
	return m
}

// worker evaluates particles; it is not safe for concurrent use.
type worker struct {
	*sampler
	prior *gmm.Unconstrained
	r     []float64
	off   []float64 // of a group, by rows
}

// together is how many particles are evaluated at a time: a metric of a thousand means is read once for all of them.
const together = 16

// all hands groups of particles of one mode to workers, whatever the machine has.
func (s *sampler) all(do func(w *worker, group []particle)) {
	var groups [][]particle
	for at := 0; at < len(s.particles); at += len(groups[len(groups)-1]) {
		end := at + 1
		for end < min(at+together, len(s.particles)) && s.particles[end].mode == s.particles[at].mode {
			end++
		}
		groups = append(groups, s.particles[at:end])
	}
	divide(len(groups), func() func(int) {
		w := &worker{s, gmm.NewUnconstrained(s.prior), make([]float64, 2*s.m), make([]float64, 2*s.m*together)}
		return func(i int) { do(w, groups[i]) }
	})
}

// place works a particle's parameter out from z.
func (m *mode) place(p *particle) {
	copy(p.t, p.z)
	blas64.Trsv(blas.NoTrans, m.root, blas64.Vector{N: len(p.t), Data: p.t, Inc: 1})
	for i, v := range m.t {
		p.t[i] += v
	}
}

// evaluate works a group's parameters out from z, and the log of the posterior there over
// the approximation, each with its mode's share of the mass.
func (w *worker) evaluate(group []particle) {
	at, b := &w.modes[group[0].mode], len(group)
	off := w.off[:b*len(w.r)]
	for j := range group {
		at.place(&group[j])
		w.mean(group[j].t, w.r, nil)
		for i, v := range w.o.Mean {
			off[i*b+j] = v - w.r[i]
		}
	}
	at.w.apply(off, b)
	for j := range group {
		p, s := &group[j], 0.0
		for i := j; i < len(off); i += b {
			s += off[i] * off[i]
		}
		p.log = w.prior.LogDensity(p.t) - s/2 + at.value + gmm.Squares(p.z)/2
		if math.IsNaN(p.log) {
			p.log = math.Inf(-1)
		}
	}
}

// move proposes z' = √(1 − b²) z + b ζ, which leaves the standard normal law as it is, and
// accepts by the power beta of the posterior over it. It returns the share of accepted ones.
func (s *sampler) move(beta, b float64) float64 {
	for i := range s.particles {
		s.particles[i].seed = s.r.Uint64()
	}
	s.all(func(w *worker, group []particle) {
		var random []*rand.Rand
		var trials []particle
		for _, p := range group {
			random = append(random, rand.New(rand.NewPCG(p.seed, 2)))
			trials = append(trials, particle{p.mode, make([]float64, len(p.z)), make([]float64, len(p.t)), 0, 0})
		}
		keep := math.Sqrt(1 - b*b)
		accepted := make([]uint64, len(group))
		for range moves {
			for j, q := range trials {
				for i, z := range group[j].z {
					q.z[i] = keep*z + b*random[j].NormFloat64()
				}
			}
			w.evaluate(trials)
			for j := range trials {
				p, q := &group[j], &trials[j]
				if math.Log(1-random[j].Float64()) < beta*(q.log-p.log) {
					p.z, q.z, p.t, q.t, p.log = q.z, p.z, q.t, p.t, q.log
					accepted[j]++
				}
			}
		}
		for j, n := range accepted {
			group[j].seed = n
		}
	})
	sum := 0.0
	for _, p := range s.particles {
		sum += float64(p.seed)
	}
	return sum / float64(moves*len(s.particles))
}

// resample draws particles by their weights, systematically.
func (s *sampler) resample(weights []float64) {
	out := make([]particle, 0, len(weights))
	for _, at := range gmm.Systematic(weights, len(weights), s.r.Float64()) {
		p := s.particles[at]
		p.z, p.t = slices.Clone(p.z), slices.Clone(p.t)
		out = append(out, p)
	}
	s.particles = out
}

// nextShare is the largest power, from beta to 1, whose weights leave an effective size of half.
func nextShare(beta float64, logs, weights []float64) float64 {
	enough := func(to float64) bool {
		nextWeights(beta, to, logs, weights)
		return gmm.EffectiveSize(weights) >= float64(len(logs))/2
	}
	if enough(1) {
		return 1
	}
	lo, hi := beta, 1.0
	for range 40 {
		if mid := (lo + hi) / 2; enough(mid) {
			lo = mid
		} else {
			hi = mid
		}
	}
	nextWeights(beta, lo, logs, weights)
	return lo
}

func nextWeights(from, to float64, logs, weights []float64) {
	top, sum := max(slices.Max(logs), -math.MaxFloat64), 0.0
	for i, v := range logs {
		weights[i] = math.Exp((to - from) * (v - top))
		sum += weights[i]
	}
	for i := range weights {
		if weights[i] /= sum; sum == 0 { // no draw is possible: none is better than another
			weights[i] = 1 / float64(len(weights))
		}
	}
}
