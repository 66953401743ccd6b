package sketch

import (
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"

	"parley/methods/graffl/kernelmean"
	"parley/methods/graffl/mixture"
)

// Fit compares what was observed with what the posterior expects. χ² has as many degrees of
// freedom as numbers were observed, less those that were fitted to them: by how much more
// draws are off on average than their mean (Spiegelhalter and others 2002, p_D), as noise and
// prior leave less to fit than there are parameters.
func (f Frequencies) Fit(o kernelmean.Observation, p *mixture.Posterior) (*kernelmean.Fit, error) {
	if err := o.Check(f.Len()); err != nil {
		return nil, err
	}
	n := f.Len()
	m := f.model(p.Draws[0].Components(), false)
	fit := &kernelmean.Fit{Expected: make([]float64, n), SD: make([]float64, n)}
	mean, t := make([]float64, n), make([]float64, m.len())
	likely, top := -1, 0.0
	means := make([]float64, 0, n*len(p.Draws))
	for i, d := range p.Draws {
		if err := f.coordinates(d, t); err != nil {
			return nil, fmt.Errorf("draw %d: %w", i+1, err)
		}
		m.mean(t, mean, nil)
		means = append(means, mean...)
		off := 0.0
		for r, v := range mean {
			fit.Expected[r] += p.Weights[i] * v
			off += (o.Mean[r] - v) * (o.Mean[r] - v)
		}
		if likely < 0 || off < top {
			likely, top = i, off
		}
	}
	if err := f.coordinates(p.Draws[likely], t); err != nil {
		return nil, err
	}
	cov := make([]float64, n*n)
	m.mean(t, mean, nil)
	m.spread(o, t, mean, cov)
	off := make([]float64, n)
	for r, v := range fit.Expected {
		fit.SD[r] = math.Sqrt(cov[r*n+r])
		off[r] = o.Mean[r] - v
		fit.Largest = max(fit.Largest, math.Abs(off[r])/fit.SD[r])
	}
	w, ok := factorised(cov, n)
	if !ok {
		return nil, fmt.Errorf("the covariance of %d observed means is singular", n)
	}
	w.apply(off, 1)
	fit.ChiSq = mixture.Squares(off)
	draws := 0.0
	for i, share := range p.Weights {
		for r := range off {
			off[r] = o.Mean[r] - means[i*n+r]
		}
		w.apply(off, 1)
		draws += share * mixture.Squares(off)
	}
	fit.Freedom = max(float64(n)-(draws-fit.ChiSq), 1)
	fit.Tail = tail(fit.ChiSq, fit.Freedom)
	return fit, nil
}

// coordinates writes the parameter of a mixture in units of the features.
func (f *Frequencies) coordinates(m mixture.Mixture, t []float64) error {
	u := m.Clone()
	for k := range u.Weights {
		mu, cov := u.Mean(k), u.Cov(k)
		u.Weights[k] = max(u.Weights[k], 1e-300) // a logarithm of what has underflowed
		for i := range f.Dim {
			mu[i] = (mu[i] - f.Centre[i]) / f.Scale[i]
			for j := range f.Dim {
				cov[i*f.Dim+j] /= f.Scale[i] * f.Scale[j]
			}
		}
	}
	return mixture.Coordinates{K: u.Components(), Dim: f.Dim}.To(t, u)
}

// Noise is what a plan says of the noise on the sums of all sites together.
type Noise struct {
	SD   float64 // on every sum of φ
	Rows float64 // on the number of rows
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

// RowsNeeded says how many rows all sites must have together, so that a mixture of k equally
// large components, as wide as the scale and four widths apart, is found: by the
// information in what they release (Fisher's, of its normal approximation), for mixtures
// that are made up from the seed. It is +Inf where noise hides them from any number up to 1e9.
func (f Frequencies) RowsNeeded(k int, noise Noise, seed uint64) (most float64) {
	m := f.model(k, false)
	n, q := 2*m.m, m.len()
	r := rand.New(rand.NewPCG(seed, 3))
	mean, jac, cov := make([]float64, n), make([]float64, n*q), make([]float64, n*n)
	for range madeUp {
		t := f.madeUp(m, r)
		m.mean(t, mean, jac)
		m.covariance(t, mean, cov)
		enough := func(rows float64) bool {
			o := kernelmean.Observation{Rows: rows, NoiseVar: noise.SD * noise.SD / (rows * rows), RowsVar: noise.Rows * noise.Rows}
			return m.told(o, t, mean, jac, cov)
		}
		few, rows := leastRows, max(most, leastRows)
		for !enough(rows) {
			if few, rows = rows, 4*rows; rows > mostRows {
				return math.Inf(1)
			}
		}
		for few < rows/1.2 { // the answer is between
			if mid := math.Sqrt(few * rows); enough(mid) {
				rows = mid
			} else {
				few = mid
			}
		}
		most = max(most, rows)
	}
	return most
}

// madeUp draws a mixture whose nearest components are apartExpected apart.
func (f *Frequencies) madeUp(m model, r *rand.Rand) []float64 {
	t := make([]float64, m.len())
	least := math.Inf(1)
	for k := range m.k {
		mu := m.means(t, k)
		for i := range mu {
			mu[i] = r.NormFloat64()
		}
		for j := range k {
			least = min(least, math.Sqrt(mixture.SquaredDistance(mu, m.means(t, j))))
		}
	}
	if m.k > 1 {
		for i := range m.k * m.d {
			t[m.k-1+i] *= apartExpected / least
		}
	}
	return t
}

// told says whether components can be told apart, by the information that an observation of so
// many rows has.
func (m model) told(o kernelmean.Observation, t, mean, jac, rowCov []float64) bool {
	n, q := 2*m.m, m.len()
	cov := make([]float64, n*n)
	for r := range n {
		for s := r; s < n; s++ {
			cov[r*n+s] = (rowCov[r*n+s] + o.RowsVar/o.Rows*mean[r]*mean[s]) / o.Rows
		}
		cov[r*n+r] += o.NoiseVar + nugget/o.Rows
	}
	w, ok := factorised(cov, n)
	if !ok {
		return false
	}
	j := append([]float64(nil), jac...)
	w.apply(j, q)
	h := make([]float64, q*q)
	a := blas64.General{Rows: n, Cols: q, Stride: q, Data: j}
	blas64.Gemm(blas.Trans, blas.NoTrans, 1, a, a, 0, blas64.General{Rows: q, Cols: q, Stride: q, Data: h})
	u, ok := lapack64.Potrf(blas64.Symmetric{N: q, Stride: q, Data: h, Uplo: blas.Upper})
	if !ok {
		return false
	}
	if _, ok := lapack64.Potri(u); !ok {
		return false
	}
	for i := range m.k - 1 { // of ln π_i/π_K, two weights that are as uncertain
		if math.Sqrt(h[i*q+i]/2)*surelyWeight > 1 {
			return false
		}
	}
	for i := m.k - 1; i < m.k-1+m.k*m.d; i++ {
		if math.Sqrt(h[i*q+i]) > surelyPlace*apartExpected {
			return false
		}
	}
	return true
}
