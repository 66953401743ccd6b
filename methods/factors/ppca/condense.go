package ppca

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"parley/internal/linalg"
)

// Condense returns what a site says of its subjects to whoever fits one model to all
// sites: a block for each set of views that subjects have, in order of views.
//
// A set whose subjects have all features of these views keeps its exact number, mean
// and variances. Its scatter matrix is exact where that takes no more numbers than
// factors do, or where the subjects are at most rank + 1; otherwise its covariances are
// those of a factor analysis of that rank, with a noise variance for each feature
// whatever the layout has, so that the fit of all sites loses hardly anything of them.
// That analysis takes at most 30 iterations, or fewer if the options say so.
// Where factors leave out directions about as strong as they are, the scatter matrix is exact
// too, if it takes no more than [LargestExact] numbers, and the block is rough otherwise: a
// model of all sites may want other directions than those that a site picked.
// Single missing cells of a set are first filled with what a small factor analysis of
// all the site's subjects expects of them, with the spread of the factors: of rank/4 factors,
// and of at most one for eight subjects. Their noise is left to [FillNoise].
//
// Nothing is said of features that no subject of a set has. A fit to all of a site's
// subjects at once would: it extends from those who have a view to those who lack it,
// and where few have it that is far off. Single cells are another matter: whoever lacks one
// has the rest of the view, and a set's own subjects are often too few for any factor.
//
// Sets of fewer subjects than minimum have no block of their own: see [joined]. If no
// set has as many, there is none at all.
func Condense(l Layout, blocks []Block, rank, minimum int, o FitOptions) ([]Block, error) {
	return condenseSets(l, nil, blocks, rank, minimum, o)
}

// Refill is [Condense] with the single missing cells filled by a model of all sites, which
// knows more of them than a site's own subjects do. Where sets are small, one such exchange
// after the first brings the model to within hundredths of a nat of a fit to all rows.
// Features that the model does not describe are filled as Condense does.
func Refill(l Layout, model *Params, blocks []Block, rank, minimum int, o FitOptions) ([]Block, error) {
	if err := model.Check(l); err != nil {
		return nil, err
	}
	each := model.eachNoise(l)
	return condenseSets(l, &each, blocks, rank, minimum, o)
}

// FilledCells returns how many single cells [Condense] fills in.
func FilledCells(l Layout, blocks []Block) (cells float64) {
	for _, pt := range Patterns(l, blocks) {
		same := withViews(l, blocks, pt.Views)
		all := len(Observed(l, same))
		for i := range same {
			cells += same[i].N * float64(all-len(same[i].Features))
		}
	}
	return cells
}

// withViews returns the blocks of those who have these views and no others.
func withViews(l Layout, blocks []Block, views []int) (same []Block) {
	for _, b := range blocks {
		if slices.Equal(l.ViewsOf(b.Features), views) {
			same = append(same, b)
		}
	}
	return same
}

// condenseSets condenses set by set. The model, whose noise is by feature, is that of all
// sites, or nil.
func condenseSets(l Layout, model *Params, blocks []Block, rank, minimum int, o FitOptions) ([]Block, error) {
	if err := CheckBlocks(l, blocks); err != nil {
		return nil, err
	}
	if rank < 1 {
		return nil, fmt.Errorf("condensing to %d factors", rank)
	}
	if o.MaxIter == 0 || o.MaxIter > condensing {
		o.MaxIter = condensing
	}
	blocks = joined(l, blocks, minimum)
	var own *Params // of the site's subjects, once it is needed
	fillBy := func(features []int) (*Params, error) {
		if model != nil && ContainsAll(model.Features, features) {
			return model, nil
		}
		if own == nil {
			var err error
			if own, err = smallFit(l.eachNoise(), blocks, rank/4, o); err != nil {
				return nil, err
			}
		}
		return own, nil
	}
	var out []Block
	for _, pt := range Patterns(l, blocks) {
		b, err := condense(l, fillBy, withViews(l, blocks, pt.Views), rank, o)
		if err != nil {
			return nil, fmt.Errorf("subjects with views %v: %w", pt.Views, err)
		}
		out = append(out, b)
	}
	return out, nil
}

