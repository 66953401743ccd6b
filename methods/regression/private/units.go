package private

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"parley/internal/wire"
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
)

// units are what is known of where each number of the plan lies and how widely it varies, after so many of the
// histograms: the numbers' own units, and the standard deviations that noise leaves of logarithms of scales.
type units struct {
	After  int         `cbor:"after"`
	Centre wire.Vector `cbor:"centre"`
	Scale  wire.Vector `cbor:"scale"`
	Open   wire.Vector `cbor:"open"`
	Law    wire.Vector `cbor:"law"`   // shares of an outcome that is a number, by bin of the last histogram
	Edges  wire.Vector `cbor:"edges"` // of these bins
}

const (
	// Laws fill a second histogram within lawReach scales of the centre, and more where the scale is open, but for an
	// openness of no more than mostOpen. The inner half of its bins reaches binReach scales, and less where it is open.
	lawReach, binReach, mostOpen = 8, 6, 0.7
	// sureOf is what is added to an openness before two are averaged: laws are not exact.
	sureOf = 0.1
	// finest is the smallest scale, as a share of the public range.
	finest = 1e-5
	// unknownScale is an openness from which intervals hold less often than they say: the scale is then off by a factor
	// of 2 in many cases, and 90 % intervals held .81 to .86 of 672 simulated effects, .94 below it.
	unknownScale = 0.45
)

// learned says whether histograms tell the units.
func (c *common) learned() bool { return c.release(taskHistogram) != nil }

// window is what each number's next histogram is in: the lower end and the width of its bins; and for a second one, the
// centre and how far from it the inner half of the bins reaches.
func (c *common) window(u *units) *options.Scale {
	var start, width wire.Vector
	for k, x := range c.columns.told {
		if u.After > 0 {
			start = append(start, u.Centre[k])
			width = append(width, min(binReach*u.Scale[k]*math.Exp(-min(u.Open[k], mostOpen)), x.high-x.low))
			continue
		}
		start, width = append(start, x.low), append(width, (x.high-x.low)/bins)
	}
	return c.unitsOf(start, width)
}

// binOf is the bin of a number in units of the window; one outside of the range counts as its nearer end. Bins of a
// second histogram are the wider, the farther from the centre they are, so that a few far values, wherever they are,
// share few of them: v/(1 + |v|), from −1 to 1, has equal ones.
func (x ranged) binOf(v, start, width float64, second bool) int {
	const inside = 1e-9 // the bin at an end has some width
	low, high := (x.low-start)/width, (x.high-start)/width
	v = min(max(v, low), high-inside*(high-low))
	if second {
		v = bins / 2 * (1 + v/(1+math.Abs(v)))
	}
	return int(min(max(math.Floor(v), 0), bins-1))
}

// edges are the ends of bins, within the range of a number.
func (x ranged) edges(start, width float64, second bool) []float64 {
	all := make([]float64, bins+1)
	for k := range all {
		v := float64(k)
		if second {
			w := 2*v/bins - 1
			v = w / (1 - math.Abs(w)) // infinite at both ends
		}
		all[k] = min(max(start+width*v, x.low), x.high)
	}
	return all
}

// unitsOf are units of features, and of an outcome that is a number, which is last.
func (c *common) unitsOf(centre, scale wire.Vector) *options.Scale {
	m := &options.Scale{Centre: centre, Scale: scale}
	if n := c.columns.scaled; c.columns.linear && len(centre) > n {
		m.Centre, m.Scale, m.Mean, m.Outcome = centre[:n], scale[:n], centre[n], scale[n]*scale[n]
	}
	return m
}

// unit is that of number k, the outcome after all features.
func unit(m *options.Scale, k int) (centre, scale float64) {
	if k == len(m.Centre) {
		return m.Mean, math.Sqrt(m.Outcome)
	}
	return m.Centre[k], m.Scale[k]
}

