package ppca_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"parley/internal/linalg"
	"parley/methods/factors/factorstest"
	"parley/methods/factors/ppca"
)

// wide is the subjects of some sites with more features than rows.
func wide(t testing.TB, features, rows int, missing float64) (ppca.Layout, []ppca.Block) {
	t.Helper()
	l := ppca.Layout{Dims: []int{features / 2, features - features/2}}
	r := rand.New(rand.NewPCG(3, uint64(features)))
	tr := factorstest.NewTruth(r, l, 4, 2)
	data := factorstest.Hole(r, tr.Subjects(r, rows), missing)
	factorstest.Lacking(l, data[:rows/4], 1)
	return l, factorstest.BlocksOf(t, l, data)
}

// TestCovarianceTimes holds products with the blocks to the matrix that they stand for.
func TestCovarianceTimes(t *testing.T) {
	for name, missing := range map[string]float64{"views": 0, "cells": 0.1} {
		l, blocks := wide(t, 300, 60, missing)
		for i := range blocks { // every form of a block
			b := &blocks[i]
			if i%3 == 1 {
				*b = b.Dense()
			} else if i%3 == 2 || len(blocks) < 3 {
				b.Diag = slices.Repeat([]float64{0.7}, len(b.Features))
			}
		}
		c := factorstest.Must(ppca.NewCovariance(l, blocks, l.AllFeatures()))(t)
		d, q := l.Features(), 3
		ld := linalg.Stride(q)
		x, got := make([]float64, d*ld), make([]float64, d*ld)
		r := rand.New(rand.NewPCG(1, 1))
		for i := range d {
			for a := range q {
				x[i*ld+a] = r.NormFloat64()
			}
		}
		c.Times(got, x, q)
		want := make([]float64, d*ld)
		for i := range blocks {
			b := blocks[i].Dense()
			p := len(b.Features)
			for a, j := range b.Features {
				for e, k := range b.Features {
					s := b.Scatter[a*p+e] + b.N*(b.Mean[a]-c.Mean(j))*(b.Mean[e]-c.Mean(k))
					s /= math.Sqrt(c.Count(j) * c.Count(k))
					for f := range q {
						want[j*ld+f] += s * x[k*ld+f]
					}
				}
			}
		}
		for i := range want {
			if math.Abs(got[i]-want[i]) > 1e-10*(1+math.Abs(want[i])) {
				t.Fatalf("missing %s: entry %d is %v, want %v", name, i, got[i], want[i])
			}
		}
	}
}

// TestLeading holds the vectors that products find to those of the whole matrix.
func TestLeading(t *testing.T) {
	const rank = 4
	for name, missing := range map[string]float64{"views": 0, "cells": 0.1} {
		l, blocks := wide(t, 400, 60, missing)
		c := factorstest.Must(ppca.NewCovariance(l, blocks, l.AllFeatures()))(t)
		d := l.Features()
		ld := linalg.Stride(d)
		full, unit, e := make([]float64, d*ld), make([]float64, d*ld), linalg.NewEigen(d)
		for i := range d {
			unit[i*ld+i] = 1
		}
		if c.Times(full, unit, d); !e.Factorise(full, ld) {
			t.Fatal("no eigenvalues")
		}
		values, vectors, err := c.Leading(rank)
		if err != nil {
			t.Fatal(err)
		}
		again, _, err := c.Leading(rank)
		if err != nil || !slices.Equal(values, again) {
			t.Fatalf("the eigenvalues are %v, then %v", values, again)
		}
		for a := range rank {
			if want := e.Values[d-1-a]; math.Abs(values[a]-want) > 1e-5*want {
				t.Errorf("missing %s: eigenvalue %d is %v, want %v", name, a, values[a], want)
			}
			cos := 0.0
			for i := range d {
				cos += vectors[i*rank+a] * e.Vectors[i*d+d-1-a]
			}
			if math.Abs(cos) < 1-1e-5 {
				t.Errorf("missing %s: vector %d has a cosine of %v with what it should be", name, a, cos)
			}
		}
	}
}

// TestDense holds the matrix of a factored block, and of the sum of some, to sums of
// products one by one, in sizes below and above the width that is worked out at once.
func TestDense(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 9))
	for _, p := range []int{1, 3, 8, 63, 64, 65, 130} {
		for _, rows := range []int{0, 1, 5, 40} {
			var blocks []ppca.Block
			total, want := 0.0, make([]float64, p*p)
			for i := range 3 {
				b := ppca.Block{N: float64(2 + i)}
				for j := range p {
					b.Features, b.Mean = append(b.Features, j), append(b.Mean, r.NormFloat64())
				}
				for range rows * p {
					b.Factor = append(b.Factor, r.NormFloat64())
				}
				if i == 1 {
					b.Diag = slices.Repeat([]float64{0.5}, p)
				}
				blocks = append(blocks, b)
				total += b.N
			}
			mean := make([]float64, p)
			for _, b := range blocks {
				for j := range p {
					mean[j] += b.Mean[j] * b.N / total
				}
			}
			for i, b := range blocks {
				own := b.Dense()
				for j := range p {
					for k := range p {
						s := 0.0
						for n := range rows {
							s += b.Factor[n*p+j] * b.Factor[n*p+k]
						}
						if j == k && i == 1 {
							s += 0.5
						}
						if math.Abs(own.Scatter[j*p+k]-s) > 1e-12*(1+math.Abs(s)) || own.Scatter[j*p+k] != own.Scatter[k*p+j] {
							t.Fatalf("%d × %d: entry %d, %d is %v, want %v", rows, p, j, k, own.Scatter[j*p+k], s)
						}
						want[j*p+k] += s + b.N*(b.Mean[j]-mean[j])*(b.Mean[k]-mean[k])
					}
				}
			}
			sum := ppca.Merge(slices.Clone(blocks))
			if len(sum) != 1 || sum[0].N != total {
				t.Fatalf("%d × %d: %d blocks of %v subjects", rows, p, len(sum), sum[0].N)
			}
			dense := sum[0].Dense()
			for i, s := range want {
				if math.Abs(dense.Scatter[i]-s) > 1e-11*(1+math.Abs(s)) {
					t.Fatalf("%d × %d: entry %d of the sum is %v, want %v", rows, p, i, dense.Scatter[i], s)
				}
			}
		}
	}
}

// TestStartOfAnyUnits: many features in the largest and the smallest units that are
// taken in have a start, and it is that of ordinary units.
func TestStartOfAnyUnits(t *testing.T) {
	l, blocks := wide(t, 300, 60, 0)
	want := factorstest.Must(ppca.Start(l, blocks, 4))(t)
	for _, unit := range []float64{1e-40, 1e-10, 1e34} {
		s := &ppca.Scale{Shift: make([]float64, 300), Factor: slices.Repeat([]float64{unit}, 300)}
		scaled := make([]ppca.Block, len(blocks))
		for i := range blocks {
			scaled[i] = blocks[i].Scaled(s)
		}
		got := factorstest.Must(ppca.Start(l, scaled, 4))(t)
		for i, w := range want.W {
			if math.Abs(got.W[i]/unit-w) > 1e-6 {
				t.Fatalf("in units of %v: loading %d is %v, want %v", unit, i, got.W[i]/unit, w)
			}
		}
	}
}
