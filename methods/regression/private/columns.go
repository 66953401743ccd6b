package private

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"parley/methods/regression/glm"
	"parley/methods/regression/options"
	"parley/methods/regression/predict"
	"parley/privacy"
	"parley/privacy/account"
	"parley/study"
)

// columns are those of a design matrix: for each the place of its feature, and whether
// that is a category. The last column is the intercept, whose place is −1.
type columns struct {
	Feature  []int
	Category []bool
	numbers  []int // columns that are numbers
	features int
	classes  int // whose rows have sums of their own; 1 if all rows are in one sum
	// offset, if there is one, makes the last column before the intercept: a number whose weight is its scale.
	offset *glm.Column
	scaled int  // numbers that histograms tell the units of: all but the offset
	linear bool // the outcome is a number, of which histograms tell the unit, too: see residual.go
	told   []ranged
}

// ranged is a number that histograms tell the unit of, and its public range: a feature's, in the plan's order, and last
// that of an outcome less an offset.
type ranged struct {
	name      string
	low, high float64
}

// columnsOf lists the columns of an encoding with an intercept.
func columnsOf(s *options.Setup) *columns {
	e := &s.Encoding
	c := &columns{features: len(e.Columns), classes: s.Likelihood.Activations(),
		linear: s.Options.Likelihood == glm.LikelihoodLinear}
	for i := range e.Columns {
		category := len(e.Columns[i].Levels) > 0
		for range e.Columns[i].Width() {
			if !category {
				c.numbers = append(c.numbers, len(c.Feature))
			}
			c.Feature, c.Category = append(c.Feature, i), append(c.Category, category)
		}
	}
	for _, j := range s.Numbers() {
		column := &e.Columns[j]
		c.told = append(c.told, ranged{column.Name, column.Centre - column.Scale, column.Centre + column.Scale})
	}
	if y := s.Options.Outcome; c.linear {
		low, high := y.Range[0], y.Range[1]
		if o := s.Options.OffsetRange; o != nil {
			low, high = low-o[1], high-o[0]
		}
		c.told = append(c.told, ranged{y.Column, low, high})
	}
	c.scaled = len(c.numbers)
	if e.Offset != "" && !c.linear {
		offset := glm.FromRange(e.Offset, s.Options.OffsetRange[0], s.Options.OffsetRange[1])
		c.offset, c.numbers, c.features = &offset, append(c.numbers, len(c.Feature)), c.features+1
		c.Feature, c.Category = append(c.Feature, len(e.Columns)), append(c.Category, false)
	}
	c.Feature, c.Category = append(c.Feature, -1), append(c.Category, false)
	return c
}

// row is a row of the encoding with the column of the offset.
func (c *columns) row(x glm.Row) glm.Row {
	if c.offset == nil {
		return x
	}
	last := len(x.Index) - 1 // of the intercept
	value := (x.Offset - c.offset.Centre) / c.offset.Scale
	return glm.Row{Index: append(slices.Clone(x.Index[:last]), int32(c.width()-2), int32(c.width()-1)),
		Value: append(slices.Clone(x.Value[:last]), value, 1)}
}

// width is the number of columns.
func (c *columns) width() int { return len(c.Feature) }

// reach is √(features + 1): the norm of a row whose numbers are one scale from their centre.
func (c *columns) reach() float64 { return math.Sqrt(float64(c.features + 1)) }

// clips are as many as there are from the shortest to the longest.
const clips = 17

// clip is the i-th at a dispersion, see residual.go: of classes by quarters of an octave from a quarter of the reach,
// so that no row is longer than the last; of a number by half as much more from half the reach, in deviations.
func (c *columns) clip(dispersion float64, i int) float64 {
	clip, octaves := c.reach()/options.Farthest, float64(i)/4
	if c.linear {
		clip, octaves = clip*2*math.Sqrt(dispersion), octaves*2
	}
	return clip * math.Pow(2, octaves)
}

