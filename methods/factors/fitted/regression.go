package fitted

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"parley/dataset"
	"parley/internal/linalg"
)

// covariate is a subject column while it is read.
type covariate struct {
	name     string
	category bool // by request, or because a cell is no number
	fraction bool // a number is not whole
	n        int
	first    float64        // the first number; others are taken from it, so that sums of squares keep their digits
	level    map[string]int // of at most MaxLevels+1 values, numbered as they come
	names    []string
	counts   []int
}

func newCovariate(name string, category bool) *covariate {
	return &covariate{name: name, category: category, level: map[string]int{}}
}

// look takes in a known cell and returns its number, and the number of its level, −1 if
// there are too many. Whether the column is one of numbers is known at the end.
func (c *covariate) look(cell string) (x float64, level int) {
	x, err := strconv.ParseFloat(cell, 64)
	if err != nil || math.IsInf(x, 0) || math.IsNaN(x) {
		c.category, x = true, 0
	}
	c.fraction = c.fraction || x != math.Trunc(x)
	if c.n == 0 {
		c.first = x
	}
	c.n++
	level, seen := c.level[cell]
	switch {
	case seen:
	case len(c.names) > dataset.MaxLevels:
		return x - c.first, -1
	default:
		level = len(c.names)
		c.level[cell], c.names, c.counts = level, append(c.names, cell), append(c.counts, 0)
	}
	c.counts[level]++
	return x - c.first, level
}

// order lists the levels: the most frequent, with which the others are compared, and
// those by name.
func (c *covariate) order() []int {
	list := make([]int, len(c.names))
	for i := range list {
		list[i] = i
	}
	slices.SortFunc(list, func(a, b int) int {
		return cmp.Or(cmp.Compare(c.counts[b], c.counts[a]), cmp.Compare(c.names[a], c.names[b]))
	})
	if len(list) > 0 {
		slices.SortFunc(list[1:], func(a, b int) int { return cmp.Compare(c.names[a], c.names[b]) })
	}
	return list
}

// regression is ordinary least squares of the factors on an intercept, the columns that
// are adjusted for, and one that is tested, from sums over subjects. A subject's terms
// are 1, the factors, and of each column the number and an indicator of the level; which
// of them the fit has is decided when all are read.
type regression struct {
	q, n  int
	terms map[term]int // places in sums; the intercept has 0, and the factors follow
	sums  []float64    // products of terms: the lower triangle by rows
	at    []int        // scratch: the terms of a subject that are not 0
	x     []float64
}

// term is a column, numbered with the tested one last, as a number or as one of its levels.
type term struct{ column, level int }

// asNumber is the level of a term that is the column's number.
const asNumber = -1

func newRegression(q int) *regression {
	return &regression{q: q, terms: map[term]int{}, sums: make([]float64, (q+1)*(q+2)/2)}
}

// put sets a term of the subject that is added next.
func (r *regression) put(column, level int, x float64) {
	t := term{column, level}
	i, ok := r.terms[t]
	if !ok {
		i = 1 + r.q + len(r.terms)
		r.terms[t] = i
		r.sums = append(r.sums, make([]float64, i+1)...)
	}
	r.at, r.x = append(r.at, i), append(r.x, x)
}

// add takes in a subject with the terms that were set.
func (r *regression) add(z []float64) {
	r.n++
	r.at, r.x = append(r.at, 0), append(r.x, 1)
	for a, x := range z {
		r.at, r.x = append(r.at, 1+a), append(r.x, x)
	}
	for i, a := range r.at {
		for k, b := range r.at {
			if b <= a {
				r.sums[a*(a+1)/2+b] += r.x[i] * r.x[k]
			}
		}
	}
	r.at, r.x = r.at[:0], r.x[:0]
}

// aliased is the share of a term's sum of squares about its mean that must be left when
// the terms before it are accounted for; a term with less says nothing new.
const aliased = 1e-9

// fittedRegression is what least squares give.
type fittedRegression struct {
	df            [2]int      // of the tested column, and of the residuals
	before, after []float64   // by factor: sum of squares without the tested column, and with it
	estimates     [][]float64 // by factor and term of the tested column
	inverse       [][]float64 // (XᵀX)⁻¹ of those terms; a residual variance makes it their covariance
	full          bool        // no term of the tested column was left out
}

// chosen lists the places of a column's terms in the fit: its number, or its levels but
// the reference. A level that no subject of this regression has is not among them.
func (r *regression) chosen(column int, c *covariate) (list []int) {
	if !c.category {
		return []int{r.terms[term{column, asNumber}]}
	}
	for _, level := range c.order()[1:] {
		if i, ok := r.terms[term{column, level}]; ok {
			list = append(list, i)
		}
	}
	return list
}

// fit sweeps one term after the other into the regression (Goodnight 1979): first those
// of the columns before, then those of the tested one.
func (r *regression) fit(before []*covariate, last *covariate) *fittedRegression {
	terms := []int{0}
	for i, c := range before {
		terms = append(terms, r.chosen(i, c)...)
	}
	first := len(terms)
	terms = append(terms, r.chosen(len(before), last)...)
	p := len(terms)
	for a := range r.q {
		terms = append(terms, 1+a)
	}
	d, out := len(terms), &fittedRegression{full: true}
	sums := make([]float64, d*d)
	for i, a := range terms {
		for k, b := range terms {
			sums[i*d+k] = r.sums[max(a, b)*(max(a, b)+1)/2+min(a, b)]
		}
	}
	rest := func() (list []float64) {
		for i := p; i < d; i++ {
			list = append(list, max(0, sums[i*d+i]))
		}
		return list
	}
	linalg.Sweep(sums, d, 0)
	centred, rank := make([]float64, p), 1
	for i := range centred {
		centred[i] = sums[i*d+i]
	}
	for i := 1; i < p; i++ {
		if i == first {
			out.before = rest()
		}
		if sums[i*d+i] > aliased*centred[i] {
			linalg.Sweep(sums, d, i)
			rank++
			if i >= first {
				out.df[0]++
			}
		} else if i >= first {
			out.full = false
		}
	}
	out.after, out.df[1] = rest(), r.n-rank
	for i := first; i < p && out.full; i++ {
		out.inverse = append(out.inverse, slices.Clone(sums[i*d+first:i*d+p]))
	}
	for a := range r.q {
		var b []float64
		for i := first; i < p && out.full; i++ {
			b = append(b, sums[i*d+p+a])
		}
		out.estimates = append(out.estimates, b)
	}
	return out
}
