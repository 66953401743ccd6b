package glm

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/interp"
	"gonum.org/v1/gonum/mat"
)

// Posterior is what is known of weights and τ: a mixture of normal distributions of the
// weights over a grid of ln τ, by its first two moments, and the density of τ.
type Posterior struct {
	Mean       []float64 // of the weights
	Covariance []float64 // their lower triangle by rows
	Tau        Spread
	Settled    bool // whether the weights are found wherever τ may be
}

// Spread is the posterior of the standard deviation between sites.
type Spread struct {
	Median float64 `json:"median" cbor:"median"`
	Low    float64 `json:"low_90" cbor:"low"` // the 5 % quantile
	High   float64 `json:"high_90" cbor:"high"`
	Square float64 `json:"mean_square" cbor:"square"` // E τ², the variance that a new site adds
}

// Check reports what is no posterior of a standard deviation.
func (t Spread) Check() error {
	most := math.Exp(logTauBeyond + 1)
	if !(t.Low > 0) || !(t.Low <= t.Median && t.Median <= t.High && t.High <= most) || !Inside(t.Square, 0, most*most) {
		return fmt.Errorf("a standard deviation between sites of %v, from %v to %v", t.Median, t.Low, t.High)
	}
	return nil
}

// posterior takes one Newton step of the weights at each point of the grid, and integrates
// them out by Laplace's method there.
func posterior(p Prior, grid []MixedPoint, at []*conditional, wide bool) (*Posterior, error) {
	n := len(grid[0].Weights)
	means := make([][]float64, len(grid))
	covariances := make([]mat.SymDense, len(grid))
	logTau, evidence := make([]float64, len(grid)), make([]float64, len(grid)) // without the prior of τ
	for k, c := range at {
		if err := c.weights.InverseTo(&covariances[k]); !Usable(err) {
			return nil, fmt.Errorf("the curvature by the weights is close to singular: %w", err)
		}
		means[k] = floats.AddTo(make([]float64, n), grid[k].Weights, c.step)
		logTau[k] = grid[k].LogTau
		evidence[k] = c.evidence() - p.logTau(logTau[k])
		if k > 0 && !(logTau[k] > logTau[k-1]) {
			return nil, fmt.Errorf("ln τ = %v has left what can be calculated with: the sites do not differ, or too "+
				"much", logTau[k])
		}
	}
	tau, share, err := p.tauOf(logTau, evidence)
	if err != nil {
		return nil, err
	}
	if wide { // a share below 0 of a point whose covariance is many times that of others would count
		sum := 0.0
		for k := range share {
			share[k] = max(share[k], 0)
			sum += share[k]
		}
		floats.Scale(1/sum, share)
	}
	out := &Posterior{Tau: tau}
	out.Mean, out.Covariance = momentsOf(share, means)
	for k, p := range share {
		floats.AddScaled(out.Covariance, p, Lower(&covariances[k]))
	}
	var chol mat.Cholesky
	if !chol.Factorize(Symmetric(out.Covariance, n)) {
		return nil, fmt.Errorf("%w: the weights differ too much between points of the grid", ErrNotConverged)
	}
	return out, nil
}

// fine is how many steps the density is integrated by for each step of the grid, and tail
// how many steps it goes on below the grid, and above.
const (
	fine = 64
	tail = 12
)

