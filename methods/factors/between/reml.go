package between

import (
	"fmt"
	"math"
	"slices"

	"parley/internal/linalg"
)

// reml estimates, for one view, how much the rows of [W μ] differ between
// sites. The sites' estimates follow y_cj ~ N(w_j, A_c), A_c = D + (R_c/σ²_c)⁻¹ with
// D = diag(v_W, …, v_W, v_μ). With w_j at its generalised least squares value,
// the restricted log-likelihood, constants dropped, is minus
//
//	½ Σ_j {Σ_c ln|A_c| + ln|Σ_c A_c⁻¹| + Σ_c (y_cj − w_j)ᵀ A_c⁻¹ (y_cj − w_j)}.
//
// At v_W = v_μ = 0 the estimate of w_j is the pooled M step, so that variances of
// zero are ordinary values and freeze nothing. Patterson and Thompson,
// "Recovery of inter-block information when block sizes are unequal",
// Biometrika 1971.
//
// A_c is the isotropic v_W I + σ²_c R_c⁻¹ and a matrix of rank one, (v_μ − v_W) e eᵀ with
// e the direction of μ. So the eigenvectors of R_c, found once, serve all variances and all
// features with these rows, whatever their noise: A_c⁻¹ follows by the formula of Sherman
// and Morrison (1950), in forms without differences of large numbers.
type reml struct {
	q       int
	classes []*remlClass

	// Sums over deviations y of features with several sites, of their squares, and of the
	// diagonals of their own variances σ²R⁻¹: those of W and that of μ.
	n        float64
	dev, own [2]float64

	scratch [2][]float64
}

// zeros returns n zeros, in memory that the next call for the same place takes over.
func (r *reml) zeros(place, n int) []float64 {
	if cap(r.scratch[place]) < n {
		r.scratch[place] = make([]float64, n)
	}
	s := r.scratch[place][:n]
	clear(s)
	return s
}

// spectrum is R_c = V diag(1/λ) Vᵀ.
type spectrum struct {
	rows   []float64 // thin: Vᵀ, whose rows are the eigenvectors
	lambda []float64 // eigenvalues of R_c⁻¹
	e      []float64 // Vᵀe: what each eigenvector has of μ
}

// roundedAway is the share of the largest eigenvalue below which rounding
// decides of an eigenvalue.
const roundedAway = 1e-14

// newSpectrum decomposes a precision of n columns. Eigenvalues that rounding hides are
// raised to what it leaves of the largest.
func newSpectrum(e *linalg.Eigen, r []float64, n int) (*spectrum, bool) {
	if !e.Factorise(r, n) || !(e.Values[n-1] > 0) {
		return nil, false
	}
	ld := linalg.Stride(n)
	s := &spectrum{rows: make([]float64, n*ld), lambda: make([]float64, n), e: make([]float64, n)}
	for a, x := range e.Values {
		s.lambda[a] = 1 / max(x, roundedAway*e.Values[n-1])
		for k := range n {
			s.rows[a*ld+k] = e.Vectors[k*n+a]
		}
		s.e[a] = e.Vectors[(n-1)*n+a]
	}
	return s, true
}

// turn writes Vᵀy.
func (s *spectrum) turn(dst, y []float64) {
	ld := linalg.Stride(len(y))
	for a := range dst {
		dst[a] = 0
		for k, x := range y {
			dst[a] += s.rows[a*ld+k] * x
		}
	}
}

// back writes V u, which undoes turn.
func (s *spectrum) back(dst, u []float64) {
	ld := linalg.Stride(len(u))
	clear(dst)
	for a, x := range u {
		for k, y := range s.rows[a*ld:][:len(dst)] {
			dst[k] += x * y
		}
	}
}

