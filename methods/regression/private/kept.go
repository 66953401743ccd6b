package private

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"parley/methods/regression/glm"
)

// kept is the share that is left, where rows that are too long are shortened, of what a column gives to
// the sums of squares, by column.
type kept struct{ totals, products []float64 }

// whole is where no row is shortened.
func (c *columns) whole() *kept {
	k := &kept{make([]float64, c.width()), make([]float64, c.width())}
	for j := range k.totals {
		k.totals[j], k.products[j] = 1, 1
	}
	return k
}

// pair is the share of products of two columns.
func (k *kept) pair(i, j int) float64 { return math.Sqrt(k.products[i] * k.products[j]) }

// noise is the variance of the noise in the product of two columns, made up for.
func (k *kept) noise(i, j int, s float64) float64 { return s / 2 / (k.products[i] * k.products[j]) }

// Rows are drawn as often as drawn, by a fixed stream: it is arithmetic, and no noise. What is left is
// never taken for less than leastKept, and what is missing for no more than mostTimes what the draws say.
const (
	drawn     = 2000
	leastKept = 0.3
	mostTimes = 2

	widestDraw = 1e6 // mean or standard deviation
)

// kept works the shares out for normal numbers with these sums and sums of squares, of which the last
// are the count, and for categories as frequent as these: of independent numbers, or with a covariance.
func (c *columns) kept(sum, square []float64, covariance *mat.SymDense, scale float64) *kept {
	one := c.width() - 1
	rows := sum[one]
	r := rand.New(rand.NewPCG(1, 2))
	present := make([]float64, c.features) // by feature: the share of rows with a level that has a column
	for j, is := range c.Category {
		if is {
			present[c.Feature[j]] += sum[j] / rows
		}
	}
	x, z := make([]float64, len(c.numbers)), make([]float64, len(c.numbers))
	mean, sd, whole := make([]float64, len(x)), make([]float64, len(x)), make([]float64, len(x))
	for k, j := range c.numbers {
		mean[k] = glm.Clamp(sum[j]/rows, widestDraw) // sums from a hostile site may be of any size
		sd[k] = min(math.Sqrt(max(square[j]/rows-mean[k]*mean[k], 0)), widestDraw)
	}
	var root *mat.Dense // of the covariance
	if covariance != nil {
		values, vectors := eigen(covariance)
		vectors.Apply(func(_, k int, u float64) float64 { return u * math.Sqrt(max(values[k], 0)) }, vectors)
		root = vectors
	}
	out := &kept{make([]float64, c.width()), make([]float64, c.width())}
	most := c.totalsBound()*c.totalsBound() - 1
	for range drawn {
		long, longer := 1.0, 0.0 // squared norms: of a row, and what halves of squares add to it
		for _, share := range present {
			if share > 0 && r.Float64() < share {
				long++
			}
		}
		for k := range z {
			z[k] = r.NormFloat64()
		}
		for k := range x {
			x[k] = mean[k] + sd[k]*z[k]
			if root != nil {
				x[k] = mean[k] + floats.Dot(root.RawRowView(k), z)
			}
			long, longer = long+x[k]*x[k], longer+x[k]*x[k]*x[k]*x[k]/4
		}
		t, p := math.Sqrt(min(1, most/(long+longer))), min(1, c.reach()*c.reach()*scale*scale/long)
		out.totals[one], out.products[one] = out.totals[one]+t/drawn, out.products[one]+p/drawn
		for k, j := range c.numbers {
			whole[k] += x[k] * x[k]
			out.totals[j], out.products[j] = out.totals[j]+t*x[k]*x[k], out.products[j]+p*x[k]*x[k]
		}
	}
	for k, j := range c.numbers {
		out.totals[j], out.products[j] = out.totals[j]/max(whole[k], 1e-9), out.products[j]/max(whole[k], 1e-9)
	}
	for j, is := range c.Category {
		if is {
			out.totals[j], out.products[j] = out.totals[one], out.products[one]
		}
	}
	return out
}

// observe brings shares to what is missing of a noised sum of the rows' ones, of so many rows: as far
// as the noise in the difference, of this variance, lets it be told.
func observe(shares []float64, ones, rows, variance float64) {
	times := 1.0
	if missing := 1 - shares[len(shares)-1]; missing > 0 {
		told := missing * missing / (missing*missing + variance/(rows*rows))
		times = min(max(told*(1-ones/rows)/missing+1-told, 0), mostTimes)
	}
	for j, x := range shares {
		shares[j] = max(1-times*(1-x), leastKept)
	}
}
