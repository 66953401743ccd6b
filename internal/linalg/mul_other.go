//go:build !amd64

package linalg

// vector and wide are false: no assembly for this platform.
const vector, wide = false, false

func mulAdd4x8(n int, a *float64, ra, ca int, b *float64, ldb int, c *float64, ldc int) {
	panic("kernel: no assembly for this platform")
}

func mulAdd8x16(n int, a *float64, ra, ca int, b *float64, ldb int, c *float64, ldc int) {
	mulAdd4x8(n, a, ra, ca, b, ldb, c, ldc)
}

func mulAdd8x8(n int, a *float64, ra, ca int, b *float64, ldb int, c *float64, ldc int) {
	mulAdd4x8(n, a, ra, ca, b, ldb, c, ldc)
}