// The three contributions of a row x with outcome y = ±1.

// totals writes (x, ½ x² of numbers, 1). The last is for the count; of two classes each has its own. Before it stands
// an outcome that is a number, limited as features are, in units of the limit.
func (c *columns) totals(x glm.Row, y float64, v []float64) {
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
	switch {
	case c.linear:
		v[len(v)-2] = glm.Clamp(y/options.Farthest, 1)
	case c.counts() > 1 && y < 0:
		v[len(v)-1], v[len(v)-2] = 0, 1
	}
}

// shorten brings what totals writes within its bound by what it has of numbers and of the intercept: a row of numbers
// that are more than one scale from their centre weighs less in their sums, and counts as one in those of its levels,
// whose shares are the rows'.
func (c *columns) shorten(v []float64) {
	var numbers []int // and the intercept
	norm, most := 0.0, c.square()
	for j, x := range v[:c.width()+len(c.numbers)] {
		if j < c.width() && c.Category[j] {
			most -= x * x
		} else {
			numbers, norm = append(numbers, j), norm+x*x
		}
	}
	for _, j := range numbers {
		v[j] *= math.Sqrt(min(1, most/norm))
	}
}

// counts is how many counts of rows there are at the end of what totals writes: one, or one of each of two classes.
func (c *columns) counts() int {
	if c.linear || c.classes != 1 {
		return 1
	}
	return 2
}

// rows is how many there are by totals, with noise of variance v in each, and the variance of that.
func (c *columns) rows(totals []float64, v float64) (count, variance float64) {
	return floats.Sum(totals[len(totals)-c.counts():]), float64(c.counts()) * v
}

// totalsLen is the length of what totals writes.
func (c *columns) totalsLen() int {
	if c.linear {
		return c.width() + len(c.numbers) + 2
	}
	return c.width() + len(c.numbers) + c.counts()
}

// totalsBound bounds the norm of what totals adds: a row's, 1 of the count, and 1 of an outcome that is a number.
func (c *columns) totalsBound() float64 {
	if c.linear {
		return math.Sqrt(c.square() + 2)
	}
	return math.Sqrt(c.square() + 1)
}

// square bounds the squared norm of a row's own: 1 of the intercept and each category, 1 + ½ of each number.
func (c *columns) square() float64 { return 1 + float64(c.features) + 0.5*float64(len(c.numbers)) }

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

// A site's budget in squares of signal over noise, which add up over Gaussian releases:
// what is spent on each sum of what diagnostics leave. Rounds of gradients have the rest,
// the first few, which only have to find the way, half as much as the others.
const (
	shareHistogram = 0.1 // of all, each; of the rest, the others
	shareTotals    = 0.12
	shareProducts  = 0.06
)

// Of each number there are so many histograms, the second about where the first one says, with so many bins: see
// [ranged.binOf].
const histograms, bins = 2, 24

// share is that of round k, from 0, of so many.
func share(rounds, k int) float64 {
	each := (1 - shareTotals - shareProducts) / (float64(rounds) - float64(burn(rounds))/2)
	if k < burn(rounds) {
		return each / 2
	}
	return each
}

// burn is how many rounds are the first few.
func burn(rounds int) int { return rounds / 5 }

// The tasks. An early gradient has less of the budget.
const (
	taskHistogram = "histogram"
	taskTotals    = "totals"
	taskProducts  = "products"
	taskEarly     = "early gradient"
	taskLate      = "gradient"
)