// weights is A⁻¹ in the coordinates of a spectrum: with w = 1/(v_W + σ²λ),
// B⁻¹ = V diag(w) Vᵀ and δ = v_μ − v_W, A⁻¹ = B⁻¹ − κ B⁻¹e eᵀB⁻¹, κ = δ/(1 + δ eᵀB⁻¹e).
type weights struct {
	w            []float64
	delta, kappa float64
	one          float64 // 1 + δ eᵀB⁻¹e, a sum of positive terms: own + v_μ along
	own, along   float64
}

// loadings works out what follows from v_W alone, and adds ln |B|.
func (x *weights) loadings(s *spectrum, noise, varW float64, logs *linalg.LogSum) {
	own, along, e, to := 0.0, 0.0, s.e, x.w
	for a, l := range s.lambda[:len(to)] {
		l *= noise
		w := 1 / (varW + l)
		share := e[a] * e[a] * w
		to[a] = w
		own += share * l
		along += share
		logs.Add(varW + l)
	}
	x.own, x.along = own, along
}

// mean works out the rest, and adds what ln |A| has more than ln |B|.
func (x *weights) mean(varW, varMu float64, logs *linalg.LogSum) {
	x.delta, x.one = varMu-varW, x.own+varMu*x.along
	x.kappa = x.delta / x.one
	logs.Add(x.one)
}

// apply writes VᵀA⁻¹y for u = Vᵀy, and returns yᵀA⁻¹y.
func (x *weights) apply(dst []float64, s *spectrum, u []float64) float64 {
	along, e := 0.0, s.e
	u, dst, e = u[:len(x.w)], dst[:len(x.w)], e[:len(x.w)]
	for a, w := range x.w {
		along += w * e[a] * u[a]
	}
	t, square := x.kappa*along, 0.0
	if x.delta > 0 { // (y − te)ᵀB⁻¹(y − te) + t²/δ
		for a, w := range x.w {
			z := u[a] - t*e[a]
			dst[a] = w * z
			square += w * z * z
		}
		return square + t*t/x.delta
	}
	for a, w := range x.w {
		dst[a] = w * (u[a] - t*e[a])
		square += w * u[a] * u[a]
	}
	return square - t*along
}

// remlClass is the features of a view to which the same sites contribute, each with the
// same rows for all of them.
type remlClass struct {
	sites    []*spectrum
	groups   []remlGroup
	features []remlFeature

	outer []float64 // sites·(q+1) × triangle: v vᵀ of each eigenvector, the part of W below the diagonal

	// What loadings worked out last:
	known bool
	varW  float64
	own   []float64       // groups × sites·(q+1): the diagonals of VᵀB_c⁻¹V
	sum   []float64       // groups × triangle: the part of W in Σ B_c⁻¹
	logs  []linalg.LogSum // per group: Σ ln |B_c|
}

// remlGroup is features of a class that share their noise.
type remlGroup struct {
	noise   []float64 // per site
	weights []weights
	off     []float64 // sites × ld: B_c⁻¹e
	gls     []float64 // factor of Σ A_c⁻¹
	logs    float64   // Σ ln |A_c| + ln |Σ A_c⁻¹|
}

type remlFeature struct {
	j, group int
	center   []float64 // mean of y over the sites, taken off for precision
	u        []float64 // per site, Vᵀ(y − center)
}

// remlBatch is how many features are worked on at a time.
const remlBatch = 64

// group adds features that share noise variances, one per site.
func (r *reml) group(c *remlClass, noise []float64) {
	q1 := r.q + 1
	c.groups = append(c.groups, remlGroup{noise: noise, weights: make([]weights, len(noise)), gls: make([]float64, q1*q1)})
}

// feature adds one, from its estimates per site.
func (r *reml) feature(c *remlClass, group, j int, y [][]float64) {
	q1 := r.q + 1
	f := remlFeature{j: j, group: group, center: make([]float64, q1), u: make([]float64, len(y)*q1)}
	for _, y := range y {
		for a, x := range y {
			f.center[a] += x / float64(len(c.sites))
		}
	}
	off := make([]float64, q1)
	for i, y := range y {
		for a, x := range y {
			off[a] = x - f.center[a]
		}
		s := c.sites[i]
		s.turn(f.u[i*q1:][:q1], off)
		if len(c.sites) < 2 {
			continue
		}
		r.n++
		ld := linalg.Stride(q1)
		for k, x := range off {
			at := 0
			if k == r.q {
				at = 1
			}
			r.dev[at] += x * x
			for a, l := range s.lambda {
				r.own[at] += c.groups[group].noise[i] * l * s.rows[a*ld+k] * s.rows[a*ld+k]
			}
		}
	}
	c.features = append(c.features, f)
}

