package ppca

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"

	"gonum.org/v1/gonum/floats"

	"parley/internal/linalg"
)

// Directions are r combinations V of the features, along which a site tells of a scatter matrix S that is too large to
// be sent: S V and the diagonal of S. With those of a model ([DirectionsOf]) these are the sums of its E step. A fit
// takes the least matrix with these products for S, S V (VᵀS V)⁻¹ VᵀS, and counts the rest of the diagonal as noise
// ([Block].Rest). No model is likelier by that than by S, as C⁻¹ is nowhere above Ψ⁻¹, and the model whose directions
// they are is as likely, with the same gradient: a fit that raises the one raises the other.
type Directions struct {
	Count  int
	values func() []float64 // d × Stride(Count), made when they are asked for: most studies never do
}

// flat is the share of the largest eigenvalue of VᵀS V, V in units of S, below which one is rounding.
const flat = 1e-12

// parts are those of the features of which each has directions of its own: views, or every second feature of a single
// one.
func (l Layout) parts() int { return max(l.Views(), 2) }

// DirectionsOf are Ψ⁻¹w for each factor of a model, apart for each view, so that the products tell too what each view
// says of the factors; apart for every second feature where there is one view. They are as many as models of a rank
// have at most, and surplus ones; drawn ones are the rest, always the same, and all without a model. Each has unit
// length.
func DirectionsOf(l Layout, model *Params, rank, surplus int) *Directions {
	n := l.parts()*rank + surplus
	return &Directions{n, sync.OnceValue(func() []float64 { return directions(l, model, n) })}
}

func directions(l Layout, model *Params, n int) []float64 {
	d, ld := l.Features(), linalg.Stride(n)
	values, length := make([]float64, d*ld), make([]float64, n)
	rng := rand.New(rand.NewPCG(uint64(d), uint64(n)))
	view, group := l.ViewOf(), l.GroupOf()
	for j := range d {
		row := values[j*ld:][:n]
		if model != nil {
			part := view[j]
			if l.Views() == 1 {
				part = j % 2
			}
			floats.ScaleTo(row[part*model.Rank:][:model.Rank], 1/model.Noise[group[j]],
				model.W[j*model.Rank:][:model.Rank])
			row = row[l.parts()*model.Rank:]
		}
		for a := range row {
			row[a] = rng.NormFloat64()
		}
		for a, x := range values[j*ld:][:n] {
			length[a] += x * x
		}
	}
	for j := range d {
		for a, x := range length {
			values[j*ld+a] /= max(math.Sqrt(x), Least)
		}
	}
	return values
}

func (v *Directions) row(j int) []float64 { return v.values()[j*linalg.Stride(v.Count):][:v.Count] }

// of are the directions of some features, as [linalg.MulAdd] takes them.
func (v *Directions) of(features []int) []float64 {
	ld := linalg.Stride(v.Count)
	out := make([]float64, len(features)*ld)
	for i, j := range features {
		copy(out[i*ld:], v.row(j))
	}
	return out
}

// Along is what a block says along directions: Products is S V, p × r, and Diag the diagonal of S.
func (b *Block) Along(v *Directions) Block {
	p, n, ld := len(b.Features), v.Count, linalg.Stride(v.Count)
	out := Block{Features: b.Features, N: b.N, Mean: b.Mean, Filled: b.Filled, Diag: make([]float64, p)}
	b.Squares(out.Diag)
	own, sv := v.of(b.Features), make([]float64, p*ld)
	b.addTimes(sv, own, n)
	out.Products = make([]float64, 0, p*n)
	for i := range p {
		out.Products = append(out.Products, sv[i*ld:][:n]...)
	}
	return out
}

// addSquares adds so many times x xᵀ to what a block says along directions.
func (b *Block) addSquares(v *Directions, times float64, x []float64) {
	along := make([]float64, v.Count)
	for i, j := range b.Features {
		floats.AddScaled(along, x[i], v.row(j))
	}
	for i, y := range x {
		floats.AddScaled(b.Products[i*v.Count:][:v.Count], times*y, along)
		b.Diag[i] = max(0, b.Diag[i]+times*y*y)
	}
}

