package ppca

import (
	"errors"
	"fmt"
	"math"

	"parley/internal/kernel"
	"parley/methods/mvppca/linalg"
)

// FitOptions tune a fit. The zero value is the default.
type FitOptions struct {
	// Tol stops the fit when the mean log-likelihood per subject grows by less
	// than this over ten iterations; 0 means 1e-7.
	Tol float64
	// MaxIter bounds the iterations; 0 means 2000.
	MaxIter int
	// Stop, if not nil, is asked before every iteration; what it returns ends
	// the fit as its error. A context's Err will do.
	Stop func() error
}

const (
	fitWindow = 10
	// noiseFloor bounds every noise variance from below, relative to the mean
	// variance of the features of the same view, so that data with fewer
	// directions than the model cannot drive the likelihood to infinity.
	noiseFloor = 1e-8
)

// Fitted is the outcome of a fit.
type Fitted struct {
	Params
	LogLik     float64   // of all subjects, at Params
	Subjects   float64   // Σ N
	Trace      []float64 // mean log-likelihood per subject before each iteration; never falls
	Iterations int
	Converged  bool // false: MaxIter came first
	// Floored counts the noise groups held at the floor: the data determine
	// these features exactly, up to rounding, and their variance is not an estimate.
	Floored int
}

// ErrNoVariance is returned when no observed feature varies.
var ErrNoVariance = errors.New("nothing varies: every observed feature is constant")

// LocalRank returns how many factors a site's own fit should have when the
// study asks for rank: min(2 rank, d − 2, N − 2), at least 1. The surplus keeps
// what a rank-q summary of the site would lose.
func LocalRank(rank, features int, subjects float64) int {
	return max(1, min(2*rank, features-2, int(math.Floor(subjects))-2))
}

// Fit finds the maximum-likelihood model of the given rank for all blocks by
// parameter-expanded expectation maximisation: a site's own rows, the
// pseudo-data of many sites, views and cells missing as they may. It starts at
// start, or at [Start] if that is nil.
//
// W and μ are updated jointly, one (q+1) × (q+1) system for all features that
// the same blocks observe; then the mean and covariance of the factors, which
// the expanded model leaves free, are moved into μ and W. Without this second
// step the scale inside the right subspace hardly moves when noise is small.
// Liu, Rubin and Wu, "Parameter expansion to accelerate EM", Biometrika 1998.
//
// The likelihood never falls, rounding aside.
func Fit(l Layout, blocks []Block, rank int, start *Params, o FitOptions) (*Fitted, error) {
	if o.Tol == 0 {
		o.Tol = 1e-7
	}
	if o.MaxIter == 0 {
		o.MaxIter = 2000
	}
	if !(o.Tol > 0) || o.MaxIter < 1 {
		return nil, fmt.Errorf("fit: tolerance %v and %d iterations, want both positive", o.Tol, o.MaxIter)
	}
	f, err := newPXEM(l, blocks, rank, start)
	if err != nil {
		return nil, err
	}
	out := &Fitted{Subjects: f.subjects}
	for {
		if o.Stop != nil {
			if err := o.Stop(); err != nil {
				return nil, err
			}
		}
		ll, err := f.expect()
		if err != nil {
			return nil, fmt.Errorf("fit, iteration %d: %w", out.Iterations, err)
		}
		if math.IsNaN(ll) || math.IsInf(ll, 0) {
			return nil, fmt.Errorf("fit, iteration %d: log-likelihood is %v", out.Iterations, ll)
		}
		out.LogLik = ll
		out.Trace = append(out.Trace, ll/f.subjects)
		n := len(out.Trace)
		if n > fitWindow && out.Trace[n-1]-out.Trace[n-1-fitWindow] < o.Tol {
			out.Converged = true
			break
		}
		if out.Iterations == o.MaxIter {
			break
		}
		if err := f.maximise(true); err != nil {
			return nil, fmt.Errorf("fit, iteration %d: %w", out.Iterations, err)
		}
		out.Iterations++
	}
	out.Params = f.md.params(l, f.features)
	for g, v := range out.Noise {
		if v > 0 && v <= f.floor[g] {
			out.Floored++
		}
	}
	return out, nil
}

// Iterate runs n iterations of [Fit] from a start, without its stopping rule;
// without expand they are those of plain expectation maximisation. It returns the
// parameters after the last, and the log-likelihood of the start and after each.
func Iterate(l Layout, blocks []Block, start *Params, n int, expand bool) (Params, []float64, error) {
	f, err := newPXEM(l, blocks, start.Rank, start)
	if err != nil {
		return Params{}, nil, err
	}
	var logLik []float64
	for {
		ll, err := f.expect()
		if err != nil {
			return Params{}, nil, err
		}
		if logLik = append(logLik, ll); len(logLik) > n {
			return f.md.params(l, f.features), logLik, nil
		}
		if err := f.maximise(expand); err != nil {
			return Params{}, nil, err
		}
	}
}

// pxem is the state and workspace of a fit.
type pxem struct {
	*sums
	layout Layout
	floor  []float64 // per noise group
	md     *model
	z      latent
	e      *estep

	noise, weight []float64 // per noise group: residual sum and count
	row           []float64 // q + 1 scratch
	xi            *linalg.Eigen
	root, turned  []float64
}

