package ppca

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"parley/internal/linalg"
)

// FitOptions tune a fit. The zero value is the default.
type FitOptions struct {
	// Tol stops the fit when the mean log-likelihood per subject grows by less
	// than this over a window of iterations; 0 means 1e-7 and ten.
	Tol    float64
	Window int
	// MaxIter bounds the iterations; 0 means 2000.
	MaxIter int
	// LeastNoise bounds the noise variance of a feature with one of its own from below, as a
	// share of the feature's variance; see [LeastNoise]. Where that is less, and where it is
	// 0, a bound holds that only keeps the likelihood finite.
	LeastNoise float64
	// Exact goes on from there to where the slope vanishes, which determines the model to nine digits, not the
	// likelihood alone.
	Exact bool
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
	// creeping is after how many iterations a fit that has not converged goes on otherwise.
	creeping = 100
	// solvedTogether features stay in the cache.
	solvedTogether = 16
	// blockBatch is how many blocks are worked on together where single cells are missing: each then has
	// classes of its own, and a product takes far less time than a loop over them.
	blockBatch = 32
)

// Fitted is the outcome of a fit.
type Fitted struct {
	Params
	LogLik     float64   // of all subjects, at Params
	Subjects   float64   // Σ N
	Trace      []float64 // mean log-likelihood per subject before each iteration; never falls
	Iterations int
	Converged  bool // false: MaxIter came first
	// Of [FitBest]: how many starts were followed to their end, and how many ended at the likeliest.
	Starts, AtBest int
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
	o.Tol, o.Window, o.MaxIter = cmp.Or(o.Tol, 1e-7), cmp.Or(o.Window, fitWindow), cmp.Or(o.MaxIter, 2000)
	f, err := newPXEM(l, blocks, rank, start, o.LeastNoise)
	if err != nil {
		return nil, err
	}
	defer func() {
		f.memory.Release()
		f.Model.Release()
		f.EStep.Release()
	}()
	out, climbed := &Fitted{Subjects: f.Subjects}, false
	for {
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
		out.Converged = n > o.Window && out.Trace[n-1]-out.Trace[n-1-o.Window] < o.Tol
		if out.Converged && (climbed || !o.Exact) || out.Iterations >= o.MaxIter {
			break
		}
		if !climbed && (out.Converged || out.Iterations >= creeping) {
			steps, err := f.climb(o, o.MaxIter-out.Iterations)
			if err != nil {
				return nil, fmt.Errorf("fit, iteration %d: %w", out.Iterations, err)
			}
			out.Iterations += steps
			climbed = true
			continue
		}
		if err := f.Maximise(); err != nil {
			return nil, fmt.Errorf("fit, iteration %d: %w", out.Iterations, err)
		}
		out.Iterations++
	}
	out.Params = f.Model.Params(l, f.Features)
	return out, nil
}

const (
	// drawn is how many starts have drawn loadings.
	drawn = 8
	// alike is by how many nats a subject the likelihoods of fits may differ that ended at the same
	// maximum.
	alike = 1e-4
	// workOfStarts is how many numbers an iteration may read for all starts to be followed on all
	// features: beyond, they are followed on some.
	workOfStarts = 1 << 18
)

// FitBest is [Fit] from several starts, and returns the likeliest outcome with how many ended there: the likelihood
// can have several maxima. The starts are [Start] and eight of drawn loadings, the same for the same data. They are
// followed roughly, and the best to its end. Where an iteration is dear, all are followed on every so manyth feature
// of each view, and then [Start] and each maximum that was found on all: those of some features need not be. A start
// from which the covariance of the factors collapses is passed over, unless all are such.
func FitBest(l Layout, blocks []Block, rank int, o FitOptions) (*Fitted, error) {
	blocks, err := ready(l, blocks)
	if err != nil {
		return nil, err
	}
	rough, followed := o, blocks
	rough.Tol, rough.Exact = max(o.Tol, alike/100), false
	some := thinned(l, blocks, rank)
	if some != nil {
		followed = some
	}
	list, err := starts(l, followed, rank)
	if err != nil {
		return nil, err
	}
	fits, err := fitEach(l, followed, list, rough)
	if err == nil && some != nil {
		if list, err = widened(l, blocks, fits); err == nil {
			fits, err = fitEach(l, blocks, list, rough)
		}
	}
	if err != nil {
		return nil, err
	}
	best, err := Fit(l, blocks, rank, &fits[0].Params, o)
	if err != nil {
		return nil, err
	}
	for _, fit := range fits {
		if best.Starts++; fits[0].LogLik-fit.LogLik < alike*best.Subjects {
			best.AtBest++
		}
	}
	best.Iterations += fits[0].Iterations
	best.Trace = append(fits[0].Trace, best.Trace...)
	return best, nil
}

