package fixed

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"parley/privacy/internal/noise"
)

// maxEntries bounds the numbers that one Sum may hold, maxLength a vector.
const (
	maxEntries = 1 << 26
	maxLength  = 1 << 20
)

// Sum adds up records in integers and releases the sums with noise, once. It is
// used by one goroutine.
type Sum struct {
	grid     Grid
	lengths  []int
	sums     [][]int64
	left     int64 // records that may still come
	v        []float64
	q        []int64
	one      [1]Part
	released bool
}

// Part is a vector of a record, for one block.
type Part struct {
	Block  int
	Vector []float64
}

// NewSum returns empty sums for blocks of the given lengths: a record is one
// vector of the length of one of them, or several. records bounds how many will be added
// and must not depend on the data. It is an error if that many could leave the
// range of the integers, so that no sum can overflow later.
func NewSum(g Grid, blocks []int, records int64) (*Sum, error) {
	power := uint(1)
	if g.Form == Moments {
		power = 2
	}
	if g.Limit < 1 || g.Noise == nil {
		return nil, errors.New("a sum without a grid")
	}
	most := int64(1) << (sumLog - power*uint(bits.Len64(uint64(g.Limit))-1))
	if records < 1 || records > most {
		return nil, fmt.Errorf("sums of up to %d records: integers of 64 bits hold between 1 and %d on this grid",
			records, most)
	}
	s := &Sum{grid: g, lengths: append([]int(nil), blocks...), left: records}
	if len(blocks) == 0 {
		return nil, errors.New("a sum without blocks")
	}
	room := maxEntries
	for i, n := range blocks {
		if n < 1 || n > maxLength || g.entries(n) > room {
			return nil, fmt.Errorf("block %d of length %d: want 1 to %d, and no more than %d numbers in all blocks", i,
				n, maxLength, maxEntries)
		}
		room -= g.entries(n)
	}
	for _, n := range blocks {
		s.sums = append(s.sums, make([]int64, g.entries(n)))
	}
	return s, nil
}

// entries is how many numbers the sum over vectors of length n has.
func (g Grid) entries(n int) int {
	if g.Form == Moments {
		return n * (n + 1) / 2
	}
	return n
}

// Add adds one record that has one vector: see [Sum.AddParts].
func (s *Sum) Add(block int, v []float64) error {
	s.one[0] = Part{block, v}
	return s.AddParts(s.one[:])
}

// AddParts adds one record of several vectors, which are clipped and rounded together as one long
// vector: of Vectors at most one for each block, of Moments any number. A record with NaN or infinite
// entries, or of more than 2²⁰, contributes nothing; nobody is told, since that would be about data.
// Vectors are not changed. Errors are the caller's mistakes: a block or a length that was not
// declared, more records than that, or sums that are released.
func (s *Sum) AddParts(parts []Part) error {
	switch {
	case s.released:
		return errors.New("a record is added to sums that are released")
	case s.left == 0:
		return errors.New("more records are added than the sum was made for")
	}
	length := 0
	for i, p := range parts {
		switch {
		case p.Block < 0 || p.Block >= len(s.sums):
			return fmt.Errorf("a record for block %d: there are %d", p.Block, len(s.sums))
		case len(p.Vector) != s.lengths[p.Block]:
			return fmt.Errorf("a record of %d values for block %d: want %d", len(p.Vector), p.Block, s.lengths[p.Block])
		}
		for _, o := range parts[:i] {
			if s.grid.Form == Vectors && o.Block == p.Block {
				return fmt.Errorf("a record has two vectors for block %d", p.Block)
			}
		}
		length += len(p.Vector)
	}
	s.left--
	if length > maxLength {
		return nil
	}
	s.v = s.v[:0]
	for _, p := range parts {
		s.v = append(s.v, p.Vector...)
	}
	if cap(s.q) < length {
		s.q = make([]int64, length)
	}
	s.q = s.q[:length]
	err := s.grid.quantise(s.q, s.v)
	if errors.Is(err, ErrNotFinite) {
		return nil
	}
	if err != nil {
		return err
	}
	q := s.q
	for _, p := range parts {
		own, sum := q[:len(p.Vector)], s.sums[p.Block]
		q = q[len(own):]
		if s.grid.Form == Moments {
			addOuter(sum, own)
			continue
		}
		for i, x := range own {
			sum[i] += x
		}
	}
	return nil
}

// addOuter adds q qᵀ, on and above the diagonal.
func addOuter(sum, q []int64) {
	for len(q) > 0 {
		x, row := q[0], sum[:len(q)]
		for j, y := range q {
			row[j] += x * y
		}
		sum, q = sum[len(q):], q[1:]
	}
}