// scale is what numbers are brought to after the histograms; nil where the plan says it.
func (c *common) scale(u *units) *options.Scale {
	if c.Options.Scaling == glm.ScaleConstants {
		return nil
	}
	return c.unitsOf(u.Centre, u.Scale)
}

// tell says what histograms over a window tell beyond what was known; counts are nil if all sites have left.
func (c *common) tell(u *units, counts *released) units {
	m, before := c.window(u), overRange
	if u.After > 0 {
		before = overWindow
	}
	if counts.Values == nil { // noise alone
		counts = &released{make(wire.Vector, bins*len(c.columns.told)), largest * largest}
	}
	next := units{After: u.After + 1}
	rows := max(floats.Sum(counts.Values)/float64(len(c.columns.told)), fewestRows)
	for k, x := range c.columns.told {
		start, width := unit(m, k)
		edges, low, high, narrow := x.edges(start, width, u.After > 0), x.low, x.high, width
		if u.After > 0 {
			narrow = width / (bins/2 - 1)
			reach := lawReach * u.Scale[k] * math.Exp(min(u.Open[k], mostOpen))
			low, high = max(low, u.Centre[k]-reach), min(high, u.Centre[k]+reach)
		}
		if k == c.columns.scaled {
			next.Edges = slices.Clone(edges)
		}
		floats.AddConst(-low, edges)
		floats.Scale(1/(high-low), edges)
		laws := everyRange()
		if u.After > 0 {
			laws = newLaws(edges, narrow/(high-low))
		}
		at := laws.locate(counts.Values[bins*k:][:bins], counts.Variance, rows, before, options.Farthest)
		at.centre, at.scale = low+(high-low)*at.centre, (high-low)*at.scale
		if u.After > 0 {
			at = combined(located{u.Centre[k], u.Scale[k], u.Open[k], nil}, at, (x.high-x.low)/bins)
		}
		at.scale = max(at.scale, x.smallest()*(x.high-x.low))
		next.Centre = append(next.Centre, min(max(at.centre, x.low), x.high))
		next.Scale, next.Open = append(next.Scale, min(at.scale, x.high-x.low)), append(next.Open, at.open)
		if k == c.columns.scaled {
			next.Law = floats.ScaleTo(make(wire.Vector, bins), 1/floats.Sum(at.mass), at.mass)
		}
	}
	return next
}

// combined averages what two histograms tell of a number, by what each leaves open; the first counts only where its
// bins, so wide, are no wider than a scale.
func combined(first, second located, width float64) located {
	w1, w2 := 0.0, 1/(second.open*second.open+sureOf*sureOf)
	if first.scale > width {
		w1 = 1 / (first.open*first.open + sureOf*sureOf)
	}
	w := w1 / (w1 + w2)
	return located{w*first.centre + (1-w)*second.centre,
		math.Exp(w*math.Log(first.scale) + (1-w)*math.Log(second.scale)), 1 / math.Sqrt(w1+w2), second.mass}
}

// smallest is the smallest scale of a number, as a share of its range. One from a whole number to the next is taken for
// an indicator, of whose two values neither may be beyond the limit: noise hides a rare one from the histograms.
func (x ranged) smallest() float64 {
	if x.low == math.Trunc(x.low) && x.high == x.low+1 {
		return 1. / options.Farthest
	}
	return finest
}

// encoding is what brings rows to columns: at units that a task brought, or, for a histogram, with the lower ends of
// windows as centres and bins as units. It reports those that no honest coordinator sends.
func (c *common) encoding(m *options.Scale, histogram bool) (*glm.Encoding, error) {
	e, err := c.Scaled(m)
	if err != nil || m == nil {
		return e, err
	}
	if !c.columns.linear && (m.Outcome != 0 || m.Mean != 0) {
		return nil, fmt.Errorf("units of an outcome that is a class")
	}
	for k, x := range c.columns.told {
		least, most := finest*(x.high-x.low), x.high-x.low
		if histogram && k < c.columns.scaled {
			e.Columns[c.Numbers()[k]].Limit = 0
		}
		centre, scale := unit(m, k)
		const rounding = 1e-9
		if !glm.Inside(centre, x.low, x.high) || !glm.Inside(scale, least*(1-rounding), most*(1+rounding)) {
			return nil, fmt.Errorf("%s, of which the plan has the range %v to %v: a centre of %v and a scale of %v",
				x.name, x.low, x.high, centre, scale)
		}
	}
	return e, nil
}

