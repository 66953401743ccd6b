package account

import "testing"

// plans of different shapes, for benchmarks.
var benchmarks = []struct {
	name  string
	ms    []Mechanism
	a     Adjacency
	delta float64
}{
	{"gaussian", []Mechanism{gaussian(1, 1, 100)}, AddRemove, 1e-5},
	{"sampled-1", []Mechanism{gaussian(1.2, 0.05, 1)}, AddRemove, 1e-5},
	{"sampled-20", []Mechanism{gaussian(0.6, 0.2, 20)}, AddRemove, 1e-5},
	{"sampled-1000", []Mechanism{gaussian(1, 0.01, 1000)}, AddRemove, 1e-5},
	{"sampled-100000", []Mechanism{gaussian(0.8, 0.001, 100000)}, AddRemove, 1e-7},
	{"sampled-1000000", []Mechanism{gaussian(3, 0.001, 1000000)}, AddRemove, 1e-6},
	{"replace-2500", []Mechanism{gaussian(5, 0.02, 2500)}, ReplaceOne, 1e-4},
	{"tiny-delta", []Mechanism{gaussian(3, 0.02, 500)}, AddRemove, 1e-40},
	{"laplace-150", []Mechanism{noised(Laplace, 50, 150)}, AddRemove, 1e-6},
	{"paper", []Mechanism{gaussian(0.38506173281723655, 1, 600), noised(Laplace, 0.1, 300)}, AddRemove, 0.01},
	{"different-100", different(100), AddRemove, 1e-6},
}

func gaussian(noise, rate float64, count int) Mechanism {
	return Mechanism{Kind: Gaussian, Noise: noise, Rate: rate, Diameter: 2, Count: count}
}

func noised(kind Kind, noise float64, count int) Mechanism {
	return Mechanism{Kind: kind, Noise: noise, Rate: 1, Diameter: 2, Count: count}
}

// different returns n sampled mechanisms, no two of which are alike.
func different(n int) (ms []Mechanism) {
	for i := range n {
		ms = append(ms, gaussian(1+float64(i)/float64(n), 0.01+0.01*float64(i%7), 10+i%13))
	}
	return ms
}

func BenchmarkEpsilon(b *testing.B) {
	for _, c := range benchmarks {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Epsilon(c.ms, c.a, c.delta); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkScale(b *testing.B) {
	for _, c := range benchmarks {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Scale(c.ms, c.a, Budget{1.5, c.delta}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkMost(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Most(gaussian(5, 0.02, 1), nil, AddRemove, Budget{1, 1e-4}); err != nil {
			b.Fatal(err)
		}
	}
}
