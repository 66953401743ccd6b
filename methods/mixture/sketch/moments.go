package sketch

import (
	"fmt"
	"math"

	"parley/methods/mixture/gmm"
)

// moments evaluates the mean and the covariance of φ under a mixture, in closed
// form. It is not safe for concurrent use.
type moments struct {
	Landmarks
	line       int // landmarks that follow each other at equal steps along the first feature; 0 if it varies
	l, e, step []float64
	part       []float64 // E φ under one component
	middles    []float64 // E at midpoints; made when first used
}

func newMoments(l Landmarks) *moments {
	return &moments{Landmarks: l, line: l.lines(), l: make([]float64, l.Dim*l.Dim), e: make([]float64, l.Dim), step: make([]float64, l.Dim), part: make([]float64, l.Len())}
}

// lines returns how long the rows of a grid are, if its points are in their order.
func (l Landmarks) lines() int {
	if !l.isGrid() {
		return 0
	}
	n := l.Len()
	follows := func(r int) bool {
		for i, c := range l.Point(r) {
			step := 0.0
			if i == 0 {
				step = l.Spacing[0]
			}
			if math.Abs(c-l.Point(r - 1)[i]-step) > 1e-9*l.Spacing[i] {
				return false
			}
		}
		return true
	}
	line := 1
	for line < n && follows(line) {
		line++
	}
	for r := range n {
		if r > 0 && follows(r) != (r%line != 0) {
			return 0
		}
	}
	if n%line != 0 {
		return 0
	}
	return line
}

// prepare readies E exp(−½ (x−c)ᵀ D⁻¹ (x−c)) under a component, where
// D = diag(h²)·shrink: it is |D|^½ |D+Σ|^−½ exp(−½ (c−μ)ᵀ (D+Σ)⁻¹ (c−μ)). It leaves the
// factor of D + Σ in l, its diagonal inverted, and returns the logarithm of what
// stands before the exponential.
func (e *moments) prepare(cov []float64, shrink float64) (logScale float64, ok bool) {
	d := e.Dim
	copy(e.l, cov)
	for i, h := range e.Bandwidth {
		v := h * h * shrink
		e.l[i*d+i] += v
		logScale += math.Log(v)
	}
	logDet, ok := gmm.Cholesky(e.l, d)
	for i := range d {
		e.l[i*d+i] = 1 / e.l[i*d+i]
	}
	return (logScale - logDet) / 2, ok
}

// square returns (c−μ)ᵀ (D+Σ)⁻¹ (c−μ).
func (e *moments) square(c, mu []float64) float64 {
	for i := range e.e {
		e.e[i] = c[i] - mu[i]
	}
	e.whiten(e.e)
	return gmm.Squares(e.e)
}

// component writes E φ under component k alone. It reports false where its
// covariance is useless.
func (e *moments) component(m gmm.Mixture, k int, dst []float64) bool {
	logScale, ok := e.prepare(m.Cov(k), 1)
	if !ok {
		return false
	}
	mu := m.Mean(k)
	if e.line > 2 {
		e.along(mu, logScale, dst)
		return true
	}
	for r := range dst {
		dst[r] = 0
		if q := e.square(e.Point(r), mu) - 2*logScale; q < negligible {
			dst[r] = math.Exp(-q / 2)
		}
	}
	return true
}

// along writes E φ line by line of a grid: beside its peak on the line it falls by
// ratios that themselves fall by a constant ratio, so that two exponentials are enough
// for a line.
func (e *moments) along(mu []float64, logScale float64, dst []float64) {
	clear(e.step)
	e.step[0] = e.Spacing[0]
	e.whiten(e.step)
	curvature := gmm.Squares(e.step)
	again, flat := math.Exp(-curvature), 1/curvature
	last := e.line - 1
	for first := 0; first < len(dst); first += e.line {
		row := dst[first:][:e.line]
		clear(row)
		for i, c := range e.Point(first) {
			e.e[i] = c - mu[i]
		}
		e.whiten(e.e)
		slope, q := 0.0, -2*logScale
		for i, v := range e.e {
			slope += v * e.step[i]
			q += v * v
		}
		at := min(max(math.Round(-slope*flat), 0), float64(last))
		if q += at * (2*slope + at*curvature); !(q < negligible) {
			continue
		}
		top, peak := math.Exp(-q/2), int(at)
		slope += at * curvature
		row[peak] = top
		// Of two ratios whose product is again, the one that is not larger than 1.
		small := math.Exp(-math.Abs(slope) - curvature/2)
		up, down := small, again/small
		if slope < 0 {
			up, down = down, up
		}
		v := top
		for t := peak + 1; t <= last; t++ {
			if v *= up; !(v >= negligibleValue) {
				break
			}
			row[t] = v
			up *= again
		}
		v = top
		for t := peak - 1; t >= 0; t-- {
			if v *= down; !(v >= negligibleValue) {
				break
			}
			row[t] = v
			down *= again
		}
	}
}

