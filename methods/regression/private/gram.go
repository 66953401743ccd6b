package private

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"parley/internal/stats"
	"parley/internal/wire"
	"parley/methods/regression/glm"
)

// gram is what noised sums say of Σ x xᵀ over the rows of all sites.
type gram struct {
	Columns  *columns
	Matrix   *mat.SymDense
	Rows     float64    // how many there are, as the sums say it that shorten them
	Subjects float64    // how many there are
	Error    *mat.Dense // variance of each entry around the truth, given the sums
	// Dispersion is the variance of a number around its expectation; 0 of classes.
	Dispersion float64
	law, edges []float64 // of the outcome: see [tailOf]
	asymmetry  asymmetry
	noised     noisedSums
	prior      *prior
}

// asymmetry is what a clip takes from residuals of all rows alike, in what it takes from an exponential law: e^−(k+1)
// deviations at k of them. Open is the standard deviation of what is not known of it.
type asymmetry struct {
	Value float64 `cbor:"value"`
	Open  float64 `cbor:"open"`
}

// asymmetric is the standard deviation of an asymmetry before anything is known: a log-normal law of σ .8 has 3.6 at
// five deviations.
const asymmetric = 3

// noisedSums are what a gram is made of, with variances of their noise: s on the diagonal of products.
type noisedSums struct {
	totals   []float64
	products *mat.SymDense
	v, s     float64
	scale    float64
}

const (
	fewestRows = 10 // below which a noised count says nothing
	// doubt is the noise's variance as the shrinkage counts it, in true ones: an entry whose
	// error is believed too small does harm, one that is shrunk too far hardly any.
	doubt = 4
)

// newGram combines noised sums over rows of (x, ½ x² of numbers, 1), with noise of variance v, and of x xᵀ of shortened
// rows, with noise of variance s on the diagonal and s/2 beside it. Entries that both know are averaged by the inverse
// of their variance, with the square of what shortened rows lack. What noise drowns is shrunk by the method of moments:
// sums of numbers towards 0, squares and counts of levels towards their mean, and products of two features towards
// independence, n μ μᵀ, by τ²u/(τ²u + doubt·s/2), u being n² times both variances, or what a pair's own square is
// [beyond] noise. Eigenvalues are at least 1, a row's worth.
func newGram(c *columns, totals []float64, v float64, products *mat.SymDense, s, scale float64) *gram {
	d := c.width()
	one := d - 1
	sum, square, left := c.pooled(totals, v, products, s, scale)
	rows := sum.value[one]
	count, _ := c.rows(totals, v)
	mean, spread := make([]float64, d), make([]float64, d)
	for j := range mean {
		mean[j] = sum.value[j] / rows
		spread[j] = max(square.value[j]/rows-mean[j]*mean[j], 0)
	}
	g := &gram{Columns: c, Matrix: mat.NewSymDense(d, nil), Rows: rows, Subjects: max(count, rows),
		Error: mat.NewDense(d, d, nil), noised: noisedSums{totals, products, v, s, scale}}
	g.set(one, one, rows, square.doubt[one])
	excess, known, noise, pairs := 0.0, 0.0, 0.0, 0
	for i := range one {
		g.set(i, i, square.value[i], square.doubt[i])
		g.set(i, one, sum.value[i], sum.doubt[i])
		for j := range i {
			if c.Feature[i] == c.Feature[j] {
				continue
			}
			off := products.At(i, j)/left.pair(i, j) - rows*mean[i]*mean[j]
			excess += off*off - left.noise(i, j, s)
			known += rows * rows * spread[i] * spread[j]
			noise += left.noise(i, j, s)
			pairs++
		}
	}
	// A mean square of correlations, and what it may be by one standard error more: noise that
	// hides correlations does not make them 0.
	known = max(known, 1e-9)
	tau := min(max(excess/known, 0), 1)
	high := min(tau+noise*math.Sqrt(2/float64(max(pairs, 1)))/known, 1)
	for i := range one {
		for j := range i {
			if c.Feature[i] == c.Feature[j] {
				continue
			}
			u, noise := rows*rows*spread[i]*spread[j], doubt*left.noise(i, j, s)
			independent := rows * mean[i] * mean[j]
			off := products.At(i, j)/left.pair(i, j) - independent
			seen := min(max((off*off-beyond(pairs)*left.noise(i, j, s))/max(u, 1e-9), 0), 1)
			if x, y := max(tau, seen)*u, max(high, seen)*u; x+noise > 0 {
				w := x / (x + noise)
				most := math.Sqrt(square.value[i] * square.value[j])
				if c.Category[i] && c.Category[j] {
					most = min(square.value[i], square.value[j])
				}
				g.set(i, j, min(max(independent+w*off, -most), most), y/(y+noise)*noise)
			}
		}
	}
	g.Matrix = glm.Floored(g.Matrix, 1)
	return g
}

