package sketch

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"

	"parley/methods/mixture/gmm"
)

const (
	// nullSets is how many data sets a check draws: of three statistics at a level of 1 %
	// together, each may be exceeded by none of 299.
	nullSets = 299
	// nullRows is of how many rows data sets of a check are made at most; of more rows they have the
	// covariance still, by a factor, but the law of the mean of so few.
	nullRows = 500
)

// Fit compares what was observed with what the posterior expects. χ² has as many degrees of freedom as numbers were
// observed, less those that were fitted to them: by how much more draws are off on average than their mean
// (Spiegelhalter and others 2002, p_D), as noise and prior leave less to fit than there are parameters. Its tail is
// that of a posterior predictive check by χ², by the largest distance, and by whether tails of components are heavier
// or lighter than normal ones.
func (f Frequencies) Fit(o Observation, p *gmm.Posterior) (*Fit, error) {
	if err := o.Check(f.Len()); err != nil {
		return nil, err
	}
	n := f.Len()
	m := f.model(p.Draws[0].Components(), false)
	fit := &Fit{Expected: make([]float64, n), SD: make([]float64, n)}
	t, likely := make([]float64, m.len()), make([]float64, m.len())
	top := math.Inf(1)
	means := make([]float64, n*len(p.Draws))
	for i, d := range p.Draws {
		if err := f.coordinates(d, t); err != nil {
			return nil, fmt.Errorf("draw %d: %w", i+1, err)
		}
		mean, off := means[i*n:][:n], 0.0
		m.mean(t, mean, nil)
		for r, v := range mean {
			fit.Expected[r] += p.Weights[i] * v
			off += (o.Mean[r] - v) * (o.Mean[r] - v)
		}
		if off < top {
			top = off
			copy(likely, t)
		}
	}
	cov, mean, jac := make([]float64, n*n), make([]float64, n), make([]float64, n*m.len())
	m.mean(likely, mean, jac)
	m.spread(o, likely, mean, cov)
	off := make([]float64, n)
	for r, v := range fit.Expected {
		fit.SD[r] = math.Sqrt(cov[r*n+r])
		off[r] = o.Mean[r] - v
	}
	w, ok := factorised(cov, n)
	if !ok {
		return nil, fmt.Errorf("the covariance of %d observed means is singular", n)
	}
	w.apply(jac, m.len())
	basis, ok := orthonormal(jac, m.len())
	c := &check{w: w, sd: fit.SD}
	var u blas64.Triangular
	if ok {
		c.tails = m.tails(likely, w, basis)
		if u, ok = believed(o, w, basis); !ok {
			return nil, fmt.Errorf("the covariance of %d observed means is singular", n)
		}
	}
	observed := c.statistics(off, nil, 0)
	fit.ChiSq, fit.Largest = observed[0], observed[1]
	fitted := 0.0
	for i, share := range p.Weights {
		one := make([]float64, n)
		for r := range one {
			one[r] = math.Sqrt(share) * (fit.Expected[r] - means[i*n+r])
		}
		w.apply(one, 1)
		if u.N > 0 {
			undo(u, basis, one)
		}
		fitted += gmm.Squares(one)
		c.fitted = append(c.fitted, one...)
	}
	fit.Freedom = max(float64(n)-fitted, 1)
	// What sites could have released if the mixture is right: a posterior predictive check (Gelman, Meng and Stern
	// 1996).
	draws, null, failed := gmm.Systematic(p.Weights, nullSets, 0.5), make([][]float64, nullSets),
		make([]error, nullSets)
	divide(nullSets, func() func(int) {
		return func(b int) {
			expected := means[draws[b]*n:][:n]
			place := make([]float64, n) // of the draw, as the posterior knows it from other draws
			for r, v := range fit.Expected {
				place[r] = expected[r] - v
			}
			var off []float64
			if off, failed[b] = f.simulated(o, p.Draws[draws[b]], expected,
				rand.New(rand.NewPCG(uint64(b), 5))); failed[b] == nil {
				null[b] = c.statistics(off, c.fitted, c.heavier(place))
			}
		}
	})
	if err := errors.Join(failed...); err != nil {
		return nil, err
	}
	fit.Tail = tailOf(observed, null)
	return fit, nil
}

// simulated is how far means of a data set of a mixture are from those that it expects.
func (f Frequencies) simulated(o Observation, m gmm.Mixture, expected []float64, r *rand.Rand) ([]float64, error) {
	rows := int(math.Round(max(1, min(o.Rows, nullRows))))
	x, phi, off := make([]float64, rows*m.Dim), make([]float64, len(expected)), make([]float64, len(expected))
	if err := m.Simulate(r, x); err != nil {
		return nil, err
	}
	for row := range slices.Chunk(x, m.Dim) {
		f.Features(phi, row)
		for j, v := range phi {
			off[j] += v
		}
	}
	like := 1 / math.Sqrt(float64(rows)*o.Rows) // the mean of o.Rows rows is as far off
	count, noise := math.Sqrt(o.RowsVar)/o.Rows*r.NormFloat64(), math.Sqrt(o.NoiseVar)
	for j, e := range expected {
		off[j] = (off[j]-float64(rows)*e)*like + count*e + noise*r.NormFloat64()
	}
	return off, nil
}

