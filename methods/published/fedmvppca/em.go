package fedmvppca

import (
	"fmt"
	"math"
	"slices"

	"parley/internal/linalg"
	"parley/methods/factors/ppca"
)

// em is the iteration at one site, section 3.1 and appendix A: expectation maximisation, with the
// prior of equations (4) to (6) (MAP) or without.
//
// One iteration takes, in this order: μ from (11), or the mean of the rows; the
// moments of the factors; W from the formula after (16); σ² from (21). Of subjects who lack different views each
// view is updated from those who have it. Single missing cells are refused.
//
// With a prior the iteration does not always increase the posterior density,
// because (11) uses the marginal of each view by itself: the objective is no
// stopping rule.
type em struct {
	layout   ppca.Layout
	blocks   []ppca.Block
	views    []viewSums // in order, those with subjects
	features []int
	md       *ppca.Model
	e        *ppca.EStep
	b        []float64 // d × ld: Σ (t − μ)⟨x⟩ᵀ
	chol     []float64 // q × ld scratch
	u        []float64 // q scratch
}

// viewSums is what the updates of one view need.
type viewSums struct {
	view, lo, hi int
	qEff         int       // columns of W that may be non-zero
	n            float64   // subjects who have the view
	mean         []float64 // their mean
	gram         []float64 // q × ld: WᵀW
	sxx          []float64 // q × ld: Σ ⟨x xᵀ⟩
	square       float64   // Σ |t − μ|²
}

// newEM prepares the iteration on a site's blocks, from the loadings W
// (d × rank by rows) and the noise variance of each view to start from.
func newEM(l ppca.Layout, blocks []ppca.Block, rank int, w, noise []float64) (*em, error) {
	if err := ppca.CheckBlocks(l, blocks); err != nil {
		return nil, err
	}
	if l.Noise != ppca.NoisePerView {
		return nil, fmt.Errorf("the published iteration has one noise variance per view")
	}
	d := l.Features()
	if rank < 1 || rank > d || len(w) != d*rank || len(noise) != l.Views() {
		return nil, fmt.Errorf("start of rank %d has %d loadings and %d noise variances for %d features and %d views",
			rank, len(w), len(noise), d, l.Views())
	}
	if err := ppca.Finite("start", append(slices.Clone(w), noise...)); err != nil {
		return nil, err
	}
	ld := linalg.Stride(rank)
	s := &em{
		layout: l, blocks: blocks, features: ppca.Observed(l, blocks),
		md: ppca.NewModel(l, rank), e: ppca.NewEStep(rank, blocks),
		b: make([]float64, d*ld), chol: make([]float64, rank*ld), u: make([]float64, rank),
	}
	s.md.LoadW(w)
	s.md.LoadNoise(noise)
	for _, k := range l.ViewsOf(s.features) {
		lo, hi := l.View(k)
		if noise[k] <= 0 {
			return nil, fmt.Errorf("start has noise variance %v for view %d", noise[k], k)
		}
		v := viewSums{
			view: k, lo: lo, hi: hi, qEff: effectiveRank(hi-lo, rank), mean: make([]float64, hi-lo),
			gram: make([]float64, rank*ld), sxx: make([]float64, rank*ld),
		}
		for i := range blocks {
			b := &blocks[i]
			at, have := slices.BinarySearch(b.Features, lo)
			end, _ := slices.BinarySearch(b.Features, hi)
			if end == at {
				continue
			}
			if !have || end-at != hi-lo {
				return nil, fmt.Errorf("some subjects lack single values of view %d: the published iteration needs "+
					"whole views", k)
			}
			v.n += b.N
			for j := range v.mean {
				v.mean[j] += (b.Mean[at+j] - v.mean[j]) * b.N / v.n
			}
		}
		s.dropColumns(&v)
		s.views = append(s.views, v)
	}
	return s, nil
}

// effectiveRank is the published column rule: a view of d features may use
// min(q, d − 1) columns of W.
func effectiveRank(d, q int) int {
	if d > q {
		return q
	}
	return d - 1
}

// dropColumns sets the columns that the view may not use to zero, and
// recomputes WᵀW.
func (s *em) dropColumns(v *viewSums) {
	ld := s.md.LD
	w := s.md.W[v.lo*ld : v.hi*ld]
	for j := range v.hi - v.lo {
		clear(w[j*ld+v.qEff:][:s.md.Q-v.qEff])
	}
	clear(v.gram)
	linalg.MulAdd(v.gram, w, 1, ld, w, s.md.Q, v.hi-v.lo, s.md.Q)
}

// params returns the current θ_c.
func (s *em) params() ppca.Params { return s.md.Params(s.layout, s.features) }

// step does one iteration under a prior, or without one if it is nil. The
// prior must describe the site's features with the same rank (see [Prior.Check]).
func (s *em) step(prior *Prior) error {
	if prior != nil && (prior.Rank != s.md.Q || !ppca.ContainsAll(prior.Features, s.features)) {
		return fmt.Errorf("prior of rank %d on %d features does not fit a site of rank %d", prior.Rank,
			len(prior.Features), s.md.Q)
	}
	for i := range s.views {
		if err := s.updateMu(&s.views[i], prior); err != nil {
			return err
		}
	}
	if err := s.moments(); err != nil {
		return err
	}
	for i := range s.views {
		if err := s.updateW(&s.views[i], prior); err != nil {
			return err
		}
	}
	for i := range s.views {
		if err := s.updateNoise(&s.views[i], prior); err != nil {
			return err
		}
	}
	return nil
}

