package moments

import (
	"math"
	"slices"

	"parley/internal/linalg"
	"parley/methods/factors/ppca"
)

// pooled is what all sites that released a pattern say of it together.
type pooled struct {
	sums     PatternSums
	views    []int
	features []int
	total    *total
	fit      *repaired
	draws    [][]float64 // of noise like that of the total
	pass     [2]passed   // of both sums, by which the total was made
}

// gram returns E[N Nᵀ] of the noise N in the moments about a mean, without the
// overview's part. With N = Z Y Zᵀ and A = ZᵀZ it is Z E[Y A Y] Zᵀ, where
// E[Y A Y] has Σⱼ vᵢⱼ Aⱼⱼ on the diagonal, vᵢᵢ counting twice, and vᵢₖ Aᵢₖ beside it.
func (q *pooled) gram(mean []float64) []float64 {
	p := len(mean)
	d := p + 1
	out, t := make([]float64, p*p), q.total
	z := make([]float64, d*d) // last row 0
	for a := range p {
		for k := range d {
			z[a*d+k] = t.z[a*d+k] - mean[a]*t.z[p*d+k]
		}
	}
	a := product(transpose(z, d), z, d)
	e := make([]float64, d*d)
	for x := range d {
		for y := range d {
			v := t.sd[x*d+y] * t.sd[x*d+y]
			e[x*d+x] += v * a[y*d+y]
			e[x*d+y] += v * a[x*d+y]
		}
	}
	for x, row := 0, congruent(z, e, d); x < p; x++ {
		copy(out[x*p:][:p], row[x*d:])
	}
	return out
}

// repaired is a mean and a covariance that data could have, from noised moments.
type repaired struct {
	n    float64
	mean []float64
	cov  []float64
	size float64          // factor on what the moments say of the covariance, see [pooled.size]
	laws []censoredNormal // of single features, see [repaired.clamp]
}

// clamp finds the laws that single features have within the ranges.
func (f *repaired) clamp() {
	for j, m := range f.mean {
		f.laws = append(f.laws, clampedTo(m, f.cov[j*len(f.mean)+j]))
	}
}

// repair makes a mean and a positive definite covariance of noised moments t,
// of which draws of the noise are known. The covariance is to be multiplied by size.
//
// The covariance is D + L. L keeps the directions that stand out of the noise,
// shrunk to their least squares size; D is diagonal and holds the rest of every
// variance, with no bias from the noise. Directions are sought in coordinates
// where the noise is isotropic.
func (q *pooled) repair(l ppca.Layout, t []float64, draws [][]float64, size float64) (*repaired, error) {
	d := int(math.Sqrt(float64(len(t))))
	p := d - 1
	r := &repairing{perFeature: l.Noise == ppca.NoisePerFeature, p: p, views: len(q.views)}
	for k, v := range q.views {
		r.group, r.size = append(r.group, slices.Repeat([]int{k}, l.Dims[v])...), append(r.size, float64(l.Dims[v]))
	}
	out := &repaired{n: max(1, t[d*d-1]), size: size}
	r.count(out.n, t, draws)
	r.centre(out, t, draws)
	r.sizes()
	if err := r.separate(q.gram(out.mean)); err != nil {
		return nil, err
	}
	var err error
	out.cov, err = r.projectPSD()
	return out, err
}

type repairing struct {
	perFeature bool // whether features of a view may differ in what L leaves
	p, views   int
	doubt      float64   // relative standard deviation of the count
	group      []int     // view of each feature, numbered within the pattern
	size       []float64 // features of each view
	cov        []float64
	draws      [][]float64 // of the noise in cov
	variance   []float64   // per view
	diagonal   []float64   // D
	low        []float64   // L
}

// byView adds up numbers of features over each view.
func (r *repairing) byView(of func(j int) float64) []float64 {
	sum := make([]float64, r.views)
	for j, g := range r.group {
		sum[g] += of(j)
	}
	return sum
}

