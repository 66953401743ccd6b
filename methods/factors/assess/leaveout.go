package assess

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"

	"parley/methods/factors/ppca"
)

const (
	// groupsLeftOut is how many groups of subjects are left out in turn, at most.
	groupsLeftOut = 10
	// Fits of all end by toleranceLeftOut where numbers of factors are compared.
	toleranceLeftOut = 1e-5
)

// Fits to those who are not left out begin at the model of all, and end where two steps move them by less than a ten
// thousandth of a nat a subject, or after ten. Where numbers of factors are compared they go on: a factor too many
// moves slowly, and after a few steps still holds what those who were left out had of it.
var (
	leftOut  = ppca.FitOptions{LeastNoise: ppca.LeastNoise, MaxIter: 10, Tol: 1e-4, Window: 2}
	compared = ppca.FitOptions{LeastNoise: ppca.LeastNoise, MaxIter: 400}
)

// LeaveOut measures predictions of subjects who took no part in the fit: it leaves one site after the other, or one of
// ten groups of sites, out of the sums, fits the model to the others, and has the sums that were left out judge it.
// Where there are fewer than ten sites it does so with random tenths of them too (see [split]), which stand for sites
// where these are fewer than three or one has most subjects. With own set, all is about sites' own means. It returns
// nil where nobody can be left out, or those who are left do not carry the model.
func LeaveOut(l ppca.Layout, p *ppca.Params, own bool, sites [][]ppca.Block, rng *rand.Rand) (*HeldOut, error) {
	start := p.Clone()
	if own {
		clear(start.Mu)
	}
	all, whole, parts := divided(l, own, sites, rng)
	small, without, err := judged(l, &start, parts)
	if err != nil && !errors.Is(err, ppca.ErrCollapsed) {
		return nil, err
	}
	if err != nil || len(small) < 2 {
		return nil, nil
	}
	total, most := 0.0, 0.0
	for _, blocks := range whole {
		total, most = total+ppca.Subjects(blocks), max(most, ppca.Subjects(blocks))
	}
	large := small
	if len(sites) < groupsLeftOut && len(sites) > 2 && most < total/2 {
		if large, _, err = judged(l, &start, whole); errors.Is(err, ppca.ErrCollapsed) {
			large = small
		} else if err != nil {
			return nil, err
		}
	}
	h, err := hide(l, &start, all)
	if err != nil {
		return nil, err
	}
	out := newHeldOut(large, small, h)
	n, _, _ := ppca.Means(l, all)
	out.Errors, err = newErrors(l, &start, without, n)
	return out, err
}

// divided is the blocks of sites, by sites, and by parts of these of which at least ten make up all.
func divided(l ppca.Layout, own bool, sites [][]ppca.Block,
	rng *rand.Rand) (all []ppca.Block, whole, parts [][]ppca.Block) {
	for _, blocks := range sites {
		if own {
			_, mean, _ := ppca.Means(l, blocks)
			blocks = ppca.About(blocks, mean, 1)
		}
		all = append(all, blocks...)
		if n := ppca.Subjects(blocks); own {
			blocks = ppca.About(blocks, make([]float64, l.Features()), (n-1)/n)
		}
		whole = append(whole, blocks)
		parts = append(parts, split(blocks, max(1, (groupsLeftOut+len(sites)-1)/len(sites)), rng)...)
	}
	return all, whole, parts
}

// judged leaves one of at most ten groups of units out after the other, each unit the blocks of some subjects, and
// returns the models of the others too.
func judged(l ppca.Layout, start *ppca.Params,
	units [][]ppca.Block) (list []*hidden, without []*ppca.Params, err error) {
	return list, without, eachOut(l, start, grouped(units), leftOut, func(p *ppca.Params, out []ppca.Block) error {
		h, err := hide(l, p, out)
		list, without = append(list, h), append(without, p)
		return err
	})
}