// AboutZero makes what a block says along directions sums of products of values, or, with back set, makes these sums
// of products of deviations from the mean again.
func (b *Block) AboutZero(v *Directions, back bool) {
	times := b.N
	if back {
		times = -times
	}
	b.addSquares(v, times, b.Mean)
}

// join adds further subjects with the same features to what a block says along directions.
func (b *Block) join(other *Block, v *Directions) {
	if b.N == 0 {
		*b = other.Along(v)
		return
	}
	add := other.Along(v)
	floats.Add(b.Products, add.Products)
	floats.Add(b.Diag, add.Diag)
	plus(&b.Filled, add.Filled)
	n, delta, mean := b.N+add.N, make([]float64, len(b.Mean)), make([]float64, len(b.Mean))
	floats.SubTo(delta, add.Mean, b.Mean)
	b.addSquares(v, b.N*add.N/n, delta)
	floats.AddScaledTo(mean, b.Mean, add.N/n, delta)
	b.N, b.Mean = n, mean
}

// Resolve makes of what a block says along directions one that can be fitted. It refuses what no subjects have.
func (b *Block) Resolve(v *Directions) (Block, error) {
	p, n, ld := len(b.Features), v.Count, linalg.Stride(v.Count)
	if len(b.Products) != p*n || len(b.Diag) != p || b.Scatter != nil || len(b.Factor) > 0 {
		return Block{}, fmt.Errorf("block: %d products and %d squares of %d features along %d directions, or others "+
			"beside them", len(b.Products), len(b.Diag), p, n)
	}
	gram, own, unit, most := make([]float64, n*n), v.of(b.Features), make([]float64, n), make([]float64, n)
	for i := range p {
		for a, x := range b.Products[i*n:][:n] {
			floats.AddScaled(gram[a*n:][:n], x, own[i*ld:][:n])
			most[a] += math.Sqrt(b.Diag[i]) * math.Abs(own[i*ld+a])
		}
	}
	const nothing, rounding = 1e-9, 1e-4
	for a, x := range most {
		if g := gram[a*n+a]; g > nothing*x*x {
			unit[a] = 1 / math.Sqrt(g)
		}
	}
	for a := range n {
		for c := range a + 1 {
			x, y := gram[a*n+c]*unit[a]*unit[c], gram[c*n+a]*unit[a]*unit[c]
			if !(math.Abs(x-y) < rounding) {
				return Block{}, fmt.Errorf("block: products with directions %d and %d that no subjects have", a, c)
			}
			gram[a*n+c], gram[c*n+a] = (x+y)/2, (x+y)/2
		}
	}
	e := linalg.NewEigen(n)
	if !e.Factorise(gram, n) || e.Values[0] < -rounding {
		return Block{}, fmt.Errorf("block: products with directions that no subjects have")
	}
	out := Block{Features: b.Features, N: b.N, Mean: b.Mean, Filled: b.Filled, Rest: make([]float64, p)}
	copy(out.Rest, b.Diag)
	row := make([]float64, p)
	for a := n - 1; a >= 0 && e.Values[a] > flat*e.Values[n-1]; a-- {
		clear(row)
		for c := range n {
			size := e.Vectors[c*n+a] * unit[c] / math.Sqrt(e.Values[a])
			for i := range row {
				row[i] += size * b.Products[i*n+c]
			}
		}
		for i, x := range row {
			out.Rest[i] -= x * x
		}
		out.Factor = append(out.Factor, row...)
	}
	for i, x := range out.Rest {
		if x < -rounding*b.Diag[i] {
			return Block{}, fmt.Errorf("block: products of feature %d that no subjects have", b.Features[i])
		}
		out.Rest[i] = max(0, x)
	}
	return out, nil
}
