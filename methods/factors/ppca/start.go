package ppca

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"

	"parley/internal/linalg"
)

// Start returns deterministic parameters to begin a fit from: the mean of each
// feature over the subjects who have it, and the first eigenvectors of a
// covariance C about those means. Each entry is divided by the geometric mean √(nᵢ nⱼ) of the
// subjects who have either feature: so C is positive semi-definite, and what few
// subjects show of two features together counts for little. It is never formed, but where features are few.
//
// With λ the largest eigenvalues, V their vectors and s the mean of the
// others, W = V √max(λ − s, s/10), and each noise variance is the mean
// diagonal of C − W Wᵀ over its group, at least s/10.
func Start(l Layout, blocks []Block, rank int) (*Params, error) {
	if err := CheckBlocks(l, blocks); err != nil {
		return nil, err
	}
	features := Observed(l, blocks)
	d := len(features)
	if rank < 1 || rank > d {
		return nil, fmt.Errorf("%d factors for %d observed features", rank, d)
	}
	c, err := newCovariance(l, blocks, features)
	if err != nil {
		return nil, err
	}
	total := floats.Sum(c.variance)
	if !(total > 0) {
		return nil, ErrNoVariance
	}
	values, vectors, err := c.leading(rank, total)
	if err != nil {
		return nil, err
	}
	rest := total - floats.Sum(values)
	s := 1e-3 * total // where nothing is left over / float64(d)
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
	return &p, nil
}

// covariance is that of the observed features, as [Start] describes it.
type covariance struct {
	blocks   []Block
	features []int
	at       []int     // of each feature of the layout: its place among the observed
	count    []float64 // subjects who have each observed feature
	mean     []float64
	variance []float64

	delta, root, x, sx, dx []float64 // scratch of times
}

func newCovariance(l Layout, blocks []Block, features []int) (*covariance, error) {
	d := len(features)
	c := &covariance{
		blocks: blocks, features: features, at: make([]int, l.Features()), variance: make([]float64, d),
	}
	n, mean, _ := Means(l, blocks)
	for i, j := range features {
		c.at[j], c.count, c.mean = i, append(c.count, n[j]), append(c.mean, mean[j])
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

// leading returns the largest eigenvalues, falling, and their vectors: d × rank by
// rows. The total is that of the variances. It finds all of them where that is quick, or where many are wanted.
func (c *covariance) leading(rank int, total float64) (values, vectors []float64, err error) {
	d := len(c.features)
	if d >= 4*(rank+linalg.Surplus) {
		return linalg.Leading(c.times, d, rank, total)
	}
	ld := linalg.Stride(d)
	full, unit := make([]float64, d*ld), make([]float64, d*ld)
	for i := range d {
		unit[i*ld+i] = 1
	}
	c.times(full, unit, d)
	e := linalg.NewEigen(d)
	if !e.Factorise(full, ld) {
		return nil, nil, fmt.Errorf("the eigenvalues of the covariance did not converge")
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
	if c.x == nil {
		c.delta, c.root = make([]float64, d), make([]float64, d)
		c.x, c.sx, c.dx = make([]float64, d*ld), make([]float64, d*ld), make([]float64, ld)
	}
	for i := range c.blocks {
		b := &c.blocks[i]
		p := len(b.Features)
		for a, j := range b.Features {
			c.delta[a], c.root[a] = b.Mean[a]-c.mean[c.at[j]], 1/math.Sqrt(c.count[c.at[j]])
			for k, y := range x[c.at[j]*ld:][:ld] {
				c.x[a*ld+k] = c.root[a] * y
			}
		}
		clear(c.sx[:p*ld])
		b.addTimes(c.sx, c.x, q)
		clear(c.dx)
		linalg.MulAdd(c.dx, c.delta, 0, 1, c.x, 1, p, q)
		for a, j := range b.Features {
			row, own := dst[c.at[j]*ld:][:q], b.N*c.delta[a]
			for k := range row {
				row[k] += c.root[a] * (c.sx[a*ld+k] + own*c.dx[k])
			}
		}
	}
}