// tauOf returns quantiles and the mean square of τ, and the share by which each grid point counts in an expectation
// of what changes with τ. The logarithm of the evidence is a cubic spline between the points, and straight outside;
// the prior is exact everywhere. What an expectation is taken of is such a spline too, and constant outside.
func (p Prior) tauOf(logTau, evidence []float64) (t Spread, share []float64, err error) {
	var spline interp.NotAKnotCubic
	if err := spline.Fit(logTau, evidence); err != nil {
		return t, nil, fmt.Errorf("the density of τ: %w", err)
	}
	n := len(logTau)
	first, last := logTau[0], logTau[n-1]
	step := (last - first) / float64(n-1)
	slopeLow, slopeHigh := spline.PredictDerivative(first), spline.PredictDerivative(last)
	top := math.Inf(-1)
	for k, v := range evidence {
		top = max(top, v+p.logTau(logTau[k]))
	}
	density := func(x float64) float64 {
		v := p.logTau(x) - top
		switch {
		case x < first:
			v += evidence[0] + slopeLow*(x-first)
		case x > last:
			v += evidence[n-1] + slopeHigh*(x-last)
		default:
			v += spline.Predict(x)
		}
		return math.Exp(v)
	}
	count := (n - 1 + 2*tail) * fine
	h, begin := step/fine, first-tail*step
	cumulated := make([]float64, count+1)
	sum := 0.0
	for i := range count {
		x := begin + (float64(i)+0.5)*h
		v := density(x)
		sum += v
		cumulated[i+1] = sum
		t.Square += v * math.Exp(2*x)
	}
	if !(sum > 0) || !Finite(sum) || density(begin) > 1e-3 || density(begin+float64(count)*h) > 1e-3 {
		return t, nil, fmt.Errorf("%w: the density of τ does not fall on both sides of its mode", ErrNotConverged)
	}
	t.Square /= sum
	share = make([]float64, n)
	for k := range share {
		unit := make([]float64, n)
		unit[k] = 1
		var weight interp.NotAKnotCubic
		if err := weight.Fit(logTau, unit); err != nil {
			return t, nil, fmt.Errorf("the density of τ: %w", err)
		}
		for i := range count {
			x := min(max(begin+(float64(i)+0.5)*h, first), last)
			share[k] += (cumulated[i+1] - cumulated[i]) / sum * weight.Predict(x)
		}
	}
	quantile := func(q float64) float64 {
		i := 0
		for cumulated[i+1] < q*sum {
			i++
		}
		part := (q*sum - cumulated[i]) / (cumulated[i+1] - cumulated[i])
		return math.Exp(begin + (float64(i)+part)*h)
	}
	t.Low, t.Median, t.High = quantile(0.05), quantile(0.5), quantile(0.95)
	return t, share, nil
}

// endShare is the share of each quantile of 5 and 95 % beside the median in a rule of three points
// that has the variance of a normal ln τ: 1/(2 · 1.645²).
const endShare = 0.1848

// InterceptOver is [Marginal.Intercept] averaged over what is known of τ, by its median and its
// quantiles: with few rows at each site τ is the larger part of what is not known.
func (m *Marginal) InterceptOver(weights []float64, t Spread) Intercept {
	out := Intercept{Slope: make([]float64, len(weights))}
	square := 0.0
	for _, at := range []struct{ tau, share float64 }{{t.Low, endShare}, {t.Median, 1 - 2*endShare},
		{t.High, endShare}} {
		b := m.Intercept(MixedPoint{Weights: weights, LogTau: math.Log(at.tau)})
		out.Mean += at.share * b.Mean
		square += at.share * (b.Variance + b.Mean*b.Mean)
		floats.AddScaled(out.Slope, at.share, b.Slope)
	}
	out.Variance = max(square-out.Mean*out.Mean, 0)
	return out
}

// Prior is that of weights and of τ, which are independent.
type Prior struct {
	Weights Gaussian
	Tau     float64 // τ is half-normal with this scale: |N(0, Tau²)|
}

// TauScale is the scale of τ's prior: 1 on the scale of log-odds or log-rates, where sites that differ by more than 2
// are rare, and one standard deviation of the outcome for a number, whose variance that is; 0 if it is none (Gelman,
// Bayesian Analysis 2006, on half-normal and half-t priors for few groups).
func TauScale(variance float64) float64 {
	if variance > 0 {
		return math.Sqrt(variance)
	}
	return 1
}

// add adds the logarithm of the prior's density at a point, by ln τ, up to a constant.
func (p Prior) add(x MixedPoint, d *Derivatives) {
	for j, w := range x.Weights {
		l := p.Weights.Lambda[j]
		diff := w - p.Weights.Eta[j]/l
		d.Value -= l * diff * diff / 2
		d.Gradient[j] -= l * diff
		d.Information[Packed(j, j)] += l
	}
	n := len(x.Weights)
	u := math.Exp(2*x.LogTau) / (p.Tau * p.Tau)
	d.Value += p.logTau(x.LogTau)
	d.Gradient[n] += 1 - u
	d.Information[Packed(n, n)] += 2 * u
}

