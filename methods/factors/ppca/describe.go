package ppca

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"parley/internal/linalg"
)

const (
	// LargestExact is how many numbers the scatter of a set of subjects may take: 32 MiB.
	LargestExact = 1 << 22
	// Fewest is how many subjects a set of views needs for sums of its own: the exact sums of fewer say
	// too much of each.
	Fewest = 10
	// together is how many sets with other gaps are filled before they are added.
	together = 64
)

// Description is what a site says of its subjects to whoever fits one model to all sites.
type Description struct {
	Blocks []Block `cbor:"blocks"` // of different views, in their order
	Filled float64 `cbor:"filled"` // cells that were filled
	// LogLik is the log-likelihood of all cells that the described subjects have, by the model that filled
	// them; 0 without.
	LogLik float64 `cbor:"log_lik"`
}

// Bound says up to how many numbers of its scatter matrix a set of subjects is described exactly, and along which
// directions beyond.
type Bound struct {
	Numbers int
	Along   *Directions
}

// most is how many rows of p features are within the bound.
func (b Bound) most(p int) int { return b.Numbers / p }

// Triangle says whether all products of p features are within the bound.
func (b Bound) Triangle(p int) bool { return p+1 <= 2*b.most(p) }

// Sums is how many numbers add up over sites of a set with p features: of subjects, the log-likelihood, Σ t, how many
// cells of each feature were filled, and Σ t tᵀ; or Σ t² and Σ t tᵀV.
func (b Bound) Sums(p int) int {
	if b.Triangle(p) {
		return 2 + 2*p + p*(p+1)/2
	}
	return 2 + 3*p + p*b.Along.Count
}

// Describe is the sums of a site's subjects: number, mean and scatter of each set of them, in the form of fewer numbers
// (see [Block]), or along directions where either has more than the bound. Subjects with the same views are a set, and
// sets of fewer than [Fewest] are one. Where sets are given, by their features, those subjects are in the one of their
// views, or else in that of all features, so that sums of sites add up to those of one site with all subjects. What
// subjects lack of their set's features is filled by its expectation under a model, with the conditional covariance,
// the E step for missing values (Little and Rubin 2002, section 11.3): a model that is fitted to all sites' sums until
// it no longer changes is the likeliest for all cells that are there. Without one, the means of the site fill them.
func Describe(l Layout, model *Params, blocks []Block, given [][]int, bound Bound) (*Description, error) {
	if err := CheckBlocks(l, blocks); err != nil {
		return nil, err
	}
	by, of := model, l
	if by == nil {
		by, of.Noise = withoutFactors(l, blocks), NoisePerFeature
	}
	out := &Description{}
	features, members := sets(l, blocks, given)
	for i, set := range members {
		if len(set) == 0 {
			continue
		}
		b, err := sum(of, by, set, features[i], bound)
		if err != nil {
			return nil, err
		}
		out.Blocks = append(out.Blocks, b)
		out.Filled += floats.Sum(b.Filled)
		if model != nil {
			logLik, _, err := LogLik(l, model, set)
			if err != nil {
				return nil, err
			}
			out.LogLik += logLik
		}
	}
	slices.SortFunc(out.Blocks, func(a, b Block) int {
		return slices.Compare(l.ViewsOf(a.Features), l.ViewsOf(b.Features))
	})
	return out, nil
}

// sum is all of a set, with all of some features; no model fills them where nothing varies.
func sum(l Layout, by *Params, set []Block, all []int, bound Bound) (b Block, err error) {
	switch p := len(all); {
	case len(set) == 1 && len(set[0].Features) == p:
		b = set[0]
	case by == nil:
		b = constant(l, set)
	default:
		along := bound.Along
		if filledRows(set, p, by.Rank)-1 <= bound.most(p) || bound.Triangle(p) {
			along = nil
		}
		if b, err = fill(l, by, set, all, along); err != nil {
			return b, err
		}
	}
	return b.within(bound)
}

