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
// A row contributes what it writes to v, which is zero and as long as the longest block, to the block that it
// returns, clipped to the declared bound; −1, a panic, NaN, ±Inf and unknown blocks contribute nothing, and nobody
// is told. It must be a function of this row, the plan, the task and sums noised before. Rows of one person, where
// the study names a column of persons, are clipped together. Below a rate of 1 each row, or person, takes part
// with that probability. Errors do not depend on what cells hold; a sum that failed has been used.
func (s *Session) Sum(ctx context.Context, name string,
	contribution func(row *dataset.Row, v []float64) (block int)) (*Noised, error) {
	sum, use, err := s.use(name, Subject)
	if err != nil {
		return nil, err
	}
	if want, there := s.gate.study.Person, s.gate.data.Schema().Person; want != there {
		return nil, fmt.Errorf("sum %q: the study tells persons by column %q, and the data by %q", name, want, there)
	}
	total, err := s.total(sum)
	if err != nil {
		return nil, err
	}
	chosen, err := s.sample(sum, use)
	if err != nil {
		return nil, err
	}
	if err := s.add(ctx, total, chosen, contribution); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return s.release(total, use)
}

// add adds up what rows contribute.
func (s *Session) add(ctx context.Context, t total, chosen func() (bool, error),
	contribution func(*dataset.Row, []float64) int) error {
	if s.gate.study.Person != "" {
		return s.addPeople(ctx, t, chosen, contribution)
	}
	v := make([]float64, slices.Max(t.declared.Blocks))
	for row, err := range s.tolerant().Rows(ctx) {
		if err != nil {
			return readError(t.declared.Name, err)
		}
		in, err := chosen()
		if err != nil {
			return err
		}
		if !in {
			continue
		}
		clear(v)
		if block := contained(row, v, contribution); block >= 0 && block < len(t.declared.Blocks) {
			if err := t.sum.Add(block, v[:t.declared.Blocks[block]]); err != nil {
				return err
			}
		}
	}
	return nil
}

// contained is a row's contribution; none if it panics: whether that happens is
// a fact about the row.
func contained(row *dataset.Row, v []float64, contribution func(*dataset.Row, []float64) int) (block int) {
	defer func() {
		if recover() != nil {
			block = -1
		}
	}()
	return contribution(row, v)
}

// Whole makes one noised vector of everything that the site holds, as the
// request declared it under name, with unit [WholeSite] and one block.
//
// The function computes it into v, which is zero and as long as the block, from
// data that can be read until the function returns. If it fails or panics, or
// leaves NaN or ±Inf in v, then noise alone is released: that a site's rows do
// not allow a computation is a fact about them. Errors are as for
// [Session.Sum].
func (s *Session) Whole(ctx context.Context, name string,
	compute func(data dataset.Source, v []float64) error) (*Noised, error) {
	sum, use, err := s.use(name, WholeSite)
	if err != nil {
		return nil, err
	}
	total, err := s.total(sum)
	if err != nil {
		return nil, err
	}
	v := make([]float64, sum.Blocks[0])
	data := &watched{Source: s.tolerant()}
	failed := whole(data, v, compute) != nil
	data.over = true
	if data.err != nil {
		return nil, readError(name, data.err)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !failed {
		if err := total.sum.Add(0, v); err != nil {
			return nil, err
		}
	}
	return s.release(total, use)
}

func whole(data dataset.Source, v []float64, compute func(dataset.Source, []float64) error) (err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("the computation panicked")
		}
	}()
	return compute(data, v)
}

// ReadError means that the site's data could not be read. What it says may
// quote them: it stays at the site.
type ReadError struct{ err error }

func (e *ReadError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *ReadError) Unwrap() error { return e.err }

// Unread makes an error of reading the site's data a [*ReadError].
func Unread(err error) error { return &ReadError{err} }

func readError(sum string, err error) error {
	return Unread(fmt.Errorf("reading for %q: %w", sum, err))
}

// total is the exact sum that is being made.
type total struct {
	declared Sum
	grid     fixed.Grid
	sum      *fixed.Sum
}

func (s *Session) total(declared Sum) (t total, err error) {
	t.declared = declared
	if t.grid, err = declared.grid(); err != nil {
		return t, err
	}
	t.sum, err = fixed.NewSum(t.grid, declared.Blocks, declared.records())
	return t, err
}

// release noises a sum, and keeps it for the session's release.
func (s *Session) release(t total, use int) (n *Noised, err error) {
	n = &Noised{step: t.grid.Step, sd: t.grid.SD()}
	if sim := s.gate.simulated; sim != nil && sim.Release != nil {
		n.blocks = sim.Release(t.declared.Name, t.sum.Exact())
	} else {
		source, err := s.stream("noise", t.declared.Name, use, t.sum.Exact())
		if err != nil {
			return nil, err
		}
		if n.blocks, err = t.sum.Release(source); err != nil {
			return nil, err
		}
	}
	if !t.declared.Kept {
		i := slices.IndexFunc(s.request.Sums, func(x Sum) bool { return x.Name == t.declared.Name })
		s.made = append(s.made, sentSum{Sum: i, Blocks: n.blocks})
	}
	return n, nil
}

// tolerant is the site's data without the cells that cannot be read. They were
// all checked before the first charge; that one has changed since is a fact
// about its row, and so the row counts as nothing.
func (s *Session) tolerant() dataset.Source {
	if t, ok := s.gate.data.(interface{ Tolerant() dataset.Source }); ok {
		return t.Tolerant()
	}
	return s.gate.data
}

// sample returns a function that says of one record after the other whether it is
// in a Poisson sample.
func (s *Session) sample(sum Sum, use int) (func() (bool, error), error) {
	if sim := s.gate.simulated; sum.Mechanism.Rate == 1 || sim != nil && sim.Release != nil {
		return func() (bool, error) { return true, nil }, nil
	}
	coin, err := noise.NewCoin(sum.Mechanism.Rate)
	if err != nil {
		return nil, err
	}
	source, err := s.stream("sample", sum.Name, use, nil)
	if err != nil {
		return nil, err
	}
	drawn := make([]int64, 1024)
	next := len(drawn)
	return func() (bool, error) {
		if next == len(drawn) {
			if err := coin.Fill(drawn, source); err != nil {
				return false, err
			}
			next = 0
		}
		next++
		return drawn[next-1] == 1, nil
	}, nil
}

// watched notices whether rows could be read, and yields none when it is over.
type watched struct {
	dataset.Source
	err  error
	over bool
}

func (w *watched) Rows(ctx context.Context) iter.Seq2[*dataset.Row, error] {
	return func(yield func(*dataset.Row, error) bool) {
		if w.over {
			yield(nil, errEnded)
			return
		}
		var shown dataset.Row
		for row, err := range w.Source.Rows(ctx) {
			if w.over { // somebody has stopped in the middle, and goes on later
				yield(nil, errEnded)
				return
			}
			if err != nil && w.err == nil {
				w.err = err
			}
			if err == nil {
				shown = *row
				shown.Person = "" // no method learns whose a row is
				row = &shown
			}
			if !yield(row, err) {
				return
			}
		}
	}
}