// whiten replaces x by the factor's inverse times x.
func (e *moments) whiten(x []float64) {
	d := e.Dim
	if d == 2 { // the case of pictures, and of the inner loops' time
		x[0] *= e.l[0]
		x[1] = (x[1] - e.l[2]*x[0]) * e.l[3]
		return
	}
	for i := range x {
		t := x[i]
		for j, v := range e.l[i*d:][:i] {
			t -= v * x[j]
		}
		x[i] = t * e.l[i*d+i]
	}
}

// mean writes E φ.
func (e *moments) mean(m gmm.Mixture, dst []float64) bool {
	clear(dst)
	for k, w := range m.Weights {
		if !e.component(m, k, e.part) {
			return false
		}
		for r, v := range e.part {
			dst[r] += w * v
		}
	}
	return true
}

// covariance writes the lower triangle of Cov φ, n × n, given E φ and the landmarks'
// pairs. It rests on φ_r φ_s = exp(−|c_r−c_s|²_h/4) exp(−|x−c̄_rs|²_h), c̄ their midpoint.
func (e *moments) covariance(m gmm.Mixture, p *overlaps, mean, dst []float64) bool {
	n, d := e.Len(), e.Dim
	if e.middles == nil {
		e.middles = make([]float64, len(p.middles))
	}
	middle, at := e.step, e.middles
	clear(at)
	for k, w := range m.Weights {
		logScale, ok := e.prepare(m.Cov(k), 0.5)
		if !ok {
			return false
		}
		mu := m.Mean(k)
		for j, rs := range p.middles {
			a, b := e.Point(int(rs[0])), e.Point(int(rs[1]))
			for i := range d {
				middle[i] = (a[i] + b[i]) / 2
			}
			if q := e.square(middle, mu) - 2*logScale; q < negligible {
				at[j] += w * math.Exp(-q/2)
			}
		}
	}
	for r, v := range mean {
		row := dst[r*n:][:r+1]
		for s := range row {
			row[s] = -v * mean[s]
		}
	}
	for _, q := range p.near {
		dst[int(q.r)*n+int(q.s)] += q.factor * at[q.middle]
	}
	return true
}

// overlaps are the pairs of landmarks whose kernels overlap, s ≤ r, and their midpoints. On
// a grid many pairs share one.
type overlaps struct {
	near    []overlap
	middles [][2]int32 // two landmarks half way between which it lies
}

type overlap struct {
	r, s, middle int32
	factor       float64 // exp(−|c_r−c_s|²_h/4)
}

func newOverlaps(l Landmarks) *overlaps {
	p := &overlaps{}
	corners, size := l.corners()
	known := make([]int32, size) // midpoints of a grid, from 1, by the sum of its corners
	for r := range l.Len() {
		for s := range r + 1 {
			q := 0.0
			for i, h := range l.Bandwidth {
				t := (l.Point(r)[i] - l.Point(s)[i]) / h
				q += t * t / 2
			}
			if q > negligible {
				continue
			}
			at := int32(len(p.middles))
			if corners != nil {
				place := &known[corners[r]+corners[s]]
				if *place == 0 {
					*place = at + 1
				}
				at = *place - 1
			}
			if int(at) == len(p.middles) {
				p.middles = append(p.middles, [2]int32{int32(r), int32(s)})
			}
			p.near = append(p.near, overlap{int32(r), int32(s), at, math.Exp(-q / 2)})
		}
	}
	return p
}

// maxCorners bounds the memory for midpoints: a grid with so many has mostly gaps.
const maxCorners = 1 << 20

// corners numbers the points of a grid so that the sum of two numbers tells their
// midpoint; it is below size. Landmarks that are no grid, or one with gaps, have none.
func (l Landmarks) corners() (corners []int, size int) {
	if !l.isGrid() {
		return nil, 0
	}
	corners = make([]int, l.Len())
	size = 1
	for i, s := range l.Spacing {
		lowest, highest := math.Inf(1), math.Inf(-1)
		for r := range corners {
			lowest, highest = min(lowest, l.Point(r)[i]), max(highest, l.Point(r)[i])
		}
		for r := range corners {
			corners[r] += size * int(math.Round((l.Point(r)[i]-lowest)/s))
		}
		if size *= 2*int(math.Round((highest-lowest)/s)) + 1; size > maxCorners {
			return nil, 0
		}
	}
	return corners, size
}

// negligible is where exp(−q/2) is below negligibleValue.
const (
	negligible      = 60
	negligibleValue = 1e-13
)

// Moments returns the mean and the covariance (by rows) of φ(x) for x drawn from m.
func (l Landmarks) Moments(m gmm.Mixture) (mean, cov []float64, err error) {
	if m.Dim != l.Dim {
		return nil, nil, fmt.Errorf("a mixture in %d dimensions and landmarks in %d", m.Dim, l.Dim)
	}
	n := l.Len()
	mean, cov = make([]float64, n), make([]float64, n*n)
	e := newMoments(l)
	if !e.mean(m, mean) || !e.covariance(m, newOverlaps(l), mean, cov) {
		return nil, nil, fmt.Errorf("the mixture has a covariance that is not positive definite")
	}
	for r := range n {
		for s := range r {
			cov[s*n+r] = cov[r*n+s]
		}
	}
	return mean, cov, nil
}