// condensing bounds the iterations of a site's factor analyses. Of more factors than
// the model and hardly more subjects, they go on for thousands, driving some noise
// variances to zero: what they gain there is of these subjects alone. On drawn data of
// many shapes, the model that is then fitted to all sites is as good after 20 as after 2000,
// to within .01 nats a row; in the experiments parley-gaps and parley-gaps-more, held-out rows
// gained hundredths in the mean when a hundred became thirty.
const condensing = 30

// joined leaves no set of views with fewer subjects than minimum: the smallest first, its
// subjects count under the richest set of some of their views with which they are enough,
// as if they had no others; where there is none, they take no part.
func joined(l Layout, blocks []Block, minimum int) []Block {
	blocks = slices.Clone(blocks)
	for {
		sets := Patterns(l, blocks)
		small := slices.MinFunc(append(sets, Pattern{Subjects: math.Inf(1)}), func(a, b Pattern) int { return cmp.Compare(a.Subjects, b.Subjects) })
		if small.Subjects >= float64(minimum) {
			return blocks
		}
		var under []int
		for _, s := range sets {
			if len(s.Views) < len(small.Views) && len(s.Views) > len(under) && ContainsAll(small.Views, s.Views) && s.Subjects+small.Subjects >= float64(minimum) {
				under = s.Views
			}
		}
		var kept []Block
		for _, b := range blocks {
			if slices.Equal(l.ViewsOf(b.Features), small.Views) {
				if b = b.within(l, under); len(b.Features) == 0 {
					continue
				}
			}
			kept = append(kept, b)
		}
		blocks = kept
	}
}

// within is the block without features of other views.
func (b *Block) within(l Layout, views []int) Block {
	p, view := len(b.Features), l.ViewOf()
	var at []int
	out := Block{N: b.N}
	for i, j := range b.Features {
		if slices.Contains(views, view[j]) {
			at, out.Features, out.Mean = append(at, i), append(out.Features, j), append(out.Mean, b.Mean[i])
		}
	}
	for _, i := range at {
		if b.Scatter != nil {
			for _, k := range at {
				out.Scatter = append(out.Scatter, b.Scatter[i*p+k])
			}
		}
	}
	for row := range slices.Chunk(b.Factor, p) {
		for _, i := range at {
			out.Factor = append(out.Factor, row[i])
		}
	}
	return out
}

// condense makes one block of those of one set of views. Single missing cells are filled by
// the model that fillBy returns for their features.
func condense(l Layout, fillBy func(features []int) (*Params, error), blocks []Block, rank int, o FitOptions) (Block, error) {
	b := blocks[0]
	if len(blocks) > 1 {
		model, err := fillBy(Observed(l, blocks))
		if err == ErrNoVariance {
			return constant(blocks, Observed(l, blocks)), nil
		}
		if err != nil {
			return Block{}, err
		}
		if b, err = completeData(l.eachNoise(), blocks, model); err != nil {
			return Block{}, err
		}
	}
	filled := b.Filled
	b.Filled = nil
	out, err := b.analysed(l, rank, o)
	if err == ErrNoVariance {
		return constant(blocks, b.Features), nil
	}
	out.Filled = filled
	return out, err
}

