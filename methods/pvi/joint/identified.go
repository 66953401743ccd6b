package joint

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/mat"

	"parley/methods/pvi/gvi"
	"parley/methods/pvi/use"
)

// A dependency of columns is near where the condition index is above nearDependency, and a
// column has a part in it if more than partOf of its variance comes from there (Belsley, Kuh
// and Welsch, Regression Diagnostics, 1980, section 3.2).
const nearDependency, partOf = 30, 0.5

// unknown is the information, in units of the prior's, below which a posterior deviation is
// above nine tenths of the prior's: the same rule marks single coefficients.
const unknown = 1/0.81 - 1

// mostTold is the largest number of columns that are looked into: an eigenvalue problem of
// their size takes a second.
const mostTold = 500

// undetermined says which features the data hardly tell apart, and which splines bend where
// there are no data. Both follow from the posterior alone, of several classes from that of the one
// that the data know best: columns are the same for all.
func undetermined(m *use.Model) (says []string) {
	groups, names := m.Encoding.Groups(), m.Encoding.Features()
	k := bestKnown(m, len(names))
	terms := termsOf(k, m, groups)
	if len(terms) == 0 || len(terms) > mostTold {
		return nil
	}
	for _, set := range k.dependencies(terms) {
		if shareFeature(groups, set) {
			continue
		}
		var list []string
		for _, t := range set {
			list = append(list, names[t.Index[0]])
		}
		says = append(says, fmt.Sprintf("The data hardly tell apart %s: each is nearly a combination of the others, so that their standard errors are many times what each alone would have. Predictions hold, and so does what they add up to. Leave one out, or do not read their coefficients one by one.", strings.Join(list, ", ")))
	}
	for i := range m.Encoding.Columns {
		c := &m.Encoding.Columns[i]
		if len(c.Knots) > 0 && k.straight(slices.DeleteFunc(slices.Clone(terms), func(t gvi.Row) bool { return groups[t.Index[0]] != c.Name })) {
			says = append(says, fmt.Sprintf("How the effect of %s bends is known from the prior alone: at the sites it has hardly any values around the knots of its spline, %v to %v. See whether the knots are in the unit of the data, or leave the spline out.", c.Name, c.Knots[0], c.Knots[len(c.Knots)-1]))
		}
	}
	return says
}

// knowledge is the posterior and the prior of the weights of one activation.
type knowledge struct{ posterior, prior gvi.Normal }

// bestKnown is that of the class whose weights have the least variance in units of the prior's.
func bestKnown(m *use.Model, width int) (best knowledge) {
	q := m.Weights()
	mean, variance := m.Before()
	from, least := 0, math.Inf(1)
	for start := 0; start < len(q.Mean); start += width {
		sum := 0.0
		for j := start; j < start+width; j++ {
			sum += q.Variance[j] / variance[j]
		}
		if sum < least {
			from, least = start, sum
		}
	}
	to := from + width
	best = knowledge{gvi.Normal{Mean: q.Mean[from:to], Variance: q.Variance[from:to]}, gvi.Normal{Mean: mean[from:to], Variance: variance[from:to]}}
	for i := from; i < to; i++ {
		row := q.Covariance[gvi.Packed(i, 0):]
		best.posterior.Covariance = append(best.posterior.Covariance, row[from:i+1]...)
	}
	return best
}

// termsOf lists effects as combinations of weights: every column but intercept and periods, of
// a category without a reference against the level that is known best. What all levels have in
// common is nothing that single ones could be told apart by.
func termsOf(known knowledge, m *use.Model, groups []string) (terms []gvi.Row) {
	variance := known.posterior.Variance
	at := 0
	for i := range m.Encoding.Columns {
		c := &m.Encoding.Columns[i]
		base := -1
		if len(c.Levels) > 0 && c.Reference == "" {
			base = at
			for j := at; j < at+c.Width(); j++ {
				if variance[j] < variance[base] {
					base = j
				}
			}
		}
		for j := at; j < at+c.Width(); j++ {
			switch {
			case base < 0:
				terms = append(terms, gvi.Row{Index: []int32{int32(j)}, Value: []float64{1}})
			case j != base:
				terms = append(terms, gvi.Row{Index: []int32{int32(j), int32(base)}, Value: []float64{1, -1}})
			}
		}
		at += c.Width()
	}
	for ; at < len(groups) && groups[at] != gvi.InterceptGroup && groups[at] != gvi.PeriodGroup; at++ {
		terms = append(terms, gvi.Row{Index: []int32{int32(at)}, Value: []float64{1}})
	}
	return terms
}