// loadings works out what follows from v_W alone, if it is not that of the last time: the
// objective is often asked along v_μ.
func (r *reml) loadings(c *remlClass, varW float64) {
	if c.known && c.varW == varW {
		return
	}
	c.known, c.varW = true, varW
	if c.sum == nil {
		r.prepare(c)
	}
	q1, n, all := r.q+1, len(c.groups), len(c.sites)*(r.q+1)
	ld, triangle := linalg.Stride(q1), r.q*q1/2
	along, off := r.zeros(0, n*q1), r.zeros(1, n*ld) // VᵀB⁻¹e and B⁻¹e of one site
	for g := range c.logs {
		c.logs[g] = linalg.LogSum{Product: 1}
	}
	for i, s := range c.sites {
		for g := range c.groups {
			x := &c.groups[g].weights[i]
			x.loadings(s, c.groups[g].noise[i], varW, &c.logs[g])
			for a, v := range x.w {
				along[g*q1+a] = v * s.e[a]
			}
		}
		clear(off)
		linalg.MulAdd(off, along, q1, 1, s.rows, n, q1, q1)
		for g := range c.groups {
			copy(c.groups[g].off[i*ld:][:q1], off[g*ld:])
		}
	}
	clear(c.sum)
	linalg.MulAdd(c.sum, c.own, all, 1, c.outer, n, all, triangle)
}

// prepare makes room for what loadings works out of a class whose groups are complete, and works
// out what no variance changes.
func (r *reml) prepare(c *remlClass) {
	q, q1, n := r.q, r.q+1, len(c.groups)
	wide, all := linalg.Stride(q*q1/2), len(c.sites)*q1
	c.sum, c.logs = make([]float64, n*wide), make([]linalg.LogSum, n)
	c.own, c.outer = make([]float64, n*all), make([]float64, all*wide)
	for g := range c.groups {
		one := &c.groups[g]
		one.off = make([]float64, len(c.sites)*linalg.Stride(q1))
		for i := range one.weights {
			one.weights[i].w = c.own[g*all+i*q1:][:q1:q1]
		}
	}
	for i, s := range c.sites {
		for a := range q1 {
			at, v := (i*q1+a)*wide, s.rows[a*linalg.Stride(q1):][:q]
			for k, x := range v {
				for m, y := range v[:k+1] {
					c.outer[at+m] = x * y
				}
				at += k + 1
			}
		}
	}
}

// set computes the weights and the factors of Σ A_c⁻¹ of all groups of a class, and returns
// the part of the objective that does not depend on y.
func (r *reml) set(c *remlClass, varW, varMu float64) (float64, error) {
	r.loadings(c, varW)
	q, q1, total := r.q, r.q+1, 0.0
	ld, wide := linalg.Stride(q1), linalg.Stride(q*q1/2)
	for g := range c.groups {
		one, logs := &c.groups[g], c.logs[g]
		// With h = B⁻¹e, A⁻¹e is h/(1 + δ eᵀB⁻¹e), and −κ h hᵀ is what the part of W has more
		// than that of B⁻¹.
		scaled, more := r.zeros(0, len(c.sites)*ld), r.zeros(1, q1*ld)
		for i := range c.sites {
			x, to := &one.weights[i], scaled[i*ld:][:q1]
			x.mean(varW, varMu, &logs)
			for k, y := range one.off[i*ld:][:q] {
				to[k] = -x.kappa * y
			}
			to[q] = 1 / x.one
		}
		linalg.MulAdd(more, scaled, 1, ld, one.off, q1, len(c.sites), q1)
		at := g * wide
		for k := range q1 {
			row := one.gls[k*q1:][:k+1]
			copy(row, more[k*ld:])
			if k < q {
				for m, x := range c.sum[at : at+k+1] {
					row[m] += x
				}
			}
			at += k + 1
		}
		logDet, ok := linalg.Cholesky(one.gls, q1, q1)
		if !ok {
			return 0, fmt.Errorf("the summed precision of the sites' estimates is not positive definite")
		}
		one.logs = logs.Sum() + logDet
	}
	for _, f := range c.features {
		total += c.groups[f.group].logs / 2
	}
	return total, nil
}

