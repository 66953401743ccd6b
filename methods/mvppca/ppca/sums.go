package ppca

import (
	"parley/internal/kernel"
	"parley/methods/mvppca/linalg"
)

// Sums adds up the E step over the blocks of one site, or of all. With
// x̃ = (x, 1), the M step of feature j needs Σ (t_j − μ_j) x̃ᵀ and Σ ⟨x̃ x̃ᵀ⟩ over the
// subjects who have it; features observed by the same blocks are one class and
// share the latter.
type Sums struct {
	Blocks   []Block
	Features []int // observed by some block, ascending
	Subjects float64
	Q, LD    int
	Stride   int // of the (q+1) × (q+1) matrices

	Class []int       // of each feature; −1 if no block observes it
	Count []float64   // d: subjects who have the feature
	R     [][]float64 // per class, (q+1) × Stride: Σ ⟨x̃ x̃ᵀ⟩
	Cov   [][]float64 // per class, q × LD: Σ N M

	B      []float64 // d × LD: Σ (t − μ)⟨x⟩ᵀ
	Dev    []float64 // d: Σ (t − μ)
	Square []float64 // d: Σ (t − μ)²

	blockClasses [][]int   // the classes each block observes
	x            []float64 // q: Σ ⟨x⟩ over all subjects
	xx           []float64 // q × LD: Σ ⟨x xᵀ⟩
}

// NewSums prepares the sums over some blocks.
func NewSums(l Layout, blocks []Block, rank int) *Sums {
	d := l.Features()
	s := &Sums{
		Blocks: blocks, Features: Observed(l, blocks),
		Q: rank, LD: kernel.Stride(rank), Stride: kernel.Stride(rank + 1),
		Dev: make([]float64, d), Square: make([]float64, d), Count: make([]float64, d), x: make([]float64, rank),
	}
	s.B, s.xx = make([]float64, d*s.LD), make([]float64, rank*s.LD)
	s.Class, s.blockClasses = Classes(d, blocks)
	for _, c := range s.Class {
		for c >= len(s.R) {
			s.R = append(s.R, make([]float64, (rank+1)*s.Stride))
			s.Cov = append(s.Cov, make([]float64, rank*s.LD))
		}
	}
	for i := range blocks {
		s.Subjects += blocks[i].N
		for _, j := range blocks[i].Features {
			s.Count[j] += blocks[i].N
		}
	}
	return s
}

// Reset prepares for another E step.
func (s *Sums) Reset() {
	for c := range s.R {
		clear(s.R[c])
		clear(s.Cov[c])
	}
	for _, x := range [][]float64{s.B, s.Dev, s.Square, s.x, s.xx} {
		clear(x)
	}
}

// Collect adds block i, on which e was just run.
func (s *Sums) Collect(i int, e *EStep) {
	b, q, ld := &s.Blocks[i], s.Q, s.LD
	for a, j := range b.Features {
		s.Dev[j] += b.N * e.Delta[a]
		s.Square[j] += e.Square[a]
		row := s.B[j*ld:][:q]
		for c, x := range e.STX[a*ld:][:q] {
			row[c] += x
		}
	}
	for _, c := range s.blockClasses[i] {
		r := s.R[c]
		for a := range q {
			row := r[a*s.Stride:]
			for k, x := range e.SXX[a*ld:][:q] {
				row[k] += x
			}
			row[q] += b.N * e.X[a]
			r[q*s.Stride+a] += b.N * e.X[a]
		}
		r[q*s.Stride+q] += b.N
		for a, x := range e.M {
			s.Cov[c][a] += b.N * x
		}
	}
	for a, x := range e.X {
		s.x[a] += b.N * x
	}
	for a, x := range e.SXX {
		s.xx[a] += x
	}
}

// Factors turns the sums of the factors into their mean and covariance, in place.
func (s *Sums) Factors() (mean, cov []float64) {
	for a := range s.Q {
		s.x[a] /= s.Subjects
	}
	for a := range s.Q {
		for c := range s.Q {
			s.xx[a*s.LD+c] = s.xx[a*s.LD+c]/s.Subjects - s.x[a]*s.x[c]
		}
	}
	linalg.Symmetrise(s.xx, s.Q, s.LD)
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