// histogram writes 1 for the bin of each number that was observed, of a row whose numbers are in a task's units, and of
// an outcome that is one.
func (c *columns) histogram(t *columnsTask, x glm.Row, y float64, v []float64) {
	count := func(k int, at float64) {
		start, width := unit(t.Units, k)
		v[bins*k+c.told[k].binOf(at, start, width, t.Second)] = 1
	}
	if c.linear {
		count(c.scaled, y)
	}
	for k, j := range c.numbers[:c.scaled] {
		if slices.Contains(x.Lacks, int32(j)) {
			continue
		}
		at := 0.0 // which has no entry
		if i, there := slices.BinarySearch(x.Index, int32(j)); there {
			at = x.Value[i]
		}
		count(k, at)
	}
}

// A further law is added to those of a number, up to so many, where it raises the log-likelihood by more than surest
// and holds more than fewestOfLaw of the rows: two kinds of patients, values that are mostly 0, or far values in up to
// mostBins neighbouring bins.
const (
	mostLaws    = 3
	surest      = 6
	fewestOfLaw = 0.003
	mostBins    = 6
)

// What the limit may cut of a number at either side, of rows and, divided, of those that a bin's noise stands for; by
// how much of its rows a law may be off in a bin, and in how many bins to either side counts are averaged for that, as
// those between whole numbers are empty. And how many rows the first law leaves to others, and to missing values.
const beyondLimit, cutNoise, lawError, beside, mostMissing = 0.01, 4, 0.1, 2, 0.5

// varies is what is believed of a number's standard deviation before its histogram is seen: the logarithm is normal,
// with this median in windows.
type varies struct{ median, sd float64 }

var (
	overRange  = varies{0.06, 1} // public ranges are many deviations wide, or few
	overWindow = varies{0.09, 0.7}
)

// laws are distributions over a window, which is 0 … 1: by row the probability of each bin, and mean, logarithm of the
// standard deviation and logarithm of the prior weight of each.
type laws struct {
	edges                []float64 // of bins, in windows
	inner                int       // how many laws are within the window
	probability          *mat.Dense
	squares              *mat.Dense
	mean, logSD, density []float64
}