// widened are the starts on all features: [Start], and what fits of some features found, each maximum once. All other
// loadings follow from these in one step.
func widened(l Layout, blocks []Block, fits []*Fitted) ([]*Params, error) {
	first, err := Start(l, blocks, fits[0].Rank)
	if err != nil {
		return nil, err
	}
	list, variance, group, rank := []*Params{first}, variances(l, blocks), l.GroupOf(), first.Rank
	for i, fit := range fits {
		if i > 0 && fits[i-1].LogLik-fit.LogLik < alike*fit.Subjects {
			continue // the same maximum
		}
		start := first.Clone()
		clear(start.W)
		if l.Noise == NoisePerFeature {
			for _, j := range start.Features {
				start.Noise[j] = max(variance[j], first.Noise[j])
			}
		}
		for _, j := range fit.Features {
			copy(start.W[j*rank:][:rank], fit.W[j*rank:])
			start.Noise[group[j]] = fit.Noise[group[j]]
		}
		list = append(list, &start)
	}
	return list, nil
}

// FitFrom is [Fit] from a start, or [FitBest] if that is nil.
func FitFrom(l Layout, blocks []Block, rank int, start *Params, o FitOptions) (*Fitted, error) {
	if start == nil {
		return FitBest(l, blocks, rank, o)
	}
	return Fit(l, blocks, rank, start, o)
}

// fitEach fits from each start, and returns the fits from the likeliest on.
func fitEach(l Layout, blocks []Block, starts []*Params, o FitOptions) (fits []*Fitted, err error) {
	var collapsed error
	for _, start := range starts {
		fit, err := Fit(l, blocks, start.Rank, start, o)
		switch {
		case errors.Is(err, ErrCollapsed):
			collapsed = err
		case err != nil:
			return nil, err
		default:
			fits = append(fits, fit)
		}
	}
	if len(fits) == 0 {
		return nil, collapsed
	}
	slices.SortStableFunc(fits, func(a, b *Fitted) int { return cmp.Compare(b.LogLik, a.LogLik) })
	return fits, nil
}

// starts are those of [FitBest].
func starts(l Layout, blocks []Block, rank int) (list []*Params, err error) {
	first, err := Start(l, blocks, rank)
	if err != nil {
		return nil, err
	}
	list = append(list, first)
	// The draws are the same for the same data, and loadings are expected to explain half of a feature's variance.
	variance, r := variances(l, blocks), rand.New(rand.NewPCG(uint64(len(first.Features)), uint64(rank)))
	for range drawn {
		s := first.Clone()
		for _, j := range s.Features {
			sd := math.Sqrt(variance[j] / float64(2*rank))
			for a := range rank {
				s.W[j*rank+a] = sd * r.NormFloat64()
			}
		}
		list = append(list, &s)
	}
	return list, nil
}

// thinned is the blocks with every so manyth feature of each view, so that an iteration reads no more
// than [workOfStarts] numbers, or with so many that they still determine the factors; nil where all
// features are not more.
func thinned(l Layout, blocks []Block, rank int) (some []Block) {
	work := 0
	for i := range blocks {
		b := &blocks[i]
		if work += len(b.Features) * (b.Rows() + rank + 1); b.Scatter != nil {
			work += len(b.Scatter)
		}
	}
	every := (work + workOfStarts - 1) / workOfStarts
	if most := l.Features() / (20 * (rank + 1)); every > most {
		every = most
	}
	if every <= 1 {
		return nil
	}
	keep := make([]bool, l.Features())
	for k := range l.Dims {
		lo, hi := l.View(k)
		for j := lo; j < hi; j += every {
			keep[j] = true
		}
	}
	for i := range blocks {
		if b := blocks[i].Only(keep); len(b.Features) > 0 {
			some = append(some, b)
		}
	}
	return some
}