// Observation is what the sites' releases say together: the mean of φ over all
// rows, Σ_j sums_j / Σ_j n_j.
type Observation struct {
	Mean []float64 `json:"mean" cbor:"mean"`
	Rows float64   `json:"rows" cbor:"rows"` // n, all sites together
	// NoiseVar is the variance of the noise on each entry of Mean:
	// Σ_j sd_j²/n², sd_j on the sum of site j in units of φ; 0 without protection.
	NoiseVar float64 `json:"noise_variance" cbor:"noise_variance"`
	// RowsVar is the variance of the noise in n, where the number of rows was itself
	// released with noise; 0 where it is public.
	RowsVar float64 `json:"rows_variance" cbor:"rows_variance"`
}

// Check reports what is wrong with an observation at n landmarks.
func (o Observation) Check(landmarks int) error {
	switch {
	case len(o.Mean) != landmarks:
		return fmt.Errorf("%d means were observed at %d landmarks", len(o.Mean), landmarks)
	case gmm.NotFinite(o.Mean) >= 0:
		return fmt.Errorf("the mean at landmark %d is not finite", gmm.NotFinite(o.Mean))
	case !(o.Rows >= 1) || math.IsInf(o.Rows, 1):
		return fmt.Errorf("the observed means are of %v rows: want at least 1", o.Rows)
	case !(o.NoiseVar >= 0) || math.IsInf(o.NoiseVar, 1) || !(o.RowsVar >= 0) || math.IsInf(o.RowsVar, 1):
		return fmt.Errorf("noise variances %v and %v: want numbers that are not negative", o.NoiseVar, o.RowsVar)
	}
	return nil
}

// Pool adds sites up: sums of φ over their rows, noised or not, the number of rows
// of each, and the standard deviation of the noise on each entry of the sums.
func Pool(sums [][]float64, rows []int, sd []float64) (Observation, error) {
	var o Observation
	if len(sums) == 0 || len(rows) != len(sums) || len(sd) != len(sums) {
		return o, fmt.Errorf("sums of %d sites, numbers of rows of %d and noise of %d: want as many of each", len(sums), len(rows), len(sd))
	}
	o.Mean = make([]float64, len(sums[0]))
	for j, s := range sums {
		if len(s) != len(o.Mean) || rows[j] < 1 {
			return o, fmt.Errorf("site %d sums %d landmarks over %d rows: want %d landmarks, as site 0, and rows", j, len(s), rows[j], len(o.Mean))
		}
		o.Rows += float64(rows[j])
		o.NoiseVar += sd[j] * sd[j]
		for r, v := range s {
			o.Mean[r] += v
		}
	}
	for r := range o.Mean {
		o.Mean[r] /= o.Rows
	}
	o.NoiseVar /= o.Rows * o.Rows
	return o, o.Check(len(o.Mean))
}

// LogLikelihood returns the Gaussian synthetic log likelihood of θ,
// ln N(y | E φ, Cov φ/n + noise·I + rows·E φ E φᵀ/n²), with moments in closed form (Wood 2010; Price
// et al. 2018 with simulated ones). Noise widens it, so that it does not
// pretend to know what noise has hidden.
func (l Landmarks) LogLikelihood(o Observation, m gmm.Mixture) (float64, error) {
	if err := o.Check(l.Len()); err != nil {
		return 0, err
	}
	mean, cov, err := l.Moments(m)
	if err != nil {
		return 0, err
	}
	spread(o, mean, cov)
	v, ok := gaussianLog(o, mean, cov, gmm.NewBlocked(len(mean)))
	if !ok {
		return 0, fmt.Errorf("the covariance of %d landmark means is singular: without noise, landmarks must be further apart or fewer", len(mean))
	}
	return v, nil
}

// gaussianLog is ln N(y | mean, cov) of the observed means, given the lower triangle of
// cov. It overwrites both, and reports false where cov is singular.
func gaussianLog(o Observation, mean, cov []float64, w *gmm.Blocked) (log float64, ok bool) {
	n := len(mean)
	logDet, ok := w.Cholesky(cov)
	if !ok {
		return 0, false
	}
	for r, v := range mean {
		mean[r] = o.Mean[r] - v
	}
	gmm.Forward(cov, n, mean)
	return -(float64(n)*math.Log(2*math.Pi) + logDet + gmm.Squares(mean)) / 2, true
}

// spread turns the lower triangle of the covariance of φ into that of the observed mean.
func spread(o Observation, mean, cov []float64) {
	n, share := len(mean), 1/o.Rows
	for r, v := range mean {
		row := cov[r*n:][:r+1]
		v *= o.RowsVar * share
		for s, c := range row {
			row[s] = (c + v*mean[s]) * share
		}
		row[r] += o.NoiseVar
	}
}
