package between

import (
	"fmt"
	"math"

	"parley/internal/linalg"
	"parley/methods/factors/ppca"
)

// start returns parameters to begin the model from: those of [ppca.Start] on the blocks
// without offsets, or where all of them are factors of far fewer rows than there are
// features, the same without a d × d matrix. Then the moments are not pairwise: with n_j the
// subjects who have feature j, the rows of all factors, column j divided by √n_j, stand for
// the covariance, whose first eigenvectors follow from the rows' inner products.
func (m *mixed) start(rank int) (*ppca.Params, error) {
	blocks := make([]ppca.Block, len(m.pools))
	rows, features := 0, 0
	for i := range m.pools {
		p := &m.pools[i]
		if blocks[i] = p.block; m.f == nil && m.sites[0].mean == nil {
			blocks[i] = p.sum // there are no offsets
		}
		rows += blocks[i].Rows() + 1
		if blocks[i].Scatter != nil {
			rows = math.MaxInt32
		}
	}
	if features = len(ppca.Observed(m.layout, blocks)); 4*rows > features {
		return ppca.Start(m.layout, blocks, rank)
	}
	if rank > rows {
		return nil, fmt.Errorf("%d factors for blocks of %d directions", rank, rows)
	}
	return thinStart(m.layout, blocks, rank, rows)
}

// thinStart is [mixed.start] for factors with few rows.
func thinStart(l ppca.Layout, blocks []ppca.Block, rank, rows int) (*ppca.Params, error) {
	d, features := l.Features(), ppca.Observed(l, blocks)
	n, mean, variance := make([]float64, d), make([]float64, d), make([]float64, d)
	for i := range blocks {
		b := &blocks[i]
		for a, j := range b.Features {
			n[j] += b.N
			mean[j] += (b.Mean[a] - mean[j]) * b.N / n[j]
		}
	}
	x := make([]float64, 0, rows*d)
	for i := range blocks {
		b := &blocks[i]
		p := len(b.Features)
		row := make([]float64, d)
		for a, j := range b.Features {
			row[j] = math.Sqrt(b.N/n[j]) * (b.Mean[a] - mean[j])
			if b.Diag != nil {
				variance[j] += b.Diag[a] / n[j]
			}
		}
		x = append(x, row...)
		for r := range b.Rows() {
			clear(row)
			for a, j := range b.Features {
				row[j] = b.Factor[r*p+a] / math.Sqrt(n[j])
			}
			x = append(x, row...)
		}
	}
	gram, total := make([]float64, rows*rows), 0.0
	for i := range rows {
		for j, y := range x[i*d:][:d] {
			variance[j] += y * y
		}
		for k := range i + 1 {
			s := 0.0
			for j, y := range x[i*d:][:d] {
				s += y * x[k*d+j]
			}
			gram[i*rows+k], gram[k*rows+i] = s, s
		}
	}
	for _, y := range variance {
		total += y
	}
	if !(total > 0) {
		return nil, ppca.ErrNoVariance
	}
	e := linalg.NewEigen(rows)
	if !e.Factorise(gram, rows) {
		return nil, fmt.Errorf("the eigenvalues of the rows' inner products did not converge")
	}
	rest := total
	for a := range rank {
		rest -= e.Values[rows-1-a]
	}
	s := max(rest/float64(len(features)-rank), 1e-3*total/float64(len(features)))
	md := ppca.NewModel(l, rank)
	for a := range rank {
		λ := e.Values[rows-1-a]
		if !(λ > 0) {
			continue
		}
		size, top := math.Sqrt(max(λ-s, 0.1*s)/λ), 0
		col := make([]float64, d)
		for i := range rows {
			u := e.Vectors[i*rows+rows-1-a]
			for j, y := range x[i*d:][:d] {
				col[j] += u * y
			}
		}
		for j, y := range col {
			if math.Abs(y) > math.Abs(col[top]) {
				top = j
			}
		}
		if col[top] < 0 {
			size = -size
		}
		for j, y := range col {
			md.W[j*md.LD+a] = size * y
		}
	}
	sum, count := make([]float64, l.Groups()), make([]float64, l.Groups())
	for _, j := range features {
		md.Mu[j] = mean[j]
		r := variance[j]
		for _, w := range md.W[j*md.LD:][:rank] {
			r -= w * w
		}
		sum[md.Group[j]] += r
		count[md.Group[j]]++
	}
	for _, j := range features {
		md.Psi[j] = max(sum[md.Group[j]]/count[md.Group[j]], 0.1*s)
	}
	p := md.Params(l, features)
	return &p, nil
}
