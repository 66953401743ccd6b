package privacy

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"parley/dataset"
	"parley/privacy/internal/fixed"
	"parley/privacy/internal/noise"
)

// Sum makes one noised sum over the site's subjects, as the request declared
// it under name.
//
// The contribution of a row is what it writes to v, which is zero and as long
// as the longest block, and the block that it returns; −1 contributes nothing.
// A contribution with NaN or ±Inf, or to a block that there is not, counts as
// nothing, and nobody is told. Of v only the block's length is used. It is
// clipped to the declared bound, so a row weighs no more than it may. The row
// and v must not be kept.
//
// Below a rate of 1 each row takes part with that probability, in every sum
// anew, and the contribution of the others is not asked for.
//
// Errors do not depend on what rows hold: the name was not declared, was used
// as often as declared, the data could not be read, or ctx has ended. A sum
// that failed has been used.
func (s *Session) Sum(ctx context.Context, name string, contribution func(row *dataset.Row, v []float64) (block int)) (*Noised, error) {
	sum, err := s.use(name, Subject)
	if err != nil {
		return nil, err
	}
	grid, err := sum.grid()
	if err != nil {
		return nil, err
	}
	total, err := fixed.NewSum(grid, sum.Blocks, sum.records())
	if err != nil {
		return nil, err
	}
	chosen, err := s.sample(sum.Mechanism.Rate)
	if err != nil {
		return nil, err
	}
	v := make([]float64, slices.Max(sum.Blocks))
	for row, err := range s.gate.data.Rows(ctx) {
		if err != nil {
			return nil, fmt.Errorf("reading for %q: %w", name, err)
		}
		in, err := chosen()
		if err != nil {
			return nil, err
		}
		if !in {
			continue
		}
		clear(v)
		if block := contribution(row, v); block >= 0 && block < len(sum.Blocks) {
			if err := total.Add(block, v[:sum.Blocks[block]]); err != nil {
				return nil, err
			}
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return s.noised(total, grid)
}

// Whole makes one noised vector of everything that the site holds, as the
// request declared it under name, with unit [WholeSite] and one block.
//
// The function computes it into v, which is zero and as long as the block. If
// it fails, or leaves NaN or ±Inf in v, then noise alone is released: that a
// site's rows do not allow a computation is a fact about them. Errors are as
// for [Session.Sum].
func (s *Session) Whole(ctx context.Context, name string, compute func(data dataset.Source, v []float64) error) (*Noised, error) {
	sum, err := s.use(name, WholeSite)
	if err != nil {
		return nil, err
	}
	grid, err := sum.grid()
	if err != nil {
		return nil, err
	}
	total, err := fixed.NewSum(grid, sum.Blocks, sum.records())
	if err != nil {
		return nil, err
	}
	v := make([]float64, sum.Blocks[0])
	data := &watched{Source: s.gate.data}
	failed := compute(data, v) != nil
	if err := errors.Join(data.err, ctx.Err()); err != nil {
		return nil, fmt.Errorf("reading for %q: %w", name, err)
	}
	if !failed {
		if err := total.Add(0, v); err != nil {
			return nil, err
		}
	}
	return s.noised(total, grid)
}

func (s *Session) noised(total *fixed.Sum, grid fixed.Grid) (*Noised, error) {
	blocks, err := total.Release(s.source)
	if err != nil {
		return nil, err
	}
	return &Noised{Blocks: blocks, Step: grid.Step, SD: grid.SD()}, nil
}

// use takes one of the uses of a sum that were paid for.
func (s *Session) use(name string, unit Unit) (Sum, error) {
	i := slices.IndexFunc(s.request.Sums, func(x Sum) bool { return x.Name == name })
	switch {
	case i < 0:
		return Sum{}, fmt.Errorf("the request declared no sum %q", name)
	case s.request.Sums[i].Unit != unit:
		return Sum{}, fmt.Errorf("sum %q was declared for unit %q, not %q", name, s.request.Sums[i].Unit, unit)
	case s.sealed:
		return Sum{}, fmt.Errorf("sum %q was asked for after the release was sealed", name)
	case s.used[name] >= s.request.Sums[i].Mechanism.Count:
		return Sum{}, fmt.Errorf("sum %q was declared %d times, and has been made as often", name, s.used[name])
	}
	s.used[name]++
	return s.request.Sums[i], nil
}

// sample returns a function that says of one row after the other whether it is
// in a Poisson sample.
func (s *Session) sample(rate float64) (func() (bool, error), error) {
	if rate == 1 {
		return func() (bool, error) { return true, nil }, nil
	}
	coin, err := noise.NewCoin(rate)
	if err != nil {
		return nil, err
	}
	drawn := make([]int64, 1024)
	next := len(drawn)
	return func() (bool, error) {
		if next == len(drawn) {
			if err := coin.Fill(drawn, s.source); err != nil {
				return false, err
			}
			next = 0
		}
		next++
		return drawn[next-1] == 1, nil
	}, nil
}

// watched notices whether rows could be read.
type watched struct {
	dataset.Source
	err error
}

func (w *watched) Rows(ctx context.Context) iter.Seq2[*dataset.Row, error] {
	return func(yield func(*dataset.Row, error) bool) {
		for row, err := range w.Source.Rows(ctx) {
			if err != nil && w.err == nil {
				w.err = err
			}
			if !yield(row, err) {
				return
			}
		}
	}
}
