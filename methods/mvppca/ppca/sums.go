package ppca

import (
	"parley/internal/kernel"
	"parley/methods/mvppca/linalg"
)

// sums adds up the E step over the blocks of one site, or of all. With
// x̃ = (x, 1), the M step of feature j needs Σ (t_j − μ_j) x̃ᵀ and Σ ⟨x̃ x̃ᵀ⟩ over the
// subjects who have it; features observed by the same blocks are one class and
// share the latter.
type sums struct {
	blocks   []Block
	features []int // observed by some block, ascending
	subjects float64
	q, ld    int
	stride   int // of the (q+1) × (q+1) matrices

	class        []int   // of each feature; −1 if no block observes it
	blockClasses [][]int // the classes each block observes

	r      [][]float64 // per class: Σ ⟨x̃ x̃ᵀ⟩
	cov    [][]float64 // per class, q × ld: Σ N M
	b      []float64   // d × ld: Σ (t − μ)⟨x⟩ᵀ
	dev    []float64   // d: Σ (t − μ)
	square []float64   // d: Σ (t − μ)²
	count  []float64   // d: subjects who have the feature
	x      []float64   // q: Σ ⟨x⟩ over all subjects
	xx     []float64   // q × ld: Σ ⟨x xᵀ⟩
}

func newSums(l Layout, blocks []Block, rank int) *sums {
	d := l.Features()
	s := &sums{
		blocks: blocks, features: Observed(l, blocks),
		q: rank, ld: kernel.Stride(rank), stride: kernel.Stride(rank + 1),
		dev: make([]float64, d), square: make([]float64, d), count: make([]float64, d), x: make([]float64, rank),
	}
	s.b, s.xx = make([]float64, d*s.ld), make([]float64, rank*s.ld)
	s.class, s.blockClasses = Classes(d, blocks)
	for _, c := range s.class {
		for c >= len(s.r) {
			s.r = append(s.r, make([]float64, (rank+1)*s.stride))
			s.cov = append(s.cov, make([]float64, rank*s.ld))
		}
	}
	for i := range blocks {
		s.subjects += blocks[i].N
		for _, j := range blocks[i].Features {
			s.count[j] += blocks[i].N
		}
	}
	return s
}

// reset prepares for another E step.
func (s *sums) reset() {
	for c := range s.r {
		clear(s.r[c])
		clear(s.cov[c])
	}
	for _, x := range [][]float64{s.b, s.dev, s.square, s.x, s.xx} {
		clear(x)
	}
}

// collect adds block i, on which e was just run.
func (s *sums) collect(i int, e *estep) {
	b, q, ld := &s.blocks[i], s.q, s.ld
	for a, j := range b.Features {
		s.dev[j] += b.N * e.delta[a]
		s.square[j] += e.square[a]
		row := s.b[j*ld:][:q]
		for c, x := range e.stx[a*ld:][:q] {
			row[c] += x
		}
	}
	for _, c := range s.blockClasses[i] {
		r := s.r[c]
		for a := range q {
			row := r[a*s.stride:]
			for k, x := range e.sxx[a*ld:][:q] {
				row[k] += x
			}
			row[q] += b.N * e.x[a]
			r[q*s.stride+a] += b.N * e.x[a]
		}
		r[q*s.stride+q] += b.N
		for a, x := range e.m {
			s.cov[c][a] += b.N * x
		}
	}
	for a, x := range e.x {
		s.x[a] += b.N * x
	}
	for a, x := range e.sxx {
		s.xx[a] += x
	}
}

// factors turns the sums of the factors into their mean and covariance, in place.
func (s *sums) factors() (mean, cov []float64) {
	for a := range s.q {
		s.x[a] /= s.subjects
	}
	for a := range s.q {
		for c := range s.q {
			s.xx[a*s.ld+c] = s.xx[a*s.ld+c]/s.subjects - s.x[a]*s.x[c]
		}
	}
	linalg.Symmetrise(s.xx, s.q, s.ld)
	return s.x, s.xx
}

// Classes numbers the sets of blocks that observe a feature, in order of first
// feature, and lists the numbers that each block needs.
func Classes(d int, blocks []Block) (class []int, blockClasses [][]int) {
	seen := make([][]byte, d) // the blocks, four bytes each
	for i := range blocks {
		for _, j := range blocks[i].Features {
			seen[j] = append(seen[j], byte(i), byte(i>>8), byte(i>>16), byte(i>>24))
		}
	}
	number := make(map[string]int)
	class = make([]int, d)
	for j, s := range seen {
		if class[j] = -1; s == nil {
			continue
		}
		c, ok := number[string(s)]
		if !ok {
			c = len(number)
			number[string(s)] = c
		}
		class[j] = c
	}
	blockClasses = make([][]int, len(blocks))
	last := make([]int, len(number)) // 1 + the block that listed the class last
	for i := range blocks {
		for _, j := range blocks[i].Features {
			if c := class[j]; last[c] != i+1 {
				last[c] = i + 1
				blockClasses[i] = append(blockClasses[i], c)
			}
		}
	}
	return class, blockClasses
}