// sets divides blocks into those that are described together, with the features that each then has.
func sets(l Layout, blocks []Block, given [][]int) (features [][]int, members [][]Block) {
	features, members = slices.Clone(given), make([][]Block, len(given))
	at := func(f []int) int {
		return slices.IndexFunc(features, func(x []int) bool { return slices.Equal(l.ViewsOf(x), l.ViewsOf(f)) })
	}
	add := func(group []Block) {
		own := Observed(l, group)
		i := at(own)
		if i < 0 && given != nil {
			i = at(l.AllFeatures())
		} else if i < 0 {
			i, features, members = len(features), append(features, own), append(members, nil)
		}
		if members[i] = append(members[i], group...); given == nil {
			features[i] = Observed(l, members[i])
		}
	}
	patterns := Patterns(l, blocks)
	slices.SortStableFunc(patterns, func(a, b Pattern) int { return cmp.Compare(a.Subjects, b.Subjects) })
	var small []Block // of sets with too few subjects
	subjects := 0
	for _, p := range patterns {
		same := slices.DeleteFunc(slices.Clone(blocks), func(b Block) bool {
			return !slices.Equal(l.ViewsOf(b.Features), p.Views)
		})
		if p.Subjects < Fewest || subjects > 0 && subjects < Fewest {
			small, subjects = append(small, same...), subjects+p.Subjects
			continue
		}
		add(same)
	}
	if len(small) > 0 {
		add(small)
	}
	return features, members
}

// filler fills what subjects lack of the features that some of them have. With K = M W_oᵀΨ_o⁻¹ of the
// features o that a block has, a row y_o − μ_o is continued by W_m K (y_o − μ_o), and N (W_m M W_mᵀ + Ψ_m)
// is added to the scatter.
type filler struct {
	by    *Params
	group []int
	all   []int // features to be filled
	md    *Model
	e     *EStep
	root  *linalg.Eigen // of the factors' conditional covariance
}

// filledRows is how many rows the factor of blocks has once they are filled to p features by a model of a rank.
func filledRows(blocks []Block, p, rank int) (n int) {
	for i := range blocks {
		if b := &blocks[i]; b.Scatter != nil {
			n += len(b.Features)
		} else {
			n += b.Rows()
		}
		if n++; len(blocks[i].Features) < p {
			n += rank
		}
	}
	return n - 1
}

// fill is all of the blocks, with all of some features; along directions if there are any.
func fill(l Layout, by *Params, blocks []Block, all []int, along *Directions) (sum Block, err error) {
	if !ContainsAll(by.Features, Observed(l, blocks)) {
		return sum, fmt.Errorf("the model by which cells are to be filled lacks features that subjects have")
	}
	ready := slices.Clone(blocks)
	for i := range ready {
		if len(ready[i].Features) < len(all) {
			if ready[i], err = ready[i].factored(); err != nil {
				return sum, err
			}
		}
	}
	f := &filler{by: by, group: l.GroupOf(), all: all, md: NewModel(l, by.Rank), e: NewEStep(by.Rank, ready),
		root: linalg.NewEigen(by.Rank)}
	defer f.e.Release()
	f.md.Load(by)
	var filled []Block
	for i := range ready {
		b, err := f.block(&ready[i])
		if err != nil {
			return sum, err
		}
		if along != nil {
			sum.join(&b, along)
		} else if filled = append(filled, b); len(filled) == together {
			filled = mergeSame(filled)
		}
	}
	if along == nil {
		sum = mergeSame(filled)[0]
	}
	return sum, nil
}

// block fills one block, in factored form.
func (f *filler) block(b *Block) (Block, error) {
	q, all, own := f.by.Rank, f.all, len(b.Features)
	p := len(all)
	if own == p {
		return *b, nil
	}
	if err := f.e.Run(f.md, b); err != nil {
		return Block{}, err
	}
	ld := f.e.ld
	var missing []int // places in all
	place := make([]int, 0, own)
	for i, j := range all {
		if _, ok := slices.BinarySearch(b.Features, j); ok {
			place = append(place, i)
		} else {
			missing = append(missing, i)
		}
	}
	out := Block{Features: all, N: b.N, Mean: make([]float64, p), Filled: make([]float64, p), Diag: make([]float64, p)}
	continued := func(dst, src, x []float64) {
		for k, i := range place {
			dst[i] = src[k]
		}
		for _, i := range missing {
			for a, w := range f.by.W[all[i]*q:][:q] {
				dst[i] += w * x[a]
			}
		}
	}
	for _, i := range missing {
		out.Mean[i] = f.by.Mu[all[i]]
		out.Filled[i] = b.N
		out.Diag[i] = b.N * f.by.Noise[f.group[all[i]]]
	}
	continued(out.Mean, b.Mean, f.e.X)
	out.Factor = make([]float64, (b.Rows()+q)*p)
	x := make([]float64, q)
	for r := range b.Rows() {
		row := b.Factor[r*own:][:own]
		clear(x)
		for k, y := range row {
			for a, v := range f.e.v[k*ld:][:q] {
				x[a] += v * y
			}
		}
		linalg.CholSolve(f.e.chol, q, ld, x)
		continued(out.Factor[r*p:][:p], row, x)
	}
	if !f.root.Factorise(f.e.M, ld) {
		return Block{}, ErrCollapsed
	}
	for a, variance := range f.root.Values {
		dst, size := out.Factor[(b.Rows()+a)*p:][:p], math.Sqrt(b.N*max(variance, 0))
		for _, i := range missing {
			for c, w := range f.by.W[all[i]*q:][:q] {
				dst[i] += size * f.root.Vectors[c*q+a] * w
			}
		}
	}
	return out, nil
}