// analysed says of a block what [Condense] says of a set. Where the model of all sites has one
// noise for features of unequal variances, it looks for those that vary most, and the analysis
// starts there: a drawn start lost up to .5 nats a row of the example of Alzheimer's disease in
// its own units.
func (b *Block) analysed(l Layout, rank int, o FitOptions) (Block, error) {
	p := len(b.Features)
	if b.N <= float64(rank+1) || p+1 <= 2*(rank+1) {
		return b.exact(rank)
	}
	factors := max(1, rank/4)
	rank = LocalRank(rank, p, b.N)
	var begin *Params
	if l.Noise != NoisePerFeature {
		var err error
		if begin, err = Start(l.eachNoise(), []Block{*b}, rank); err != nil {
			return Block{}, err
		}
	}
	fit, err := analyse(l, b, rank, begin, o)
	if err != nil {
		return Block{}, err
	}
	defer fit.Release()
	rough := !fit.rankSuffices(min(factors, rank))
	if rough && float64(p)*min(b.N-1, float64(p+1)/2) <= LargestExact {
		return b.exact(int(b.N) - 1)
	}
	out := Block{Features: b.Features, N: b.N, Mean: b.Mean, Factor: make([]float64, fit.Rank*p), Diag: make([]float64, p), Rough: rough}
	b.Squares(out.Diag)
	for i := range p {
		shared := 0.0
		for a, w := range fit.W[i*fit.LD:][:fit.Rank] {
			out.Factor[a*p+i] = math.Sqrt(b.N) * w
			shared += b.N * w * w
		}
		out.Diag[i] = max(0, out.Diag[i]-shared)
	}
	return out, nil
}

// perFactor is how many subjects a factor needs for single cells to be filled by it. With
// fewer, what is filled lies far beyond what the subjects show.
const perFactor = 8

// smallFit is a model of a site's subjects to fill single cells by: of at most so many
// factors, one for eight subjects, or of none where there are hardly any subjects, when each
// feature has a mean of its own and a variance that is drawn to its view's.
func smallFit(l Layout, blocks []Block, most int, o FitOptions) (*Params, error) {
	features, subjects := Observed(l, blocks), 0.0
	for i := range blocks {
		subjects += blocks[i].N
	}
	if rank := min(most, int(subjects)/perFactor, len(features)); rank >= 1 {
		fit, err := Fit(l, blocks, rank, nil, o)
		if err != nil {
			return nil, err
		}
		return &fit.Params, nil
	}
	d := l.Features()
	p := &Params{Features: features, Rank: 1, W: make([]float64, d), Mu: make([]float64, d), Noise: make([]float64, d)}
	n, squares := make([]float64, d), make([]float64, d)
	for i := range blocks {
		b := &blocks[i]
		b.Squares(squares)
		for a, j := range b.Features {
			delta := b.Mean[a] - p.Mu[j]
			p.Noise[j] += squares[a] + delta*delta*n[j]*b.N/(n[j]+b.N)
			n[j] += b.N
			p.Mu[j] += delta * b.N / n[j]
		}
	}
	view, sum, freedom := l.ViewOf(), make([]float64, l.Views()), make([]float64, l.Views())
	total, all := 0.0, 0.0
	for _, j := range features {
		sum[view[j]] += p.Noise[j]
		freedom[view[j]] += n[j] - 1
		total, all = total+p.Noise[j], all+n[j]-1
	}
	if !(total > 0) {
		return nil, ErrNoVariance
	}
	const weight = 4 // subjects' worth of the view's variance
	for _, j := range features {
		typical := total / all
		if k := view[j]; sum[k] > 0 {
			typical = sum[k] / freedom[k]
		}
		p.Noise[j] = (p.Noise[j] + weight*typical) / (n[j] - 1 + weight)
	}
	return p, nil
}

