package privacy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"

	"parley/internal/wire"
	"parley/privacy/account"
	"parley/privacy/internal/fixed"
)

// Noised is a sum with discrete noise: whole numbers of steps. It may be shown to
// anybody: whatever is computed from it is post-processing. Only a session makes
// one, and nobody changes it; what a release holds of it, the session writes.
type Noised struct {
	blocks [][]int64 // entries in units of step; for Moments the upper triangle by rows
	step   float64   // > 0
	sd     float64
	// times is, of a total over sites, how many times the noise that was declared sd is: 1 and more; else 0.
	times float64
}

// Blocks returns how many blocks the sum has.
func (n *Noised) Blocks() int { return len(n.blocks) }

// Floats returns the entries of a block in the units of the data; nil if there
// is no such block. For Moments they are the upper triangle by rows.
func (n *Noised) Floats(block int) []float64 {
	if block < 0 || block >= len(n.blocks) {
		return nil
	}
	out := make([]float64, len(n.blocks[block]))
	for i, x := range n.blocks[block] {
		out[i] = float64(x) * n.step
	}
	return out
}

// SD is the standard deviation of the noise on every entry, in the units of
// the data; for Moments, of the entries on the diagonal, those beside it
// having SD/√2.
func (n *Noised) SD() float64 { return n.sd }

// noisedFile is a noised sum as it is kept.
type noisedFile struct {
	Blocks [][]int64 `cbor:"blocks" json:"blocks"`
	Step   float64   `cbor:"step" json:"step"`
	SD     float64   `cbor:"sd" json:"sd"`
	Times  float64   `cbor:"times,omitempty" json:"times,omitempty"`
}

// MarshalCBOR encodes the sum for whoever keeps it.
func (n *Noised) MarshalCBOR() ([]byte, error) {
	return wire.Marshal(noisedFile{n.blocks, n.step, n.sd, n.times})
}

// UnmarshalCBOR decodes what MarshalCBOR wrote; [Noised.Check] says whether it
// makes sense.
func (n *Noised) UnmarshalCBOR(data []byte) error {
	var f noisedFile
	err := wire.Unmarshal(data, &f)
	*n = Noised{f.Blocks, f.Step, f.SD, f.Times}
	return err
}

// MarshalJSON encodes the sum for whoever keeps it.
func (n *Noised) MarshalJSON() ([]byte, error) {
	return json.Marshal(noisedFile{n.blocks, n.step, n.sd, n.times})
}

// UnmarshalJSON decodes what MarshalJSON wrote.
func (n *Noised) UnmarshalJSON(data []byte) error {
	var f noisedFile
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	err := d.Decode(&f)
	*n = Noised{f.Blocks, f.Step, f.SD, f.Times}
	return err
}

// Check reports whether a sum that was kept is one that s declares: its first
// blocks and their lengths, and the step and noise that follow from s, to a
// thousandth; of a total over sites so many times the noise.
func (n *Noised) Check(s Sum) error {
	if err := s.check(); err != nil {
		return fmt.Errorf("sum %q: %w", s.Name, err)
	}
	grid, err := s.grid()
	if err != nil {
		return err
	}
	near := func(a, b float64) bool { return math.Abs(a-b) <= b/1000 }
	step, times := grid.Step, max(n.times, 1)
	if n.times >= 1 && n.step < step { // shares of noise may need a finer grid
		step = n.step
	}
	if !near(n.step, step) || !near(n.sd, grid.SD()*times) {
		return fmt.Errorf("sum %q: step %v and noise %v are not the declared %v and %v", s.Name, n.step, n.sd,
			grid.Step, grid.SD())
	}
	return n.check(s)
}

// check holds the integers against the declared blocks.
func (n *Noised) check(s Sum) error {
	if len(n.blocks) != len(s.Blocks) {
		return fmt.Errorf("sum %q: %d blocks where %d were declared", s.Name, len(n.blocks), len(s.Blocks))
	}
	for i, b := range n.blocks {
		if want := s.entries(i); len(b) != want {
			return fmt.Errorf("sum %q: block %d has %d entries, not %d", s.Name, i, len(b), want)
		}
		// no sum is, and it has no opposite
		if j := slices.IndexFunc(b, func(x int64) bool { return x == math.MinInt64 }); j >= 0 {
			return fmt.Errorf("sum %q: entry %d of block %d is out of range", s.Name, j, i)
		}
	}
	return nil
}

// discreteness is the share by which noise is rounded up: eight times what the
// discrete Gaussian of the coarsest grid falls short of the continuous one that
// is accounted for (see package noise).
const discreteness = 1e-6

// share is the noise that this site adds, in units of what the mechanism's is in.
func (s Sum) share() float64 { return s.Mechanism.Noise / math.Sqrt(float64(max(s.Honest, 1))) }

// mostShares is of how many sites' noise a total is made at most.
const mostShares = 1000

// grid is the fixed-point arithmetic of a sum. It follows from what was
// declared, so that both ends know it.
func (s Sum) grid() (fixed.Grid, error) {
	form, norm := fixed.Vectors, fixed.L2
	if s.Form == Moments {
		form = fixed.Moments
	}
	switch s.Mechanism.Kind {
	case account.Gaussian:
	case account.Laplace:
		norm = fixed.L1
	default: // noise that was accounted for under another norm would be too little
		return fixed.Grid{}, fmt.Errorf("sum %q: there is no grid for noise of kind %q", s.Name,
			string(s.Mechanism.Kind))
	}
	g, err := fixed.NewGrid(form, norm, s.Bound, s.share()*(1+discreteness))
	if err == nil {
		_, err = fixed.NewSum(g, []int{1}, s.records())
	}
	if err == nil && s.Honest > 1 {
		if variance, _ := new(big.Float).SetInt(g.Noise).Float64(); account.SharesDiffer(variance, mostShares) > 0 {
			err = errors.New("the shares of its noise are too coarse to add up to what is accounted for")
		}
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