// quantise clips v, which it overwrites, and writes it to q in steps, with a
// norm of at most Limit as exact integers.
//
// Entries are rounded to nearest, which has no bias to speak of (truncation
// would take half a step from every entry of every record, more than the noise
// once there are thousands). Only where the rounded vector is too long, which
// happens to clipped records alone or nearly so, it is truncated instead. That
// always fits: the clipped norm is at most Bound·(1 − 2.5u), the factor
// Limit/Bound and the product add at most u each, so that in exact arithmetic
// ‖v·Limit/Bound‖ ≤ Limit, and no entry grows when it is cut.
func (g Grid) quantise(q []int64, v []float64) error {
	steps := float64(float64(g.Limit) / g.Bound)
	shrunk, ok := g.quickly(v)
	if ok {
		steps = float64(steps * shrunk)
	} else if _, _, err := Clip(v, g.Bound, g.Norm); err != nil {
		return err
	}
	for i, x := range v {
		x = float64(x * steps)
		v[i], q[i] = x, int64(math.RoundToEven(x))
	}
	if !g.fits(q) {
		for i, x := range v {
			q[i] = int64(x)
		}
	}
	return nil
}

// quickly returns the factor that clips v, for vectors whose plain sum of
// squares serves: no square overflows, and those that underflow do not count.
// It is then within a factor 1 ± 2⁻³² of the exact one (2²⁰ additions, u each),
// so that a margin of 2⁻³⁰ in what passes, and of 2⁻³¹ in what is shrunk,
// leaves the norm further below the bound than [Clip] does.
func (g Grid) quickly(v []float64) (factor float64, ok bool) {
	if g.Norm != L2 {
		return 0, false
	}
	var a, b, c, d float64
	w := v
	for len(w) >= 4 { // four sums, or each addition waits for the last
		a += w[0] * w[0]
		b += w[1] * w[1]
		c += w[2] * w[2]
		d += w[3] * w[3]
		w = w[4:]
	}
	for _, x := range w {
		a += x * x
	}
	sum := a + b + c + d
	switch bound := float64(g.Bound * g.Bound); {
	case !(sum >= 0x1p-900 && sum <= 0x1p1000 && bound >= 0x1p-900): // NaN too
		return 0, false
	case sum <= float64(bound*(1-0x1p-30)):
		return 1, true
	default:
		return float64(float64(g.Bound/math.Sqrt(sum)) * (1 - 0x1p-31)), true
	}
}

// fits reports whether the norm of q is at most Limit, exactly. Entries are
// below 2⁵³ and at most 2²⁰ in number: 128 bits hold all.
func (g Grid) fits(q []int64) bool {
	if g.Norm == L2 && 2*bits.Len64(uint64(g.Limit))+bits.Len(uint(len(q))) <= 62 {
		// 64 bits hold the sum of entries up to twice the limit.
		var sum, all uint64
		for _, x := range q {
			a := uint64(max(x, -x))
			sum += a * a
			all |= a
		}
		return all < 2*uint64(g.Limit) && sum <= uint64(g.Limit)*uint64(g.Limit)
	}
	var high, low, carry uint64
	for _, x := range q {
		a := uint64(max(x, -x))
		h, l := uint64(0), a
		if g.Norm == L2 {
			h, l = bits.Mul64(a, a)
		}
		low, carry = bits.Add64(low, l, 0)
		high += h + carry
	}
	limit := uint64(g.Limit)
	h, l := uint64(0), limit
	if g.Norm == L2 {
		h, l = bits.Mul64(limit, limit)
	}
	return high < h || high == h && low <= l
}

// Exact hands the exact sums over, block by block, as long as they have not been
// released. They are not for release: the noise of a sum is tied to them, so that
// other data never meet the same noise.
func (s *Sum) Exact() [][]int64 { return s.sums }

// Release adds noise to every entry and returns the sums, block by block, in
// steps; Moments on and above the diagonal, by rows. All noise is drawn before
// any is added. A second call is an error, since noise drawn again would be
// another release; so is a failing source, after which the sums are wiped.
func (s *Sum) Release(source noise.Source) ([][]int64, error) {
	if s.released {
		return nil, errors.New("sums are released twice")
	}
	s.released = true
	defer func() {
		clear(s.v)
		clear(s.q)
		s.sums = nil
	}()
	added, err := s.noise(source)
	if err == nil {
		for b, sum := range s.sums {
			for i := range sum {
				sum[i] += added[b][i]
			}
		}
	}
	for _, a := range added {
		clear(a)
	}
	if err != nil {
		for _, sum := range s.sums {
			clear(sum)
		}
		return nil, fmt.Errorf("drawing the noise of a release: %w", err)
	}
	return s.sums, nil
}

// noise draws the noise for every entry of every block.
func (s *Sum) noise(source noise.Source) (added [][]int64, err error) {
	samplers, err := s.grid.samplers()
	if err != nil {
		return nil, err
	}
	for b, sum := range s.sums {
		a := make([]int64, len(sum))
		added = append(added, a)
		if err := samplers[1].Fill(a, source); err != nil {
			return added, err
		}
		if s.grid.Form != Moments {
			continue
		}
		diagonal := make([]int64, s.lengths[b])
		if err := samplers[0].Fill(diagonal, source); err != nil {
			return added, err
		}
		at := 0
		for i, x := range diagonal {
			a[at] = x
			at += len(diagonal) - i
		}
		clear(diagonal)
	}
	return added, nil
}