// factored returns the block with its scatter as FᵀF.
func (b *Block) factored() (Block, error) {
	if b.Scatter == nil {
		return *b, nil
	}
	p := len(b.Features)
	e := linalg.NewEigen(p)
	if !e.Factorise(b.Scatter, p) {
		return Block{}, fmt.Errorf("the eigenvalues of a scatter matrix did not converge")
	}
	out := Block{Features: b.Features, N: b.N, Mean: b.Mean}
	for a, x := range e.Values {
		if x > 1e-15*e.Values[p-1] {
			for i := range p {
				out.Factor = append(out.Factor, math.Sqrt(x)*e.Vectors[i*p+a])
			}
		}
	}
	return out, nil
}

// Only is the block with the features of the layout that are kept.
func (b *Block) Only(keep []bool) Block {
	p, out := len(b.Features), Block{N: b.N, Features: b.Features, Mean: b.Mean, Scatter: b.Scatter, Factor: b.Factor,
		Diag: b.Diag, Rest: b.Rest, Filled: b.Filled}
	at := make([]int, 0, p)
	for i, j := range b.Features {
		if keep[j] {
			at = append(at, i)
		}
	}
	if len(at) == p {
		return out
	}
	out.Features = make([]int, 0, len(at))
	for _, i := range at {
		out.Features = append(out.Features, b.Features[i])
	}
	columns := func(rows []float64) (kept []float64) {
		kept = slices.Grow(kept, len(rows)/p*len(at))
		for row := range slices.Chunk(rows, p) {
			for _, i := range at {
				kept = append(kept, row[i])
			}
		}
		return kept
	}
	out.Scatter = nil
	for _, i := range at {
		if b.Scatter != nil {
			out.Scatter = append(out.Scatter, columns(b.Scatter[i*p:][:p])...)
		}
	}
	out.Mean, out.Factor, out.Diag, out.Rest = columns(b.Mean), columns(b.Factor), columns(b.Diag), columns(b.Rest)
	out.Filled = columns(b.Filled)
	return out
}

// Known is blocks with the features of which not all cells were filled.
func Known(l Layout, blocks []Block) (out []Block) {
	for _, b := range blocks {
		keep := slices.Repeat([]bool{true}, l.Features())
		for a, n := range b.Filled {
			keep[b.Features[a]] = n < b.N
		}
		if b = b.Only(keep); len(b.Features) > 0 {
			out = append(out, b)
		}
	}
	return out
}

// Uncorrelated is the model by which all sites fill cells at first where their features have a common scale, and means
// that are those of samples of one population: of mean 0, variance 1 and no factors.
func Uncorrelated(l Layout) *Params {
	all := l.AllFeatures()
	return &Params{Features: all, Rank: 1, W: make([]float64, len(all)), Mu: make([]float64, len(all)),
		Noise: slices.Repeat([]float64{1}, l.Groups())}
}