// updateMu is (11). With v the prior variance and s = N v + σ²,
//
//	μ = μ̃ + N v [s I + W Wᵀ]⁻¹ (mean − μ̃),
//	[s I + W Wᵀ]⁻¹ r = {r − W (s I + WᵀW)⁻¹ Wᵀr} / s.
func (s *em) updateMu(v *viewSums, prior *Prior) error {
	mu := s.md.Mu[v.lo:v.hi]
	if prior == nil {
		copy(mu, v.mean)
		return nil
	}
	center := prior.Mu[v.lo:v.hi]
	q, ld := s.md.Q, s.md.LD
	nv := v.n * prior.VarMu[v.view]
	av := nv + s.md.Psi[v.lo]
	copy(s.chol, v.gram)
	for i := range q {
		s.chol[i*ld+i] += av
	}
	if _, ok := linalg.Cholesky(s.chol, q, ld); !ok {
		return ppca.ErrCollapsed
	}
	clear(s.u)
	for j, m := range v.mean {
		r := m - center[j]
		for i, w := range s.md.W[(v.lo+j)*ld:][:q] {
			s.u[i] += w * r
		}
	}
	linalg.CholSolve(s.chol, q, ld, s.u)
	for j, m := range v.mean {
		r := m - center[j]
		for i, w := range s.md.W[(v.lo+j)*ld:][:q] {
			r -= w * s.u[i]
		}
		mu[j] = center[j] + nv/av*r
	}
	return nil
}

// moments runs the E step on every block and sums it view by view.
func (s *em) moments() error {
	ld := s.md.LD
	clear(s.b)
	for i := range s.views {
		clear(s.views[i].sxx)
		s.views[i].square = 0
	}
	for n := range s.blocks {
		b := &s.blocks[n]
		if err := s.e.Run(s.md, b); err != nil {
			return err
		}
		for i, j := range b.Features {
			row := s.b[j*ld:][:s.md.Q]
			for a, x := range s.e.STX[i*ld:][:s.md.Q] {
				row[a] += x
			}
		}
		at := 0
		for i := range s.views {
			v := &s.views[i]
			if at == len(b.Features) || b.Features[at] != v.lo {
				continue
			}
			for range v.hi - v.lo {
				v.square += s.e.Square[at]
				at++
			}
			for a, x := range s.e.SXX {
				v.sxx[a] += x
			}
		}
	}
	return nil
}

// updateW is the formula after (16): W = [Σ (t − μ)⟨x⟩ᵀ + ρ W̃] [Σ ⟨x xᵀ⟩ + ρ I]⁻¹
// with ρ = σ²/σ²_W.
func (s *em) updateW(v *viewSums, prior *Prior) error {
	q, ld := s.md.Q, s.md.LD
	w := s.md.W[v.lo*ld : v.hi*ld]
	copy(w, s.b[v.lo*ld:v.hi*ld])
	copy(s.chol, v.sxx)
	if prior != nil {
		wPrior := prior.W[v.lo*q : v.hi*q]
		ratio := s.md.Psi[v.lo] / prior.VarW[v.view]
		if math.IsInf(ratio, 0) { // the sites share one W
			for j := range v.hi - v.lo {
				copy(w[j*ld:][:q], wPrior[j*q:])
			}
			s.dropColumns(v)
			return nil
		}
		for j := range v.hi - v.lo {
			for a, x := range wPrior[j*q:][:q] {
				w[j*ld+a] += ratio * x
			}
		}
		for a := range q {
			s.chol[a*ld+a] += ratio
		}
	}
	if _, ok := linalg.Cholesky(s.chol, q, ld); !ok {
		return ppca.ErrCollapsed
	}
	for j := range v.hi - v.lo {
		linalg.CholSolve(s.chol, q, ld, w[j*ld:])
	}
	s.dropColumns(v)
	return nil
}

// updateNoise is (21): σ² = {Σ |t − μ|² + tr(WᵀW Σ⟨x xᵀ⟩) − 2 tr(Wᵀ Σ(t − μ)⟨x⟩ᵀ) + 2β} /
// {N d + 2(α + 1)}, without the prior's terms if there is none.
func (s *em) updateNoise(v *viewSums, prior *Prior) error {
	q, ld := s.md.Q, s.md.LD
	sum := v.square + linalg.Inner(v.gram, v.sxx, q, ld)
	for j := v.lo; j < v.hi; j++ {
		b := s.b[j*ld:][:q]
		for a, w := range s.md.W[j*ld:][:q] {
			sum -= 2 * w * b[a]
		}
	}
	weight := v.n * float64(v.hi-v.lo)
	if prior != nil {
		sum += 2 * prior.Beta[v.view]
		weight += 2 * (prior.Alpha[v.view] + 1)
	}
	variance := sum / weight
	if !(variance > 0) || math.IsInf(variance, 0) {
		return fmt.Errorf("noise variance of view %d became %v: %w", v.view, variance, ppca.ErrCollapsed)
	}
	for j := v.lo; j < v.hi; j++ {
		s.md.Psi[j] = variance
	}
	return nil
}
