package linalg

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"math"
	"math/rand/v2"
	"testing"
)

// exact returns n values from an arithmetic of integers, with magnitudes over six
// decimal orders. Normal numbers are no good here: they are drawn by comparing
// floats, which may come out otherwise where a compiler fuses multiply-adds.
func exact(r *rand.Rand, n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = math.Ldexp(float64(r.Int64()>>10-1<<52), -52-r.IntN(20))
	}
	return x
}

func sum(h hash.Hash, all ...[]float64) {
	for _, x := range all {
		for _, v := range x {
			h.Write(binary.LittleEndian.AppendUint64(nil, math.Float64bits(v)))
		}
	}
}

// The hashes were made on amd64 with the assembly kernel. They hold for every path
// on every architecture: the package promises the same bits on all platforms, and
// a definition in a test could be fused by the compiler as the code is.
func TestBitsAreThoseOfEveryArchitecture(t *testing.T) {
	products, scatters, inputs := sha256.New(), sha256.New(), sha256.New()
	r := rand.New(rand.NewPCG(15, 16))
	for _, m := range []int{1, 4, 13, 33} {
		for _, n := range []int{1, 7, 131} {
			for _, p := range []int{1, 6, 8, 17} {
				a, b, c := exact(r, m*n), make([]float64, n*Stride(p)), make([]float64, m*Stride(p))
				for i := range n {
					copy(b[i*Stride(p):], exact(r, p))
				}
				sum(inputs, a, b)
				MulAdd(c, a, n, 1, b, m, n, p)
				sum(products, c)
				MulAdd(c, a, 1, m, b, m, n, p)
				sum(products, c)
			}
		}
	}
	for _, n := range []int{1, 50, 96, 97, 500} {
		for _, d := range []int{1, 8, 9, 33} {
			s := NewScatter(d)
			for i := range n {
				row := exact(r, d)
				for j := range row {
					row[j] += 1e3 // a mean far from zero
				}
				sum(inputs, row)
				s.Add(row)
				if i == n/2 {
					s.Result(make([]float64, d), make([]float64, d*d)) // looking ends a chunk
				}
			}
			mean, scatter := make([]float64, d), make([]float64, d*d)
			s.Result(mean, scatter)
			sum(scatters, mean, scatter)
		}
	}
	for _, x := range []struct {
		what string
		hash hash.Hash
		want string
	}{
		{"inputs", inputs, "1d326a78e12f54876e39d85913e0183b"},
		{"products", products, "8bbf63642267cdd1d8c4fc08ac6dd783"},
		{"scatter matrices", scatters, "7632dedd9475d3d833ed5a1ef3dd8453"},
	} {
		if got := hex.EncodeToString(x.hash.Sum(nil)[:16]); got != x.want {
			t.Errorf("%s: %s, want %s", x.what, got, x.want)
		}
	}
}