// grouped makes at most ten groups of units, as even as they can be.
func grouped(units [][]ppca.Block) [][]ppca.Block {
	units = slices.DeleteFunc(slices.Clone(units), func(u []ppca.Block) bool { return len(u) == 0 })
	slices.SortStableFunc(units, func(a, b []ppca.Block) int { return cmp.Compare(ppca.Subjects(b), ppca.Subjects(a)) })
	groups, n := make([][]ppca.Block, min(groupsLeftOut, len(units))), make([]float64, groupsLeftOut)
	for _, u := range units { // the largest first, each to the smallest group
		smallest := 0
		for g := range groups {
			if n[g] < n[smallest] {
				smallest = g
			}
		}
		groups[smallest] = append(groups[smallest], u...)
		n[smallest] += ppca.Subjects(u)
	}
	return groups
}

// eachOut hands out each group with a model that is fitted to the others from a start, of the features that these have.
func eachOut(l ppca.Layout, start *ppca.Params, groups [][]ppca.Block, o ppca.FitOptions,
	judge func(p *ppca.Params, out []ppca.Block) error) error {
	if len(groups) < 2 {
		return nil
	}
	sums := make([][]ppca.Block, len(groups))
	for g, blocks := range groups {
		sums[g] = ppca.Merge(slices.Clone(blocks))
	}
	for g, out := range groups {
		others := slices.Concat(slices.Concat(sums[:g]...), slices.Concat(sums[g+1:]...))
		fit, err := ppca.Fit(l, ppca.Merge(others), start.Rank, start, o)
		if err != nil {
			return fmt.Errorf("leaving subjects out: %w", err)
		}
		described := make([]bool, l.Features())
		for _, j := range fit.Features {
			described[j] = true
		}
		known := make([]ppca.Block, 0, len(out))
		for i := range out {
			if b := out[i].Only(described); len(b.Features) > 0 {
				known = append(known, b)
			}
		}
		if len(known) == 0 {
			continue
		}
		if err := judge(&fit.Params, known); err != nil {
			return fmt.Errorf("judging a model by subjects who were left out: %w", err)
		}
	}
	return nil
}

// split divides subjects at random as far as their sums tell: S = FᵀF with m degrees of freedom becomes
// Fᵀ U_i F with Σ U_i = I, U_i = T⁻¹ W_i T⁻ᵀ, W_i independent of Wishart distributions and Σ W_i = T Tᵀ.
// If S has a Wishart distribution, so have the parts, and they are independent (Olkin and Rubin 1964): they
// are then as the sums of a site's parts. All have its mean. What directions have not told of S ([ppca.Block].Rest) is
// drawn as noise that goes along with nothing in all of the subjects, and by chance with the factors in a part of them.
func split(blocks []ppca.Block, parts int, rng *rand.Rand) [][]ppca.Block {
	out := make([][]ppca.Block, parts)
	if parts == 1 {
		out[0] = blocks
		return out
	}
	for i := range blocks {
		b := &blocks[i]
		f, ok := rootOf(b)
		if !ok {
			out[0] = append(out[0], *b)
			continue
		}
		freedom := max(int(math.Round(b.N))-1, f.Rows, 1)
		draws, w := make([]blas64.General, parts), mat.NewSymDense(max(f.Rows, 1), nil)
		for e := range draws {
			draws[e] = wishartRoot((freedom+e)/parts, f.Rows, rng)
			for row := range slices.Chunk(draws[e].Data, max(f.Rows, 1)) {
				w.SymRankOne(w, 1, mat.NewVecDense(len(row), row))
			}
		}
		var t mat.Cholesky
		var noise []blas64.General
		if f.Rows > 0 && t.Factorize(w) {
			var upper mat.TriDense
			t.UTo(&upper)
			blas64.Trsm(blas.Left, blas.NoTrans, 1, upper.RawTriangular(), f)
			noise = chance(b.Rest, draws, upper.RawTriangular(), freedom, rng)
		}
		for e, g := range draws {
			share := float64((freedom+e)/parts) / float64(freedom)
			if share == 0 {
				continue
			}
			part := ppca.Block{Features: b.Features, N: b.N * share, Mean: b.Mean}
			if f.Rows > 0 {
				rows := blas64.General{Rows: g.Rows, Cols: f.Cols, Stride: f.Cols, Data: make([]float64, g.Rows*f.Cols)}
				blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, g, f, 0, rows)
				part.Factor = rows.Data
			}
			part.Diag, part.Rest, part.Filled = scaled(b.Diag, share), scaled(b.Rest, share), scaled(b.Filled, share)
			if noise != nil {
				for i, x := range noise[e].Data {
					j := i % len(part.Rest)
					part.Factor[i] += x
					part.Rest[j] = max(0, part.Rest[j]-x*x)
				}
			}
			out[e] = append(out[e], part)
		}
	}
	return out
}