// information is what the data say of some effects, all else being unknown: the inverse of
// their posterior covariance less that of their prior, which it returns too. Not ok if that
// cannot be calculated.
func (k knowledge) information(terms []gvi.Row) (data, prior *mat.SymDense, ok bool) {
	precision := func(q gvi.Normal) (*mat.SymDense, bool) {
		s := mat.NewSymDense(len(terms), nil)
		for a := range terms {
			for b := range a + 1 {
				s.SetSym(a, b, q.Between(terms[a], terms[b]))
			}
		}
		var chol mat.Cholesky
		inverse := new(mat.SymDense)
		return inverse, chol.Factorize(s) && gvi.Usable(chol.InverseTo(inverse))
	}
	prior, ok = precision(k.prior)
	if !ok {
		return nil, nil, false
	}
	all, ok := precision(k.posterior)
	if !ok {
		return nil, nil, false
	}
	data = mat.NewSymDense(len(terms), nil)
	for a := range terms {
		for b := range a + 1 {
			data.SetSym(a, b, all.At(a, b)-prior.At(a, b))
		}
	}
	return data, prior, true
}

// dependencies lists sets of effects whose columns are nearly combinations of each other. Those
// that the data say nothing of have no part in any.
func (k knowledge) dependencies(terms []gvi.Row) (sets [][]gvi.Row) {
	h, prior, ok := k.information(terms)
	if !ok {
		return nil
	}
	var at []int
	for a := range terms {
		if h.At(a, a) > unknown*prior.At(a, a) {
			at = append(at, a)
		}
	}
	n := len(at)
	if n < 2 {
		return nil
	}
	scaled := mat.NewSymDense(n, nil)
	for i, a := range at {
		for j, b := range at[:i+1] {
			scaled.SetSym(i, j, h.At(a, b)/math.Sqrt(h.At(a, a)*h.At(b, b)))
		}
	}
	var e mat.EigenSym
	if !e.Factorize(scaled, true) {
		return nil
	}
	var v mat.Dense
	e.VectorsTo(&v)
	values := e.Values(nil) // ascending
	largest := values[n-1]
	near := 0
	for near < n && values[near] < largest/(nearDependency*nearDependency) {
		near++
	}
	var involved []int
	for i := range at {
		within, all := 0.0, 0.0
		for d, x := range values {
			part := v.At(i, d) * v.At(i, d) / max(x, 1e-12*largest)
			if all += part; d < near {
				within += part
			}
		}
		if near > 0 && within > partOf*all {
			involved = append(involved, i)
		}
	}
	for len(involved) > 0 { // those that the same directions join
		set := []int{involved[0]}
		involved = involved[1:]
		for next := 0; next < len(set); next++ {
			involved = slices.DeleteFunc(involved, func(i int) bool {
				joined := 0.0
				for d := range near {
					joined += v.At(set[next], d) * v.At(i, d)
				}
				if math.Abs(joined) > 0.1 {
					set = append(set, i)
					return true
				}
				return false
			})
		}
		if len(set) > 1 {
			slices.Sort(set)
			var found []gvi.Row
			for _, i := range set {
				found = append(found, terms[at[i]])
			}
			sets = append(sets, found)
		}
	}
	return sets
}

// shareFeature says whether effects belong to one feature and its interactions, such as the
// functions of a spline or the levels of a category: how near these are to each other is known
// to whoever chose them.
func shareFeature(groups []string, terms []gvi.Row) bool {
	of := func(t gvi.Row) []string { return strings.Split(groups[t.Index[0]], " × ") }
	for _, f := range of(terms[0]) {
		if !slices.ContainsFunc(terms, func(t gvi.Row) bool { return !slices.Contains(of(t), f) }) {
			return true
		}
	}
	return false
}

// straight says whether the data know at most one direction of a spline's functions: no more
// than that it rises or falls.
func (k knowledge) straight(terms []gvi.Row) bool {
	h, prior, ok := k.information(terms)
	if !ok {
		return false
	}
	for a := range terms {
		for b := range a + 1 {
			h.SetSym(a, b, h.At(a, b)/math.Sqrt(prior.At(a, a)*prior.At(b, b)))
		}
	}
	var e mat.EigenSym
	return e.Factorize(h, false) && e.Values(nil)[len(terms)-2] < unknown
}
