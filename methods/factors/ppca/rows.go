package ppca

import (
	"context"
	"fmt"

	"parley/dataset"
)

// RowSums is everything that fitting needs of a site's rows, from one
// streaming pass: sufficient statistics per pattern of observed features, in
// the features' own units, and each feature's extremes.
type RowSums struct {
	Blocks   []Block
	Patterns []Pattern
	Extremes *FeatureSums
}

// Read makes the one pass over a site's rows.
func Read(ctx context.Context, l Layout, data dataset.Source) (*RowSums, error) {
	acc := NewAccumulator(l)
	for row, err := range data.Rows(ctx) {
		if err != nil {
			return nil, err
		}
		if err := acc.Add(row.Views); err != nil {
			return nil, fmt.Errorf("subject %q: %w", row.ID, err)
		}
	}
	sums := &RowSums{Blocks: acc.Blocks(), Extremes: acc.extremes}
	if len(sums.Blocks) == 0 {
		return nil, fmt.Errorf("no subject has any value of the plan's views")
	}
	sums.Patterns = Patterns(l, sums.Blocks)
	if n := len(sums.Patterns); n > LargestPatterns {
		return nil, fmt.Errorf("the subjects have %d different sets of views, and a study can tell %d apart", n,
			LargestPatterns)
	}
	return sums, nil
}

// Moments turns blocks into what a common scale by moments needs.
func (r *RowSums) Moments(d int) *FeatureSums {
	out := newFeatureSums(d)
	for i := range r.Blocks {
		b := &r.Blocks[i]
		squares := make([]float64, len(b.Features))
		b.Squares(squares)
		for n, j := range b.Features {
			out.add(j, b.N, b.Mean[n], squares[n], false)
		}
	}
	return out
}

// Said is what a site says of its features for a scale that the sites pool.
func (r *RowSums) Said(set Frame) *FeatureSums {
	if set.Scaling == ScaleMinMax {
		return r.Extremes
	}
	return r.Moments(set.Layout.Features())
}

// In returns the blocks in the units of a scale.
func (r *RowSums) In(scale *Scale) []Block {
	blocks := make([]Block, len(r.Blocks))
	for i := range blocks {
		blocks[i] = r.Blocks[i].Scaled(scale)
	}
	return blocks
}

// Common is the scale of rows that lie together, by one of the plan's ways to scale.
func Common(set Frame, scaling string, sites ...*RowSums) (*Scale, error) {
	if set.Scaling = scaling; !set.Pools() {
		return StartScale(set), nil
	}
	var all []*FeatureSums
	for _, site := range sites {
		all = append(all, site.Said(set))
	}
	return set.pooled(all).scale(set)
}