// chance draws for each part what the rest of the diagonal adds to the rows of its factor; nil where there is none.
func chance(rest []float64, draws []blas64.General, t blas64.Triangular, freedom int, rng *rand.Rand) []blas64.General {
	if rest == nil {
		return nil
	}
	r, p := t.N, len(rest)
	noise, own := make([]blas64.General, len(draws)), make([]blas64.General, len(draws)) // own is draws T⁻¹
	along := blas64.General{Rows: r, Cols: p, Stride: p, Data: make([]float64, r*p)}
	for e, g := range draws {
		own[e] = blas64.General{Rows: g.Rows, Cols: r, Stride: r, Data: slices.Clone(g.Data)}
		noise[e] = blas64.General{Rows: g.Rows, Cols: p, Stride: p, Data: make([]float64, g.Rows*p)}
		blas64.Trsm(blas.Right, blas.NoTrans, 1, t, own[e])
		for i := range noise[e].Data {
			noise[e].Data[i] = math.Sqrt(rest[i%p]/float64(freedom)) * rng.NormFloat64()
		}
		blas64.Gemm(blas.Trans, blas.NoTrans, 1, own[e], noise[e], 1, along)
	}
	for e := range noise {
		blas64.Gemm(blas.NoTrans, blas.NoTrans, -1, own[e], along, 1, noise[e])
	}
	return noise
}

func scaled(x []float64, by float64) []float64 {
	out := slices.Clone(x)
	floats.Scale(by, out)
	return out
}

// rootOf returns F with FᵀF = S but for Diag; a singular scatter matrix is taken for one that hardly is.
func rootOf(b *ppca.Block) (f blas64.General, ok bool) {
	p := len(b.Features)
	if b.Scatter == nil {
		return blas64.General{Rows: b.Rows(), Cols: p, Stride: p, Data: slices.Clone(b.Factor)}, true
	}
	const ridge = 1e-9
	s := mat.NewSymDense(p, slices.Clone(b.Scatter))
	for a := range p {
		s.SetSym(a, a, s.At(a, a)*(1+ridge)+ridge)
	}
	var c mat.Cholesky
	if !c.Factorize(s) {
		return f, false
	}
	var upper mat.TriDense
	c.UTo(&upper)
	return mat.DenseCopyOf(&upper).RawMatrix(), true
}

// wishartRoot draws G of r columns such that GᵀG has a Wishart distribution with m degrees of freedom: m rows
// of normal numbers, or Bartlett's triangle where that has fewer.
func wishartRoot(m, r int, rng *rand.Rand) blas64.General {
	rows := min(m, r)
	g := blas64.General{Rows: rows, Cols: r, Stride: max(r, 1), Data: make([]float64, rows*r)}
	for i := range rows {
		for j := range r {
			switch {
			case m <= r || j > i:
				g.Data[i*r+j] = rng.NormFloat64()
			case j == i:
				g.Data[i*r+j] = math.Sqrt(distuv.ChiSquared{K: float64(m - i), Src: rng}.Rand())
			}
		}
	}
	return g
}
