package private

import (
	"math"

	"parley/methods/regression/glm"
	"parley/methods/regression/options"
)

// columns are those of a design matrix: for each the place of its feature, and whether
// that is a category. The last column is the intercept, whose place is −1.
type columns struct {
	Feature  []int
	Category []bool
	numbers  []int // columns that are numbers
	features int
}

// columnsOf lists the columns of an encoding with an intercept.
func columnsOf(e *glm.Encoding) *columns {
	c := &columns{features: len(e.Columns)}
	for i := range e.Columns {
		category := len(e.Columns[i].Levels) > 0
		for range e.Columns[i].Width() {
			if !category {
				c.numbers = append(c.numbers, len(c.Feature))
			}
			c.Feature, c.Category = append(c.Feature, i), append(c.Category, category)
		}
	}
	c.Feature, c.Category = append(c.Feature, -1), append(c.Category, false)
	return c
}

// width is the number of columns.
func (c *columns) width() int { return len(c.Feature) }

// reach is √(features + 1): the norm of a row whose numbers are one scale from their centre.
func (c *columns) reach() float64 { return math.Sqrt(float64(c.features + 1)) }

// shortest and longest are the clips between which one is chosen. No row is longer than the latter.
func (c *columns) shortest() float64 { return c.reach() / options.Farthest }
func (c *columns) longest() float64  { return c.reach() * options.Farthest }

// The three contributions of a row x with outcome y = ±1.

// totals writes (x, ½ x² of numbers, 1); the last is for the count.
func (c *columns) totals(x glm.Row, v []float64) {
	number := 0
	for i, j := range x.Index {
		v[j] = x.Value[i]
		for number < len(c.numbers) && c.numbers[number] < int(j) {
			number++
		}
		if number < len(c.numbers) && c.numbers[number] == int(j) {
			v[c.width()+number] = x.Value[i] * x.Value[i] / 2
		}
	}
	v[len(v)-1] = 1
}

// shorten brings what totals writes within [columns.totalsBound], but for the 1: a row whose numbers
// are more than one scale from their centre weighs less in the sums, and counts as one row.
func (c *columns) shorten(v []float64) {
	one, norm := len(v)-1, 0.0
	for _, x := range v[:one] {
		norm += x * x
	}
	if most := c.totalsBound()*c.totalsBound() - 1; norm > most {
		for j := range v[:one] {
			v[j] *= math.Sqrt(most / norm)
		}
	}
}

// totalsLen is the length of what totals writes.
func (c *columns) totalsLen() int { return c.width() + len(c.numbers) + 1 }

// totalsBound bounds the norm of what totals adds: 1 of the count, of the intercept and of each
// category, 1 + ½ of each number.
func (c *columns) totalsBound() float64 {
	return math.Sqrt(2 + float64(c.features-len(c.numbers)) + 1.5*float64(len(c.numbers)))
}

// Rows are divided by at most largestScale before their products are summed, which shortens none, and
// by no more than leaves the noise of products below hardly of the count.
const largestScale, hardly = options.Farthest, 0.03

// scaleOf chooses a scale by a count and the standard deviation of the noise of products. A row that
// is longer than the bound is shortened, which makes too little of a direction that features share.
// A scale leaves fewer rows to shorten, and multiplies the noise by its square.
func scaleOf(count, noise float64) float64 {
	return math.Sqrt(min(max(hardly*count/noise, 1), largestScale*largestScale))
}

// products writes x/scale, whose products with itself the gate sums.
func products(x glm.Row, scale float64, v []float64) {
	for i, j := range x.Index {
		v[j] = x.Value[i] / scale
	}
}

// score writes the gradient of ln p(y | x) at weights m, shortened to clip and in units of
// it. Its norm is at most 1, whatever the row.
func score(m []float64, clip float64, x glm.Row, y float64, v []float64) {
	a := 0.0
	for i, j := range x.Index {
		a += x.Value[i] * m[j]
	}
	residual := y / (1 + math.Exp(y*a))
	times := residual / max(clip, math.Abs(residual)*x.Norm())
	for i, j := range x.Index {
		v[j] = times * x.Value[i]
	}
}
