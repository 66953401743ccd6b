package privacy

import "fmt"

// Noised is a sum with discrete noise, as it travels: whole numbers of steps.
// It may be shown to anybody: whatever is computed from it is post-processing.
type Noised struct {
	Blocks [][]int64 `cbor:"blocks" json:"blocks"` // entries in units of Step; for Moments the upper triangle by rows
	Step   float64   `cbor:"step" json:"step"`     // a power of two, > 0
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
// declares: its blocks and their lengths, step and noise.
func (n *Noised) Check(s Sum) error {
	if len(n.Blocks) != len(s.Blocks) {
		return fmt.Errorf("%s: %d blocks where %d were declared", s.Name, len(n.Blocks), len(s.Blocks))
	}
	for i, b := range n.Blocks {
		if want := s.entries(i); len(b) != want {
			return fmt.Errorf("%s: block %d has %d entries, not %d", s.Name, i, len(b), want)
		}
	}
	return nil
}