// count finds the relative error of the count, which all else is divided by.
func (r *repairing) count(n float64, t []float64, draws [][]float64) {
	s := 0.0
	for _, x := range draws {
		s += x[len(t)-1] * x[len(t)-1] / float64(len(draws))
	}
	r.doubt = math.Sqrt(s) / n
}

// centre finds the mean, shrunk towards the middle of the ranges view by view,
// and the covariance about the mean as it was seen.
func (r *repairing) centre(out *repaired, t []float64, draws [][]float64) {
	p, d := r.p, r.p+1
	n := out.n
	// Too large a count makes variances too small, which is false certainty.
	up := out.size * (1 + 2*min(1, r.doubt*r.doubt))
	mean := make([]float64, p)
	for j := range mean {
		mean[j] = max(-1, min(1, t[j*d+p]/n))
	}
	square, noise := r.byView(func(j int) float64 { return mean[j] * mean[j] }), make([]float64, r.views)
	r.cov = make([]float64, p*p)
	for _, x := range draws {
		c := make([]float64, p*p)
		for i := range p {
			mi := (x[i*d+p] - mean[i]*x[d*d-1]) / n
			noise[r.group[i]] += mi * mi / float64(len(draws))
			for j := range p {
				c[i*p+j] = up * (x[i*d+j] - mean[i]*x[p*d+j] - mean[j]*x[p*d+i] + mean[i]*mean[j]*x[d*d-1]) / n
			}
		}
		r.draws = append(r.draws, c)
	}
	for i := range p {
		for j := range p {
			r.cov[i*p+j] = up * (t[i*d+j]/n - mean[i]*mean[j])
		}
		g := r.group[i]
		r.cov[i*p+i] += min(0.25, noise[g]/r.size[g]) // the noise in mean meanᵀ
	}
	out.mean = mean
	for j := range mean {
		g := r.group[j]
		e := noise[g] / r.size[g]
		// No mean is far out in its range on average.
		keep := min(max(0, 1-noise[g]/max(square[g], 1e-300)), meanSpread*meanSpread/(meanSpread*meanSpread+e))
		mean[j] = max(-0.5, min(0.5, keep*mean[j]))
	}
}

// Of a view of which noise tells nothing, the variance is taken for that of a
// uniform distribution over the ranges, to be safe.
const (
	unknownVariance = 1.0 / 12
	unknownDoubt    = 0.04 // prior standard deviation
	largestVariance = 0.25 // of what lies in a range of 1
	countDoubt      = 0.4  // relative error of the count from which nothing is known
)

// sizes finds the variance of each view, with a prior for where noise tells nothing.
func (r *repairing) sizes() {
	p := r.p
	mean := func(c []float64) []float64 { // variances of each view
		return r.byView(func(j int) float64 { return c[j*p+j] / r.size[r.group[j]] })
	}
	v, s := mean(r.cov), make([]float64, r.views)
	for _, x := range r.draws {
		for k, y := range mean(x) {
			s[k] += y * y / float64(len(r.draws))
		}
	}
	const usual, doubt = unknownVariance, unknownDoubt
	for k := range v {
		s[k] += v[k] * v[k] * r.doubt * r.doubt
		w := doubt * doubt / (doubt*doubt + s[k]) / (1 + math.Pow(r.doubt/countDoubt, 4))
		v[k] = max(usual+w*(v[k]-usual), 0.5*min(math.Sqrt(s[k]), usual), 1e-9)
		v[k] = min(v[k], largestVariance)
	}
	r.variance = v
}

const separations = 6 // rounds of D and L

