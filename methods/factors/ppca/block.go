package ppca

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"parley/internal/linalg"
)

// Block is the sufficient statistics of subjects who share the same observed
// features: their number, mean and scatter matrix
// S = Σ (t − mean)(t − mean)ᵀ, which comes in one of two forms:
//
//   - dense: Scatter holds all of S;
//   - factored: S = Fᵀ F + diag(Diag), cheaper when F has few rows. For
//     subjects, F is their centred rows, or a root of their scatter.
//
// The E step gives the same numbers for either.
type Block struct {
	Features []int     // observed, ascending; p of them
	N        float64   // number of subjects
	Mean     []float64 // p
	Scatter  []float64 // dense form: p × p by rows, symmetric; nil otherwise
	Factor   []float64 // factored form: r × p by rows
	Diag     []float64 // factored form: p, or nil for zero
	// Rest is what neither tells of the diagonal of S, p of them, where a site told of S along [Directions] only; nil
	// for zero. It counts as noise: nothing goes along with it.
	Rest []float64
	// Products is S V, p × r by rows, where a site tells of S along r directions V, with the diagonal of S as Diag: a
	// form that travels, from [Block.Along] to [Block.Resolve].
	Products []float64
	// Filled counts the cells of each feature, p of them, that [Describe] filled; nil if there are none.
	Filled []float64

	squares []float64 // what [Block.Squares] writes, once a fit has worked it out
}

// Rows returns the number of rows of the factor.
func (b *Block) Rows() int { return len(b.Factor) / len(b.Features) }

// Check says what is wrong with a block that came from elsewhere.
func (b *Block) Check(l Layout) error {
	if err := l.CheckFeatures(b.Features); err != nil {
		return fmt.Errorf("block: %w", err)
	}
	p := len(b.Features)
	if !(b.N >= Least && b.N <= Largest) {
		return fmt.Errorf("block: count %v is not positive and finite", b.N)
	}
	if len(b.Mean) != p {
		return fmt.Errorf("block: mean has %d entries for %d features", len(b.Mean), p)
	}
	if b.Scatter != nil {
		if len(b.Scatter) != p*p || b.Factor != nil || b.Diag != nil {
			return fmt.Errorf("block: dense scatter has %d entries for %d features, or comes with a factor",
				len(b.Scatter), p)
		}
		for i := range p {
			if b.Scatter[i*p+i] < 0 {
				return fmt.Errorf("block: negative sum of squares for feature %d", b.Features[i])
			}
			column := b.Scatter[i:]
			for j, x := range b.Scatter[i*p:][:i+1] {
				if x != column[j*p] {
					return fmt.Errorf("block: scatter is not symmetric at features %d and %d", b.Features[i],
						b.Features[j])
				}
				if !(math.Abs(x) <= Largest) {
					return Finite("block: scatter", b.Scatter)
				}
			}
		}
	} else if len(b.Factor)%p != 0 {
		return fmt.Errorf("block: factor has %d entries for %d features", len(b.Factor), p)
	}
	for _, x := range [][]float64{b.Diag, b.Rest} {
		if err := Numbers("block: diagonal", p, 0, x); x != nil && err != nil {
			return err
		}
	}
	if b.Filled != nil && (len(b.Filled) != p || slices.Min(b.Filled) < 0 || !(slices.Max(b.Filled) <= b.N)) {
		return fmt.Errorf("block: cells of %d features filled, of %d, or more than its %v subjects",
			len(b.Filled), p, b.N)
	}
	return cmp.Or(Finite("block: means", b.Mean), Finite("block: factors", b.Factor),
		Finite("block: products", b.Products))
}

// Squares writes the diagonal of S.
func (b *Block) Squares(dst []float64) {
	p := len(b.Features)
	if b.squares != nil {
		copy(dst, b.squares)
		return
	}
	if b.Scatter != nil {
		for j := range p {
			dst[j] = b.Scatter[j*p+j]
		}
	} else {
		clear(dst[:p])
		copy(dst, b.Diag)
	}
	for j, x := range b.Rest {
		dst[j] += x
	}
	for r := range b.Rows() {
		for j, x := range b.Factor[r*p:][:p] {
			dst[j] += x * x
		}
	}
}

// Quadratic returns uᵀS u.
func (b *Block) Quadratic(u []float64) (sum float64) {
	p := len(b.Features)
	if b.Scatter != nil {
		for i, x := range u {
			if x != 0 {
				sum += x * floats.Dot(b.Scatter[i*p:][:p], u)
			}
		}
		return sum
	}
	for row := range slices.Chunk(b.Factor, p) {
		x := floats.Dot(row, u)
		sum += x * x
	}
	for i, x := range b.Diag {
		sum += x * u[i] * u[i]
	}
	return sum
}

