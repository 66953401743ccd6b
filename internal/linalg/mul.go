package linalg

import (
	"math"
	"math/bits"
	"sync"
)

// MulAdd adds A·B to C, where A is m × n with element (i, k) at a[i·ra + k·ca],
// and B (n × p) and C (m × p) are thin: stride Stride(p), padding zero. With
// ra = 1 and ca = stride it multiplies by a transpose.
//
// C must not overlap A or B.
func MulAdd(c, a []float64, ra, ca int, b []float64, m, n, p int) {
	if m <= 0 || n <= 0 || p <= 0 {
		return
	}
	ld := Stride(p)
	c, b = c[:m*ld], b[:n*ld]
	_ = a[(m-1)*ra+(n-1)*ca]
	if !vector {
		mulAddGo(n, a, ra, ca, b, ld, c, ld, m, p)
		return
	}
	j, most := 0, 0 // rows that wide tiles have done
	if wide {
		most = m &^ (wideRows - 1)
	}
	for ; most > 0 && j+2*lanes <= ld; j += 2 * lanes {
		for i := 0; i < most; i += wideRows {
			mulAdd8x16(n, &a[i*ra], ra, ca, &b[j], ld, &c[i*ld+j], ld)
		}
	}
	if j < ld {
		for i := 0; i < most; i += wideRows {
			mulAdd8x8(n, &a[i*ra], ra, ca, &b[j], ld, &c[i*ld+j], ld)
		}
	}
	if most == m {
		return
	}
	for j := 0; j < p; j += lanes {
		i := most
		for ; i+tileRows <= m; i += tileRows {
			mulAdd4x8(n, &a[i*ra], ra, ca, &b[j], ld, &c[i*ld+j], ld)
		}
		for ; i < m; i++ {
			// With strides of zero the tile is one row, worked out four times over.
			mulAdd4x8(n, &a[i*ra], 0, ca, &b[j], ld, &c[i*ld+j], 0)
		}
	}
}

// mulAddGo is the portable twin of mulAdd4x8 for a tile of any size.
func mulAddGo(n int, a []float64, ra, ca int, b []float64, ldb int, c []float64, ldc, m, p int) {
	for i := range m {
		ci := c[i*ldc:][:p]
		for k := range n {
			x, bk := a[i*ra+k*ca], b[k*ldb:][:p]
			for j, y := range bk {
				ci[j] = math.FMA(x, y, ci[j])
			}
		}
	}
}

// Workspace is the memory of slices that belong together. A site of a few subjects may need more
// time to make them than to work in them, so workspaces that are released serve again.
type Workspace struct{ numbers []float64 }

// released are workspaces of 2ᵏ numbers, by k. Larger ones are not worth keeping.
var released [16]sync.Pool

// alike are slices of as many numbers each.
type alike struct {
	n  int
	of []*[]float64
}

// Each lists slices of n numbers each for [Allot].
func Each(n int, of ...*[]float64) alike { return alike{n, of} }

// Allot makes slices of zeros.
func Allot(slices ...alike) Workspace {
	n := 0
	for _, g := range slices {
		n += g.n * len(g.of)
	}
	var w Workspace
	var rest []float64
	if k := bits.Len(uint(max(n, 1) - 1)); k >= len(released) {
		rest = make([]float64, n)
	} else if kept, ok := released[k].Get().(*[]float64); ok {
		w.numbers, rest = *kept, (*kept)[:n]
		clear(rest)
	} else {
		w.numbers = make([]float64, 1<<k)
		rest = w.numbers
	}
	for _, g := range slices {
		for _, to := range g.of {
			*to, rest = rest[:g.n:g.n], rest[g.n:]
		}
	}
	return w
}

// Release gives the memory to others: nobody may look at the slices any more. Whoever does not know
// that leaves it to the garbage collector.
func (w *Workspace) Release() {
	if numbers := w.numbers; numbers != nil {
		w.numbers = nil
		released[bits.Len(uint(len(numbers)-1))].Put(&numbers)
	}
}

// chunk is how many rows Scatter gathers before it multiplies: few enough to
// stay in the cache, enough that loading and storing the tiles is cheap.
const chunk = 96

