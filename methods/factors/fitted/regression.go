package fitted

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"parley/dataset"
	"parley/internal/linalg"
)

// covariate is a subject column of those who count.
type covariate struct {
	name     string
	at       int // of the columns
	cells    []string
	category bool // by request, or because a cell is no number

	// What read makes of the cells.
	fraction bool // a number is not whole
	n        int  // cells that are known
	names    []string
	counts   []int
	numbers  []float64 // less the first, so that sums of squares keep their digits; NaN where the cell is missing
	levels   []int     // numbered as they come; −1 where the cell is missing
}

func (c *covariate) read() {
	number, first := map[string]int{}, 0.0 // of each level
	for _, cell := range c.cells {
		x, level := math.NaN(), -1
		if !dataset.IsMissing(cell) {
			var err error
			if x, err = strconv.ParseFloat(cell, 64); err != nil || math.IsInf(x, 0) || math.IsNaN(x) {
				c.category, x = true, 0
			}
			if c.n++; c.n == 1 {
				first = x
			}
			c.fraction = c.fraction || x != math.Trunc(x)
			var seen bool
			if level, seen = number[cell]; !seen {
				level = len(c.names)
				number[cell], c.names, c.counts = level, append(c.names, cell), append(c.counts, 0)
			}
			c.counts[level]++
		}
		c.numbers, c.levels = append(c.numbers, x-first), append(c.levels, level)
	}
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

// fitTo is ordinary least squares of q factors z, of one subject after the other, on an intercept, the columns before
// and the last, over the subjects of whom that is known: of each column its number, or an indicator of each level but
// the reference. It sweeps one term after the other into the sums of products (Goodnight 1979), the last column's at
// the end.
func fitTo(z []float64, q int, before []*covariate, last *covariate) *fittedRegression {
	columns, p, first, n := append(slices.Clone(before), last), 1, 0, 0
	places := make([][]int, len(columns)) // of the term of each level, 0 for none, or of the column's number
	for i, c := range columns {
		if first = p; !c.category {
			places[i] = []int{p}
			p++
			continue
		}
		places[i] = make([]int, len(c.names))
		for _, level := range c.order()[1:] {
			places[i][level] = p
			p++
		}
	}
	d, out := p+q, &fittedRegression{full: true}
	sums, at, x := make([]float64, d*d), []int{}, []float64{}
	for s, known := range last.numbers {
		if math.IsNaN(known) {
			continue
		}
		n++
		at, x = append(at[:0], 0), append(x[:0], 1) // the terms that are not 0
		for i, c := range columns {
			if !c.category {
				at, x = append(at, places[i][0]), append(x, c.numbers[s])
			} else if place := places[i][c.levels[s]]; place > 0 {
				at, x = append(at, place), append(x, 1)
			}
		}
		for a, y := range z[s*q:][:q] {
			at, x = append(at, p+a), append(x, y)
		}
		for i, a := range at {
			for k, b := range at {
				sums[a*d+b] += x[i] * x[k]
			}
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
	out.after, out.df[1] = rest(), n-rank
	for i := first; i < p && out.full; i++ {
		out.inverse = append(out.inverse, slices.Clone(sums[i*d+first:i*d+p]))
	}
	for a := range q {
		var b []float64
		for i := first; i < p && out.full; i++ {
			b = append(b, sums[i*d+p+a])
		}
		out.estimates = append(out.estimates, b)
	}
	return out
}
