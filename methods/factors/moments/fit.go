package moments

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"parley/internal/linalg"
	"parley/methods/factors/ppca"
)

// ProjectedMoments holds what all releases of a study say, ready to be fitted by any
// number of factors: nothing in it costs privacy.
type ProjectedMoments struct {
	layout ppca.Layout
	blocks []ppca.Block
	pooled []*pooled
	fits   []*repaired
	noise  [][][]float64 // per pattern and draw
}

const (
	noiseDraws = 12  // of the known noise, for its size and for intervals
	clipDraws  = 300 // subjects, for what clipping does
	clipPasses = 2   // estimates of what clipping did
)

// Project pools the releases of all sites and repairs the moments. The seed
// drives draws of like noise, not the noise itself: the same releases and seed
// always give the same.
func Project(l ppca.Layout, sites []Released, seed uint64) (*ProjectedMoments, error) {
	if len(sites) == 0 {
		return nil, fmt.Errorf("no site released anything")
	}
	for i := range sites {
		if err := sites[i].Check(l); err != nil {
			return nil, fmt.Errorf("site %d: %w", i, err)
		}
	}
	out := &ProjectedMoments{layout: l}
	pass := make([][][2]passed, len(sites))
	for i := range sites {
		for k := range sites[i].Fine {
			u := unclipped(len(sites[i].Fine[k].Shrinkage))
			pass[i] = append(pass[i], [2]passed{u, u})
		}
	}
	for round := range clipPasses + 1 {
		r := rand.New(rand.NewPCG(seed, 0x6d6f6d656e7473))
		if err := out.pool(sites, pass); err != nil {
			return nil, err
		}
		fits := make([]*repaired, len(out.pooled))
		out.noise = nil
		for i, q := range out.pooled {
			draws := make([][]float64, noiseDraws)
			if round < clipPasses {
				draws = draws[:4]
			}
			for k := range draws {
				draws[k] = q.noise(r)
			}
			out.noise = append(out.noise, draws)
			var err error
			if fits[i], err = q.repair(l, q.t, draws, q.size(draws)); err != nil {
				return nil, fmt.Errorf("pattern %v: %w", q.views, err)
			}
			if round >= clipPasses-1 { // before, means and variances are still too small to tell what lies beyond
				fits[i].clamp()
			}
		}
		if round == clipPasses {
			out.fits = fits
			out.blocks = append(repairedBlocks(out.pooled, fits), out.assumed()...)
			break
		}
		for i := range sites {
			for k := range sites[i].Fine {
				at := slices.IndexFunc(out.pooled, func(q *pooled) bool { return slices.Equal(q.views, sites[i].Fine[k].Views) })
				var err error
				if pass[i][k], err = clipping(fits[at], &sites[i].Coarse[k], &sites[i].Fine[k], seed); err != nil {
					return nil, err
				}
			}
		}
	}
	return out, nil
}

// pool sums T of the sites, pattern by pattern.
func (o *ProjectedMoments) pool(sites []Released, pass [][][2]passed) error {
	o.pooled = nil
	var kappa [][]float64 // by pattern and part
	for i := range sites {
		for k := range sites[i].Fine {
			n := &sites[i].Fine[k]
			t, err := sites[i].combine(k, pass[i][k])
			if err != nil {
				return fmt.Errorf("site %d: %w", i, err)
			}
			at := slices.IndexFunc(o.pooled, func(q *pooled) bool { return slices.Equal(q.views, n.Views) })
			if at < 0 {
				f, err := o.layout.FeaturesOf(n.Views)
				if err != nil {
					return err
				}
				at = len(o.pooled)
				o.pooled, kappa = append(o.pooled, &pooled{views: n.Views, features: f}), append(kappa, nil)
			}
			// Over the mean square: how large a site took its subjects for is mostly noise.
			unit := n.Bound * n.Bound / (n.room() * n.room()) * 4 * float64(t.p) / n.reach()
			o.pooled[at].parts = append(o.pooled[at].parts, t)
			kappa[at] = append(kappa[at], sites[i].FineSD*sites[i].FineSD/2*unit*unit)
		}
	}
	top := 0.0
	for at, q := range o.pooled {
		top = max(top, q.weigh(kappa[at]))
	}
	for _, q := range o.pooled {
		q.sum(top)
	}
	return nil
}