// logTau is the logarithm of the density of ln τ, up to a constant.
func (p Prior) logTau(x float64) float64 { return x - math.Exp(2*x)/(2*p.Tau*p.Tau) }

// allowed is how much of a step from ln τ stays within logTauLargest of the prior's scale.
func (p Prior) allowed(logTau, step float64) float64 {
	centre := math.Log(p.Tau)
	return min(max(step, centre-logTauLargest-logTau), centre+logTauLargest-logTau)
}

// largestLog is the largest step of ln τ, whose log posterior need not be concave.
const largestLog = 1.0

// conditional is what is known of the weights at one τ, by Laplace's method, and what ln τ adds.
type conditional struct {
	weights mat.Cholesky // curvature by them, positive definite as the marginal likelihood is log-concave
	step    []float64    // Newton's
	value   float64      // the log posterior
	gain    float64      // by which the step adds to it
	fell    bool         // whether the point is worse than the one before
	along   []float64    // how the best weights move with ln τ
	left    float64      // curvature by ln τ along with the weights, made positive
	sd      float64      // left^−½
}

// conditional reads the derivatives at a point.
func (p Prior) conditional(d *Derivatives) (*conditional, error) {
	n := len(d.Gradient) - 1
	c := &conditional{step: make([]float64, n), value: d.Value, along: make([]float64, n)}
	own := Symmetric(d.Information, n)
	if ok := c.weights.Factorize(own) || c.weights.Factorize(p.least(own)); !ok {
		return nil, fmt.Errorf("the curvature by the weights is not positive definite: sites' sums do not fit together")
	}
	last := d.Information[n*(n+1)/2:]
	cross, move := mat.NewVecDense(n, slices.Clone(last[:n])), mat.NewVecDense(n, c.along)
	if err := c.weights.SolveVecTo(move, cross); !Usable(err) {
		return nil, fmt.Errorf("the curvature by the weights is close to singular: %w", err)
	}
	// An error says what the one above has.
	_ = c.weights.SolveVecTo(mat.NewVecDense(n, c.step), mat.NewVecDense(n, slices.Clone(d.Gradient[:n])))
	for j, x := range c.step {
		c.gain += x * d.Gradient[j] / 2
	}
	// Far from the mode the log posterior need not be concave in ln τ.
	c.left = max(last[n]-mat.Dot(cross, move), 0.25)
	c.sd = 1 / math.Sqrt(c.left)
	floats.Scale(-1, c.along)
	return c, nil
}

// newton returns Newton's step, and its largest entry in standard deviations.
func (c *conditional) newton(d *Derivatives) (step []float64, size float64) {
	g := d.Gradient[len(c.step)]
	for j, a := range c.along {
		g += a * d.Gradient[j]
	}
	u := Clamp(g/c.left, largestLog)
	step = slices.Clone(c.step)
	floats.AddScaled(step, u, c.along)
	size = math.Abs(u) / c.sd
	var covariance mat.SymDense
	if err := c.weights.InverseTo(&covariance); !Usable(err) {
		return append(step, u), math.Inf(1)
	}
	for j, x := range step {
		size = max(size, math.Abs(x)/math.Sqrt(covariance.At(j, j)))
	}
	return append(step, u), size
}

// least is a curvature that is nowhere below the prior's, as none is: what errors of quadrature
// make of it where τ is large beside what a row or two can tell need not be.
func (p Prior) least(curvature *mat.SymDense) *mat.SymDense {
	unit := func(i, j int) float64 { return math.Sqrt(p.Weights.Lambda[i] * p.Weights.Lambda[j]) }
	n := curvature.SymmetricDim()
	scaled := Floored(Sym(n, func(i, j int) float64 { return curvature.At(i, j) / unit(i, j) }), 1)
	if scaled == nil {
		return curvature
	}
	return Sym(n, func(i, j int) float64 { return scaled.At(i, j) * unit(i, j) })
}

// evidence is the logarithm of the density of ln τ, up to a constant.
func (c *conditional) evidence() float64 { return c.value + c.gain - c.weights.LogDet()/2 }
