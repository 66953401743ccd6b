package kernel

import (
	"os"

	"golang.org/x/sys/cpu"
)

// vector says whether the assembly kernel runs. It is settled once, at start.
var vector = cpu.X86.HasAVX2 && cpu.X86.HasFMA && os.Getenv("PARLEY_KERNEL") != "go"

// mulAdd4x8 adds to the 4 × 8 tile C, rows ldc apart, the n products
// a(i, k)·b(k, j), with a(i, k) at a[i·ra + k·ca] and the rows of B ldb apart.
// All strides count elements.
//
//go:noescape
func mulAdd4x8(n int, a *float64, ra, ca int, b *float64, ldb int, c *float64, ldc int)
