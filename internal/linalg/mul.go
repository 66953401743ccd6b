package linalg

import (
	"math"
	"math/bits"
	"sync"
)

// MulAdd adds A·B to C, where A is m × n with element (i, k) at a[i·ra + k·ca],
// and B (n × p) and C (m × p) are thin: stride Stride(p), padding zero. With
// ra = 1 and ca = stride it multiplies by a transpose.
//
// C must not overlap A or B.
func MulAdd(c, a []float64, ra, ca int, b []float64, m, n, p int) {
	if m <= 0 || n <= 0 || p <= 0 {
		return
	}
	ld := Stride(p)
	c, b = c[:m*ld], b[:n*ld]
	_ = a[(m-1)*ra+(n-1)*ca]
	if !vector {
		mulAddGo(n, a, ra, ca, b, ld, c, ld, m, p)
		return
	}
	j, most := 0, 0 // rows that wide tiles have done
	if wide {
		most = m &^ (wideRows - 1)
	}
	for ; most > 0 && j+2*lanes <= ld; j += 2 * lanes {
		for i := 0; i < most; i += wideRows {
			mulAdd8x16(n, &a[i*ra], ra, ca, &b[j], ld, &c[i*ld+j], ld)
		}
	}
	if j < ld {
		for i := 0; i < most; i += wideRows {
			mulAdd8x8(n, &a[i*ra], ra, ca, &b[j], ld, &c[i*ld+j], ld)
		}
	}
	if most == m {
		return
	}
	for j := 0; j < p; j += lanes {
		i := most
		for ; i+tileRows <= m; i += tileRows {
			mulAdd4x8(n, &a[i*ra], ra, ca, &b[j], ld, &c[i*ld+j], ld)
		}
		for ; i < m; i++ {
			// With strides of zero the tile is one row, worked out four times over.
			mulAdd4x8(n, &a[i*ra], 0, ca, &b[j], ld, &c[i*ld+j], 0)
		}
	}
}

// mulAddGo is the portable twin of mulAdd4x8 for a tile of any size.
func mulAddGo(n int, a []float64, ra, ca int, b []float64, ldb int, c []float64, ldc, m, p int) {
	for i := range m {
		ci := c[i*ldc:][:p]
		for k := range n {
			x, bk := a[i*ra+k*ca], b[k*ldb:][:p]
			for j, y := range bk {
				ci[j] = math.FMA(x, y, ci[j])
			}
		}
	}
}

// Workspace is the memory of slices that belong together. A site of a few subjects may need more
// time to make them than to work in them, so workspaces that are released serve again.
type Workspace struct{ numbers []float64 }

// released are workspaces of 2ᵏ numbers, by k. Larger ones are not worth keeping.
var released [16]sync.Pool

// alike are slices of as many numbers each.
type alike struct {
	n  int
	of []*[]float64
}

// Each lists slices of n numbers each for [Allot].
func Each(n int, of ...*[]float64) alike { return alike{n, of} }

// Allot makes slices of zeros.
func Allot(slices ...alike) Workspace {
	n := 0
	for _, g := range slices {
		n += g.n * len(g.of)
	}
	var w Workspace
	var rest []float64
	if k := bits.Len(uint(max(n, 1) - 1)); k >= len(released) {
		rest = make([]float64, n)
	} else if kept, ok := released[k].Get().(*[]float64); ok {
		w.numbers, rest = *kept, (*kept)[:n]
		clear(rest)
	} else {
		w.numbers = make([]float64, 1<<k)
		rest = w.numbers
	}
	for _, g := range slices {
		for _, to := range g.of {
			*to, rest = rest[:g.n:g.n], rest[g.n:]
		}
	}
	return w
}

// Release gives the memory to others: nobody may look at the slices any more. Whoever does not know
// that leaves it to the garbage collector.
func (w *Workspace) Release() {
	if numbers := w.numbers; numbers != nil {
		w.numbers = nil
		released[bits.Len(uint(len(numbers)-1))].Put(&numbers)
	}
}
