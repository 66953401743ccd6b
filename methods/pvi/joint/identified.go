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

// undetermined says which features the data hardly tell apart, and which splines bend where
// there are no data. Both follow from the posterior alone.
func undetermined(m *use.Model) (says []string) {
	groups, names := m.Encoding.Groups(), m.Encoding.Features()
	var features []int
	for j, g := range groups {
		if g != gvi.InterceptGroup && g != gvi.PeriodGroup {
			features = append(features, j)
		}
	}
	if len(features) == 0 {
		return nil
	}
	for _, columns := range dependencies(m, features) {
		if shareFeature(groups, columns) {
			continue
		}
		var list []string
		for _, j := range columns {
			list = append(list, names[j])
		}
		says = append(says, fmt.Sprintf("The data hardly tell apart %s: each is nearly a combination of the others. Predictions hold, and so does what they add up to; how that is divided among them follows from the prior. Leave one out, or do not read their coefficients one by one.", strings.Join(list, ", ")))
	}
	for i := range m.Encoding.Columns {
		c := &m.Encoding.Columns[i]
		if len(c.Knots) > 0 && straight(m, slices.DeleteFunc(slices.Clone(features), func(j int) bool { return groups[j] != c.Name })) {
			says = append(says, fmt.Sprintf("How the effect of %s bends is known from the prior alone: at the sites it has hardly any values around the knots of its spline, %v to %v. See whether the knots are in the unit of the data, or leave the spline out.", c.Name, c.Knots[0], c.Knots[len(c.Knots)-1]))
		}
	}
	return says
}

// information is what the data say of some weights, all others being unknown: the inverse of
// their posterior covariance less the precision of their prior. Nil if that cannot be
// calculated.
func information(m *use.Model, columns []int) *mat.SymDense {
	n := len(columns)
	s := mat.NewSymDense(n, nil)
	for a, i := range columns {
		for b, j := range columns[:a+1] {
			s.SetSym(a, b, m.Covariance[gvi.Packed(max(i, j), min(i, j))])
		}
	}
	var chol mat.Cholesky
	if !chol.Factorize(s) {
		return nil
	}
	var h mat.SymDense
	if !usable(chol.InverseTo(&h)) {
		return nil
	}
	for a, i := range columns {
		h.SetSym(a, a, h.At(a, a)-m.Prior.Lambda[i])
	}
	return &h
}

// dependencies lists sets of columns that are nearly combinations of each other. Columns that
// the data say nothing of have no part in any.
func dependencies(m *use.Model, features []int) (sets [][]int) {
	h := information(m, features)
	if h == nil {
		return nil
	}
	var columns, at []int
	for a, j := range features {
		if h.At(a, a) > unknown*m.Prior.Lambda[j] {
			columns, at = append(columns, j), append(at, a)
		}
	}
	n := len(columns)
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
	for i := range columns {
		within, all := 0.0, 0.0
		for k, x := range values {
			part := v.At(i, k) * v.At(i, k) / max(x, 1e-12*largest)
			if all += part; k < near {
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
		for k := 0; k < len(set); k++ {
			involved = slices.DeleteFunc(involved, func(i int) bool {
				joined := 0.0
				for d := range near {
					joined += v.At(set[k], d) * v.At(i, d)
				}
				if math.Abs(joined) > 0.1 {
					set = append(set, i)
					return true
				}
				return false
			})
		}
		if len(set) > 1 {
			for i := range set {
				set[i] = columns[set[i]]
			}
			slices.Sort(set)
			sets = append(sets, set)
		}
	}
	return sets
}

// shareFeature says whether columns belong to one feature and its interactions, such as the
// functions of a spline or the levels of a category: how near these are to each other is known
// to whoever chose them.
func shareFeature(groups []string, columns []int) bool {
	for _, f := range strings.Split(groups[columns[0]], " × ") {
		if !slices.ContainsFunc(columns, func(j int) bool { return !slices.Contains(strings.Split(groups[j], " × "), f) }) {
			return true
		}
	}
	return false
}

// straight says whether the data know at most one direction of a spline's columns: no more
// than that it rises or falls.
func straight(m *use.Model, columns []int) bool {
	h := information(m, columns)
	if h == nil {
		return false
	}
	for a, i := range columns {
		for b, j := range columns[:a+1] {
			h.SetSym(a, b, h.At(a, b)/math.Sqrt(m.Prior.Lambda[i]*m.Prior.Lambda[j]))
		}
	}
	var e mat.EigenSym
	if !e.Factorize(h, false) {
		return false
	}
	return e.Values(nil)[len(columns)-2] < unknown
}
