package ppca

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"

	"parley/internal/linalg"
)

// Accumulator turns subjects, read one by one, into blocks, and keeps each feature's extremes. It holds one
// pattern per set of observed features: its rows while they are so few that
// the rows are cheaper to multiply by than a scatter matrix, and the scatter
// matrix from then on. Memory is thus bounded by the patterns, not by the
// subjects, unless nearly every subject has a pattern of their own.
type Accumulator struct {
	layout   Layout
	patterns map[string]*pattern
	extremes *FeatureSums
	mask     []byte    // scratch: which features are observed
	values   []float64 // scratch: the observed values
}

// pattern is the subjects with one set of observed features.
type pattern struct {
	features []int
	rows     []float64 // n × p, until scatter takes over
	scatter  *linalg.Scatter
}

// NewAccumulator returns an empty accumulator.
func NewAccumulator(l Layout) *Accumulator {
	d := l.Features()
	return &Accumulator{layout: l, patterns: make(map[string]*pattern), extremes: newFeatureSums(d),
		mask: make([]byte, (d+7)/8), values: make([]float64, 0, d)}
}

// Add takes in one subject: views[k] holds the values of view k, NaN where a
// cell was not observed, nil where the view is lacking. A subject without any
// value is ignored. The values are copied.
func (a *Accumulator) Add(views [][]float64) error {
	if err := cmp.Or(a.layout.checkSubject(views), Measured(views)); err != nil {
		return err
	}
	clear(a.mask)
	a.values = a.values[:0]
	for j, x := range a.layout.Values(views, nil) {
		a.extremes.add(j, 1, x, x, true)
		a.mask[j/8] |= 1 << (j % 8)
		a.values = append(a.values, x)
	}
	if len(a.values) == 0 {
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

// checkSubject says what is wrong with a subject's rows of the views, each nil where the view is lacking.
func (l Layout) checkSubject(views [][]float64) error {
	if len(views) != len(l.Dims) {
		return fmt.Errorf("subject has %d views, the layout %d", len(views), len(l.Dims))
	}
	for k, row := range views {
		if row != nil && len(row) != l.Dims[k] {
			return fmt.Errorf("subject has %d values in view %d, the layout %d", len(row), k, l.Dims[k])
		}
	}
	return nil
}

// Measured refuses values of a subject that no measurement has.
func Measured(views [][]float64) error {
	for k, row := range views {
		if i := slices.IndexFunc(row, BeyondMeasure); i >= 0 {
			return fmt.Errorf("value %d of view %d is beyond %g: no measurement is as large", i+1, k+1, LargestValue)
		}
	}
	return nil
}

// Values are a subject's, feature by feature, in the units of a scale if there is one: none where a cell is NaN, which
// was not observed, or a view is nil, which is lacking.
func (l Layout) Values(views [][]float64, s *Scale) iter.Seq2[int, float64] {
	return func(yield func(int, float64) bool) {
		lo := 0
		for k, row := range views {
			for i, x := range row {
				if math.IsNaN(x) {
					continue
				}
				if s != nil {
					x = (x - s.Shift[lo+i]) * s.Factor[lo+i]
				}
				if !yield(lo+i, x) {
					return
				}
			}
			lo += l.Dims[k]
		}
	}
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

// Classes numbers the sets of blocks that observe a feature, in order of first
// feature, and lists the numbers that each block needs.
func Classes(d int, blocks []Block) (class []int, blockClasses [][]int) {
	seen := make([][]byte, d) // the blocks, four bytes each
	size := 4 * min(len(blocks), 4)
	room := make([]byte, d*size)
	for j := range seen {
		seen[j] = room[j*size:][:0:size]
	}
	for i := range blocks {
		for _, j := range blocks[i].Features {
			seen[j] = append(seen[j], byte(i), byte(i>>8), byte(i>>16), byte(i>>24))
		}
	}
	number := make(map[string]int)
	class = make([]int, d)
	for j, s := range seen {
		if class[j] = -1; len(s) == 0 {
			continue
		}
		c, ok := number[string(s)]
		if !ok {
			c = len(number)
			number[string(s)] = c
		}
		class[j] = c
	}
	blockClasses = make([][]int, len(blocks))
	last := make([]int, len(number)) // 1 + the block that listed the class last
	for i := range blocks {
		for _, j := range blocks[i].Features {
			if c := class[j]; last[c] != i+1 {
				last[c] = i + 1
				blockClasses[i] = append(blockClasses[i], c)
			}
		}
	}
	return class, blockClasses
}
