package ppca

import (
	"fmt"
	"math"
	"slices"

	"parley/internal/linalg"
)

const (
	// exactStart is up to how many features all eigenvectors of their covariance
	// cost no more than a fit does.
	exactStart = 200
	// denseStart is up to how many features a covariance with gaps is formed: it and
	// the numbers of subjects behind its entries take 64 MB there.
	denseStart = 2000
)

// Start returns deterministic parameters to begin a fit from: the mean of each
// feature over the subjects who have it, and the first eigenvectors of a
// covariance C about those means. Up to [denseStart] features, C is the
// pairwise-available covariance: each entry over the subjects who have both
// features, divided by their number. Beyond, it is never formed, and where
// subjects lack features each entry is divided by the geometric mean √(nᵢ nⱼ) of the
// subjects who have either: then it stays positive semi-definite, and what few
// subjects show of two features together counts for little. Both are the same
// where nothing is missing.
//
// With λ the largest eigenvalues, V their vectors and s the mean of the
// others, W = V √max(λ − s, s/10), and each noise variance is the mean
// diagonal of C − W Wᵀ over its group, at least s/10.
func Start(l Layout, blocks []Block, rank int) (*Params, error) {
	s, err := newSpectrum(l, blocks, rank, false)
	if err != nil {
		return nil, err
	}
	return s.start(l), nil
}

// spectrum is what a start is made of, whatever the noise of the layout.
type spectrum struct {
	features        []int
	mean, variance  []float64 // d
	total           float64   // of the variances
	rank            int
	values, vectors []float64 // the largest eigenvalues, falling, and d × rank by rows
}

// newSpectrum is that of [Start], or with bounded set, of the covariance that it takes beyond
// [denseStart] features whatever their number.
func newSpectrum(l Layout, blocks []Block, rank int, bounded bool) (*spectrum, error) {
	if err := CheckBlocks(l, blocks); err != nil {
		return nil, err
	}
	features := Observed(l, blocks)
	d := len(features)
	if rank < 1 || rank > d {
		return nil, fmt.Errorf("%d factors for %d observed features", rank, d)
	}
	c, err := newCovariance(l, blocks, features, bounded)
	if err != nil {
		return nil, err
	}
	total := 0.0
	for _, v := range c.variance {
		total += v
	}
	if !(total > 0) {
		return nil, ErrNoVariance
	}
	values, vectors, err := c.leading(rank, total)
	if err != nil {
		return nil, err
	}
	return &spectrum{features, c.mean, c.variance, total, rank, values, vectors}, nil
}

// start makes a model of it, with the noise of the layout.
func (c *spectrum) start(l Layout) *Params {
	rank, d, values, vectors, features := c.rank, len(c.features), c.values, c.vectors, c.features
	rest := c.total
	for a := range rank {
		rest -= values[a]
	}
	// Pairwise moments need not be positive definite, nor leave anything over.
	s := 1e-3 * c.total / float64(d)
	if r := rest / float64(max(1, d-rank)); rank < d && r > 1e-8*s {
		s = r
	}

	md := NewModel(l, rank)
	for a := range rank {
		size := math.Sqrt(max(values[a]-s, 0.1*s))
		top := 0
		for i := range d {
			if math.Abs(vectors[i*rank+a]) > math.Abs(vectors[top*rank+a]) {
				top = i
			}
		}
		if vectors[top*rank+a] < 0 {
			size = -size
		}
		for i, j := range features {
			md.W[j*md.LD+a] = size * vectors[i*rank+a]
		}
	}
	sum, count := make([]float64, l.Groups()), make([]float64, l.Groups())
	for i, j := range features {
		w := md.W[j*md.LD:][:rank]
		md.Mu[j] = c.mean[i]
		r := c.variance[i]
		for _, x := range w {
			r -= x * x
		}
		sum[md.Group[j]] += r
		count[md.Group[j]]++
	}
	for _, j := range features {
		g := md.Group[j]
		md.Psi[j] = max(sum[g]/count[g], 0.1*s)
	}
	p := md.Params(l, features)
	return &p
}

// covariance is that of the observed features, as [Start] describes it.
type covariance struct {
	blocks   []Block
	features []int
	at       []int     // of each feature of the layout: its place among the observed
	count    []float64 // subjects who have each observed feature
	mean     []float64
	variance []float64
	full     []float64 // d × d; nil where products with the blocks stand in for it

	delta, root, x, sx, fx, dx []float64 // scratch of times
}

func newCovariance(l Layout, blocks []Block, features []int, bounded bool) (*covariance, error) {
	d := len(features)
	c := &covariance{
		blocks: blocks, features: features, at: make([]int, l.Features()),
		count: make([]float64, d), mean: make([]float64, d), variance: make([]float64, d),
	}
	for i, j := range features {
		c.at[j] = i
	}
	complete := true
	for i := range blocks {
		b := &blocks[i]
		complete = complete && len(b.Features) == d
		for a, j := range b.Features {
			c.count[c.at[j]] += b.N
			c.mean[c.at[j]] += (b.Mean[a] - c.mean[c.at[j]]) * b.N / c.count[c.at[j]]
		}
	}
	if d <= exactStart && len(blocks) > 1 || !complete && !bounded && d <= denseStart {
		c.full = c.pairwise(bounded)
		for i := range d {
			c.variance[i] = c.full[i*d+i]
		}
		return c, nil
	}
	squares := make([]float64, d)
	for i := range blocks {
		b := &blocks[i]
		b.Squares(squares)
		for a, j := range b.Features {
			delta := b.Mean[a] - c.mean[c.at[j]]
			c.variance[c.at[j]] += (squares[a] + b.N*delta*delta) / c.count[c.at[j]]
		}
	}
	return c, Finite("variances", c.variance)
}

