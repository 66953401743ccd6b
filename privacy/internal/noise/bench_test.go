package noise

import (
	"fmt"
	"math/big"
	"testing"
)

var sink int64

// ns/op is for one draw.
func BenchmarkGaussian(b *testing.B) {
	for _, log := range []uint{1, 10, 20, 30, 40} {
		g, err := NewGaussian(new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), 2*log)))
		if err != nil {
			b.Fatal(err)
		}
		for name, source := range map[string]Source{"system": Keyed([32]byte{7}), "seeded": Keyed([32]byte{1})} {
			b.Run(fmt.Sprintf("sigma=2^%d/%s", log, name), func(b *testing.B) { run(b, g.Fill, source) })
		}
	}
}

func BenchmarkLaplace(b *testing.B) {
	for _, scale := range []int64{1 << 10, 1e9 + 7} {
		l, err := NewLaplace(big.NewRat(scale, 1))
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("scale=%d", scale), func(b *testing.B) { run(b, l.Fill, Keyed([32]byte{7})) })
	}
}

func run(b *testing.B, fill func([]int64, Source) error, source Source) {
	b.ReportAllocs()
	v := make([]int64, 4096)
	for left := b.N; left > 0; left -= len(v) {
		if err := fill(v[:min(left, len(v))], source); err != nil {
			b.Fatal(err)
		}
		sink += v[0]
	}
}