// separate splits the covariance into D and L, in coordinates that make the
// noise, whose mean square is gram, isotropic.
func (r *repairing) separate(gram []float64) error {
	p := r.p
	e := linalg.NewEigen(p)
	forth, back := make([]float64, p*p), make([]float64, p*p)
	size := 0.0
	for j := range p {
		size += gram[j*p+j] / float64(p)
	}
	for i := range gram {
		gram[i] /= size
	}
	if !e.Factorise(gram, p) || !e.Power(forth, p, -0.5) || !e.Power(back, p, 0.5) {
		return ppca.ErrCollapsed
	}
	r.diagonal = make([]float64, p)
	plain := make([]float64, p*p)
	for i := range p {
		for j := range p {
			plain[i*p+j] = r.cov[i*p+j] / math.Sqrt(r.variance[r.group[i]]*r.variance[r.group[j]])
		}
	}
	if !e.Factorise(plain, p) {
		return ppca.ErrCollapsed
	}
	// Most directions are noise about the variance of the rest: their median is it.
	median := max(0, min(1, (e.Values[(p-1)/2]+e.Values[p/2])/2))
	for j := range p {
		r.diagonal[j] = median * r.variance[r.group[j]]
	}
	sd := r.offDiagonal(forth)
	for range separations {
		rest := slices.Clone(r.cov)
		for j := range p {
			rest[j*p+j] -= r.diagonal[j]
		}
		if !e.Factorise(congruent(forth, rest, p), p) {
			return ppca.ErrCollapsed
		}
		in, weak := make([]float64, p*p), make([]float64, p*p)
		e.Map(in, p, func(_ int, y float64) float64 { return spike(y, sd, p) })
		for j := range p {
			weak[j*p+j] = 1
		}
		for a, y := range e.Values {
			if spike(y, sd, p) != 0 && p-a <= p/2 { // of little noise even the rest stands out
				for i := range p {
					for j := range p {
						weak[i*p+j] -= e.Vectors[i*p+a] * e.Vectors[j*p+a]
					}
				}
			}
		}
		r.low = congruent(back, in, p)
		r.remainder(product(product(back, weak, p), forth, p))
	}
	return nil
}

// offDiagonal is the root mean square of the noise beside the diagonal in new
// coordinates.
func (r *repairing) offDiagonal(forth []float64) float64 {
	p := r.p
	s, n := 0.0, 0.0
	if p == 1 { // the diagonal has √2 as much
		for _, x := range r.draws {
			s += x[0] * x[0] / 2 / float64(len(r.draws))
		}
		return math.Sqrt(s) * forth[0] * forth[0]
	}
	for _, x := range r.draws[:min(len(r.draws), sizeDraws)] {
		y := congruent(forth, x, p)
		for i := range p {
			for j := range i {
				s += y[i*p+j] * y[i*p+j]
				n++
			}
		}
	}
	return math.Sqrt(s / n)
}

// sizeDraws is how many draws tell the size of noise in many entries alike.
const sizeDraws = 4

