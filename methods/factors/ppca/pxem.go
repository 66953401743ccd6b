package ppca

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"parley/internal/linalg"
)

// FitOptions tune a fit. The zero value is the default.
type FitOptions struct {
	// Tol stops the fit when the mean log-likelihood per subject grows by less
	// than this over ten iterations; 0 means 1e-7.
	Tol float64
	// MaxIter bounds the iterations; 0 means 2000.
	MaxIter int
	// LeastNoise bounds the noise variance of a feature with one of its own from below, as a
	// share of the feature's variance; see [LeastNoise]. Where that is less, and where it is
	// 0, a bound holds that only keeps the likelihood finite.
	LeastNoise float64
	// Stop, if not nil, is asked before every iteration; what it returns ends
	// the fit as its error. A context's Err will do.
	Stop func() error
}

// filled returns the options with defaults in the place of zeros.
func (o FitOptions) filled() (FitOptions, error) {
	if o.Tol == 0 {
		o.Tol = 1e-7
	}
	if o.MaxIter == 0 {
		o.MaxIter = 2000
	}
	if !(o.Tol > 0) || o.MaxIter < 1 {
		return o, fmt.Errorf("fit: tolerance %v and %d iterations, want both positive", o.Tol, o.MaxIter)
	}
	return o, checkShare(o.LeastNoise)
}

func checkShare(noise float64) error {
	if !(noise >= 0 && noise < 1) {
		return fmt.Errorf("fit: a least share of noise of %v, want one from 0 to 1", noise)
	}
	return nil
}

// LeastNoise is the share of a feature's variance that the model of a study takes for noise
// at least, where features have noise variances of their own. Maximum likelihood may drive
// one to zero (a Heywood case), as if the feature were measured without any error: then a
// subject's other features say nothing beside it, and a site whose instrument differs by a
// trace is infinitely unlikely. A thousandth is what two measurements of the same thing
// that correlate by 0.999 leave: hardly any instrument does better.
const LeastNoise = 1e-3

const (
	fitWindow = 10
	// noiseFloor bounds every noise variance from below, relative to the mean
	// variance of the features of the same view, so that data with fewer
	// directions than the model cannot drive the likelihood to infinity.
	noiseFloor = 1e-8
	// solvedTogether features stay in the cache.
	solvedTogether = 16
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

// LocalRank returns how many factors of at most so many a fit to single subjects can
// have: min(most, d − 2, N − 2), at least 1.
func LocalRank(most, features int, subjects float64) int {
	return max(1, min(most, features-2, int(math.Floor(subjects))-2))
}

// Fit finds the maximum-likelihood model of the given rank for all blocks by
// parameter-expanded expectation maximisation: a site's own rows, the
// blocks of many sites, views and cells missing as they may. It starts at
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
	o, err := o.filled()
	if err != nil {
		return nil, err
	}
	f, err := NewPXEM(l, blocks, rank, start)
	if err != nil {
		return nil, err
	}
	if err := f.RaiseFloors(l, o.LeastNoise); err != nil {
		return nil, err
	}
	out := &Fitted{Subjects: f.Subjects}
	for {
		if o.Stop != nil {
			if err := o.Stop(); err != nil {
				return nil, err
			}
		}
		ll, err := f.Expect()
		if err != nil {
			return nil, fmt.Errorf("fit, iteration %d: %w", out.Iterations, err)
		}
		if math.IsNaN(ll) || math.IsInf(ll, 0) {
			return nil, fmt.Errorf("fit, iteration %d: log-likelihood is %v", out.Iterations, ll)
		}
		out.LogLik = ll
		out.Trace = append(out.Trace, ll/f.Subjects)
		n := len(out.Trace)
		if n > fitWindow && out.Trace[n-1]-out.Trace[n-1-fitWindow] < o.Tol {
			out.Converged = true
			break
		}
		if out.Iterations == o.MaxIter {
			break
		}
		if err := f.Maximise(true); err != nil {
			return nil, fmt.Errorf("fit, iteration %d: %w", out.Iterations, err)
		}
		out.Iterations++
	}
	out.Params = f.Model.Params(l, f.Features)
	for g, v := range out.Noise {
		if v > 0 && v <= f.Floor[g] {
			out.Floored++
		}
	}
	return out, nil
}

// FitBest is [Fit] from several starts where subjects lack features, and returns the
// likeliest outcome: there the likelihood can have several maxima, which describe the
// subjects at hand about as well and others not. The starts are [Start]; the same with each
// covariance divided by the geometric mean of the subjects who have either feature, so that
// what few subjects show of two features together counts for little; where features have
// noise variances of their own, the outcome with one for each view; and where subjects are
// fewer than features, drawn loadings (see [drawnStart]).
func FitBest(l Layout, blocks []Block, rank int, o FitOptions) (*Fitted, error) {
	if len(blocks) == 1 {
		return Fit(l, blocks, rank, nil, o)
	}
	pairwise, err := newSpectrum(l, blocks, rank, false)
	if err != nil {
		return nil, err
	}
	bounded, err := newSpectrum(l, blocks, rank, true)
	if err != nil {
		return nil, err
	}
	return fitBest(l, blocks, pairwise, bounded, o)
}