// A number is far from normal if the totals have so large a share less of its squares than the products,
// and so many standard deviations of noise. It is seen only where products are hardly shortened.
const oddShare, hardlyShortened, noises = 0.22, 0.9, 5

// odd lists numbers of whose squares shortening has left less in the totals than it leaves of normal
// ones with the covariance of these: those that are mostly one value, and seldom far from it.
func (g *gram) odd() (odd []int) {
	n, c, one := &g.noised, g.Columns, g.Columns.width()-1
	if len(c.numbers) == 0 {
		return nil
	}
	covariance, square := mat.NewSymDense(len(c.numbers), nil), make([]float64, c.width())
	for k, i := range c.numbers {
		square[i] = g.Matrix.At(i, i)
		for l, j := range c.numbers[:k+1] {
			covariance.SetSym(k, l, (g.Matrix.At(i, j)-g.Matrix.At(i, one)*g.Matrix.At(j, one)/g.Rows)/g.Rows)
		}
	}
	left := c.kept(mat.Row(nil, one, g.Matrix), square, covariance, n.scale)
	for k, j := range c.numbers {
		a, b := left.totals[j], left.products[j]
		all := n.products.At(j, j) / b
		less, variance := all-2*n.totals[c.width()+k]/a, 4*n.v/(a*a)+n.s/(b*b)
		if b > hardlyShortened && less > max(oddShare*all, noises*math.Sqrt(variance)) {
			odd = append(odd, j)
		}
	}
	return odd
}

// A number is wide if its mean square is so much: were it normal and centred, 2 % of it would be four scales off.
const widest = 3

// wide lists the numbers that are, by so many standard deviations: of the error, or of the noise of
// products alone, in which rows that were shortened count for less. The count is of all rows.
func (g *gram) wide() (wide []int) {
	n := &g.noised
	rows, variance := g.Columns.rows(n.totals, n.v)
	rows += noises * math.Sqrt(variance)
	for _, j := range g.Columns.numbers {
		square := max(g.Matrix.At(j, j)-noises*math.Sqrt(g.Error.At(j, j)), n.products.At(j, j)-noises*math.Sqrt(n.s))
		if square > widest*rows {
			wide = append(wide, j)
		}
	}
	return wide
}

// A number varies too little for its scale if its mean square is less, by so many standard deviations of the error.
const narrowest, narrowly = 0.2, 2

// narrow lists the numbers that do: what the prior and the noise are for a scale is then far more than they vary.
func (g *gram) narrow() (narrow []int) {
	for _, j := range g.Columns.numbers[:g.Columns.scaled] {
		if g.Matrix.At(j, j)+narrowly*math.Sqrt(g.Error.At(j, j)) < narrowest*g.Rows {
			narrow = append(narrow, j)
		}
	}
	return narrow
}

// beyond is the largest square, by its variance, that noise shows among so many pairs (Donoho and Johnstone,
// Biometrika 1994), of three standard deviations at least. What is more is a pair's own: a few strong
// correlations among many weak ones are no part of the mean square by which these are shrunk.
func beyond(pairs int) float64 { return max(2*math.Log(float64(max(pairs, 1))), 9) }

// set puts in an entry and its error.
func (g *gram) set(i, j int, value, doubt float64) {
	g.Matrix.SetSym(i, j, value)
	g.Error.Set(i, j, doubt)
	g.Error.Set(j, i, doubt)
}

// pool are numbers by column, each with the variance of its error.
type pool struct{ value, doubt []float64 }