// newLaws has the normal laws, and log-normal ones above the window's low end and below its high one, by bins with such
// edges, of which the narrowest that no range cuts is so narrow; then, of far values, laws that neighbouring bins
// outside of the window have in equal parts.
func newLaws(edges []float64, narrow float64) *laws {
	l := &laws{edges: edges}
	var p []float64
	low, high := max(edges[0], 0), min(edges[bins], 1)
	add := func(mean, sd, cell float64, below func(x float64) float64) {
		last := 0.0
		for _, x := range edges[1:] {
			next := 0.0
			if x >= high {
				next = 1
			} else if x > low {
				next = below(x)
			}
			p, last = append(p, next-last), next
		}
		l.mean, l.logSD, l.density = append(l.mean, mean), append(l.logSD, math.Log(sd)),
			append(l.density, math.Log(cell))
	}
	phi := func(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }
	const scales = 22
	for k := range scales {
		s := 0.3 * narrow * math.Pow(0.5/(0.3*narrow), float64(k)/(scales-1))
		step := max(min(s/2, 0.02), narrow/4)
		for c := step / 2; c < 1; c += step {
			add(c, s, step/s, func(x float64) float64 { return phi((x - c) / s) })
		}
	}
	const octave = 0.15 // between medians, of which a law at each counts for twice as much
	for _, t := range []float64{0.35, 0.5, 0.7, 0.9, 1.15, 1.4} {
		for m := 0.15 * narrow; m < 0.4; m *= math.Exp(octave) {
			end := -math.Log(m) / t // of the window, at which what is beyond counts
			mean := m*math.Exp(t*t/2)*phi(end-t) + phi(-end)
			sd := math.Sqrt(m*m*math.Exp(2*t*t)*phi(end-2*t) + phi(-end) - mean*mean)
			add(mean, sd, 2*octave, func(x float64) float64 { return phi(math.Log(max(x, 0)/m) / t) })
			add(1-mean, sd, 2*octave, func(x float64) float64 { return phi(-math.Log(max(1-x, 0)/m) / t) })
		}
	}
	l.inner, low, high = len(l.mean), edges[0], edges[bins]
	for from := range bins {
		mean, square := 0.0, 0.0
		for to := from; to < min(from+mostBins, bins); to++ {
			a, b, n := edges[to], edges[to+1], float64(to-from+1)
			if a == b || b > 0 && edges[from] < 1 {
				break
			}
			mean, square = mean+(a+b)/2, square+(a*a+a*b+b*b)/3
			add(mean/n, math.Sqrt(square/n-mean/n*mean/n), 1, func(x float64) float64 {
				k, _ := slices.BinarySearch(edges, x)
				return min(max(float64(k-from)/n, 0), 1)
			})
		}
	}
	l.probability = mat.NewDense(len(l.mean), bins, p)
	l.squares = new(mat.Dense)
	l.squares.MulElem(l.probability, l.probability)
	return l
}

// everyRange are the laws of a first histogram, whose bins are equal parts of a range.
var everyRange = sync.OnceValue(func() *laws {
	return newLaws(ranged{high: 1}.edges(0, 1./bins, false), 1./bins)
})

// located is where a number lies in a window, and how widely it varies there; open is the standard deviation of the
// logarithm of the latter, which noise leaves, and mass what laws have in each bin.
type located struct {
	centre, scale, open float64
	mass                []float64
}

