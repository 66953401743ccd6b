package privacy

import (
	"context"
	"maps"
	"math"
	"slices"

	"parley/dataset"
	"parley/privacy/internal/fixed"
)

// person is what the rows of one person have given to a sum so far.
type person struct {
	in    bool // the sample
	parts []fixed.Part
}

// add takes in what a row gives to a block; nothing if it is not finite, which is a fact about the row.
func (p *person) add(form Form, block int, v []float64) {
	if slices.ContainsFunc(v, func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) }) {
		return
	}
	if form == Vectors {
		if i := slices.IndexFunc(p.parts, func(o fixed.Part) bool { return o.Block == block }); i >= 0 {
			for j, x := range v {
				p.parts[i].Vector[j] += x
			}
			return
		}
	}
	p.parts = append(p.parts, fixed.Part{Block: block, Vector: slices.Clone(v)})
}

// addPeople adds up what persons contribute. A person is kept in memory from the first row to the last, which
// one reading before has found. If the data have changed since, later rows count as nothing, and still nobody is
// two records.
func (s *Session) addPeople(ctx context.Context, t total, chosen func() (bool, error),
	contribution func(*dataset.Row, []float64) int) error {
	last, err := s.gate.lastRows(ctx, s.tolerant())
	if err != nil {
		return readError(t.declared.Name, err)
	}
	open := map[string]*person{}
	v := make([]float64, slices.Max(t.declared.Blocks))
	var shown dataset.Row
	at := -1
	for row, err := range s.tolerant().Rows(ctx) {
		if err != nil {
			return readError(t.declared.Name, err)
		}
		at++
		end, known := last[row.Person]
		if row.Person == "" || !known || at > end {
			continue
		}
		p := open[row.Person]
		if p == nil {
			p = &person{}
			if p.in, err = chosen(); err != nil {
				return err
			}
			open[row.Person] = p
		}
		if p.in {
			clear(v)
			shown = *row
			shown.Person = "" // no method learns whose a row is
			if block := contained(&shown, v, contribution); block >= 0 && block < len(t.declared.Blocks) {
				p.add(t.declared.Form, block, v[:t.declared.Blocks[block]])
			}
		}
		if at == end {
			if err := t.sum.AddParts(p.parts); err != nil {
				return err
			}
			delete(open, row.Person)
		}
	}
	for _, who := range slices.Sorted(maps.Keys(open)) {
		if err := t.sum.AddParts(open[who].parts); err != nil {
			return err
		}
	}
	return nil
}

// lastRows is the place of each person's last row in the data, which are read for it once.
func (g *Gate) lastRows(ctx context.Context, data dataset.Source) (map[string]int, error) {
	g.mu.Lock()
	last := g.last
	g.mu.Unlock()
	if last != nil {
		return last, nil
	}
	last = map[string]int{}
	at := 0
	for row, err := range data.Rows(ctx) {
		if err != nil {
			return nil, err
		}
		last[row.Person] = at
		at++
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	g.mu.Lock()
	g.last = last
	g.mu.Unlock()
	return last, nil
}
