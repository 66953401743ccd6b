// Package linalg is dense linear algebra for the small matrices of the models: Cholesky
// factors and what is solved with them, symmetric eigenvalues, and the few products in
// which the models spend their time: a scatter matrix from rows in one pass, and products
// with a thin right-hand side. A matrix of n columns is stored by rows at a stride ld ≥ n.
// The routines work in place and allocate nothing; failure is an ok that is false.
// [Leading] is for matrices that are not small, and allocates its workspace.
//
// Every element of every result is one chain of fused multiply-adds in row
// order, whatever the blocking, the processor or the number of cores, so all
// code paths give the same bits on all platforms. On amd64 with AVX2 and FMA a
// small assembly kernel runs, with AVX-512 one of twice the width unless the
// environment variable PARLEY_KERNEL is "avx2"; everywhere else, and when that
// variable is "go", a portable twin built on [math.FMA].
//
// Thin matrices (d rows, a few columns) are stored by rows with a stride of
// [Stride](columns): the columns between the last and the stride are padding
// and hold zeros.
//
// Lengths are checked where a mistake would read outside a slice; a wrong one
// is a programmer's error and panics.
package linalg

// lanes is the width in columns of the micro-kernel's tile, and tileRows its height; wideRows is
// that of the tiles for AVX-512, which are one or two times as wide.
const (
	lanes    = 8
	tileRows = 4
	wideRows = 8
)

// Stride returns the row stride of a thin matrix with q columns: q rounded up
// to a multiple of 8.
func Stride(q int) int { return (q + lanes - 1) &^ (lanes - 1) }