// locate fits laws to the noised counts of one number, of about so many rows, by the likelihood of noise with this
// variance, of sampling and of laws that do not fit exactly. With bin probabilities P and counts h the best multiple of
// a law is a = Σ w h P / Σ w P², w being inverse variances. The first law is averaged over its posterior, more are the
// best ones for what is left. The scale is the standard deviation, but so wide that [options.Farthest] scales cut
// hardly a row. Where noise lets moments be told from the counts alone, these decide.
func (l *laws) locate(counts []float64, variance, rows float64, before varies, farthest float64) located {
	weight, rest, mix := make([]float64, bins), make([]float64, bins), make([]float64, bins)
	for k, h := range counts {
		up := 0.0
		for _, near := range counts[max(k-beside, 0):min(k+beside+1, bins)] {
			up += max(near, 0) / (2*beside + 1)
		}
		weight[k], rest[k] = 1/(variance+up+lawError*lawError*up*up), h
	}
	n := len(l.mean)
	norm := mat.NewVecDense(n, nil)
	norm.MulVec(l.squares, mat.NewVecDense(bins, weight))
	var mass, mean, square, open float64
	times, share := make([]float64, n), make([]float64, n)
	for law := range mostLaws {
		weighted := make([]float64, bins)
		floats.MulTo(weighted, weight, rest)
		product := mat.NewVecDense(n, nil)
		product.MulVec(l.probability, mat.NewVecDense(bins, weighted))
		low, high := (1-mostMissing)*rows, rows
		if law > 0 {
			low, high = 0, rows // what the first took too much of must not hide the others
		}
		for i := range n {
			a := min(max(product.AtVec(i)/norm.AtVec(i), low), high)
			times[i], share[i] = a, a*product.AtVec(i)-a*a*norm.AtVec(i)/2
		}
		if law > 0 {
			best := floats.MaxIdx(share)
			if !(share[best] > surest && times[best] > fewestOfLaw*rows) {
				break
			}
			clear(share)
			share[best] = 1
		} else {
			for i := range n {
				z := (l.logSD[i] - math.Log(before.median)) / before.sd
				if share[i] += l.density[i] - z*z/2; i >= l.inner {
					share[i] = math.Inf(-1)
				}
			}
			top := floats.Max(share)
			for i := range n {
				share[i] = math.Exp(share[i] - top)
			}
			floats.Scale(1/floats.Sum(share), share)
		}
		a, c, logSD := floats.Dot(share, times), floats.Dot(share, l.mean), floats.Dot(share, l.logSD)
		if law == 0 {
			second := 0.0
			for i := range n {
				second += share[i] * l.logSD[i] * l.logSD[i]
			}
			open = math.Sqrt(max(second-logSD*logSD, 0))
		}
		floats.Mul(share, times)
		var near mat.VecDense
		near.MulVec(l.probability.T(), mat.NewVecDense(n, share))
		for k := range mix {
			mix[k], rest[k] = mix[k]+near.AtVec(k), rest[k]-near.AtVec(k)
		}
		mass, mean, square = mass+a, mean+a*c, square+a*(math.Exp(2*logSD)+c*c)
	}
	at := located{centre: mean / mass, open: open, mass: mix}
	at.scale = math.Sqrt(max(square/mass-at.centre*at.centre, 1e-12))
	cut := min(beyondLimit, math.Sqrt(variance)/(cutNoise*rows))
	above, below := quantile(mix, 1-cut), quantile(mix, cut)
	reach := max(l.edges[above]-at.centre, at.centre-l.edges[below+1])
	at.scale = max(at.scale, reach/farthest)
	return at.with(l.moments(counts, variance, at, farthest*at.scale))
}

// moments tell mean and standard deviation by the counts alone, within such a reach of where laws have located them,
// and what noise leaves of its logarithm by the laws' own: where counts told that, noise that happens to make the
// deviation large would pass for knowledge.
func (l *laws) moments(counts []float64, variance float64, at located, reach float64) located {
	middle, square := make([]float64, bins), make([]float64, bins)
	for k := range bins {
		middle[k] = min(max((l.edges[k]+l.edges[k+1])/2, at.centre-reach), at.centre+reach)
	}
	deviation := func(counts []float64) (n, mean, variance float64) {
		n = max(floats.Sum(counts), 1)
		mean = min(max(floats.Dot(counts, middle)/n, at.centre-reach), at.centre+reach)
		for k, x := range middle {
			square[k] = (x - mean) * (x - mean)
		}
		return n, mean, max(floats.Dot(counts, square)/n, 1e-12)
	}
	_, _, expected := deviation(at.mass)
	n, mean, told := deviation(counts)
	return located{mean, math.Sqrt(told), math.Sqrt(variance) * floats.Norm(square, 2) / n / expected / 2, nil}
}

// with averages what laws and moments tell, as far as these are surely no noise. Laws are less exact than their
// likelihood says: few whole numbers have no law.
func (at located) with(m located) located {
	const exact, inexact, sure = 0.05, 0.2, 0.15
	if m.open > sure {
		return at
	}
	w1, w2 := 1/(at.open*at.open+inexact*inexact), 1/(m.open*m.open+exact*exact)
	w := w1 / (w1 + w2)
	return located{w*at.centre + (1-w)*m.centre, math.Exp(w*math.Log(at.scale) + (1-w)*math.Log(m.scale)),
		min(at.open, m.open), at.mass}
}

// quantile is the bin below whose upper edge a share of counts is.
func quantile(counts []float64, share float64) int {
	left := share * floats.Sum(counts)
	for k, h := range counts {
		if left -= h; left <= 0 {
			return k
		}
	}
	return len(counts) - 1
}
