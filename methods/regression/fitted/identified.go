package fitted

import (
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/mat"

	"parley/methods/regression/glm"
	"parley/problem"
)

// unknown is the information, in units of the prior's, below which a posterior deviation is
// above nine tenths of the prior's: the same rule marks single coefficients.
const unknown = 1/0.81 - 1

// most is the largest number of columns that are looked into: an eigenvalue problem of their size takes a second.
const most = 500

// Undetermined says which features the data hardly tell apart. It follows from the posterior alone, of several classes
// from that of the one that the data know best: columns are the same for all.
func Undetermined(m *Model) []glm.Finding {
	if n := m.Encoding.FeatureWidth(); n == 0 || n > most {
		return nil
	}
	return notToldApart(&m.Encoding, bestKnown(m, m.Encoding.Width()).dependencies(m.Encoding.FeatureWidth()))
}

// Divided says which features a private study does not tell apart, so that how their effects divide what
// they add up to is known from the prior alone: that of the fit, which may be narrower than the plan's. Least is
// the posterior if data say as little as the noise leaves possible. All are of the weights of one activation.
func Divided(e *glm.Encoding, posterior, least, prior glm.Normal) []glm.Finding {
	n := e.FeatureWidth()
	if n < 2 || n > most {
		return nil
	}
	return notToldApart(e, knowledge{posterior: posterior, prior: prior}.divided(n, least))
}

// notToldApart names sets of effects, but for those of one feature.
func notToldApart(e *glm.Encoding, sets [][]int) []glm.Finding {
	groups, names := e.Groups(), e.Features()
	var all []string
	for _, set := range sets {
		if !shareFeature(groups, set) {
			var list []string
			for _, j := range set {
				list = append(list, names[j])
			}
			all = append(all, strings.Join(list, ", "))
		}
	}
	return glm.OnCollinear.Of(strings.Join(all, "; or "))
}

// knowledge is the posterior and the prior of weights, those of one activation from a place on.
type knowledge struct {
	posterior, prior glm.Normal
	from             int
}

// bestKnown is that of the class whose weights have the least variance in units of the prior's.
func bestKnown(m *Model, width int) knowledge {
	mean, variance := m.Before()
	best := knowledge{posterior: m.Weights(), prior: glm.Normal{Mean: mean, Variance: variance}}
	least := math.Inf(1)
	for start := 0; start < len(mean); start += width {
		sum := 0.0
		for j := start; j < start+width; j++ {
			sum += best.posterior.Variance[j] / variance[j]
		}
		if sum < least {
			best.from, least = start, sum
		}
	}
	return best
}

// information is what the data say of the first n effects, all else being unknown: the inverse of their posterior
// covariance less that of their prior, which it returns too. Not ok if that cannot be calculated.
func (k knowledge) information(n int) (data, prior *mat.SymDense, ok bool) {
	precision := func(q glm.Normal) *mat.SymDense {
		var chol mat.Cholesky
		inverse := new(mat.SymDense)
		of := glm.Sym(n, func(a, b int) float64 { return q.Cov(k.from+a, k.from+b) })
		ok = ok && chol.Factorize(of) && glm.Usable(chol.InverseTo(inverse))
		return inverse
	}
	ok = true
	prior, all := precision(k.prior), precision(k.posterior)
	if !ok {
		return nil, nil, false
	}
	return glm.Sym(n, func(a, b int) float64 { return all.At(a, b) - prior.At(a, b) }), prior, true
}

// dependencies lists sets of effects whose columns are nearly combinations of each other. Those
// that the data say nothing of have no part in any.
func (k knowledge) dependencies(n int) [][]int {
	h, prior, ok := k.information(n)
	if !ok {
		return nil
	}
	var at []int
	for a := range n {
		if h.At(a, a) > unknown*prior.At(a, a) {
			at = append(at, a)
		}
	}
	if len(at) < 2 {
		return nil
	}
	scaled := glm.Sym(len(at), func(i, j int) float64 {
		a, b := at[i], at[j]
		return h.At(a, b) / math.Sqrt(h.At(a, a)*h.At(b, b))
	})
	sets := together(scaled, 1e-9, func(_ int, variance float64) bool { return variance > glm.OnCollinear.Matters })
	for _, set := range sets {
		for k, i := range set {
			set[k] = at[i]
		}
	}
	return sets
}

