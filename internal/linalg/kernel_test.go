package linalg

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

func random(r *rand.Rand, n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = r.NormFloat64()
	}
	return x
}

// thin returns a random n × p matrix at the padded stride.
func thin(r *rand.Rand, n, p int) []float64 {
	x := make([]float64, n*Stride(p))
	for i := range n {
		copy(x[i*Stride(p):], random(r, p))
	}
	return x
}

func sameBits(a, b []float64) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if math.Float64bits(a[i]) != math.Float64bits(b[i]) {
			return false
		}
	}
	return true
}

// checkMul compares MulAdd with its definition, bit by bit: one chain of fused
// multiply-adds per element, in order of k.
func checkMul(t *testing.T, seed uint64, m, n, p int, transposed bool) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	a, b, c := random(r, m*n), thin(r, n, p), thin(r, m, p)
	ra, ca := n, 1
	if transposed {
		ra, ca = 1, m
	}
	want := append([]float64(nil), c...)
	for i := range m {
		for j := range p {
			s := want[i*Stride(p)+j]
			for k := range n {
				s = math.FMA(a[i*ra+k*ca], b[k*Stride(p)+j], s)
			}
			want[i*Stride(p)+j] = s
		}
	}
	portable := append([]float64(nil), c...)
	mulAddGo(n, a, ra, ca, b, Stride(p), portable, Stride(p), m, p)
	if !sameBits(portable, want) {
		t.Fatalf("portable path differs at m=%d n=%d p=%d transposed=%t", m, n, p, transposed)
	}
	MulAdd(c, a, ra, ca, b, m, n, p)
	if !sameBits(c, want) {
		t.Fatalf("vector=%t path differs at m=%d n=%d p=%d transposed=%t", vector, m, n, p, transposed)
	}
}

func TestMulAddGivesTheSameBitsOnEveryPath(t *testing.T) {
	for _, m := range []int{1, 2, 3, 4, 5, 8, 13, 33} {
		for _, n := range []int{1, 2, 7, 33} {
			for _, p := range []int{1, 5, 7, 8, 9, 16, 17} {
				checkMul(t, uint64(m*1000+n*30+p), m, n, p, false)
				checkMul(t, uint64(m*1000+n*30+p), m, n, p, true)
			}
		}
	}
}

func FuzzMulAdd(f *testing.F) {
	f.Add(uint64(1), uint8(4), uint8(3), uint8(8), false)
	f.Add(uint64(2), uint8(131), uint8(131), uint8(6), true)
	f.Fuzz(func(t *testing.T, seed uint64, m, n, p uint8, transposed bool) {
		checkMul(t, seed, int(m%140)+1, int(n%140)+1, int(p%30)+1, transposed)
	})
}

// scatterByDefinition repeats the arithmetic of Scatter without blocking.
func scatterByDefinition(rows [][]float64, d int) (mean, scatter []float64) {
	mean, scatter = make([]float64, d), make([]float64, d*d)
	shift, sum := make([]float64, d), make([]float64, d)
	first := rows[:min(chunk, len(rows))]
	for j := range d {
		for _, x := range first {
			shift[j] += x[j]
		}
		shift[j] /= float64(len(first))
		for _, x := range rows {
			sum[j] += x[j] - shift[j]
		}
	}
	n := float64(len(rows))
	for i := range d {
		mean[i] = shift[i] + sum[i]/n
		for j := range d {
			s := 0.0
			for _, x := range rows {
				s = math.FMA(x[i]-shift[i], x[j]-shift[j], s)
			}
			scatter[i*d+j] = s - sum[i]*sum[j]/n
		}
	}
	return mean, scatter
}