// pooled returns Σ x and Σ x² of every column as both sums say it, where the data allow: 0 ≤ Σ x = Σ x² ≤ n of
// levels, |Σ x| ≤ √(n Σ x²); and what shortening has left of the sums, which follows from them in turn.
func (c *columns) pooled(totals []float64, v float64, products *mat.SymDense, s,
	scale float64) (sum, square pool, left *kept) {
	left = c.whole()
	one := c.width() - 1
	count, variance := c.rows(totals, v)
	count = max(count, fewestRows)
	for range 6 {
		sum, square = c.averaged(totals, v, products, s, left)
		left = c.kept(sum.value, square.value, nil, scale)
		observe(left.totals, totals[one], count, v+variance)
		observe(left.products, products.At(one, one), count, s+variance)
	}
	return sum, square, left
}

// averaged returns both where shortening has left such shares of what rows give to sums.
func (c *columns) averaged(totals []float64, v float64, products *mat.SymDense, s float64,
	left *kept) (sum, square pool) {
	d := c.width()
	one := d - 1
	sum, square = pool{make([]float64, d), make([]float64, d)}, pool{make([]float64, d), make([]float64, d)}
	// Shortened rows make a sum too small, by about as much as the count of them.
	count, noise := c.rows(totals, v)
	count = max(count, fewestRows)
	missing := func(rows, variance float64) float64 {
		share := 1 - rows/count
		return max(share*share-(noise+variance)/(count*count), 0)
	}
	lessTotals, lessProducts := missing(totals[one], v), missing(products.At(one, one), s)
	average := func(p pool, j int, a, va, ka, b, vb, kb float64) {
		a, va, b, vb = a/ka, va/(ka*ka), b/kb, vb/(kb*kb)
		vb += lessProducts * b * b
		if !c.Category[j] { // whose totals lack nothing
			va += lessTotals * a * a
		}
		p.value[j] = a
		if va+vb > 0 {
			p.value[j], p.doubt[j] = (a*vb+b*va)/(va+vb), va*vb/(va+vb)
		}
	}
	average(square, one, totals[one], v, left.totals[one], products.At(one, one), s, left.products[one])
	rows := max(square.value[one], fewestRows)
	var levels []int
	for j := range one {
		// both entries are its count, the second with twice the variance
		if with, own := products.At(j, one), products.At(j, j); c.Category[j] {
			average(sum, j, totals[j], v, left.totals[j], (2*with+own)/3, s/3, left.products[j])
			levels = append(levels, j)
		} else {
			average(sum, j, totals[j], v, math.Sqrt(left.totals[j]*left.totals[one]), with, s/2, left.pair(j, one))
		}
	}
	for k, j := range c.numbers {
		average(square, j, 2*totals[d+k], 4*v, left.totals[j], products.At(j, j), s, left.products[j])
	}
	sum.shrink(c.numbers, 0)
	square.shrink(c.numbers, square.centre(c.numbers))
	sum.shrink(levels, sum.centre(levels))
	for j := range one {
		if c.Category[j] {
			sum.value[j] = min(max(sum.value[j], 0), rows)
			square.value[j], square.doubt[j] = max(sum.value[j], 1), sum.doubt[j]
			continue
		}
		square.value[j] = max(square.value[j], 1)
		most := math.Sqrt(square.value[j] * rows)
		sum.value[j] = min(max(sum.value[j], -most), most)
	}
	sum.value[one], square.value[one] = rows, rows
	return sum, square
}

// centre is the mean over some columns.
func (p pool) centre(columns []int) (mean float64) {
	for _, j := range columns {
		mean += p.value[j] / float64(len(columns))
	}
	return mean
}

// shrink moves the numbers of some columns towards a centre as far as their mean square
// around it, by the method of moments, is noise.
func (p pool) shrink(columns []int, centre float64) {
	excess := 0.0
	for _, j := range columns {
		excess += ((p.value[j]-centre)*(p.value[j]-centre) - p.doubt[j]) / float64(len(columns))
	}
	for _, j := range columns {
		if u, noise := max(excess, 0), p.doubt[j]; u+noise > 0 {
			w := u / (u + noise)
			p.value[j], p.doubt[j] = centre+w*(p.value[j]-centre), w*noise
		}
	}
}

// released is a noised sum of one site, or of several.
type released struct {
	Values   wire.Vector `cbor:"values"`
	Variance float64     `cbor:"variance"` // of its noise
}

func (r *released) add(o *released) {
	if r.Values == nil {
		r.Values = make(wire.Vector, len(o.Values))
	}
	floats.Add(r.Values, o.Values)
	r.Variance += o.Variance
}