// declare lists a site's releases, with noise by which all together cost the plan's total.
//
// Sensitivity: each sum is over subjects, the gate clips what one contributes to the declared bound, and nothing that
// a subject contributes depends on another's row. So one subject more or less changes a sum by a vector no longer
// than the bound, of products by a matrix x xᵀ no larger than its square in the Frobenius norm; one in another's
// place by twice as much, of products √2 times. A histogram counts a subject in one bin of each number.
func (c *columns) declare(learned bool, rounds int, p study.Privacy) (all []privacy.Listed, err error) {
	var mechanisms []account.Mechanism
	add := func(kind string, times int, share, diameter float64, sum privacy.Sum) {
		sum.Unit = privacy.Subject
		all = append(all, privacy.Listed{Kind: kind, Times: times, Request: privacy.Request{
			Protection: privacy.Differential, Sums: []privacy.Sum{sum}}})
		mechanisms = append(mechanisms, account.Mechanism{Kind: account.Gaussian, Noise: 1 / math.Sqrt(share), Rate: 1,
			Diameter: diameter, Count: times})
	}
	rest := 1 - p.Diagnostics
	each := rest * shareHistogram
	if learned {
		rest -= histograms * each
	}
	byClass, counts, classes := "", "", max(c.classes, 1)
	if classes > 1 {
		byClass = " by class"
	} else if c.counts() > 1 {
		counts = ", and rows of each class"
	} else if c.linear {
		counts = ", and the outcome's total"
	}
	scores := privacy.Sum{Name: "clipped gradients of the log-likelihood", Form: privacy.Vectors,
		Blocks: []int{c.scoresLen()}, Bound: 1}
	add(taskTotals, 1, rest*shareTotals, 2, privacy.Sum{Name: "totals and squares of columns" + byClass + counts,
		Form: privacy.Vectors, Blocks: slices.Repeat([]int{c.totalsLen()}, classes), Bound: c.totalsBound()})
	add(taskProducts, 1, rest*shareProducts, math.Sqrt2, privacy.Sum{Name: "products of columns" + byClass,
		Form: privacy.Moments, Blocks: slices.Repeat([]int{c.width()}, classes), Bound: c.reach()})
	add(taskEarly, burn(rounds), rest*share(rounds, 0), 2, scores)
	add(taskLate, rounds-burn(rounds), rest*share(rounds, rounds-1), 2, scores)
	if p.Diagnostics > 0 {
		add(options.TaskAssess, 1, p.Diagnostics, 2, *predict.Sum(account.Mechanism{}))
	}
	if learned {
		add(taskHistogram, histograms, each, 2, privacy.Sum{Name: "histograms of numbers", Form: privacy.Vectors,
			Blocks: []int{bins * len(c.told)}, Bound: math.Sqrt(float64(len(c.told)))})
	}
	factor, err := p.Scale(mechanisms)
	for i, m := range mechanisms {
		m.Noise, m.Count = account.RoundUp(m.Noise*factor), 1
		all[i].Request.Sums[0].Mechanism = m
	}
	if last := len(all) - 1; learned { // which are asked for first
		all = slices.Concat(all[last:], all[:last])
	}
	return all, err
}

// kept is the share that is left, where rows that are too long are shortened, of what a column gives to
// the sums of squares, by column.
type kept struct{ totals, products []float64 }

// whole is where no row is shortened.
func (c *columns) whole() *kept {
	ones := slices.Repeat([]float64{1}, c.width())
	return &kept{ones, slices.Clone(ones)}
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
		values, vectors := glm.Eigen(covariance)
		vectors.Apply(func(_, k int, u float64) float64 { return u * math.Sqrt(max(values[k], 0)) }, vectors)
		root = vectors
	}
	out := &kept{make([]float64, c.width()), make([]float64, c.width())}
	most := c.square()
	for range drawn {
		long, longer, levels := 1.0, 0.0, 0.0 // squared norms: of a row, what halves of squares add to it, and levels
		for _, share := range present {
			if share > 0 && r.Float64() < share {
				levels++
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
		t := math.Sqrt(min(1, (most-levels)/(long+longer)))
		p := min(1, c.reach()*c.reach()*scale*scale/(long+levels))
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
			out.totals[j], out.products[j] = 1, out.products[one]
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
