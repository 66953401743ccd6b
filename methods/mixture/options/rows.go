package options

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"slices"

	"parley/dataset"
	"parley/internal/nn"
)

// Known returns the class of a subject: whether it is the scarce one, and whether its
// outcome is one of the plan's levels.
func (s *Setup) Known(row *dataset.Row) (scarce, known bool) {
	y := s.Options.Scarce
	level := row.Subject[s.outcome]
	return level == y.Class, slices.Contains(y.Outcome.Levels, level)
}

// Held says whether nothing may be learned from a subject. It follows from the plan's
// seed and the subject's ID, so that it is the same whenever it is asked.
func (s *Setup) Held(id string) bool {
	sum := sha256.Sum256(fmt.Appendf(nil, "graffl %d held %s", s.Plan.Seed, id))
	return float64(binary.LittleEndian.Uint64(sum[:])>>11)/(1<<53) < s.Options.Scarce.Held
}

// takes says whether the mixture is of a subject: one of the scarce class that is not
// held, where the plan has classes.
func (s *Setup) takes(row *dataset.Row) bool {
	if s.Options.Scarce == nil {
		return true
	}
	scarce, _ := s.Known(row)
	return scarce && !s.Held(row.ID)
}

// Lacking counts the subjects whom the mixture is of, and those of them who lack a feature.
func (s *Setup) Lacking(ctx context.Context, data dataset.Source) (lacking, all int, err error) {
	x := make([]float64, len(s.Names))
	for row, err := range data.Rows(ctx) {
		if err != nil {
			return 0, 0, err
		}
		if !s.takes(row) {
			continue
		}
		if all++; !Complete(row, x) {
			lacking++
		}
	}
	return lacking, all, ctx.Err()
}

// Read writes what the mixture sees of a subject: all its features in the plan's
// order, or its code. False if it takes no part: a feature is missing and there is no encoder,
// or the mixture is not of its class.
func (h *Site) Read(row *dataset.Row, x []float64) bool {
	if !h.takes(row) {
		return false
	}
	if h.Encoder == nil {
		return Complete(row, x)
	}
	codes, err := h.Encoder.Encode([][]float64{h.Features(row)})
	if err != nil { // the plan's features are as many as the encoder takes
		return false
	}
	copy(x, codes[0])
	return true
}

// Features returns a subject's features, NaN where one was not observed.
func (s *Setup) Features(row *dataset.Row) []float64 { return Observed(row, s.Widths()) }

// Widths are how many features each view has.
func (s *Setup) Widths() (widths []int) {
	for _, v := range s.Plan.Views {
		widths = append(widths, len(v.Features))
	}
	return widths
}

// Observed returns the values of views of some widths in a row, NaN where there are none.
func Observed(row *dataset.Row, widths []int) (x []float64) {
	for k, n := range widths {
		if view := row.Views[k]; view != nil {
			x = append(x, view...)
			continue
		}
		for range n {
			x = append(x, math.NaN())
		}
	}
	return x
}

// coded is a site's subjects as the mixture sees them: those that are wanted, with
// codes in place of their features if there is an encoder.
type coded struct {
	data    dataset.Source
	encoder *nn.Encoder // nil: features stay
	widths  []int       // of the data's views
	wants   func(*dataset.Row) bool
}

// Coded is the wanted ones of a site's subjects, with codes in place of their features
// if there is an encoder of views of some widths.
func Coded(data dataset.Source, encoder *nn.Encoder, widths []int, wants func(*dataset.Row) bool) dataset.Source {
	return coded{data, encoder, widths, wants}
}

// Mixed are the subjects that the mixture is of.
func (h *Site) Mixed(data dataset.Source) dataset.Source {
	if h.Encoder == nil && h.Options.Scarce == nil {
		return data
	}
	return coded{data, h.Encoder, h.Widths(), h.takes}
}

// Schema implements [dataset.Source].
func (c coded) Schema() dataset.Schema {
	s := c.data.Schema()
	if c.encoder != nil {
		view := dataset.View{Name: "codes"}
		for i := range c.encoder.Dimension() {
			view.Columns = append(view.Columns, dataset.Column{Name: CodeName(i), Kind: dataset.Number})
		}
		s.Views = []dataset.View{view}
	}
	return s
}

// encoded is how many rows are encoded at a time.
const encoded = 256

// Rows implements [dataset.Source].
func (c coded) Rows(ctx context.Context) iter.Seq2[*dataset.Row, error] {
	return func(yield func(*dataset.Row, error) bool) {
		var subjects []dataset.Row
		var rows [][]float64
		flush := func() bool {
			codes, err := c.encoder.Encode(rows)
			if err != nil {
				yield(nil, err)
				return false
			}
			for i := range subjects {
				subjects[i].Views = [][]float64{codes[i]}
				if !yield(&subjects[i], nil) {
					return false
				}
			}
			subjects, rows = subjects[:0], rows[:0]
			return true
		}
		for row, err := range c.data.Rows(ctx) {
			switch {
			case err != nil:
				yield(nil, err)
				return
			case !c.wants(row):
				continue
			case c.encoder == nil:
				if !yield(row, nil) {
					return
				}
				continue
			}
			subjects = append(subjects, dataset.Row{ID: row.ID, Subject: slices.Clone(row.Subject)})
			rows = append(rows, Observed(row, c.widths))
			if len(rows) == encoded && !flush() {
				return
			}
		}
		if len(rows) > 0 {
			flush()
		}
	}
}
