package ppca

import "slices"

// Pattern counts the subjects of a site who have the same views.
type Pattern struct {
	Views    []int   // ascending: those with at least one observed cell
	Subjects float64 // whole at a site
	Share    float64 // of the cells in these views which were observed, in (0, 1]
}

// Patterns counts the subjects in the blocks by the views they have, in order
// of views.
func Patterns(l Layout, blocks []Block) []Pattern {
	var out []Pattern
	for i := range blocks {
		b := &blocks[i]
		views := l.ViewsOf(b.Features)
		at, found := slices.BinarySearchFunc(out, views, func(p Pattern, v []int) int { return slices.Compare(p.Views, v) })
		if !found {
			out = slices.Insert(out, at, Pattern{Views: views})
		}
		out[at].Subjects += b.N
		out[at].Share += b.N * float64(len(b.Features)) // observed cells, for now
	}
	for i := range out {
		cells := 0
		for _, k := range out[i].Views {
			cells += l.Dims[k]
		}
		out[i].Share /= out[i].Subjects * float64(cells)
	}
	return out
}
