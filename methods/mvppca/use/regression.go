package use

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"parley/dataset"
)

// covariate is a subject column: what a first reading learns of it, and what a second
// puts in the rows of a regression.
type covariate struct {
	name     string
	category bool // by request, or because a cell is no number
	levels   map[string]int
	fraction bool // a number is not whole
	n        float64
	mean, ss float64 // of a number
	names    []string
}

func newCovariate(name string, category bool) *covariate {
	return &covariate{name: name, category: category, levels: map[string]int{}}
}

// known says whether a cell has anything in it.
func known(cell string) bool {
	switch strings.ToLower(cell) {
	case "", "na", "nan", "null":
		return false
	}
	return true
}

func parseNumber(cell string) (float64, bool) {
	x, err := strconv.ParseFloat(cell, 64)
	return x, err == nil && !math.IsInf(x, 0) && !math.IsNaN(x)
}

// look takes in a known cell of the first reading (Welford 1962). Of at most
// MaxLevels+1 values it counts the subjects.
func (c *covariate) look(cell string) {
	x, ok := parseNumber(cell)
	c.category = c.category || !ok
	c.fraction = c.fraction || x != math.Trunc(x)
	c.n++
	d := x - c.mean
	c.mean += d / c.n
	c.ss += d * (x - c.mean)
	if _, seen := c.levels[cell]; seen || len(c.levels) <= dataset.MaxLevels {
		c.levels[cell]++
	}
}

// order lists the levels: the most frequent, with which the others are compared, and
// those by name.
func (c *covariate) order() []string {
	if c.names == nil {
		for name := range c.levels {
			c.names = append(c.names, name)
		}
		slices.SortFunc(c.names, func(a, b string) int { return cmp.Or(cmp.Compare(c.levels[b], c.levels[a]), cmp.Compare(a, b)) })
		if len(c.names) > 0 {
			slices.Sort(c.names[1:])
		}
	}
	return c.names
}

// width is how many terms of a regression the column is: a slope, or an indicator for
// each level but the reference.
func (c *covariate) width() int {
	if c.category {
		return max(0, len(c.order())-1)
	}
	return 1
}

// sd is the unit in which a number goes into the regression.
func (c *covariate) sd() float64 {
	if sd := math.Sqrt(c.ss / max(1, c.n-1)); sd > 0 {
		return sd
	}
	return 1
}

// term is the only one of a cell's terms that is not 0, and its value; at is −1 where
// all are.
func (c *covariate) term(cell string) (at int, x float64) {
	if c.category {
		if i := slices.Index(c.order(), cell); i > 0 {
			return i - 1, 1
		}
		return -1, 0
	}
	x, _ = parseNumber(cell)
	return 0, (x - c.mean) / c.sd()
}

// regression is ordinary least squares of the factors on an intercept, the columns that
// are adjusted for, and one that is tested, from sums over subjects.
type regression struct {
	before []*covariate
	tested *covariate
	p, q   int
	n      int
	sums   []float64 // (p+q) × (p+q): products of terms and factors
	at     []int     // scratch: the terms of a subject that are not 0
	x      []float64
}

func newRegression(before []*covariate, tested *covariate, q int) *regression {
	r := &regression{before: before, tested: tested, p: 1 + tested.width(), q: q}
	for _, c := range before {
		r.p += c.width()
	}
	r.sums = make([]float64, (r.p+q)*(r.p+q))
	return r
}

// add takes in a subject, whose cells are those of before and then of tested, all known.
func (r *regression) add(cells []string, cell string, z []float64) {
	r.n++
	r.at, r.x = append(r.at[:0], 0), append(r.x[:0], 1)
	lo := 1
	put := func(c *covariate, cell string) {
		if at, x := c.term(cell); at >= 0 && x != 0 {
			r.at, r.x = append(r.at, lo+at), append(r.x, x)
		}
		lo += c.width()
	}
	for i, c := range r.before {
		put(c, cells[i])
	}
	put(r.tested, cell)
	for a, x := range z {
		r.at, r.x = append(r.at, r.p+a), append(r.x, x)
	}
	d := r.p + r.q
	for i, a := range r.at {
		for k, b := range r.at {
			r.sums[a*d+b] += r.x[i] * r.x[k]
		}
	}
}

// aliased is the share of a term's sum of squares that must be left when the terms
// before it are accounted for; a term with less says nothing new.
const aliased = 1e-9

// fittedRegression is what least squares give.
type fittedRegression struct {
	df            [2]int      // of the tested column, and of the residuals
	before, after []float64   // by factor: sum of squares without the tested column, and with it
	estimates     [][]float64 // by factor and term of the tested column, in its own unit
	inverse       [][]float64 // (XᵀX)⁻¹ of those terms; a residual variance makes it their covariance
	full          bool        // no term of the tested column was left out
}

// fit sweeps one term after the other into the regression (Goodnight 1979), which is then
// used up.
func (r *regression) fit() *fittedRegression {
	d, out := r.p+r.q, &fittedRegression{full: true}
	first := r.p - r.tested.width()
	diagonal := make([]float64, r.p)
	for i := range diagonal {
		diagonal[i] = r.sums[i*d+i]
	}
	squares := func() (list []float64) {
		for i := r.p; i < d; i++ {
			list = append(list, max(0, r.sums[i*d+i]))
		}
		return list
	}
	rank := 0
	for i := range r.p {
		if i == first {
			out.before = squares()
		}
		if r.sums[i*d+i] > aliased*diagonal[i] {
			r.sweep(i)
			rank++
			if i >= first {
				out.df[0]++
			}
		} else if i >= first {
			out.full = false
		}
	}
	out.after, out.df[1] = squares(), r.n-rank
	unit := 1.0
	if !r.tested.category {
		unit = r.tested.sd()
	}
	for i := first; i < r.p && out.full; i++ {
		row := make([]float64, r.p-first)
		for k := range row {
			row[k] = r.sums[i*d+first+k] / unit / unit
		}
		out.inverse = append(out.inverse, row)
	}
	for a := range r.q {
		var b []float64
		for i := first; i < r.p && out.full; i++ {
			b = append(b, r.sums[i*d+r.p+a]/unit)
		}
		out.estimates = append(out.estimates, b)
	}
	return out
}

// sweep takes term k into the regression: afterwards the swept block holds its inverse,
// the columns beside it the estimates, and the rest what is left. The rows of swept terms
// are kept with the sign that makes all of this hold.
func (r *regression) sweep(k int) {
	d := r.p + r.q
	pivot := r.sums[k*d+k]
	row := r.sums[k*d:][:d]
	for j := range row {
		row[j] /= pivot
	}
	for i := range d {
		if i == k {
			continue
		}
		b := r.sums[i*d+k]
		if b == 0 {
			continue
		}
		for j, x := range row {
			r.sums[i*d+j] -= b * x
		}
		r.sums[i*d+k] = -b / pivot
	}
	row[k] = 1 / pivot
}