// Scatter accumulates count, mean and scatter matrix Σ (x − mean)(x − mean)ᵀ of
// rows in one pass and O(d²) memory. Rows are centred at the mean of the first
// chunk before they are multiplied, and one rank-one term corrects for that at
// the end, so nothing large cancels.
type Scatter struct {
	d, stride int
	n         int       // rows multiplied so far
	fill      int       // rows waiting in panels
	shift     []float64 // mean of the first chunk
	sum       []float64 // Σ (x − shift)
	c         []float64 // upper tiles of Σ (x − shift)(x − shift)ᵀ, stride × stride
	panels    []float64 // the chunk, column panels of 8, each row by row; nil before a row and after a result
}

// NewScatter returns an empty accumulator for rows of d > 0 values.
func NewScatter(d int) *Scatter {
	s := Stride(d)
	return &Scatter{d: d, stride: s, sum: make([]float64, d), c: make([]float64, s*s)}
}

// unused are panels of accumulators that have given their result, for others: of few columns they
// take more memory than all else.
var unused sync.Pool

// prepare makes room for a chunk.
func (s *Scatter) prepare() {
	n := chunk * s.stride
	if kept, ok := unused.Get().(*[]float64); ok && cap(*kept) >= n {
		s.panels = (*kept)[:n]
		clear(s.panels[n-chunk*lanes:]) // where columns are padded
		return
	}
	s.panels = make([]float64, n)
}

// Add takes in one row, which is copied.
func (s *Scatter) Add(row []float64) {
	if len(row) != s.d {
		panic("kernel: row of another length")
	}
	if s.panels == nil {
		s.prepare()
	}
	at := s.fill * lanes
	for len(row) > lanes {
		copy(s.panels[at:at+lanes], row)
		row, at = row[lanes:], at+chunk*lanes
	}
	copy(s.panels[at:at+lanes], row)
	if s.fill++; s.fill == chunk {
		s.flush()
	}
}

// N returns how many rows were added.
func (s *Scatter) N() int { return s.n + s.fill }

// Result writes the mean (d) and the full symmetric scatter matrix (d × d, by
// rows). More rows may follow.
func (s *Scatter) Result(mean, scatter []float64) {
	s.flush()
	if s.panels != nil {
		panels := s.panels
		unused.Put(&panels)
		s.panels = nil
	}
	d := s.d
	if s.n == 0 {
		clear(mean[:d])
		clear(scatter[:d*d])
		return
	}
	n := float64(s.n)
	for i := range d {
		mean[i] = s.shift[i] + s.sum[i]/n
		for j := i; j < d; j++ {
			v := s.c[i*s.stride+j] - s.sum[i]*s.sum[j]/n
			scatter[i*d+j], scatter[j*d+i] = v, v
		}
	}
}

// flush centres the waiting rows and adds their products.
func (s *Scatter) flush() {
	rows := s.fill
	if rows == 0 {
		return
	}
	if s.shift == nil {
		s.shift = make([]float64, s.d)
		for j := range s.d {
			col := s.panels[(j/lanes)*chunk*lanes+j%lanes:]
			t := 0.0
			for r := range rows {
				t += col[r*lanes]
			}
			s.shift[j] = t / float64(rows)
		}
	}
	for j := range s.d {
		col := s.panels[(j/lanes)*chunk*lanes+j%lanes:]
		shift, t := s.shift[j], s.sum[j]
		for r := range rows {
			x := col[r*lanes] - shift
			col[r*lanes] = x
			t += x
		}
		s.sum[j] = t
	}
	for j := 0; j < s.stride; j += lanes {
		b := s.panels[(j/lanes)*chunk*lanes:]
		for i := 0; wide && i <= j; i += lanes {
			mulAdd8x8(rows, &s.panels[(i/lanes)*chunk*lanes], 1, lanes, &b[0], lanes, &s.c[i*s.stride+j], s.stride)
		}
		for i := 0; !wide && i < j+lanes; i += tileRows {
			a := s.panels[(i/lanes)*chunk*lanes+i%lanes:]
			c := s.c[i*s.stride+j:]
			if vector {
				mulAdd4x8(rows, &a[0], 1, lanes, &b[0], lanes, &c[0], s.stride)
			} else {
				mulAddGo(rows, a, 1, lanes, b, lanes, c, s.stride, tileRows, lanes)
			}
		}
	}
	s.n += rows
	s.fill = 0
}