// fitBest is [FitBest] from starts that are made of these. A start from which the covariance of
// the factors collapses is passed over, unless all are such.
func fitBest(l Layout, blocks []Block, pairwise, bounded *spectrum, o FitOptions) (best *Fitted, err error) {
	starts := []*Params{pairwise.start(l), bounded.start(l)}
	drawn, err := drawnStart(l, blocks, starts[1], o)
	if err != nil {
		return nil, err
	}
	if l.Noise == NoisePerFeature {
		shared := l
		shared.Noise = NoisePerView
		fit, err := fitBest(shared, blocks, pairwise, bounded, o)
		if err == nil {
			each := fit.Params.eachNoise(shared)
			starts = append(starts, &each)
		} else if !errors.Is(err, ErrCollapsed) {
			return nil, err
		}
	}
	if drawn != nil {
		starts = append(starts, drawn)
	}
	var collapsed error
	for _, s := range starts {
		fit, err := Fit(l, blocks, s.Rank, s, o)
		switch {
		case errors.Is(err, ErrCollapsed):
			collapsed = err
		case err != nil:
			return nil, err
		case best == nil || fit.LogLik > best.LogLik:
			best = fit
		}
	}
	if best == nil {
		return nil, collapsed
	}
	return best, nil
}

const (
	// drawnStarts is how many starts are drawn, and drawnIterations how far each is followed
	// before the likeliest alone goes on.
	drawnStarts, drawnIterations = 8, 50
)

// drawnStart is the likeliest of several starts with drawn loadings after a short run of each
// (Biernacki, Celeux and Govaert, "Choosing starting values for the EM algorithm", 2003);
// nil where subjects are as many as features: then hardly any start leads elsewhere; or where all
// collapse. All else is as in the start given.
func drawnStart(l Layout, blocks []Block, like *Params, o FitOptions) (best *Params, err error) {
	subjects := 0.0
	for i := range blocks {
		subjects += blocks[i].N
	}
	if subjects >= float64(len(like.Features)) {
		return nil, nil
	}
	o.MaxIter = drawnIterations
	variance := variances(l, blocks)
	r := startDraws(len(like.Features), like.Rank)
	most := math.Inf(-1)
	for range drawnStarts {
		s := *like
		s.W = make([]float64, len(like.W))
		for _, j := range s.Features {
			drawLoadings(s.W[j*s.Rank:][:s.Rank], variance[j], r)
		}
		fit, err := Fit(l, blocks, s.Rank, &s, o)
		if errors.Is(err, ErrCollapsed) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if fit.LogLik > most {
			best, most = &fit.Params, fit.LogLik
		}
	}
	return best, nil
}

// startDraws are the same for the same data.
func startDraws(features, rank int) *rand.Rand {
	return rand.New(rand.NewPCG(uint64(features), uint64(rank)))
}

// drawLoadings draws the loadings of a feature, which are expected to explain half of its
// variance.
func drawLoadings(w []float64, variance float64, r *rand.Rand) {
	sd := math.Sqrt(variance / float64(2*len(w)))
	for a := range w {
		w[a] = sd * r.NormFloat64()
	}
}

// Iterate runs n iterations of [Fit] from a start, without its stopping rule;
// without expand they are those of plain expectation maximisation. It returns the
// parameters after the last, and the log-likelihood of the start and after each.
func Iterate(l Layout, blocks []Block, start *Params, n int, expand bool) (Params, []float64, error) {
	f, err := NewPXEM(l, blocks, start.Rank, start)
	if err != nil {
		return Params{}, nil, err
	}
	var logLik []float64
	for {
		ll, err := f.Expect()
		if err != nil {
			return Params{}, nil, err
		}
		if logLik = append(logLik, ll); len(logLik) > n {
			return f.Model.Params(l, f.Features), logLik, nil
		}
		if err := f.Maximise(expand); err != nil {
			return Params{}, nil, err
		}
	}
}

// PXEM is a fit iteration by iteration, for whoever has a stopping rule of its own or
// something to do in between; [Fit] is for all others. An iteration is [PXEM.Expect] and
// then [PXEM.Maximise], which leaves the model better than it was. The model and the
// numbers of the blocks may be changed between iterations, the blocks' features not.
type PXEM struct {
	*Sums
	Model *Model
	EStep *EStep
	Floor []float64 // least variance of each noise group

	noise, weight []float64 // per noise group: residual sum and count
	row           []float64 // q + 1 scratch
	rows          []float64 // solvedTogether × stride: scratch
	xi            *linalg.Eigen
	root, turned  []float64
}