func checkScatter(t *testing.T, seed uint64, n, d int) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 2))
	rows := make([][]float64, n)
	s := NewScatter(d)
	for i := range rows {
		rows[i] = random(r, d)
		for j := range rows[i] {
			rows[i][j] += 1e3 // a mean far from zero
		}
		s.Add(rows[i])
		if i == n/2 {
			s.Result(make([]float64, d), make([]float64, d*d)) // looking must not disturb
		}
	}
	if s.N() != n {
		t.Fatalf("N = %d after %d rows", s.N(), n)
	}
	mean, scatter := make([]float64, d), make([]float64, d*d)
	s.Result(mean, scatter)
	// The look at n/2 ends the first chunk early when it is not full.
	if n/2+1 >= chunk || n <= 1 {
		wantMean, want := scatterByDefinition(rows, d)
		if !sameBits(mean, wantMean) || !sameBits(scatter, want) {
			t.Fatalf("n=%d d=%d: bits differ from the definition", n, d)
		}
		return
	}
	for i := range d {
		for j := range d {
			want := 0.0
			for _, x := range rows {
				want += (x[i] - mean[i]) * (x[j] - mean[j])
			}
			if math.Abs(scatter[i*d+j]-want) > 1e-8*float64(n) {
				t.Fatalf("n=%d d=%d: scatter[%d,%d] = %v, want %v", n, d, i, j, scatter[i*d+j], want)
			}
		}
	}
}

func TestScatterIsItsDefinitionBitForBit(t *testing.T) {
	for _, n := range []int{1, 2, 50, 95, 96, 97, 200, 500} {
		for _, d := range []int{1, 3, 8, 9, 33} {
			checkScatter(t, uint64(n*100+d), n, d)
		}
	}
}

func FuzzScatter(f *testing.F) {
	f.Add(uint64(3), uint16(200), uint8(130))
	f.Fuzz(func(t *testing.T, seed uint64, n uint16, d uint8) {
		checkScatter(t, seed, int(n%400)+1, int(d%40)+1)
	})
}

func TestScatterOfNothingIsZero(t *testing.T) {
	mean, scatter := []float64{1, 1}, []float64{1, 1, 1, 1}
	NewScatter(2).Result(mean, scatter)
	if !sameBits(append(mean, scatter...), make([]float64, 6)) {
		t.Fatal("not zero")
	}
}

func TestProductsDoNotAllocate(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	a, b, c := random(r, 33*33), thin(r, 33, 5), thin(r, 33, 5)
	row, s := random(r, 33), NewScatter(33)
	s.Add(row)
	s.flush()
	if n := testing.AllocsPerRun(200, func() { MulAdd(c, a, 33, 1, b, 33, 33, 5); s.Add(row) }); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}

func BenchmarkScatter100000x130(b *testing.B) {
	const n, d = 100_000, 130
	rows := random(rand.New(rand.NewPCG(1, 1)), n*d)
	mean, scatter := make([]float64, d), make([]float64, d*d)
	b.ReportAllocs()
	b.SetBytes(n * d * 8)
	for b.Loop() {
		s := NewScatter(d)
		for i := range n {
			s.Add(rows[i*d:][:d])
		}
		s.Result(mean, scatter)
	}
}

func BenchmarkSymThin130x6(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	x, y, z := random(r, 130*130), thin(r, 130, 6), thin(r, 130, 6)
	b.ReportAllocs()
	for b.Loop() {
		clear(z)
		MulAdd(z, x, 130, 1, y, 130, 130, 6)
	}
}

// Shapes of a factor analysis at a site: products with its rows, and of factors with factors.
func BenchmarkMulAdd(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, s := range [][3]int{{60, 216, 40}, {216, 60, 40}, {40, 216, 40}, {216, 216, 10}, {60, 60, 16},
		{16, 60, 16}} {
		m, n, p := s[0], s[1], s[2]
		x, y, z := random(r, m*n), thin(r, n, p), thin(r, m, p)
		b.Run(fmt.Sprintf("%dx%dx%d", m, n, p), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				MulAdd(z, x, n, 1, y, m, n, p)
			}
			b.ReportMetric(2*float64(m*n*p)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GF/s")
		})
	}
}