// withoutFactors is the model by which a site fills cells at first: each feature has its mean and a
// variance that is drawn to its view's. A site's own factors would fit its few subjects, and lead to a
// maximum near them. It is nil where nothing varies.
func withoutFactors(l Layout, blocks []Block) *Params {
	features := Observed(l, blocks)
	n, mean, squares := Means(l, blocks)
	p := &Params{Features: features, Rank: 1, W: make([]float64, len(n)), Mu: mean, Noise: squares}
	view, sum, freedom := l.ViewOf(), make([]float64, l.Views()), make([]float64, l.Views())
	total, all := 0.0, 0.0
	for _, j := range features {
		sum[view[j]] += p.Noise[j]
		freedom[view[j]] += n[j] - 1
		total, all = total+p.Noise[j], all+n[j]-1
	}
	if !(total > 0) {
		return nil
	}
	const weight = 4 // subjects' worth of the view's variance
	for _, j := range features {
		typical := total / all
		if k := view[j]; sum[k] > 0 {
			typical = sum[k] / freedom[k]
		}
		p.Noise[j] = (p.Noise[j] + weight*typical) / (n[j] - 1 + weight)
	}
	return p
}

// within returns the block in the form of fewer numbers, if these are within the bound: its scatter matrix, or a root R
// of it with RᵀR = S, whose rows are the principal directions. R depends on S alone, up to signs, which are chosen: it
// says no more of single subjects than S does. Else it returns what the block says along directions.
func (b *Block) within(bound Bound) (Block, error) {
	p := len(b.Features)
	most := bound.most(p)
	switch {
	case b.Products != nil, b.Scatter == nil && len(b.Factor) == 0: // a single subject does not scatter
		return *b, nil
	case b.Scatter != nil && bound.Triangle(p):
		return *b, nil
	case b.Scatter == nil && p+1 <= 2*min(b.Rows(), most):
		return b.Dense(), nil
	case b.Scatter == nil && b.Rows() <= most+1:
		if root, err := b.Strongest(b.Rows()); err != nil || root.Rows() <= most {
			return root, err
		}
	}
	return b.Along(bound.Along), nil
}

// Strongest returns a block in factored form with at most so many directions of its factor, the strongest, and with
// the rest of the variances on the diagonal.
func (b *Block) Strongest(most int) (Block, error) {
	// FᵀF = Σ λ v vᵀ, and v = Fᵀ u / √λ for the eigenvectors u of FFᵀ.
	n, p, ld := b.Rows(), len(b.Features), linalg.Stride(b.Rows())
	thin, gram := make([]float64, p*ld), make([]float64, n*ld)
	for i, x := range b.Factor {
		thin[i%p*ld+i/p] = x
	}
	linalg.MulAdd(gram, b.Factor, p, 1, thin, n, p, n)
	linalg.Symmetrise(gram, n, ld)
	e := linalg.NewEigen(n)
	if !e.Factorise(gram, ld) {
		return Block{}, fmt.Errorf("the eigenvalues of the subjects' inner products did not converge")
	}
	found := 0 // directions, rounding aside
	for found < n && e.Values[n-1-found] > 1e-14*e.Values[n-1] {
		found++
	}
	directions := min(most, found)
	out := Block{Features: b.Features, N: b.N, Mean: b.Mean, Filled: b.Filled, Rest: b.Rest}
	wide := linalg.Stride(directions)
	u, fu := make([]float64, n*wide), make([]float64, p*wide)
	for i := range n {
		for a := range directions {
			u[i*wide+a] = e.Vectors[i*n+n-1-a]
		}
	}
	linalg.MulAdd(fu, b.Factor, 1, p, u, p, n, directions)
	out.Factor = make([]float64, directions*p)
	for a := range directions {
		row, top := out.Factor[a*p:][:p], 0
		for k := range row {
			if row[k] = fu[k*wide+a]; math.Abs(row[k]) > math.Abs(row[top]) {
				top = k
			}
		}
		if row[top] < 0 {
			floats.Scale(-1, row)
		}
	}
	if b.Diag != nil || directions < found {
		out.Diag = make([]float64, p)
		whole := Block{Features: b.Features, Factor: b.Factor, Diag: b.Diag}
		whole.Squares(out.Diag)
		for i, x := range out.Factor {
			out.Diag[i%p] = max(0, out.Diag[i%p]-x*x)
		}
	}
	return out, nil
}

// constant is the block of subjects of whom no feature varies.
func constant(l Layout, blocks []Block) Block {
	out := Block{Features: Observed(l, blocks), N: Subjects(blocks)}
	_, mean, _ := Means(l, blocks)
	for _, j := range out.Features {
		out.Mean = append(out.Mean, mean[j])
	}
	return out
}