// project works out Σ_c A_c⁻¹ y_c of every feature at the weights last set, and returns the
// sum of ½ y_cᵀ A_c⁻¹ y_c. What is worked out is valid during the call of use.
func (r *reml) project(c *remlClass, use func(f *remlFeature, sum []float64)) float64 {
	q1 := r.q + 1
	ld, total := linalg.Stride(q1), 0.0
	for batch := range slices.Chunk(c.features, remlBatch) {
		applied, sum := r.zeros(0, len(batch)*q1), r.zeros(1, len(batch)*ld)
		for i, s := range c.sites {
			for b := range batch {
				f := &batch[b]
				total += c.groups[f.group].weights[i].apply(applied[b*q1:][:q1], s, f.u[i*q1:][:q1]) / 2
			}
			linalg.MulAdd(sum, applied, q1, 1, s.rows, len(batch), q1, q1)
		}
		for b := range batch {
			use(&batch[b], sum[b*ld:][:q1])
		}
	}
	return total
}

// objective returns minus the restricted log-likelihood. Variances for which
// it cannot be computed are no candidates.
func (r *reml) objective(varW, varMu float64) float64 {
	total := 0.0
	for _, c := range r.classes {
		fixed, err := r.set(c, varW, varMu)
		if err != nil {
			return math.Inf(1)
		}
		total += fixed
		if len(c.sites) < 2 {
			continue // one site fits itself
		}
		total += r.project(c, func(f *remlFeature, sum []float64) {
			// It is symmetric in what remains: subtract sᵀ (Σ A⁻¹)⁻¹ s.
			total -= linalg.CholQuadratic(c.groups[f.group].gls, len(sum), len(sum), sum) / 2
		})
	}
	return total
}

// estimate calls use for every feature with its generalised least squares row
// at the given variances; the row is valid during the call.
func (r *reml) estimate(varW, varMu float64, use func(j int, row []float64)) error {
	for _, c := range r.classes {
		if _, err := r.set(c, varW, varMu); err != nil {
			return err
		}
	}
	for _, c := range r.classes {
		r.project(c, func(f *remlFeature, row []float64) {
			linalg.CholSolve(c.groups[f.group].gls, len(row), len(row), row)
			for a := range row {
				row[a] += f.center[a]
			}
			use(f.j, row)
		})
	}
	return nil
}

// plain calls use for every feature with the plain mean over the sites.
func (r *reml) plain(use func(j int, row []float64)) {
	for _, c := range r.classes {
		for _, f := range c.features {
			use(f.j, f.center)
		}
	}
}

// scale returns sizes that the two variances can be compared to: the largest
// mean square of the deviations, or of the estimates' own variances.
func (r *reml) scale() (w, mu float64) {
	return max(r.dev[0], r.own[0]) / (r.n * float64(r.q)), max(r.dev[1], r.own[1]) / r.n
}

const (
	// remlBelow and remlAbove are how many decades below and above its scale a variance is sought.
	remlBelow, remlAbove = 8, 2
	remlStep             = 1.0 / (1 << 13) // decades
)

// around is where a compass search looks from a point, in steps.
var around = [...][2]float64{{1, 0}, {-1, 0}, {0, 1}, {0, -1}, {1, 1}, {-1, -1}, {1, -1}, {-1, 1}}

