package linalg

import (
	"fmt"
	"math"
	"math/rand/v2"
)

const (
	// Surplus vectors beyond those wanted make these converge by the gap to later
	// eigenvalues, and depth blocks of them are held at a time.
	Surplus = 8
	depth   = 3
	// What explains less of the sum of the eigenvalues than this is not worth
	// another cycle.
	leadingTol    = 1e-6
	leadingCycles = 30
)

// Leading returns the largest eigenvalues of a symmetric d × d matrix A, falling, and
// their vectors, d × rank by rows, from products alone: times adds A X to a thin
// matrix, X of some columns. It is the block Lanczos method with thick restarts: from
// a block X of rank + Surplus vectors, the space of X, A X and A² X; the vectors in it that
// A has largest (Rayleigh and Ritz) are the next X (Golub and Underwood 1977). The first X is always the same. The
// size, above zero, is about that of the eigenvalues. It takes 7 d (rank + 8) numbers of memory, and d must be at
// least 3 (rank + 8).
func Leading(times func(dst, x []float64, q int), d, rank int, size float64) (values, vectors []float64, err error) {
	b := rank + Surplus
	ld := Stride(b)
	s := &subspace{d: d, b: b, ld: ld, gram: make([]float64, b*ld), eigen: NewEigen(b), spare: make([]float64, d*ld)}
	var image [depth][]float64
	for k := range depth {
		s.basis[k], image[k] = make([]float64, d*ld), make([]float64, d*ld)
	}
	rng := rand.New(rand.NewPCG(0x5374617274, 1))
	for i := range d {
		for a := range b {
			s.basis[0][i*ld+a] = rng.Float64() - 0.5
		}
	}
	s.orthonormalise(0)
	last := math.Inf(-1)
	for range leadingCycles {
		for k := range depth {
			if k > 0 {
				copy(s.basis[k], image[k-1])
				s.orthonormalise(k)
			}
			clear(image[k])
			times(image[k], s.basis[k], b)
			for i := range image[k] {
				image[k][i] /= size
			}
		}
		if values, err = s.ritz(&image, values[:0]); err != nil {
			return nil, nil, err
		}
		sum := 0.0
		for _, v := range values[:rank] {
			sum += v
		}
		if sum-last <= leadingTol*math.Abs(sum) {
			break
		}
		last = sum
	}
	vectors = make([]float64, d*rank)
	for i := range d {
		copy(vectors[i*rank:][:rank], s.basis[0][i*ld:])
	}
	values = values[:rank]
	for a := range values {
		values[a] *= size
	}
	return values, vectors, nil
}

// subspace is the workspace of Leading: an orthonormal basis in thin blocks of b
// columns, of which some may be zero in all but the first.
type subspace struct {
	d, b, ld int
	basis    [depth][]float64
	spare    []float64 // d × ld
	gram     []float64 // b × ld
	eigen    *Eigen
}

// orthonormalise makes the columns of block k orthogonal to the blocks before and to
// each other, and of length 1. Columns that hold nothing new become zero.
func (s *subspace) orthonormalise(k int) {
	y := s.basis[k]
	before := s.squares(y)
	for range 2 { // rounding in the first pass is mended by the second
		for _, q := range s.basis[:k] {
			clear(s.gram)
			MulAdd(s.gram, q, 1, s.ld, y, s.b, s.d, s.b)
			for i := range s.gram {
				s.gram[i] = -s.gram[i]
			}
			MulAdd(y, q, s.ld, 1, s.gram, s.d, s.b, s.b)
		}
		s.within(k, before)
		for a := range before {
			before[a] = 0 // what is left has length 1
		}
	}
}

// squares returns the squared lengths of the columns.
func (s *subspace) squares(y []float64) []float64 {
	out := make([]float64, s.b)
	for i := range s.d {
		for a, x := range y[i*s.ld:][:s.b] {
			out[a] += x * x
		}
	}
	return out
}

// within makes the columns of block k orthonormal by the eigenvectors of their inner
// products (Stathopoulos and Wu 2002). A column that has lost all but rounding of its
// squared length before is dropped, and so are directions that columns share.
func (s *subspace) within(k int, before []float64) {
	const rounding = 1e-20
	y, b, ld := s.basis[k], s.b, s.ld
	clear(s.gram)
	MulAdd(s.gram, y, 1, ld, y, b, s.d, b)
	scale := make([]float64, b)
	for a := range b {
		if n := s.gram[a*ld+a]; n > rounding*before[a] && n > 0 {
			scale[a] = 1 / math.Sqrt(n)
		}
	}
	for a := range b {
		for c := range b {
			s.gram[a*ld+c] *= scale[a] * scale[c]
		}
	}
	Symmetrise(s.gram, b, ld)
	e := s.eigen
	if !e.Factorise(s.gram, ld) {
		clear(y) // not seen of a finite matrix of this size: the blocks before are left
		return
	}
	clear(s.gram)
	for c, v := range e.Values {
		if v > 1e-13*e.Values[b-1] {
			for a := range b {
				s.gram[a*ld+c] = scale[a] * e.Vectors[a*b+c] * (1 / math.Sqrt(v))
			}
		}
	}
	clear(s.spare)
	MulAdd(s.spare, y, ld, 1, s.gram, s.d, b, b)
	copy(y, s.spare)
}

// ritz appends the b largest eigenvalues, falling, that the matrix has within the
// space, given what it makes of the basis, and puts their vectors in the first block.
func (s *subspace) ritz(image *[depth][]float64, values []float64) ([]float64, error) {
	b, ld := s.b, s.ld
	var columns [][2]int // block and column of those that are not zero
	for k, y := range s.basis {
		for a, n := range s.squares(y) {
			if n > 0.5 {
				columns = append(columns, [2]int{k, a})
			}
		}
	}
	m := len(columns)
	t := make([]float64, m*m)
	for k, y := range s.basis {
		for l, z := range image {
			clear(s.gram)
			MulAdd(s.gram, y, 1, ld, z, b, s.d, b)
			for i, u := range columns {
				for j, v := range columns {
					if u[0] == k && v[0] == l {
						t[i*m+j] = s.gram[u[1]*ld+v[1]]
					}
				}
			}
		}
	}
	Symmetrise(t, m, m)
	e := NewEigen(m)
	if m < b || !e.Factorise(t, m) {
		return nil, fmt.Errorf("the leading eigenvalues did not converge")
	}
	clear(s.spare)
	for k, y := range s.basis {
		clear(s.gram)
		for i, u := range columns {
			if u[0] == k {
				for c := range b {
					s.gram[u[1]*ld+c] = e.Vectors[i*m+m-1-c]
				}
			}
		}
		MulAdd(s.spare, y, ld, 1, s.gram, s.d, b, b)
	}
	copy(s.basis[0], s.spare)
	for c := range b {
		values = append(values, e.Values[m-1-c])
	}
	return values, nil
}
