package ppca

import (
	"fmt"
	"math"
	"slices"

	"parley/internal/linalg"
)

// Accumulator turns subjects, read one by one, into blocks. It holds one
// pattern per set of observed features: its rows while they are so few that
// the rows are cheaper to multiply by than a scatter matrix, and the scatter
// matrix from then on. Memory is thus bounded by the patterns, not by the
// subjects, unless nearly every subject has a pattern of their own.
type Accumulator struct {
	layout   Layout
	scale    *Scale
	patterns map[string]*pattern
	empty    int
	mask     []byte    // scratch: which features are observed
	values   []float64 // scratch: the observed values
}

// pattern is the subjects with one set of observed features.
type pattern struct {
	features []int
	rows     []float64 // n × p, until scatter takes over
	scatter  *linalg.Scatter
}

// NewAccumulator returns an empty accumulator. A nil scale leaves the values alone.
func NewAccumulator(l Layout, s *Scale) (*Accumulator, error) {
	if err := l.Check(); err != nil {
		return nil, err
	}
	if s != nil {
		if err := s.Check(l); err != nil {
			return nil, err
		}
	}
	d := l.Features()
	return &Accumulator{
		layout: l, scale: s,
		patterns: make(map[string]*pattern),
		mask:     make([]byte, (d+7)/8),
		values:   make([]float64, 0, d),
	}, nil
}

// Add takes in one subject: views[k] holds the values of view k, NaN where a
// cell was not observed, nil where the view is lacking. A subject without any
// value is counted by Empty and otherwise ignored. The values are copied.
func (a *Accumulator) Add(views [][]float64) error {
	if len(views) != len(a.layout.Dims) {
		return fmt.Errorf("subject has %d views, the layout %d", len(views), len(a.layout.Dims))
	}
	clear(a.mask)
	a.values = a.values[:0]
	lo := 0
	for k, row := range views {
		if row != nil && len(row) != a.layout.Dims[k] {
			return fmt.Errorf("subject has %d values in view %d, the layout %d", len(row), k, a.layout.Dims[k])
		}
		for i, x := range row {
			if math.IsNaN(x) {
				continue
			}
			j := lo + i
			if a.scale != nil {
				x = (x - a.scale.Shift[j]) * a.scale.Factor[j]
			}
			if math.IsInf(x, 0) {
				return fmt.Errorf("value %d of view %d is infinite", i, k)
			}
			a.mask[j/8] |= 1 << (j % 8)
			a.values = append(a.values, x)
		}
		lo += a.layout.Dims[k]
	}
	if len(a.values) == 0 {
		a.empty++
		return nil
	}
	p, ok := a.patterns[string(a.mask)]
	if !ok {
		p = &pattern{features: make([]int, 0, len(a.values))}
		for j := range a.layout.Features() {
			if a.mask[j/8]&(1<<(j%8)) != 0 {
				p.features = append(p.features, j)
			}
		}
		a.patterns[string(a.mask)] = p
	}
	p.add(a.values)
	return nil
}

// Blocks returns one block per pattern in canonical order: by observed
// features, compared one after the other. More subjects may follow.
func (a *Accumulator) Blocks() []Block {
	blocks := make([]Block, 0, len(a.patterns))
	for _, p := range a.patterns {
		blocks = append(blocks, p.block())
	}
	slices.SortFunc(blocks, func(x, y Block) int { return slices.Compare(x.Features, y.Features) })
	return blocks
}

// add takes in one row. Multiplying by n rows costs 2np, by the scatter
// matrix p²: the rows are given up when the matrix becomes the cheaper.
func (p *pattern) add(row []float64) {
	if p.scatter != nil {
		p.scatter.Add(row)
		return
	}
	d := len(p.features)
	if n := len(p.rows) / d; (n+1)*d > cap(p.rows) { // doubled, but for no more than are kept
		p.rows = slices.Grow(p.rows, d*min(max(n, 2), d/2+1-n))
	}
	p.rows = append(p.rows, row...)
	if 2*len(p.rows) < d*d {
		return
	}
	p.scatter = linalg.NewScatter(d)
	for r := range slices.Chunk(p.rows, d) {
		p.scatter.Add(r)
	}
	p.rows = nil
}

func (p *pattern) block() Block {
	d := len(p.features)
	b := Block{Features: slices.Clone(p.features), Mean: make([]float64, d)}
	if p.scatter != nil {
		b.N = float64(p.scatter.N())
		b.Scatter = make([]float64, d*d)
		p.scatter.Result(b.Mean, b.Scatter)
		for i := range d { // rounding may leave −1e-20 for a constant
			b.Scatter[i*d+i] = max(0, b.Scatter[i*d+i])
		}
		return b
	}
	n := len(p.rows) / d
	b.N = float64(n)
	for r := range slices.Chunk(p.rows, d) {
		for j, x := range r {
			b.Mean[j] += x / b.N
		}
	}
	if n == 1 {
		copy(b.Mean, p.rows)
		return b // a single subject does not scatter
	}
	b.Factor = slices.Clone(p.rows)
	for r := range slices.Chunk(b.Factor, d) {
		for j := range r {
			r[j] -= b.Mean[j]
		}
	}
	return b
}
