package fixed

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"parley/privacy/internal/noise"
)

// One op is one record; 100 000 of them are a large site.
func BenchmarkAdd(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, form := range []Form{Vectors, Moments} {
		for _, d := range []int{33, 130} {
			b.Run(fmt.Sprintf("%s/d=%d", form, d), func(b *testing.B) {
				g, err := NewGrid(form, L2, 10, 3)
				if err != nil {
					b.Fatal(err)
				}
				s, err := NewSum(g, []int{d}, 1<<33)
				if err != nil {
					b.Fatal(err)
				}
				v := make([]float64, d)
				for i := range v {
					v[i] = r.NormFloat64()
				}
				b.ReportAllocs()
				for b.Loop() {
					if err := s.Add(0, v); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkRelease(b *testing.B) {
	g, err := NewGrid(Moments, L2, 10, 3)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		s, err := NewSum(g, []int{130}, 1)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := s.Release(noise.Keyed([32]byte{7})); err != nil {
			b.Fatal(err)
		}
	}
}