// exact returns the block in the form of fewer numbers: its scatter matrix, or where
// that has few directions factors in a form that depends on it alone, so that they
// say no more of single subjects than the matrix does. Of subjects whose missing cells were
// filled, the scatter has more directions than subjects: what at most rank of them leave of
// the variances is the diagonal, as in a factor analysis.
func (b *Block) exact(rank int) (Block, error) {
	p := len(b.Features)
	if b.Scatter == nil && len(b.Factor) == 0 { // a single subject does not scatter
		return *b, nil
	}
	if b.Scatter != nil {
		if p+1 <= 2*(rank+1) {
			return *b, nil
		}
		f, err := b.factored()
		if err != nil {
			return Block{}, err
		}
		if b = &f; len(b.Factor) == 0 { // subjects who are all alike
			return *b, nil
		}
	}
	directions := min(rank, int(b.N)-1)
	if p+1 <= 2*directions {
		return b.Dense(), nil
	}
	// FᵀF = Σ λ v vᵀ, and v = Fᵀ u / √λ for the eigenvectors u of FFᵀ.
	n := b.Rows()
	gram := make([]float64, n*n)
	for i := range n {
		row, j := b.Factor[i*p:][:p], 0
		for ; j+4 <= i+1; j += 4 { // side by side, since each is a chain of operations that wait for each other
			r0, r1, r2, r3 := b.Factor[j*p:][:p], b.Factor[(j+1)*p:][:p], b.Factor[(j+2)*p:][:p], b.Factor[(j+3)*p:][:p]
			s0, s1, s2, s3 := 0.0, 0.0, 0.0, 0.0
			for k, x := range row {
				s0 += x * r0[k]
				s1 += x * r1[k]
				s2 += x * r2[k]
				s3 += x * r3[k]
			}
			gram[i*n+j], gram[i*n+j+1], gram[i*n+j+2], gram[i*n+j+3] = s0, s1, s2, s3
		}
		for ; j <= i; j++ {
			other, s := b.Factor[j*p:][:p], 0.0
			for k, x := range row {
				s += x * other[k]
			}
			gram[i*n+j] = s
		}
		for j := range i {
			gram[j*n+i] = gram[i*n+j]
		}
	}
	e := linalg.NewEigen(n)
	if !e.Factorise(gram, n) {
		return Block{}, fmt.Errorf("the eigenvalues of the subjects' inner products did not converge")
	}
	found := 0 // directions, rounding aside
	for found < n && e.Values[n-1-found] > 1e-14*e.Values[n-1] {
		found++
	}
	directions = min(directions, found)
	rest := b.Diag != nil || directions < found
	if rest && p+1 <= 2*(directions+1) {
		return b.Dense(), nil
	}
	out := Block{Features: b.Features, N: b.N, Mean: b.Mean}
	for a := n - 1; a >= n-directions; a-- {
		row, top, i := make([]float64, p), 0, 0
		for ; i+4 <= n; i += 4 {
			v0, v1, v2, v3 := e.Vectors[i*n+a], e.Vectors[(i+1)*n+a], e.Vectors[(i+2)*n+a], e.Vectors[(i+3)*n+a]
			r1, r2, r3 := b.Factor[(i+1)*p:][:p], b.Factor[(i+2)*p:][:p], b.Factor[(i+3)*p:][:p]
			for k, x := range b.Factor[i*p:][:p] {
				row[k] = row[k] + v0*x + v1*r1[k] + v2*r2[k] + v3*r3[k]
			}
		}
		for ; i < n; i++ {
			v := e.Vectors[i*n+a]
			for k, x := range b.Factor[i*p:][:p] {
				row[k] += v * x
			}
		}
		for k, x := range row {
			if math.Abs(x) > math.Abs(row[top]) {
				top = k
			}
		}
		if row[top] < 0 {
			for k := range row {
				row[k] = -row[k]
			}
		}
		out.Factor = append(out.Factor, row...)
	}
	if rest {
		out.Diag = make([]float64, p)
		b.Squares(out.Diag)
		for i, x := range out.Factor {
			out.Diag[i%p] = max(0, out.Diag[i%p]-x*x)
		}
	}
	return out, nil
}

// constant is the block of subjects of whom no feature varies.
func constant(blocks []Block, features []int) Block {
	p := len(features)
	out := Block{Features: features, Mean: make([]float64, p)}
	count := make([]float64, p)
	for i := range blocks {
		out.N += blocks[i].N
		for a, j := range blocks[i].Features {
			at, _ := slices.BinarySearch(features, j)
			count[at] += blocks[i].N
			out.Mean[at] += (blocks[i].Mean[a] - out.Mean[at]) * blocks[i].N / count[at]
		}
	}
	return out
}