// minimise finds the variances: by turns over whole decades and zero until neither moves,
// beginning with either, then by a compass search around the best. The objective is flat
// towards zero and near the minimum, so neither derivatives nor a bracket are relied upon,
// and a variance that gains nothing over zero is zero. Where nothing around is better, a
// parabola through what was looked at says where to go on with an eighth of the step.
func (r *reml) minimise() (varW, varMu float64) {
	if r.n == 0 { // no feature has two sites: nothing can be learnt of differences between them
		return 0, 0
	}
	scaleW, scaleMu := r.scale()
	// at maps exponents to variances; anything below the range is zero.
	const zero = -remlBelow - 1.0
	at := func(x, scale float64) float64 {
		if x < -remlBelow {
			return 0
		}
		return scale * math.Pow(10, x)
	}
	known := map[[2]float64]float64{} // steps come back, and everything below the range is zero
	value := func(x, y float64) float64 {
		v := [2]float64{at(x, scaleW), at(y, scaleMu)}
		if _, ok := known[v]; !ok {
			known[v] = r.objective(v[0], v[1])
		}
		return known[v]
	}
	type point struct{ x, y, value float64 }
	nothing := point{zero, zero, value(zero, zero)}
	best := nothing
	take := func(x, y float64) bool {
		x, y = min(max(x, zero), remlAbove+2), min(max(y, zero), remlAbove+2)
		v := value(x, y)
		if !(v < best.value-1e-11*(1+math.Abs(best.value))) { // what an objective of this size cannot resolve is no gain
			return false
		}
		best = point{x, y, v}
		return true
	}
	decades := func(ofMu bool) (moved bool) {
		for v := zero; v <= remlAbove; v++ {
			if ofMu {
				moved = take(best.x, v) || moved
			} else {
				moved = take(v, best.y) || moved
			}
		}
		return moved
	}
	for ofMu := true; decades(ofMu); {
		ofMu = !ofMu
	}
	muFirst := best
	best = nothing
	for ofMu := false; decades(ofMu); {
		ofMu = !ofMu
	}
	if muFirst.value < best.value {
		best = muFirst
	}
	for step := 0.5; ; step /= 8 {
		for moved := true; moved; {
			moved = slices.ContainsFunc(around[:], func(d [2]float64) bool { return take(best.x+step*d[0], best.y+step*d[1]) })
		}
		if step <= remlStep {
			break
		}
		x, y := vertex(func(x, y float64) float64 { return value(best.x+step*x, best.y+step*y) })
		take(best.x+step*math.Round(8*x)/8, best.y+step*math.Round(8*y)/8)
	}
	for _, v := range [...][2]float64{{zero, zero}, {zero, best.y}, {best.x, zero}} {
		if value(v[0], v[1]) <= best.value+1e-9*(1+math.Abs(best.value)) {
			return at(v[0], scaleW), at(v[1], scaleMu)
		}
	}
	return at(best.x, scaleW), at(best.y, scaleMu)
}

// vertex returns the lowest point of a parabola through f at and around the origin, and no
// more than one from it: where it has none, that of each direction for itself, or 0.
func vertex(f func(x, y float64) float64) (x, y float64) {
	along := func(dx, dy float64) (slope, bend float64) {
		ahead, back := f(dx, dy), f(-dx, -dy)
		return (ahead - back) / 2, ahead + back - 2*f(0, 0)
	}
	gx, hx := along(1, 0)
	gy, hy := along(0, 1)
	_, sum := along(1, 1)
	_, difference := along(1, -1)
	hxy := (sum - difference) / 4
	if det := hx*hy - hxy*hxy; det > 0 {
		x, y = (hxy*gy-hy*gx)/det, (hxy*gx-hx*gy)/det
	} else {
		x, y = -gx/hx, -gy/hy
	}
	inside := func(v float64) float64 {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return 0
		}
		return min(max(v, -1), 1)
	}
	return inside(x), inside(y)
}