// pxem is a fit iteration by iteration: Expect and then Maximise, which leaves the model better than it was. The
// model and the numbers of the blocks may be changed between iterations, the blocks' features not. With x̃ = (x, 1),
// the M step of feature j needs Σ (t_j − μ_j) x̃ᵀ and Σ ⟨x̃ x̃ᵀ⟩ over the subjects who have it; features observed by
// the same blocks are one class and share the latter.
type pxem struct {
	Model    *Model
	EStep    *EStep
	Blocks   []Block
	Features []int // observed by some block, ascending
	Subjects float64
	Q, LD    int
	Stride   int       // of the (q+1) × (q+1) matrices
	Floor    []float64 // least variance of each noise group

	Class []int       // of each feature; −1 if no block observes it
	Of    [][]int     // the classes that each block observes
	Count []float64   // d: subjects who have the feature
	R     [][]float64 // per class, (q+1) × Stride: Σ ⟨x̃ x̃ᵀ⟩

	B      []float64 // d × LD: Σ (t − μ)⟨x⟩ᵀ
	Dev    []float64 // d: Σ (t − μ)
	Square []float64 // d: Σ (t − μ)²

	x  []float64 // q: Σ ⟨x⟩ over all subjects
	xx []float64 // q × LD: Σ ⟨x xᵀ⟩

	// With a class for each feature, as where single cells are missing, most of the work is to
	// add up R. So it is one matrix, a row for each class, and a product adds some
	// blocks at a time, in their order.
	classes []float64 // classes × (q+1)·Stride
	waiting int       // blocks in batch
	batch   []float64 // blockBatch × (q+1)·Stride: of each block, what its classes get
	has     []float64 // blockBatch × classes: 1 where a block has a class

	noise, weight []float64 // per noise group: residual sum and count
	rows          []float64 // solvedTogether × stride: scratch
	xi            *linalg.Eigen
	root, turned  []float64
	memory        linalg.Workspace
}

// newPXEM prepares a fit of blocks from a start, or from [Start] if that is nil. The noise variances of single features
// are at least a share of the features'.
func newPXEM(l Layout, blocks []Block, rank int, start *Params, share float64) (*pxem, error) {
	blocks, err := ready(l, blocks)
	if err != nil {
		return nil, err
	}
	if start == nil {
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
	d, ld, stride := l.Features(), linalg.Stride(rank), linalg.Stride(rank+1)
	f := &pxem{Model: NewModel(l, rank), EStep: NewEStep(rank, blocks), Blocks: blocks, Features: Observed(l, blocks),
		Q: rank, LD: ld, Stride: stride, xi: linalg.NewEigen(rank)}
	if !ContainsAll(start.Features, f.Features) {
		return nil, fmt.Errorf("start describes %d features, and not all of the %d observed", len(start.Features),
			len(f.Features))
	}
	f.Class, f.Of = Classes(d, blocks)
	n, size, most := 1+slices.Max(f.Class), (rank+1)*stride, min(blockBatch, len(blocks))
	f.memory = linalg.Allot(
		linalg.Each(n*size, &f.classes), linalg.Each(most*size, &f.batch), linalg.Each(most*n, &f.has),
		linalg.Each(d*ld, &f.B, &f.turned), linalg.Each(rank*ld, &f.xx, &f.root),
		linalg.Each(d, &f.Dev, &f.Square, &f.Count), linalg.Each(rank, &f.x),
		linalg.Each(l.Groups(), &f.noise, &f.weight), linalg.Each(solvedTogether*stride, &f.rows),
	)
	f.R = slices.Collect(slices.Chunk(f.classes, size))
	for i := range blocks {
		f.Subjects += blocks[i].N
		for _, j := range blocks[i].Features {
			f.Count[j] += blocks[i].N
		}
	}
	f.Model.Load(start)
	if f.Floor, err = noiseFloors(l, blocks, f.Features, share); err != nil {
		return nil, err
	}
	for _, j := range f.Features {
		f.Model.Psi[j] = max(f.Model.Psi[j], f.Floor[f.Model.Group[j]])
	}
	return f, nil
}

// ready is the blocks, checked, with squares that no iteration works out anew.
func ready(l Layout, blocks []Block) ([]Block, error) {
	if len(blocks) > 0 && blocks[0].squares != nil {
		return blocks, nil
	}
	if err := CheckBlocks(l, blocks); err != nil {
		return nil, err
	}
	blocks = slices.Clone(blocks)
	for i := range blocks {
		squares := make([]float64, len(blocks[i].Features))
		blocks[i].Squares(squares)
		blocks[i].squares = squares
	}
	return blocks, nil
}

// noiseFloors returns the least noise variance of each group, from the variance of the feature or the
// variances of the view, or of everything where the whole view is constant.
func noiseFloors(l Layout, blocks []Block, features []int, share float64) ([]float64, error) {
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
		if l.Noise == NoisePerFeature && of[j] > 0 {
			v = of[j]
		}
		if floor[group[j]] = noiseFloor * v; l.Noise == NoisePerFeature {
			floor[j] = max(floor[j], share*of[j])
		}
	}
	return floor, nil
}