// part is the i-th of parts that are so long.
func (r *released) part(i, length int) *released {
	return &released{r.Values[i*length:][:length], r.Variance}
}

// whole adds up parts that are so long, as of all classes.
func (r *released) whole(length int) *released {
	all := new(released)
	for i := range len(r.Values) / length {
		all.add(r.part(i, length))
	}
	return all
}

func (r *released) sd() float64 { return math.Sqrt(r.Variance) }

// lateSums are what the later gradients of each site add up to, and where they were asked for: by
// then the fit is about where it ends.
type lateSums struct {
	Asked []point              `cbor:"asked"`
	Sums  map[string]*released `cbor:"sums"` // Σ over rounds, not in units of the clip
}

// take adds what answers to one task say of pair i.
func (l *lateSums) take(t point, gradients map[string]*released, i int) {
	t.Mean = slices.Clone(t.Mean)
	l.Asked = append(l.Asked, t)
	if l.Sums == nil {
		l.Sums = map[string]*released{}
	}
	for site, all := range gradients {
		g := all.part(i, len(t.Mean))
		if l.Sums[site] == nil {
			l.Sums[site] = new(released)
		}
		l.Sums[site].add(&released{floats.ScaleTo(make(wire.Vector, len(g.Values)), t.Clip, g.Values),
			t.Clip * t.Clip * g.Variance})
	}
}

// surplus is what a site's rows have beyond what the model expects of them, by column: the mean
// over late rounds of its gradients less their clip bias. With the same weights at all sites it
// has the mean Information δ, with one δ for all, and the variance Information + Noise.
type surplus struct {
	Rows        float64
	Sum         []float64
	Information []float64 // diagonal of the site's Hessian
	Noise       []float64 // variance
}

// of makes the surplus of a site out of its sum over late rounds and its own Gram matrix.
func (l *lateSums) of(g *gram, sum *released) *surplus {
	d, rounds := g.Columns.width(), float64(len(l.Asked))
	s := &surplus{g.Rows, make([]float64, d), make([]float64, d), make([]float64, d)}
	bias, wrong := make([]float64, d), make([]float64, d)
	for _, t := range l.Asked {
		at := g.expect(t.Mean, t.Clip, 0)
		off := g.wrong(at, t.Mean, t.Clip)
		for j := range d {
			bias[j] += at.Bias[j] / rounds
			wrong[j] += off.AtVec(j) / rounds
			s.Information[j] += max(at.Hessian.At(j, j), flattest) / rounds
		}
	}
	for j := range d {
		phi := cmp.Or(g.Dispersion, 1)
		s.Sum[j], s.Information[j] = (sum.Values[j]/rounds-bias[j])/phi, s.Information[j]/phi
		s.Noise[j] = (sum.Variance/(rounds*rounds) + wrong[j]*wrong[j]) / (phi * phi)
	}
	return s
}

// differ returns by how much each site's surplus in a column is beyond what all have in common, if
// that is more than chance and noise give in one of so many tests, and enough to matter; else nil.
func differ(sites []*surplus, j, tests int) []float64 {
	parts, rows, excess := make([]stats.Score, len(sites)), 0.0, 0.0
	for i, s := range sites {
		if s != nil {
			parts[i] = stats.Score{Sum: s.Sum[j], Information: s.Information[j],
				Variance: s.Information[j] + s.Noise[j]}
			rows += s.Rows
		}
	}
	by, chi2, free := stats.CochranQ(parts)
	for i, p := range parts {
		if p.Information > 0 {
			excess += (by[i]*by[i] - p.Variance) / p.Information
		}
	}
	if free < 1 || !(excess > glm.OnSites.Matters*rows) ||
		!(stats.ChiSquareTail(chi2, free) < glm.OnSites.Level/float64(tests)) {
		return nil
	}
	return by
}

// largest bounds entries of a sum: far beyond what rows of any study add up to, and so that
// whatever is calculated from them is finite.
const largest = 1e12

// point is where a gradient is taken.
type point struct {
	Mean wire.Vector `cbor:"mean"`
	Clip float64     `cbor:"clip"`
	// Dispersion is the variance of a number around its expectation, as far as it is known; 0 of classes.
	Dispersion float64 `cbor:"dispersion,omitempty"`
}

// flattest is the smallest eigenvalue of a Hessian that is reckoned with, in rows.
const flattest = 0.5