// remainder makes D of the covariance without its strong directions,
// m C mᵀ with m = back (I − V Vᵀ) forth. Along these directions the noise is
// as large as they are, and what L took off it would pass for D. A D of one
// value ψ per view has mean diagonals Σ_h A_gh ψ_h in m D mᵀ; that is solved.
//
// If the model has a noise variance for each feature, features of a view differ
// by as much as noise does not explain. Otherwise they do not, or the
// differences would pass for factors.
func (r *repairing) remainder(m []float64) {
	p, v := r.p, r.views
	before := r.byView(func(j int) float64 { return r.low[j*p+j] })
	a := make([]float64, v*v)
	for j := range p {
		g := r.group[j]
		for i, x := range m[j*p:][:p] {
			a[g*v+r.group[i]] += x * x / r.size[g]
		}
	}
	solve, ok := inverse(a, v)
	if !ok {
		solve = make([]float64, v*v)
		for g := range v {
			solve[g*v+g] = 1
		}
	}
	// means returns ψ and the diagonal that it was solved from.
	means := func(c []float64) (psi, diagonal []float64) {
		y := congruent(m, c, p)
		sum := r.byView(func(j int) float64 {
			diagonal = append(diagonal, y[j*p+j])
			return y[j*p+j] / r.size[r.group[j]]
		})
		psi = make([]float64, v)
		linalg.Times(psi, solve, v, sum)
		return psi, diagonal
	}
	psi, raw := means(r.cov)
	noise, each := make([]float64, v), make([]float64, v)
	draws := r.draws[:min(len(r.draws), sizeDraws)]
	for _, x := range draws {
		_, diagonal := means(x)
		for j, y := range diagonal {
			each[r.group[j]] += y * y / float64(len(draws)) / r.size[r.group[j]]
		}
	}
	for g := range psi {
		// Noise is independent between features, once strong directions are out.
		noise[g] = math.Sqrt(each[g] / r.size[g])
		w := unknownDoubt * unknownDoubt / (unknownDoubt*unknownDoubt + noise[g]*noise[g])
		psi[g] = w*psi[g] + (1-w)*(r.variance[g]-before[g]/r.size[g])
	}
	r.together(psi, noise)
	for g := range psi {
		// Too small a rest is false certainty: what noise may hide counts too.
		share := noise[g] / (noise[g] + max(psi[g], 1e-300))
		psi[g] += 2 * share * share * share * noise[g]
		psi[g] = max(psi[g], 0.1*min(noise[g], r.variance[g]), 1e-3*r.variance[g])
		psi[g] = min(psi[g], largestVariance)
	}
	off := raw
	spread := r.byView(func(j int) float64 {
		for i, x := range m[j*p:][:p] {
			off[j] -= x * x * psi[r.group[i]]
		}
		return off[j] * off[j] / r.size[r.group[j]]
	})
	for j := range p {
		g := r.group[j]
		r.diagonal[j] = psi[g]
		if r.perFeature {
			keep := max(0, 1-each[g]/max(spread[g], 1e-300))
			r.diagonal[j] = max(psi[g]+keep*off[j], 0.1*psi[g])
		}
	}
}

// together draws the shares that D has of the variances of the views to each
// other, by as much as noise explains their differences: a view whose D came out
// small by chance would weigh too much in the fit.
func (r *repairing) together(psi, noise []float64) {
	weight, mean := 0.0, 0.0
	for g, v := range r.variance {
		w := v * v / max(noise[g]*noise[g], 1e-300)
		weight += w
		mean += w * psi[g] / v
	}
	mean /= weight
	between := 0.0 // variance of the shares
	for g, v := range r.variance {
		x, e := psi[g]/v-mean, noise[g]/v
		between += (x*x - e*e) / float64(len(psi))
	}
	between = max(between, 0)
	for g, v := range r.variance {
		e := noise[g] / v
		keep := between / max(between+e*e, 1e-300)
		psi[g] = v * (mean + keep*(psi[g]/v-mean))
	}
}

// projectPSD returns D + L, its eigenvalues raised where they are not projectPSD.
func (r *repairing) projectPSD() ([]float64, error) {
	p := r.p
	y := make([]float64, p*p)
	for i := range p {
		for j := range p {
			y[i*p+j] = r.low[i*p+j]
			if i == j {
				y[i*p+j] += r.diagonal[i]
			}
			y[i*p+j] /= math.Sqrt(r.diagonal[i] * r.diagonal[j])
		}
	}
	linalg.Symmetrise(y, p, p)
	e := linalg.NewEigen(p)
	if !e.Factorise(y, p) {
		return nil, ppca.ErrCollapsed
	}
	if e.Values[0] < leastShare || e.Values[p-1] > mostShare {
		e.Map(y, p, func(_ int, x float64) float64 { return max(leastShare, min(x, mostShare)) })
	}
	for i := range p {
		for j := range p {
			y[i*p+j] *= math.Sqrt(r.diagonal[i] * r.diagonal[j])
		}
	}
	linalg.Symmetrise(y, p, p)
	return y, nil
}

// leastShare of the diagonal rest is the least variance of any direction, and mostShare the largest: sums from a
// hostile site may be of any size.
const leastShare, mostShare = 0.02, 1e9
