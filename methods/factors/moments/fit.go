package moments

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"

	"parley/internal/linalg"
	"parley/methods/factors/ppca"
)

// ProjectedMoments holds what all releases of a study say, ready to be fitted by any
// number of factors: nothing in it costs privacy.
type ProjectedMoments struct {
	layout ppca.Layout
	blocks []ppca.Block
	pooled []*pooled
}

const (
	noiseDraws = 12   // of the known noise, for its size and for intervals
	passDraws  = 3000 // subjects, for what clipping does and missing cells take
	passes     = 3    // estimates of that
)

// Project adds up the releases of all sites and repairs the moments. The seed
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
	for i, x := range Pool(sites) {
		q := &pooled{sums: x, views: x.Fine.Views, features: l.FeaturesOf(x.Fine.Views)}
		if err := q.project(l, seed, uint64(i)); err != nil {
			return nil, fmt.Errorf("pattern %v: %w", q.views, err)
		}
		out.pooled, out.blocks = append(out.pooled, q), append(out.blocks, q.block(q.fit))
	}
	out.blocks = append(out.blocks, out.assumed()...)
	return out, nil
}

// project estimates T and repairs the moments, in turn with what clipping did to subjects like these, and missing cells
// took from them, and draws noise like that of T.
func (q *pooled) project(l ppca.Layout, seed, pattern uint64) (err error) {
	u := unclipped(len(q.sums.Fine.Shrinkage))
	q.pass = [2]passed{u, u}
	for round := range passes + 1 {
		if q.total, err = q.sums.combine(q.pass); err != nil {
			return err
		}
		r := rand.New(rand.NewPCG(seed, 0x6d6f6d656e7473+pattern))
		q.draws = make([][]float64, noiseDraws)
		if round < passes {
			q.draws = q.draws[:4]
		}
		for k := range q.draws {
			q.draws[k] = q.total.noise(r)
		}
		if q.fit, err = q.repair(l, q.total.t, q.draws, q.size(q.draws)); err != nil {
			return err
		}
		if round >= passes-1 { // before, means and variances are still too small to tell what lies beyond
			q.fit.clamp()
		}
		if round < passes {
			if q.pass, err = passing(q.fit, &q.sums, seed); err != nil {
				return err
			}
		}
	}
	return nil
}