// addTimes adds S X to a thin matrix, X of q columns; what is said of the diagonal alone is not in it.
func (b *Block) addTimes(dst, x []float64, q int) {
	p, ld := len(b.Features), linalg.Stride(q)
	if r := b.Rows(); b.Scatter != nil {
		linalg.MulAdd(dst, b.Scatter, p, 1, x, p, p, q)
	} else if r > 0 {
		fx := make([]float64, r*ld)
		linalg.MulAdd(fx, b.Factor, p, 1, x, r, p, q)
		linalg.MulAdd(dst, b.Factor, 1, p, fx, p, r, q)
	}
	for i, y := range b.Diag {
		floats.AddScaled(dst[i*ld:][:ld], y, x[i*ld:][:ld])
	}
}

// Dense returns the block with its scatter in dense form.
func (b *Block) Dense() Block {
	if b.Scatter != nil {
		return *b
	}
	p := len(b.Features)
	s := make([]float64, p*p)
	addSquare(s, b.Factor, p)
	for i, x := range b.Diag {
		s[i*p+i] += x
	}
	return Block{Features: b.Features, N: b.N, Mean: b.Mean, Scatter: s, Filled: b.Filled, Rest: b.Rest}
}

// addSquare adds FᵀF to a symmetric p × p matrix, F of p columns. Columns of the
// result are worked out some at a time, down to the diagonal.
func addSquare(s, f []float64, p int) {
	const width = 64
	rows := len(f) / p
	ld := linalg.Stride(min(width, p))
	b, c := make([]float64, rows*ld), make([]float64, p*ld)
	for from := 0; from < p; from += width {
		w := min(width, p-from)
		wide := linalg.Stride(w)
		clear(b)
		for r := range rows {
			copy(b[r*wide:][:w], f[r*p+from:])
		}
		m := from + w
		clear(c[:m*wide])
		linalg.MulAdd(c, f, 1, p, b, m, rows, w)
		for i := range m {
			for j := max(i, from); j < m; j++ {
				x := s[i*p+j] + c[i*wide+j-from]
				s[i*p+j], s[j*p+i] = x, x
			}
		}
	}
}

// Take refuses what no site could say of its subjects.
func (b *Block) Take(l Layout) error {
	squares := b.N * LargestValue * LargestValue
	if err := cmp.Or(
		b.Check(l),
		Counts("moments: subjects, cells filled", append([]float64{b.N}, b.Filled...), LargestCount),
		Within("moments: means", b.Mean, LargestValue),
		Within("moments: scatter", b.Scatter, squares),
		Within("moments: factors", b.Factor, math.Sqrt(b.N)*LargestValue),
		Within("moments: rest of the diagonal", slices.Concat(b.Diag, b.Rest), squares),
	); err != nil {
		return err
	}
	return b.possible()
}

// possible refuses a scatter matrix that no data have, more than rounding aside: a fit to one may fail. It is judged as
// correlations, so that units have no part in it. What does not vary goes with nothing.
func (b *Block) possible() error {
	if b.Scatter == nil { // FᵀF + diag is always one
		return nil
	}
	p := len(b.Features)
	var root, c []float64
	room := linalg.Allot(linalg.Each(p*p, &c), linalg.Each(p, &root))
	defer room.Release()
	const rounding = 1e-6
	for i := range p {
		root[i] = math.Sqrt(b.Scatter[i*p+i])
		for j := range i {
			if s := root[i] * root[j]; s > 0 {
				c[i*p+j] = b.Scatter[i*p+j] / s
			} else {
				b.Scatter[i*p+j], b.Scatter[j*p+i] = 0, 0
			}
		}
		c[i*p+i] = 1 + rounding
	}
	if _, ok := linalg.Cholesky(c, p, p); !ok {
		return fmt.Errorf("moments: a scatter matrix that no subjects have")
	}
	return nil
}

// Merge adds blocks on the same features, in the order given, and returns them in
// canonical order. The sum is factored as long as that is cheaper to fit.
func Merge(blocks []Block) []Block {
	slices.SortStableFunc(blocks, func(a, b Block) int { return slices.Compare(a.Features, b.Features) })
	var out []Block
	for len(blocks) > 0 {
		n := 1
		for n < len(blocks) && slices.Equal(blocks[n].Features, blocks[0].Features) {
			n++
		}
		out = append(out, mergeSame(blocks[:n])...)
		blocks = blocks[n:]
	}
	return out
}