// tailOf is the probability of what was observed, by statistics that are large where a mixture
// is wrong: the share of data sets, itself included, that are as far off by the statistic that
// speaks most against it, times the number of statistics (Bonferroni).
func tailOf(observed []float64, null [][]float64) float64 {
	p := 1.
	for i, v := range observed {
		beyond := 1
		for _, n := range null {
			if n[i] >= v {
				beyond++
			}
		}
		p = min(p, float64(len(observed)*beyond)/float64(len(null)+1))
	}
	return p
}

// check computes the statistics of [Frequencies.Fit].
type check struct {
	w      *white
	sd     []float64
	tails  []float64 // weights of distances, by which heavier tails have a variance of 1; nil without
	fitted []float64 // whitened, the posterior's draws around their mean, by the root of their weights
}

// statistics are χ², the largest distance, and how far tails are from normal. Of simulated distances χ² loses what a
// fit to them would take: the square in the directions in which the posterior is uncertain, as its covariance is that
// of a fit. Their tails are off by as much as those of the draw that they are of, besides.
func (c *check) statistics(off, fitted []float64, besides float64) []float64 {
	largest := 0.0
	for r, v := range off {
		largest = max(largest, math.Abs(v)/c.sd[r])
	}
	tails := math.Abs(c.heavier(off) + besides)
	c.w.apply(off, 1)
	chiSq := gmm.Squares(off)
	for at := 0; at < len(fitted); at += len(off) {
		s := dot(fitted[at:][:len(off)], off)
		chiSq -= s * s
	}
	return []float64{chiSq, largest, tails}
}

// heavier is how far distances are off in the direction of heavier tails.
func (c *check) heavier(off []float64) float64 {
	if c.tails == nil {
		return 0
	}
	return dot(c.tails, off)
}

// orthonormal is a basis of what changes of parameters make of means, of derivatives, n × q by
// rows, which it overwrites; not ok if some parameters make the same of them.
func orthonormal(jac []float64, q int) (basis blas64.General, ok bool) {
	basis = blas64.General{Rows: len(jac) / q, Cols: q, Stride: q, Data: jac}
	h := blas64.Symmetric{N: q, Stride: q, Data: make([]float64, q*q), Uplo: blas.Upper}
	blas64.Syrk(blas.Trans, 1, basis, 0, h)
	for i := range q {
		h.Data[i*q+i] *= 1 + 1e-10
	}
	root, ok := lapack64.Potrf(h)
	if ok {
		blas64.Trsm(blas.Right, blas.NoTrans, 1, root, basis)
	}
	return basis, ok
}

// undo makes whitened distances of a draw those that it had before [believed].
func undo(u blas64.Triangular, basis blas64.General, off []float64) {
	y := blas64.Vector{N: basis.Cols, Data: make([]float64, basis.Cols), Inc: 1}
	all := blas64.Vector{N: len(off), Data: off, Inc: 1}
	blas64.Gemv(blas.Trans, 1, basis, all, 0, y)
	z := blas64.Vector{N: y.N, Data: append([]float64(nil), y.Data...), Inc: 1}
	blas64.Trsv(blas.Trans, u, z)
	blas64.Axpy(-1, y, z)
	blas64.Gemv(blas.NoTrans, 1, basis, z, 1, all)
}

// tails is the direction in which whitened means move as tails of all components grow heavier, a factor exp(η q²/8)
// on what a frequency with q = ωᵀΣω sees of each, as far as no change of the parameters, of which basis is, moves
// them as well: a score test. It returns the weights of distances in it, nil if there is no such direction.
func (m model) tails(t []float64, w *white, basis blas64.General) []float64 {
	n := 2 * m.m
	v, x := make([]float64, n), make([]float64, m.d)
	l := make([]float64, m.d*m.d)
	for k, share := range m.weights(t) {
		m.factor(t, k, l)
		for j := range m.m {
			om := m.seen(j, l, x)
			s := gmm.Squares(x)
			sin, cos := math.Sincos(dot(om, m.means(t, k)))
			a := share * math.Exp(-s/2) * s * s / 8
			v[j] += a * cos
			v[m.m+j] += a * sin
		}
	}
	w.apply(v, 1)
	before := math.Sqrt(gmm.Squares(v))
	all := blas64.Vector{N: n, Data: v, Inc: 1}
	along := blas64.Vector{N: basis.Cols, Data: make([]float64, basis.Cols), Inc: 1}
	blas64.Gemv(blas.Trans, 1, basis, all, 0, along)
	blas64.Gemv(blas.NoTrans, -1, basis, along, 1, all)
	length := math.Sqrt(gmm.Squares(v))
	if !(length > 1e-6*before) {
		return nil
	}
	for i := range v {
		v[i] /= length
	}
	blas64.Trsv(blas.NoTrans, w.upper, all) // to weights of what is not whitened
	return v
}