// block is the subjects of a pattern by repaired moments.
func (q *pooled) block(f *repaired) ppca.Block {
	p := len(f.mean)
	b := ppca.Block{Features: q.features, N: f.n, Mean: make([]float64, p), Scatter: make([]float64, p*p)}
	for j, m := range f.mean {
		b.Mean[j] = m + 0.5
	}
	for j, c := range f.cov {
		b.Scatter[j] = c * f.n
	}
	return b
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

// passing works out, for subjects drawn from the repaired moments, what the two whitenings of a pattern let pass, and
// what missing cells take from the fine sum. Once their laws are known ([repaired.clamp]), values
// lie within the ranges, as those of all subjects do: a normal law with the variance of
// numbers that are 0 or 1 has values far beyond, of which more would seem to be clipped.
func passing(f *repaired, sums *PatternSums, seed uint64) ([2]passed, error) {
	r := rand.New(rand.NewPCG(seed, 0x636c6970))
	p := len(f.mean)
	chol := slices.Clone(f.cov)
	if _, ok := linalg.Cholesky(chol, p, p); !ok {
		return [2]passed{}, ppca.ErrCollapsed
	}
	draws := make([]float64, passDraws*p) // u − mean
	x := make([]float64, p)
	for u := range slices.Chunk(draws, p) {
		for j := range x {
			x[j] = r.NormFloat64()
		}
		for i := range p {
			row := chol[i*p:][:i+1]
			u[i] = floats.Dot(row[:i], x[:i]) + x[i]/row[i] // the diagonal holds reciprocals
		}
		for i, law := range f.laws {
			u[i] = law.at(u[i]/math.Sqrt(f.cov[i*p+i])) - f.mean[i]
		}
	}
	var out [2]passed
	for i, n := range sums.both() {
		out[i] = n.through(sums.Fine.Axes, f.mean, draws)
	}
	if sums.Fine.lacks() {
		sums.Fine.lose(&out[1], f.mean, draws, r)
	}
	return out, nil
}

// lacks says whether subjects lack cells.
func (n *Whitening) lacks() bool { return slices.Min(n.Observed) < 1 }

// lose works out what missing cells take from a sum of draws, about the mean, which enter it as subjects do.
func (n *Whitening) lose(pass *passed, mean, draws []float64, r *rand.Rand) {
	p, size, told := len(mean), 0.0, 0.0
	d, share := p+1, float64(p)/float64(len(draws))
	pass.lost = make([]float64, d*d)
	whole, left := make([]float64, p+2), make([]float64, p+2)
	every, observed := slices.Repeat([]bool{true}, p), make([]bool, p)
	for u := range slices.Chunk(draws, p) {
		for j := range p {
			whole[j], left[j] = n.Scale[j]*(mean[j]+u[j]-n.Centre[j]), 0
			size += whole[j] * whole[j]
			if observed[j] = r.Float64() < n.Observed[j]; observed[j] {
				left[j] = whole[j]
			}
		}
		n.enter(whole, every)
		n.enter(left, observed)
		told += left[p+1] / sizeWeight * n.reach()
		for i, x := range whole[:d] {
			row := pass.lost[i*d:][:d]
			floats.AddScaled(row, share*x, whole[:d])
			floats.AddScaled(row, -share*left[i], left[:d])
		}
	}
	pass.size = max(leastPassed, told/max(size, 1e-300))
}

// through passes draws, about a mean, through a whitening: what is left after squeezing of the mean square of what
// comes to it, along each axis and in all other directions, the mean factor of clipping, and how much of the size is
// told.
func (n *Whitening) through(axes, mean, draws []float64) passed {
	p := len(mean)
	k := len(axes) / p
	all, size, told := 0.0, 0.0, 0.0
	whole, left := make([]float64, k+1), make([]float64, k+1)
	z, part, reach := make([]float64, p), make([]float64, k+1), n.reach()
	for u := range slices.Chunk(draws, p) {
		for j := range z {
			z[j] = n.Scale[j] * (mean[j] + u[j] - n.Centre[j])
		}
		rest, squeezed := floats.Dot(z, z), 0.0
		size += rest
		told += min(rest, reach)
		for a := range k {
			y := floats.Dot(axes[a*p:][:p], z)
			rest -= y * y
			if len(n.Shrinkage) > 0 {
				y *= n.Shrinkage[a]
			}
			part[a] = y * y
			squeezed += part[a]
		}
		part[k] = max(rest, 0)
		w := min(1, n.Bound/math.Sqrt(squeezed+part[k]))
		all += w / passDraws
		for a, y := range part {
			whole[a] += y
			left[a] += w * w * y
		}
	}
	root := slices.Repeat([]float64{1}, k+1)
	for a, x := range whole {
		if x > 0 {
			root[a] = max(leastPassed, math.Sqrt(left[a]/x))
		}
	}
	return passed{axes: root[:k], rest: root[k], mean: max(leastPassed, all),
		size: max(leastPassed, told/max(size, 1e-300))}
}

// leastPassed bounds what is made up for of clipping.
const leastPassed = 0.2

// Fit fits a model of any rank to the repaired moments: post-processing, which
// costs nothing. Values are in parts of the ranges, from 0 to 1 (scaling: range).
func (o *ProjectedMoments) Fit(rank int) (*ppca.Fitted, error) {
	return ppca.Fit(o.layout, o.blocks, rank, nil, ppca.FitOptions{Tol: 1e-6, MaxIter: 500})
}

// Blocks returns the repaired moments as data for [ppca.Fit].
func (o *ProjectedMoments) Blocks() []ppca.Block { return o.blocks }

// Uncertainty returns, for each feature, the variance that the privacy noise
// adds to the error of predicting it from all other views: to be added to the
// variance of what the fit imputes.
//
// It is a parametric bootstrap of the noise alone. With the repaired moments as
// the truth, moments with fresh noise of the known law are repaired and fitted
// by the same rules. What the refitted model's predictions err by under the
// truth, less the variance that it claims itself, is averaged over the draws;
// it is not taken below 0.
func (o *ProjectedMoments) Uncertainty(fit *ppca.Fitted) ([]float64, error) {
	d := o.layout.Features()
	extra := make([]float64, d)
	truth, err := newConditionals(o.layout, &fit.Params)
	if err != nil {
		return nil, err
	}
	noise := make([][][]float64, len(o.pooled))
	for i, q := range o.pooled {
		for _, x := range q.draws {
			noise[i] = append(noise[i], q.fit.sized(x))
		}
	}
	for draw := range noiseDraws {
		var blocks []ppca.Block
		for i, q := range o.pooled {
			again, err := q.repair(o.layout, q.fit.moments(noise[i][draw]), noise[i], 1)
			if err != nil {
				return nil, fmt.Errorf("pattern %v: %w", q.views, err)
			}
			blocks = append(blocks, q.block(again))
		}
		refit, err := ppca.Fit(o.layout, append(blocks, o.assumed()...), fit.Rank, nil,
			ppca.FitOptions{Tol: 1e-4, MaxIter: 100})
		if err != nil {
			return nil, fmt.Errorf("fitting to fresh noise: %w", err)
		}
		other, err := newConditionals(o.layout, &refit.Params)
		if err != nil {
			return nil, err
		}
		for j, squared := range truth.errors(other) {
			extra[j] += squared / noiseDraws
		}
	}
	for j := range extra {
		extra[j] = max(0, min(0.25, extra[j]))
	}
	return extra, nil
}

// moments returns T of data with this mean and covariance, plus noise.
func (f *repaired) moments(noise []float64) []float64 {
	p := len(f.mean)
	d := p + 1
	t := slices.Clone(noise)
	for i := range p {
		for j := range p {
			t[i*d+j] += f.n * (f.cov[i*p+j] + f.mean[i]*f.mean[j])
		}
		t[i*d+p] += f.n * f.mean[i]
		t[p*d+i] += f.n * f.mean[i]
	}
	t[d*d-1] += f.n
	return t
}

// missRow is by how much the prediction of feature j from others misses, as weights of deviations of all features from
// the model's means: 1 of its own, and minus the prediction's of the others.
func missRow(predictor *ppca.Predictor, m *ppca.Params, j int, others []int) ([]float64, error) {
	post, err := predictor.Given(others)
	if err != nil {
		return nil, err
	}
	row := make([]float64, len(m.Mu))
	for a, o := range others {
		row[o] = -floats.Dot(m.W[j*m.Rank:][:m.Rank], post.Gain(a))
	}
	row[j] = 1
	return row, nil
}

// conditionals predict each view from all others.
type conditionals struct {
	p    *ppca.Params
	cov  []float64   // d × d
	miss [][]float64 // of each feature; see [missRow]
}

func newConditionals(l ppca.Layout, p *ppca.Params) (*conditionals, error) {
	pred, err := ppca.NewPredictor(l, p)
	if err != nil {
		return nil, err
	}
	d, q := l.Features(), p.Rank
	group, view := l.GroupOf(), l.ViewOf()
	c := &conditionals{p: p, cov: make([]float64, d*d)}
	for i := range d {
		for j := range d {
			for a := range q {
				c.cov[i*d+j] += p.W[i*q+a] * p.W[j*q+a]
			}
		}
		c.cov[i*d+i] += p.Noise[group[i]]
		lo, hi := l.View(view[i])
		row, err := missRow(pred, p, i, slices.Delete(l.AllFeatures(), lo, hi))
		if err != nil {
			return nil, err
		}
		c.miss = append(c.miss, row)
	}
	return c, nil
}

// errors is, of every feature, the mean squared error of another model's predictions under this one.
func (c *conditionals) errors(other *conditionals) (squared []float64) {
	d := len(c.miss)
	diff, turned := make([]float64, d), make([]float64, d)
	for j, row := range other.miss {
		offset := other.p.Mu[j] - c.p.Mu[j]
		for o, x := range row {
			if diff[o] = x - c.miss[j][o]; o != j {
				offset += x * (other.p.Mu[o] - c.p.Mu[o])
			}
		}
		linalg.Times(turned, c.cov, d, diff)
		squared = append(squared, offset*offset+max(0, floats.Dot(diff, turned)))
	}
	return squared
}

// Prior standard deviations of what clipping made of the scale of the covariance
// beyond what is known of it, and of what it made of it in some directions alone.
const (
	narrowDoubt = 0.13
	wideDoubt   = 0.4
	shapeDoubt  = 0.1
)

// size returns by how much the covariance in T is to be multiplied for subjects
// to be as large as they say, drawn to 1 by as much as that is noise.
func (q *pooled) size(draws [][]float64) float64 {
	t, p := q.total.t, q.total.p
	d, n := p+1, max(1, q.total.count())
	var told, expected, variance float64
	noise := make([]float64, len(draws)) // in what is expected
	precision := 1/q.total.sizes[0].variance + 1/q.total.sizes[1].variance
	for _, s := range q.total.sizes {
		w := 1 / s.variance / precision
		told += w * s.sum
		variance += w * w * s.variance
		for j, h := range s.whitening.Scale {
			m, f := t[j*d+p]/n, w*n*h*h
			if len(s.whitening.Shrinkage) == 0 {
				f *= s.whitening.Observed[j]
			}
			told -= f * (m - s.whitening.Centre[j]) * (m - s.whitening.Centre[j])
			expected += f * (t[j*d+j]/n - m*m)
			for k, x := range draws {
				noise[k] += f * (x[j*d+j] - 2*m*x[j*d+p] + m*m*x[d*d-1]) / n
			}
		}
	}
	if !(expected > 0) { // noise alone
		return 1
	}
	own := 0.0
	for _, x := range noise {
		own += x * x / float64(len(draws))
	}
	doubt := narrowDoubt
	if p > narrow {
		doubt = wideDoubt
	}
	own = own/(expected*expected) + doubt*doubt
	variance = variance/(expected*expected) + shapeDoubt*shapeDoubt
	f := 1 + own/(own+variance)*(told/expected-1)
	// What is still open makes the subjects larger: too small is false certainty.
	return max(0.3, min(3, f)) * (1 + min(1, own*variance/(own+variance)))
}

// sized multiplies what noise in T does to the covariance by the factor that the
// covariance was multiplied by.
func (f *repaired) sized(noise []float64) []float64 {
	p := len(f.mean)
	d := p + 1
	t := make([]float64, len(noise))
	copy(t, noise)
	for i, m := range f.mean {
		for j, o := range f.mean {
			t[i*d+j] += (f.size - 1) * (noise[i*d+j] - m*noise[j*d+p] - o*noise[i*d+p] + m*o*noise[d*d-1])
		}
	}
	return t
}