func newPXEM(l Layout, blocks []Block, rank int, start *Params) (*pxem, error) {
	if err := checkBlocks(l, blocks); err != nil {
		return nil, err
	}
	if start == nil {
		var err error
		if start, err = Start(l, blocks, rank); err != nil {
			return nil, err
		}
	}
	if err := start.Check(l); err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	if start.Rank != rank {
		return nil, fmt.Errorf("start has %d factors, the fit %d", start.Rank, rank)
	}
	f := &pxem{
		sums: newSums(l, blocks, rank), layout: l,
		md: newModel(l, rank), z: standard(rank), e: newEstep(rank, blocks),
		noise: make([]float64, l.Groups()), weight: make([]float64, l.Groups()),
		row: make([]float64, rank+1), xi: linalg.NewEigen(rank),
	}
	if !ContainsAll(start.Features, f.features) {
		return nil, fmt.Errorf("start describes %d features, and not all of the %d observed", len(start.Features), len(f.features))
	}
	f.root, f.turned = make([]float64, rank*f.ld), make([]float64, len(f.b))
	f.md.load(start)
	var err error
	if f.floor, err = noiseFloors(l, blocks, f.features); err != nil {
		return nil, err
	}
	for _, j := range f.features {
		f.md.psi[j] = max(f.md.psi[j], f.floor[f.md.group[j]])
	}
	return f, nil
}

// noiseFloors returns the least noise variance of each group, from the
// variances of the view, or of everything where the whole view is constant.
func noiseFloors(l Layout, blocks []Block, features []int) ([]float64, error) {
	d := l.Features()
	n, mean, sum := make([]float64, d), make([]float64, d), make([]float64, d)
	squares := make([]float64, d)
	for i := range blocks {
		b := &blocks[i]
		b.Squares(squares)
		for a, j := range b.Features {
			delta := b.Mean[a] - mean[j]
			sum[j] += squares[a] + delta*delta*n[j]*b.N/(n[j]+b.N)
			n[j] += b.N
			mean[j] += delta * b.N / n[j]
		}
	}
	view, group := l.ViewOf(), l.GroupOf()
	variance, count := make([]float64, l.Views()), make([]float64, l.Views())
	total := 0.0
	for _, j := range features {
		v := sum[j] / n[j]
		if math.Sqrt(v) <= 1e-13*math.Abs(mean[j]) {
			v = 0 // what rounding leaves of a constant is not variance
		}
		variance[view[j]] += v
		count[view[j]]++
		total += v
	}
	if !(total > 0) {
		return nil, ErrNoVariance
	}
	floor := make([]float64, l.Groups())
	for _, j := range features {
		v := variance[view[j]] / count[view[j]]
		if v == 0 {
			v = total / float64(len(features))
		}
		floor[group[j]] = noiseFloor * v
	}
	return floor, nil
}

// expect runs the E step over all blocks and returns the log-likelihood.
func (f *pxem) expect() (logLik float64, err error) {
	f.reset()
	for i := range f.blocks {
		if err := f.e.run(f.md, &f.blocks[i], f.z); err != nil {
			return 0, err
		}
		logLik += f.e.logLik(f.md, &f.blocks[i])
		f.collect(i, f.e)
	}
	return logLik, nil
}

// maximise does the M step and, if expand is set, moves the mean and
// covariance of the factors into μ and W.
func (f *pxem) maximise(expand bool) error {
	q, ld := f.md.q, f.md.ld
	for _, r := range f.r {
		if _, ok := linalg.Cholesky(r, q+1, f.stride); !ok {
			return ErrCollapsed
		}
	}
	clear(f.noise)
	clear(f.weight)
	for _, j := range f.features {
		b := f.b[j*ld:][:q]
		copy(f.row, b)
		f.row[q] = f.dev[j]
		linalg.CholSolve(f.r[f.class[j]], q+1, f.stride, f.row)
		s := f.square[j] - f.row[q]*f.dev[j]
		for a, x := range b {
			s -= f.row[a] * x
		}
		copy(f.md.w[j*ld:], f.row[:q])
		f.md.mu[j] += f.row[q]
		f.noise[f.md.group[j]] += s
		f.weight[f.md.group[j]] += f.count[j]
	}
	for _, j := range f.features {
		g := f.md.group[j]
		f.md.psi[j] = max(f.noise[g]/f.weight[g], f.floor[g])
	}
	if !expand {
		return nil
	}
	nu, xi := f.factors()
	if !f.xi.Factorise(xi, ld) || !f.xi.Power(f.root, ld, 0.5) {
		return ErrCollapsed
	}
	f.md.move(nu, f.root, f.turned)
	return nil
}

// move changes the factors' origin and units: μ += W ν, W := W root.
func (m *model) move(nu, root, scratch []float64) {
	for j := range m.d {
		for a, x := range nu {
			m.mu[j] += m.w[j*m.ld+a] * x
		}
	}
	clear(scratch)
	kernel.MulAdd(scratch, m.w, m.ld, 1, root, m.d, m.q, m.q)
	copy(m.w, scratch)
}