// NewPXEM prepares a fit of blocks from a start, or from [Start] if that is nil.
func NewPXEM(l Layout, blocks []Block, rank int, start *Params) (*PXEM, error) {
	if err := CheckBlocks(l, blocks); err != nil {
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
	f := &PXEM{
		Sums: NewSums(l, blocks, rank), Model: NewModel(l, rank), EStep: NewEStep(rank, blocks),
		noise: make([]float64, l.Groups()), weight: make([]float64, l.Groups()),
		row: make([]float64, rank+1), xi: linalg.NewEigen(rank),
	}
	if !ContainsAll(start.Features, f.Features) {
		return nil, fmt.Errorf("start describes %d features, and not all of the %d observed", len(start.Features), len(f.Features))
	}
	f.rows = make([]float64, solvedTogether*f.Stride)
	f.root, f.turned = make([]float64, rank*f.LD), make([]float64, len(f.B))
	f.Model.Load(start)
	var err error
	if f.Floor, err = NoiseFloors(l, blocks, f.Features); err != nil {
		return nil, err
	}
	for _, j := range f.Features {
		f.Model.Psi[j] = max(f.Model.Psi[j], f.Floor[f.Model.Group[j]])
	}
	return f, nil
}

// NoiseFloors returns the least noise variance of each group, from the
// variances of the view, or of everything where the whole view is constant.
func NoiseFloors(l Layout, blocks []Block, features []int) ([]float64, error) {
	of := variances(l, blocks)
	view, group := l.ViewOf(), l.GroupOf()
	variance, count := make([]float64, l.Views()), make([]float64, l.Views())
	total := 0.0
	for _, j := range features {
		variance[view[j]] += of[j]
		count[view[j]]++
		total += of[j]
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

// variances are those of the features over all subjects of the blocks; 0 of what nobody has.
func variances(l Layout, blocks []Block) []float64 {
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
	for j, x := range n {
		if x == 0 {
			continue
		}
		if sum[j] /= x; math.Sqrt(sum[j]) <= 1e-13*math.Abs(mean[j]) {
			sum[j] = 0 // what rounding leaves of a constant is not variance
		}
	}
	return sum
}

// RaiseFloors bounds noise variances of single features by a share of the features'.
func (f *PXEM) RaiseFloors(l Layout, share float64) error {
	if err := checkShare(share); err != nil {
		return err
	}
	if share == 0 || l.Noise != NoisePerFeature {
		return nil
	}
	for j, v := range variances(l, f.Blocks) {
		if f.Floor[j] = max(f.Floor[j], share*v); f.Model.Psi[j] > 0 {
			f.Model.Psi[j] = max(f.Model.Psi[j], f.Floor[j])
		}
	}
	return nil
}

// Expect runs the E step over all blocks and returns the log-likelihood.
func (f *PXEM) Expect() (logLik float64, err error) {
	f.Reset()
	for i := range f.Blocks {
		if err := f.EStep.Run(f.Model, &f.Blocks[i], nil); err != nil {
			return 0, err
		}
		logLik += f.EStep.LogDensity(f.Model, &f.Blocks[i])
		f.Collect(i, f.EStep)
	}
	return logLik, nil
}

// Maximise does the M step and, if expand is set, moves the mean and
// covariance of the factors into μ and W.
func (f *PXEM) Maximise(expand bool) error {
	q, ld := f.Model.Q, f.Model.LD
	for _, r := range f.R {
		if _, ok := linalg.Cholesky(r, q+1, f.Stride); !ok {
			return ErrCollapsed
		}
	}
	clear(f.noise)
	clear(f.weight)
	for at := 0; at < len(f.Features); {
		// Features of one class are solved for together, a few at a time.
		class, n := f.Class[f.Features[at]], 0
		for ; n < solvedTogether && at+n < len(f.Features) && f.Class[f.Features[at+n]] == class; n++ {
			j, row := f.Features[at+n], f.rows[n*f.Stride:]
			copy(row, f.B[j*ld:][:q])
			row[q] = f.Dev[j]
		}
		linalg.CholSolveRows(f.R[class], q+1, f.Stride, f.rows, f.Stride, n)
		for i, j := range f.Features[at : at+n] {
			row := f.rows[i*f.Stride:][:q+1]
			s := f.Square[j] - row[q]*f.Dev[j]
			for a, x := range f.B[j*ld:][:q] {
				s -= row[a] * x
			}
			copy(f.Model.W[j*ld:], row[:q])
			f.Model.Mu[j] += row[q]
			f.noise[f.Model.Group[j]] += s
			f.weight[f.Model.Group[j]] += f.Count[j]
		}
		at += n
	}
	for _, j := range f.Features {
		g := f.Model.Group[j]
		f.Model.Psi[j] = max(f.noise[g]/f.weight[g], f.Floor[g])
	}
	if !expand {
		return nil
	}
	nu, xi := f.Factors()
	if !f.xi.Factorise(xi, ld) || !f.xi.Power(f.root, ld, 0.5) {
		return ErrCollapsed
	}
	f.Model.Move(nu, f.root, f.turned)
	return nil
}