// coordinates writes the parameter of a mixture in units of the features.
func (f *Frequencies) coordinates(m gmm.Mixture, t []float64) error {
	u := f.rescaled(m, true)
	for k, w := range u.Weights {
		u.Weights[k] = max(w, 1e-300) // a logarithm of what has underflowed
	}
	return gmm.Coordinates{K: u.Components(), Dim: f.Dim}.To(t, u)
}

const (
	// apartExpected is how far apart, in units of the scale, the components of a made-up
	// mixture are that a plan is judged by.
	apartExpected = 4
	madeUp        = 3 // such mixtures
	// surely is how well the place of a component must be known, as a share of the distance to
	// its neighbour, and its weight, in standard deviations, for it to be told apart.
	surelyPlace, surelyWeight = 0.1, 5
	leastRows, mostRows       = 30., 1e9
)

// RowsNeeded says how many rows all sites must have together, so that a mixture of k components
// is found that are as wide as the scale and four widths apart, the smallest half as large as the
// largest, under noise of standard deviations on every sum of φ and on the number of rows: by the information in what
// they release (Fisher's, of its normal approximation), for mixtures that are made up from the seed. It is +Inf where
// noise hides them from any number up to 1e9, or frequencies are too few.
func (f Frequencies) RowsNeeded(k int, sd, rowsSD float64, seed uint64) (need float64) {
	m := f.model(k, false)
	n := 2 * m.m
	r := rand.New(rand.NewPCG(seed, 3))
	mean, cov := make([]float64, n), make([]float64, n*n)
	for range madeUp {
		t := f.madeUp(m, r)
		m.mean(t, mean, nil)
		m.covariance(t, mean, cov)
		told := func(rows float64) bool {
			return m.told(Observation{nil, rows, sd * sd / (rows * rows), rowsSD * rowsSD}, t, mean, cov)
		}
		few, rows := leastRows, max(need, leastRows)
		if need > 0 && told(rows) {
			continue
		}
		for !told(rows) {
			if few, rows = rows, 4*rows; rows > mostRows {
				return math.Inf(1)
			}
		}
		for few < rows/1.2 { // the answer is between
			if mid := math.Sqrt(few * rows); told(mid) {
				rows = mid
			} else {
				few = mid
			}
		}
		need = rows
	}
	return need
}

// madeUp draws a mixture whose nearest components are apartExpected apart, and whose weights fall
// evenly to half of the first.
func (f *Frequencies) madeUp(m model, r *rand.Rand) []float64 {
	t := make([]float64, m.len())
	least := math.Inf(1)
	for k := range m.k {
		if k < m.k-1 {
			t[k] = math.Log(2 - float64(k)/float64(m.k-1))
		}
		mu := m.means(t, k)
		for i := range mu {
			mu[i] = r.NormFloat64()
		}
		for j := range k {
			least = min(least, math.Sqrt(gmm.SquaredDistance(mu, m.means(t, j))))
		}
	}
	if m.k > 1 {
		for i := range m.k * m.d {
			t[m.k-1+i] *= apartExpected / least
		}
	}
	return t
}

// told says whether components can be told apart, by the standard deviations of all parameters that the information
// in an observation leaves.
func (m model) told(o Observation, t, mean, rowCov []float64) bool {
	n, q := 2*m.m, m.len()
	cov := slices.Clone(rowCov)
	o.spread(mean, cov)
	w, ok := factorised(cov, n)
	if !ok {
		return false
	}
	h := make([]float64, q*q)
	m.normal(mean, w, t, make([]float64, n), make([]float64, n*q), make([]float64, q), h)
	u, ok := lapack64.Potrf(blas64.Symmetric{N: q, Stride: q, Data: h, Uplo: blas.Upper})
	if ok {
		_, ok = lapack64.Potri(u)
	}
	for i := range m.k - 1 + m.k*m.d {
		most := surelyPlace * apartExpected
		if i < m.k-1 { // of ln π_i/π_K, two weights that are as uncertain
			most = math.Sqrt2 / surelyWeight
		}
		ok = ok && math.Sqrt(h[i*q+i]) <= most
	}
	return ok
}