// mergeSame adds blocks on the same features.
func mergeSame(blocks []Block) []Block {
	if len(blocks) == 1 {
		return blocks
	}
	// Two blocks' means scatter about their common one by N₁N₂/(N₁+N₂) Δ Δᵀ.
	p := len(blocks[0].Features)
	out := Block{Features: blocks[0].Features, Mean: make([]float64, p)}
	rows := len(blocks) - 1
	for i := range blocks {
		rows += blocks[i].Rows()
	}
	out.Factor = make([]float64, 0, rows*p)
	for i := range blocks {
		b := &blocks[i]
		out.Factor = append(out.Factor, b.Factor...)
		plus(&out.Diag, b.Diag)
		plus(&out.Rest, b.Rest)
		plus(&out.Filled, b.Filled)
		if b.Scatter != nil {
			if out.Scatter == nil {
				out.Scatter = make([]float64, p*p)
			}
			floats.Add(out.Scatter, b.Scatter)
		}
		n := out.N + b.N
		size := math.Sqrt(out.N * b.N / n)
		for k, m := range b.Mean {
			delta := m - out.Mean[k]
			if i > 0 {
				out.Factor = append(out.Factor, size*delta)
			}
			out.Mean[k] += delta * b.N / n
		}
		out.N = n
	}
	if out.Scatter == nil && (2*out.Rows() < p || out.Rest != nil) {
		return []Block{out}
	}
	// The matrix is no dearer.
	if out.Scatter == nil {
		out.Scatter = make([]float64, p*p)
	}
	addSquare(out.Scatter, out.Factor, p)
	for k, x := range out.Diag {
		out.Scatter[k*p+k] += x
	}
	out.Factor, out.Diag = nil, nil
	return []Block{out}
}

// plus adds numbers to others, of which nil stands for zeros.
func plus(to *[]float64, x []float64) {
	if x != nil && *to == nil {
		*to = make([]float64, len(x))
	}
	for i, y := range x {
		(*to)[i] += y
	}
}

// Subjects is how many subjects some blocks have.
func Subjects(blocks []Block) (n float64) {
	for i := range blocks {
		n += blocks[i].N
	}
	return n
}

// Means returns of each feature of the layout how many subjects of the blocks have it, their mean, and the sum of
// squares about that.
func Means(l Layout, blocks []Block) (n, mean, squares []float64) {
	d := l.Features()
	n, mean, squares = make([]float64, d), make([]float64, d), make([]float64, d)
	own := make([]float64, d)
	for i := range blocks {
		b := &blocks[i]
		b.Squares(own)
		for a, j := range b.Features {
			delta := b.Mean[a] - mean[j]
			squares[j] += own[a] + delta*delta*n[j]*b.N/(n[j]+b.N)
			n[j] += b.N
			mean[j] += delta * b.N / n[j]
		}
	}
	return n, mean, squares
}

// About is the blocks about a mean of each feature of the layout, of so much of their subjects.
func About(blocks []Block, mean []float64, share float64) []Block {
	out := make([]Block, 0, len(blocks))
	for _, b := range blocks {
		if b.N *= share; b.N == 0 {
			continue
		}
		b.Mean, b.Filled = slices.Clone(b.Mean), slices.Clone(b.Filled)
		for a, j := range b.Features {
			b.Mean[a] -= mean[j]
		}
		for i := range b.Filled {
			b.Filled[i] *= share
		}
		out = append(out, b)
	}
	return out
}

// Pattern counts the subjects of a site who have the same views.
type Pattern struct {
	Views    []int   `cbor:"views"` // ascending: those with at least one observed cell
	Subjects int     `cbor:"subjects"`
	Share    float64 `cbor:"share"` // of the cells in these views which were observed, in (0, 1]
}

// Patterns counts the subjects in the blocks by the views they have, in order
// of views.
func Patterns(l Layout, blocks []Block) []Pattern {
	var out []Pattern
	for i := range blocks {
		b := &blocks[i]
		views := l.ViewsOf(b.Features)
		at, found := slices.BinarySearchFunc(out, views, func(p Pattern, v []int) int {
			return slices.Compare(p.Views, v)
		})
		if !found {
			out = slices.Insert(out, at, Pattern{Views: views})
		}
		out[at].Subjects += int(b.N)
		out[at].Share += b.N * float64(len(b.Features)) // observed cells, for now
	}
	for i := range out {
		out[i].Share /= float64(out[i].Subjects * l.Width(out[i].Views))
	}
	return out
}
