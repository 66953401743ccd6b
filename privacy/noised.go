package privacy

import (
	"fmt"
	"math"
	"slices"

	"parley/privacy/account"
	"parley/privacy/internal/fixed"
)

// Noised is a sum with discrete noise, as it travels: whole numbers of steps.
// It may be shown to anybody: whatever is computed from it is post-processing.
type Noised struct {
	Blocks [][]int64 `cbor:"blocks" json:"blocks"` // entries in units of Step; for Moments the upper triangle by rows
	Step   float64   `cbor:"step" json:"step"`     // > 0
	// SD is the standard deviation of the noise on every entry, in the units of
	// the data; for Moments, of the entries on the diagonal, those beside it
	// having SD/√2.
	SD float64 `cbor:"sd" json:"sd"`
}

// Floats returns the entries of a block in the units of the data; nil if there
// is no such block. For Moments they are the upper triangle by rows.
func (n *Noised) Floats(block int) []float64 {
	if block < 0 || block >= len(n.Blocks) {
		return nil
	}
	out := make([]float64, len(n.Blocks[block]))
	for i, x := range n.Blocks[block] {
		out[i] = float64(x) * n.Step
	}
	return out
}

// Check reports whether a sum that another organisation sent is one that s
// declares: its blocks and their lengths, and the step and noise that follow
// from s.
func (n *Noised) Check(s Sum) error {
	if err := s.check(); err != nil {
		return fmt.Errorf("sum %q: %w", s.Name, err)
	}
	grid, err := s.grid()
	if err != nil {
		return err
	}
	if len(n.Blocks) != len(s.Blocks) {
		return fmt.Errorf("sum %q: %d blocks where %d were declared", s.Name, len(n.Blocks), len(s.Blocks))
	}
	for i, b := range n.Blocks {
		if want := s.entries(i); len(b) != want {
			return fmt.Errorf("sum %q: block %d has %d entries, not %d", s.Name, i, len(b), want)
		}
		if j := slices.IndexFunc(b, func(x int64) bool { return x == math.MinInt64 }); j >= 0 { // no sum is, and it has no opposite
			return fmt.Errorf("sum %q: entry %d of block %d is out of range", s.Name, j, i)
		}
	}
	if n.Step != grid.Step || n.SD != grid.SD() {
		return fmt.Errorf("sum %q: step %v and noise %v are not the declared %v and %v", s.Name, n.Step, n.SD, grid.Step, grid.SD())
	}
	return nil
}

// discreteness is the share by which noise is rounded up: eight times what the
// discrete Gaussian of the coarsest grid falls short of the continuous one that
// is accounted for (see package noise).
const discreteness = 1e-6

// grid is the fixed-point arithmetic of a sum. It follows from what was
// declared, so that both ends know it.
func (s Sum) grid() (fixed.Grid, error) {
	form, norm := fixed.Vectors, fixed.L2
	if s.Form == Moments {
		form = fixed.Moments
	}
	if s.Mechanism.Kind == account.Laplace {
		norm = fixed.L1
	}
	g, err := fixed.NewGrid(form, norm, s.Bound, s.Mechanism.Noise*(1+discreteness))
	if err == nil {
		_, err = fixed.NewSum(g, []int{1}, s.records())
	}
	if err != nil {
		return g, fmt.Errorf("sum %q: %w", s.Name, err)
	}
	return g, nil
}

// records is a number of records that no site has: sums have room for as many.
func (s Sum) records() int64 {
	if s.Unit == WholeSite {
		return 1
	}
	return 1 << 31
}