// variances are those of the features over all subjects of the blocks; 0 of what nobody has.
func variances(l Layout, blocks []Block) []float64 {
	n, mean, sum := Means(l, blocks)
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

// Expect runs the E step over all blocks and returns the log-likelihood.
func (f *pxem) Expect() (logLik float64, err error) {
	for _, x := range [][]float64{f.classes, f.B, f.Dev, f.Square, f.x, f.xx} {
		clear(x)
	}
	f.waiting = 0
	for i := range f.Blocks {
		if err := f.EStep.Run(f.Model, &f.Blocks[i]); err != nil {
			return 0, err
		}
		logLik += f.EStep.LogDensity(f.Model, &f.Blocks[i])
		f.collect(i)
	}
	return logLik, nil
}

// collect adds block i, on which the E step was just run; R is complete with the last.
func (f *pxem) collect(i int) {
	b, e, q, ld := &f.Blocks[i], f.EStep, f.Q, f.LD
	for a, j := range b.Features {
		f.Dev[j] += b.N * e.Delta[a]
		f.Square[j] += e.Square[a]
		row := f.B[j*ld:][:q]
		for c, x := range e.STX[a*ld:][:q] {
			row[c] += x
		}
	}
	n, size := len(f.R), (q+1)*f.Stride
	has, r := f.has[f.waiting*n:][:n], f.batch[f.waiting*size:][:size]
	clear(has)
	for _, c := range f.Of[i] {
		has[c] = 1
	}
	for a, x := range e.X {
		f.x[a] += b.N * x
		copy(r[a*f.Stride:], e.SXX[a*ld:][:q])
		r[a*f.Stride+q], r[q*f.Stride+a] = b.N*x, b.N*x
	}
	r[q*f.Stride+q] = b.N
	if f.waiting++; f.waiting == blockBatch || i == len(f.Blocks)-1 {
		linalg.MulAdd(f.classes, f.has, 1, n, f.batch, n, f.waiting, size)
		f.waiting = 0
	}
	for a, x := range e.SXX {
		f.xx[a] += x
	}
}

// Maximise does the M step, and moves the mean and covariance of the factors into μ and W.
func (f *pxem) Maximise() error {
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
	for a := range q {
		f.x[a] /= f.Subjects
	}
	for a := range q { // the covariance of the factors
		for c := range q {
			f.xx[a*ld+c] = f.xx[a*ld+c]/f.Subjects - f.x[a]*f.x[c]
		}
	}
	linalg.Symmetrise(f.xx, q, ld)
	if !f.xi.Factorise(f.xx, ld) || !f.xi.Power(f.root, ld, 0.5) {
		return ErrCollapsed
	}
	f.Model.Move(f.x, f.root, f.turned)
	return nil
}