// inflated is how many times as large as with all others known the variance of an effect must be, to say that it
// is known but for the others: three standard errors. left is the share of its prior's variance that the data must
// leave it.
const inflated, left = 9, 0.3

// divided lists sets of effects that are known together and not one by one: what the data say of them at
// least, given as a covariance, leaves each much of its prior's variance. Noise alone leaves some, so that effects
// must be near to each other by the posterior, too.
func (k knowledge) divided(n int, least glm.Normal) [][]int {
	own, prior, ok := k.information(n)
	if !ok {
		return nil
	}
	h, _, ok := knowledge{posterior: least, prior: k.prior}.information(n)
	if !ok {
		return nil
	}
	near := make([]bool, n)
	scaled := glm.Sym(n, func(a, b int) float64 {
		x := h.At(a, b) / math.Sqrt(prior.At(a, a)*prior.At(b, b))
		if a == b {
			near[a] = k.posterior.Variance[a]*(own.At(a, a)+prior.At(a, a)) > inflated
			x++
		}
		return x
	})
	return together(scaled, 1, func(i int, variance float64) bool { return near[i] && variance > left })
}

// together lists sets of effects, of those whose variance by the inverse of a matrix says that they are in one, and
// which that correlates. Eigenvalues below the smallest count as that.
func together(information *mat.SymDense, smallest float64,
	in func(i int, variance float64) bool) (sets [][]int) {
	variance := glm.Spectral(information, func(x float64) float64 { return 1 / max(x, smallest) })
	if variance == nil {
		return nil
	}
	var involved []int
	for i := range information.SymmetricDim() {
		if in(i, variance.At(i, i)) {
			involved = append(involved, i)
		}
	}
	for len(involved) > 0 {
		set := []int{involved[0]}
		involved = involved[1:]
		for next := 0; next < len(set); next++ {
			i := set[next]
			involved = slices.DeleteFunc(involved, func(j int) bool {
				near := math.Abs(variance.At(i, j)) > 0.1*math.Sqrt(variance.At(i, i)*variance.At(j, j))
				if near {
					set = append(set, j)
				}
				return near
			})
		}
		if slices.Sort(set); len(set) > 1 {
			sets = append(sets, set)
		}
	}
	return sets
}

// shareFeature says whether effects belong to one feature and its interactions, such as the functions of a spline or
// the levels of a category: how near these are to each other is known to whoever chose them.
func shareFeature(groups []string, columns []int) bool {
	of := func(j int) []string { return strings.Split(groups[j], " × ") }
	return slices.ContainsFunc(of(columns[0]), func(f string) bool {
		return !slices.ContainsFunc(columns, func(j int) bool { return !slices.Contains(of(j), f) })
	})
}

// unlikely is how many of the prior's standard deviations from its centre a weight that it holds back is.
const unlikely = 2

// HeldBack says that data make weights larger than the prior lets them be; nothing if none are. With the posterior
// N(m, C) and the prior N(m₀, V), the prior moves m by C V⁻¹ (m₀ − m) to first order.
func (m *Model) HeldBack() []glm.Finding {
	q := m.Weights()
	centre, prior := m.Before()
	var names []string
	for j, mean := range q.Mean {
		if math.Abs(mean-centre[j]) <= unlikely*math.Sqrt(prior[j]) {
			continue
		}
		shift := 0.0
		for k, other := range q.Mean {
			shift += q.Cov(j, k) * (other - centre[k]) / prior[k]
		}
		if math.Abs(shift) > glm.OnPrior.Matters*math.Sqrt(q.Variance[j]) {
			names = append(names, m.Effects[j].Label())
		}
	}
	return glm.OnPrior.Of(problem.Names(names))
}