// pairwise returns the covariance: each entry over the subjects who have both features, or
// with bounded set, over the geometric mean of those who have either.
func (c *covariance) pairwise(bounded bool) []float64 {
	d, at := len(c.features), c.at
	cov, delta, place := make([]float64, d*d), make([]float64, d), make([]int, d)
	var both []float64
	if !bounded {
		both = make([]float64, d*d)
	}
	for k := range c.blocks {
		b := &c.blocks[k]
		p := len(b.Features)
		for a, j := range b.Features {
			place[a] = at[j]
			delta[a] = b.Mean[a] - c.mean[at[j]]
		}
		for a := range p {
			to, own := cov[place[a]*d:][:d], b.N*delta[a]
			for e, i := range place[:a+1] {
				to[i] += own * delta[e]
			}
			if !bounded {
				n := both[place[a]*d:][:d]
				for _, i := range place[:a+1] {
					n[i] += b.N
				}
			}
			if b.Scatter != nil {
				for e, x := range b.Scatter[a*p:][:a+1] {
					to[place[e]] += x
				}
			} else if b.Diag != nil {
				to[place[a]] += b.Diag[a]
			}
		}
		f := b.Factor
		for ; len(f) >= 4*p; f = f[4*p:] { // four rows at a time, one after the other as by themselves
			f0, f1, f2, f3 := f[:p], f[p:][:p], f[2*p:][:p], f[3*p:][:p]
			for a := range p {
				to, x0, x1, x2, x3 := cov[place[a]*d:][:d], f0[a], f1[a], f2[a], f3[a]
				for e, i := range place[:a+1] {
					to[i] = to[i] + x0*f0[e] + x1*f1[e] + x2*f2[e] + x3*f3[e]
				}
			}
		}
		for row := range slices.Chunk(f, p) {
			for a, x := range row {
				to := cov[place[a]*d:][:d]
				for e, y := range row[:a+1] {
					to[place[e]] += x * y
				}
			}
		}
	}
	for i := range d {
		for j := range i + 1 {
			var m float64
			if bounded {
				m = math.Sqrt(c.count[i] * c.count[j])
			} else {
				m = both[i*d+j]
			}
			if m > 0 {
				cov[i*d+j] /= m
				cov[j*d+i] = cov[i*d+j]
			}
		}
	}
	return cov
}

// leading returns the largest eigenvalues, falling, and their vectors: d × rank by
// rows. The total is that of the variances. It finds all of them where that is quick, or where many are wanted.
func (c *covariance) leading(rank int, total float64) (values, vectors []float64, err error) {
	d := len(c.features)
	if d > exactStart && d >= 4*(rank+linalg.Surplus) {
		return linalg.Leading(c.times, d, rank, total)
	}
	full := c.full
	if full == nil {
		full = c.pairwise(true)
	}
	e := linalg.NewEigen(d)
	if !e.Factorise(full, d) {
		return nil, nil, fmt.Errorf("the eigenvalues of the pairwise covariance did not converge")
	}
	values, vectors = make([]float64, rank), make([]float64, d*rank)
	for a := range rank {
		values[a] = e.Values[d-1-a]
		for i := range d {
			vectors[i*rank+a] = e.Vectors[i*d+d-1-a]
		}
	}
	return values, vectors, nil
}

// times adds C X to a thin matrix, X of q columns. With S the scatter of a block and δ
// its mean less that of all, C is the sum of D^-½ (S + N δ δᵀ) D^-½ over the blocks, D
// the counts: O(pq) for each row of a factor, O(p²q) for a dense block.
func (c *covariance) times(dst, x []float64, q int) {
	d, ld := len(c.features), linalg.Stride(q)
	if c.full != nil {
		linalg.MulAdd(dst, c.full, d, 1, x, d, d, q)
		return
	}
	if c.x == nil {
		rows := 0
		for i := range c.blocks {
			rows = max(rows, c.blocks[i].Rows())
		}
		c.delta, c.root = make([]float64, d), make([]float64, d)
		c.x, c.sx, c.fx, c.dx = make([]float64, d*ld), make([]float64, d*ld), make([]float64, rows*ld), make([]float64, ld)
	}
	for i := range c.blocks {
		b := &c.blocks[i]
		p, r := len(b.Features), b.Rows()
		for a, j := range b.Features {
			c.delta[a], c.root[a] = b.Mean[a]-c.mean[c.at[j]], 1/math.Sqrt(c.count[c.at[j]])
			for k, y := range x[c.at[j]*ld:][:ld] {
				c.x[a*ld+k] = c.root[a] * y
			}
		}
		clear(c.sx[:p*ld])
		if b.Scatter != nil {
			linalg.MulAdd(c.sx, b.Scatter, p, 1, c.x, p, p, q)
		} else if r > 0 {
			clear(c.fx[:r*ld])
			linalg.MulAdd(c.fx, b.Factor, p, 1, c.x, r, p, q)
			linalg.MulAdd(c.sx, b.Factor, 1, p, c.fx, p, r, q)
		}
		clear(c.dx)
		linalg.MulAdd(c.dx, c.delta, 0, 1, c.x, 1, p, q)
		for a, j := range b.Features {
			row, own := dst[c.at[j]*ld:][:q], b.N*c.delta[a]
			for k := range row {
				y := c.sx[a*ld+k] + own*c.dx[k]
				if b.Diag != nil {
					y += b.Diag[a] * c.x[a*ld+k]
				}
				row[k] += c.root[a] * y
			}
		}
	}
}
