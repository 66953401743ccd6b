package linalg

import (
	"math/bits"
	"sync"
)

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
