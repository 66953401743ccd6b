package linalg

import (
	"os"

	"golang.org/x/sys/cpu"
)

// vector says whether the assembly kernel runs, and wide whether it does with registers of 512
// bits. Both are settled once, at start.
var (
	vector = cpu.X86.HasAVX2 && cpu.X86.HasFMA && os.Getenv("PARLEY_KERNEL") != "go"
	wide   = vector && cpu.X86.HasAVX512F && os.Getenv("PARLEY_KERNEL") != "avx2"
)

// mulAdd4x8 adds to the 4 × 8 tile C, rows ldc apart, the n products
// a(i, k)·b(k, j), with a(i, k) at a[i·ra + k·ca] and the rows of B ldb apart.
// All strides count elements.
//
//go:noescape
func mulAdd4x8(n int, a *float64, ra, ca int, b *float64, ldb int, c *float64, ldc int)

// mulAdd8x16 does the same to a tile of 8 × 16, with registers of 512 bits.
//
//go:noescape
func mulAdd8x16(n int, a *float64, ra, ca int, b *float64, ldb int, c *float64, ldc int)

// mulAdd8x8 does the same to a tile of 8 × 8, with registers of 512 bits.
//
//go:noescape
func mulAdd8x8(n int, a *float64, ra, ca int, b *float64, ldb int, c *float64, ldc int)
