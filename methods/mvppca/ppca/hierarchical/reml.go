package hierarchical

import (
	"fmt"
	"math"

	"parley/methods/mvppca/linalg"
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
type reml struct {
	q       int
	classes []*remlClass
	a, h    []float64 // (q+1)² scratch
	s, t    []float64 // q + 1 scratch
}

// remlClass is the features of a view to which the same sites contribute, each
// with the same precision for all of them.
type remlClass struct {
	cov      [][]float64 // per site: (R_c/σ²_c)⁻¹
	inv      [][]float64 // per site: A_c⁻¹, at the variances last set
	gls      []float64   // factor of Σ A_c⁻¹
	features []remlFeature
}

type remlFeature struct {
	j      int
	center []float64   // mean of y over the sites, taken off for precision
	y      [][]float64 // per site, relative to center
}

func newREML(q int) *reml {
	n := (q + 1) * (q + 1)
	return &reml{q: q, a: make([]float64, n), h: make([]float64, n), s: make([]float64, q+1), t: make([]float64, q+1)}
}

// set computes A_c⁻¹ and the factor of their sum for every class, and returns
// the part of the objective that does not depend on y.
func (r *reml) set(varW, varMu float64) (float64, error) {
	q1 := r.q + 1
	total := 0.0
	for _, c := range r.classes {
		clear(c.gls)
		logs := 0.0
		for i, cov := range c.cov {
			copy(r.a, cov)
			for a := range r.q {
				r.a[a*q1+a] += varW
			}
			r.a[r.q*q1+r.q] += varMu
			logDet, ok := linalg.Cholesky(r.a, q1, q1)
			if !ok {
				return 0, fmt.Errorf("the precision of a site's estimate is not positive definite")
			}
			logs += logDet
			linalg.CholInverse(c.inv[i], r.a, q1, q1)
			for k, x := range c.inv[i] {
				c.gls[k] += x
			}
		}
		logDet, ok := linalg.Cholesky(c.gls, q1, q1)
		if !ok {
			return 0, fmt.Errorf("the summed precision of the sites' estimates is not positive definite")
		}
		total += float64(len(c.features)) * (logs + logDet)
	}
	return total / 2, nil
}

// objective returns minus the restricted log-likelihood. Variances for which
// it cannot be computed are no candidates.
func (r *reml) objective(varW, varMu float64) float64 {
	total, err := r.set(varW, varMu)
	if err != nil {
		return math.Inf(1)
	}
	q1 := r.q + 1
	for _, c := range r.classes {
		if len(c.cov) < 2 {
			continue // one site fits itself
		}
		for _, f := range c.features {
			clear(r.s)
			for i, y := range f.y {
				linalg.Times(r.t, c.inv[i], q1, y)
				for a, x := range r.t {
					r.s[a] += x
					total += x * y[a] / 2
				}
			}
			// r.s is symmetric in what remains: subtract sᵀ (Σ A⁻¹)⁻¹ s.
			copy(r.t, r.s)
			linalg.CholSolve(c.gls, q1, q1, r.t)
			for a, x := range r.t {
				total -= x * r.s[a] / 2
			}
		}
	}
	return total
}

// estimate calls set for every feature with its generalised least squares row
// at the given variances; the row is valid during the call.
func (r *reml) estimate(varW, varMu float64, use func(j int, row []float64)) error {
	if _, err := r.set(varW, varMu); err != nil {
		return err
	}
	q1 := r.q + 1
	for _, c := range r.classes {
		for _, f := range c.features {
			clear(r.s)
			for i, y := range f.y {
				linalg.Times(r.t, c.inv[i], q1, y)
				for a, x := range r.t {
					r.s[a] += x
				}
			}
			linalg.CholSolve(c.gls, q1, q1, r.s)
			for a := range r.s {
				r.s[a] += f.center[a]
			}
			use(f.j, r.s)
		}
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

// alone says whether no feature has two sites, so that nothing can be learnt
// about differences between sites.
func (r *reml) alone() bool {
	for _, c := range r.classes {
		if len(c.cov) > 1 {
			return false
		}
	}
	return true
}

// scale returns sizes that the two variances can be compared to: the largest
// mean square of the deviations, or of the estimates' own variances.
func (r *reml) scale() (w, mu float64) {
	q1 := r.q + 1
	n := 0.0
	var dev, own [2]float64
	for _, c := range r.classes {
		if len(c.cov) < 2 {
			continue
		}
		for _, f := range c.features {
			for i, y := range f.y {
				n++
				for a, x := range y {
					k := 0
					if a == r.q {
						k = 1
					}
					dev[k] += x * x
					own[k] += c.cov[i][a*q1+a]
				}
			}
		}
	}
	q := float64(r.q)
	return max(dev[0], own[0]) / (n * q), max(dev[1], own[1]) / n
}

const (
	// remlDecades is how far below and above its scale a variance is sought.
	remlBelow, remlAbove = 8, 2
	remlStep             = 1e-4 // decades
)

// minimise finds the variances: a search over whole decades and zero, then a
// compass search around the best, halving its step. The objective is flat
// towards zero and near the minimum, so neither derivatives nor a bracket are
// relied upon, and a variance that gains nothing over zero is zero.
func (r *reml) minimise() (varW, varMu float64) {
	if r.alone() {
		return 0, 0
	}
	scaleW, scaleMu := r.scale()
	// at maps exponents to variances; anything below the range is zero.
	at := func(x, scale float64) float64 {
		if x < -remlBelow {
			return 0
		}
		return scale * math.Pow(10, x)
	}
	value := func(x, y float64) float64 { return r.objective(at(x, scaleW), at(y, scaleMu)) }
	bestX, bestY := -remlBelow-1.0, -remlBelow-1.0
	best := value(bestX, bestY)
	// What an objective of this size cannot resolve is no gain.
	gain := func(v float64) bool { return v < best-1e-11*(1+math.Abs(best)) }
	for x := -remlBelow - 1; x <= remlAbove; x++ {
		for y := -remlBelow - 1; y <= remlAbove; y++ {
			if v := value(float64(x), float64(y)); gain(v) {
				best, bestX, bestY = v, float64(x), float64(y)
			}
		}
	}
	for step := 0.5; step > remlStep; {
		moved := false
		for _, d := range [...][2]float64{{1, 0}, {-1, 0}, {0, 1}, {0, -1}, {1, 1}, {-1, -1}, {1, -1}, {-1, 1}} {
			x := min(max(bestX+step*d[0], -remlBelow-1), remlAbove+2)
			y := min(max(bestY+step*d[1], -remlBelow-1), remlAbove+2)
			if v := value(x, y); gain(v) {
				best, bestX, bestY, moved = v, x, y, true
				break
			}
		}
		if !moved {
			step /= 2
		}
	}
	for _, zero := range [...][2]bool{{true, true}, {true, false}, {false, true}} {
		x, y := bestX, bestY
		if zero[0] {
			x = -remlBelow - 1
		}
		if zero[1] {
			y = -remlBelow - 1
		}
		if v := value(x, y); v <= best+1e-9*(1+math.Abs(best)) {
			return at(x, scaleW), at(y, scaleMu)
		}
	}
	return at(bestX, scaleW), at(bestY, scaleMu)
}