// repairedBlocks makes blocks of repaired moments.
func repairedBlocks(pooled []*pooled, fits []*repaired) []ppca.Block {
	var out []ppca.Block
	for i, q := range pooled {
		f := fits[i]
		p := len(f.mean)
		b := ppca.Block{Features: q.features, N: f.n, Mean: make([]float64, p), Scatter: make([]float64, p*p)}
		for j, m := range f.mean {
			b.Mean[j] = m + 0.5
		}
		for j, c := range f.cov {
			b.Scatter[j] = c * f.n
		}
		out = append(out, b)
	}
	return out
}

// assumed returns, for views of which no site released anything, what was
// assumed of them before: one subject's worth of data in the middle of the
// ranges.
func (o *ProjectedMoments) assumed() (out []ppca.Block) {
	seen := make([]bool, o.layout.Views())
	for _, q := range o.pooled {
		for _, k := range q.views {
			seen[k] = true
		}
	}
	for k, d := range o.layout.Dims {
		if seen[k] {
			continue
		}
		lo, hi := o.layout.View(k)
		b := ppca.Block{N: 1, Mean: make([]float64, d), Diag: make([]float64, d)}
		for j := lo; j < hi; j++ {
			b.Features = append(b.Features, j)
			b.Mean[j-lo], b.Diag[j-lo] = 0.5, unknownVariance
		}
		out = append(out, b)
	}
	return out
}

// clipping works out, for subjects drawn from the repaired moments, what the
// two lenses of a pattern let pass. Once their laws are known ([repaired.clamp]), values
// lie within the ranges, as those of all subjects do: a normal law with the variance of
// numbers that are 0 or 1 has values far beyond, of which more would seem to be clipped.
func clipping(f *repaired, coarse, fine *Whitening, seed uint64) ([2]passed, error) {
	r := rand.New(rand.NewPCG(seed, 0x636c6970))
	p := len(f.mean)
	chol := slices.Clone(f.cov)
	if _, ok := linalg.Cholesky(chol, p, p); !ok {
		return [2]passed{}, ppca.ErrCollapsed
	}
	draws := make([]float64, clipDraws*p) // u − mean
	x := make([]float64, p)
	for u := range slices.Chunk(draws, p) {
		for j := range x {
			x[j] = r.NormFloat64()
		}
		for i := range p {
			row := chol[i*p:][:i+1]
			u[i] = dot(row[:i], x[:i]) + x[i]/row[i] // the diagonal holds reciprocals
		}
		for i, law := range f.laws {
			u[i] = law.at(u[i]/math.Sqrt(f.cov[i*p+i])) - f.mean[i]
		}
	}
	c := clipper{fine.Axes, len(fine.Shrinkage), f.mean, draws}
	var out [2]passed
	for i, n := range []*Whitening{coarse, fine} {
		e := c.through(n)
		root := make([]float64, c.k+1)
		for a := range root {
			root[a] = 1
			if e.whole[a] > 0 {
				root[a] = max(leastPassed, math.Sqrt(e.left[a]/e.whole[a]))
			}
		}
		out[i] = passed{axes: root[:c.k], rest: root[c.k], mean: max(leastPassed, e.mean), size: max(leastPassed, e.told/max(e.size, 1e-300))}
	}
	return out, nil
}

// clipper passes draws through lenses.
type clipper struct {
	axes  []float64
	k     int
	mean  []float64
	draws []float64
}

// energy is the mean square of what comes to a lens and what is left of it when
// it is clipped, along each axis and, last, in all other directions, after
// squeezing; the mean factor of clipping; and the size and how much of it is told.
type energy struct {
	whole, left []float64
	mean        float64
	size, told  float64
}

// through passes the draws through a lens.
func (c *clipper) through(n *Whitening) energy {
	p := len(c.mean)
	e := energy{whole: make([]float64, c.k+1), left: make([]float64, c.k+1)}
	z, part, reach := make([]float64, p), make([]float64, c.k+1), n.reach()
	for u := range slices.Chunk(c.draws, p) {
		for j := range z {
			z[j] = n.Scale[j] * (c.mean[j] + u[j] - n.Centre[j])
		}
		rest, size := dot(z, z), 0.0
		e.size += rest
		e.told += min(rest, reach)
		for a := range c.k {
			y := dot(c.axes[a*p:][:p], z)
			rest -= y * y
			if len(n.Shrinkage) > 0 {
				y *= n.Shrinkage[a]
			}
			part[a] = y * y
			size += part[a]
		}
		part[c.k] = max(rest, 0)
		w := min(1, n.Bound/math.Sqrt(size+part[c.k]))
		e.mean += w / clipDraws
		for a, y := range part {
			e.whole[a] += y
			e.left[a] += w * w * y
		}
	}
	return e
}

// leastPassed bounds what is made up for of clipping.
const leastPassed = 0.2
