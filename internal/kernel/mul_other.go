//go:build !amd64

package kernel

// vector is false: no assembly for this platform.
const vector = false

func mulAdd4x8(n int, a *float64, ra, ca int, b *float64, ldb int, c *float64, ldc int) {
	panic("kernel: no assembly for this platform")
}
