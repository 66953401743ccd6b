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
	Law    wire.Vector `cbor:"law"` // shares of an outcome that is a number, by bin of the last histogram
}

const (
	// windowReach is how many scales a second histogram reaches to either side, and more where the scale is open, but
	// for an openness of no more than mostOpen.
	windowReach, mostOpen = 8, 0.7
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

// window is the lower end and the width of a bin of each number's next histogram.
func (c *common) window(u *units) *options.Scale {
	var lower, width wire.Vector
	for k, x := range c.columns.told {
		low, high := x.low, x.high
		if u.After > 0 {
			reach := windowReach * u.Scale[k] * math.Exp(min(u.Open[k], mostOpen))
			low, high = max(low, u.Centre[k]-reach), min(high, u.Centre[k]+reach)
		}
		lower, width = append(lower, low), append(width, (high-low)/bins)
	}
	return c.unitsOf(lower, width)
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
		at := everyLaw().locate(counts.Values[bins*k:][:bins], counts.Variance, rows, before, options.Farthest)
		start, bin := unit(m, k)
		at.centre, at.scale = start+bins*bin*at.centre, bins*bin*at.scale
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
		if histogram {
			least, most = least/bins, most/bins
			if k < c.columns.scaled {
				e.Columns[c.Numbers()[k]].Limit = 0
			}
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

// histogram writes 1 for the bin of each number that was observed, of a row whose numbers are in bins, and of an
// outcome that is one.
func (c *columns) histogram(x glm.Row, y float64, v []float64) {
	count := func(k int, at float64) { v[bins*k+int(min(max(math.Floor(at), 0), bins-1))] = 1 }
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

// A further law is added to those of a number, up to so many, where it raises the log-likelihood by more than
// surest and holds more than fewestOfLaw of the rows: two kinds of patients, or values that are mostly 0.
const (
	mostLaws    = 3
	surest      = 8
	fewestOfLaw = 0.03
)

// What the limit may cut of a number at either side, of rows and, divided, of those that a bin's noise stands for; by
// how much of its rows a law may be off in a bin, and in how many bins to either side counts are averaged for that, as
// those between whole numbers are empty. And how many rows the first law leaves to others, and to missing values.
const beyondLimit, cutNoise, lawError, beside, mostMissing = 0.003, 4, 0.1, 2, 0.5

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
	probability          *mat.Dense
	squares              *mat.Dense
	mean, logSD, density []float64
}

// everyLaw has the normal laws, and log-normal ones above the window's low end and below its high one.
var everyLaw = sync.OnceValue(func() *laws {
	l := new(laws)
	var p []float64
	add := func(mean, sd, cell float64, below func(x float64) float64) {
		last := 0.0
		for k := 1; k <= bins; k++ {
			next := 1.0
			if k < bins {
				next = below(float64(k) / bins)
			}
			p, last = append(p, next-last), next
		}
		l.mean, l.logSD, l.density = append(l.mean, mean), append(l.logSD, math.Log(sd)),
			append(l.density, math.Log(cell))
	}
	phi := func(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }
	const scales = 22
	for k := range scales {
		s := 0.3 / bins * math.Pow(0.5*bins/0.3, float64(k)/(scales-1))
		step := max(min(s/2, 0.02), 0.25/bins)
		for c := step / 2; c < 1; c += step {
			add(c, s, step/s, func(x float64) float64 { return phi((x - c) / s) })
		}
	}
	const octave = 0.15 // between medians, of which a law at each counts for twice as much
	for _, t := range []float64{0.35, 0.5, 0.7, 0.9, 1.15, 1.4} {
		for m := 0.15 / bins; m < 0.4; m *= math.Exp(octave) {
			mean := m * math.Exp(t*t/2)
			sd := mean * math.Sqrt(math.Expm1(t*t))
			add(mean, sd, 2*octave, func(x float64) float64 { return phi(math.Log(x/m) / t) })
			add(1-mean, sd, 2*octave, func(x float64) float64 { return phi(-math.Log((1-x)/m) / t) })
		}
	}
	l.probability = mat.NewDense(len(l.mean), bins, p)
	l.squares = new(mat.Dense)
	l.squares.MulElem(l.probability, l.probability)
	return l
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
			low, high = 0, max(rows-mass, 0)
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
				share[i] += l.density[i] - z*z/2
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
	reach := max(quantile(mix, 1-cut)-at.centre, at.centre-quantile(mix, cut)) - 1./bins
	at.scale = max(at.scale, reach/farthest)
	return at.with(moments(counts, variance))
}

// moments tell mean and standard deviation by the counts alone, and what their noise leaves of its logarithm.
func moments(counts []float64, variance float64) located {
	n, mean, square, fourth := max(floats.Sum(counts), 1), 0.0, 0.0, 0.0
	middle := func(k int) float64 { return (float64(k) + 0.5) / bins }
	for k, h := range counts {
		mean += h * middle(k) / n
	}
	mean = min(max(mean, 0), 1)
	for k, h := range counts {
		d := (middle(k) - mean) * (middle(k) - mean)
		square, fourth = square+h*d/n, fourth+d*d
	}
	square = max(square, 1e-12)
	return located{mean, math.Sqrt(square), math.Sqrt(variance*fourth) / n / square / 2, nil}
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

// quantile is where a share of what is in bins is below, as if it were even within each.
func quantile(counts []float64, share float64) float64 {
	left := share * floats.Sum(counts)
	for k, h := range counts {
		if left <= h {
			return (float64(k) + left/h) / float64(len(counts))
		}
		left -= h
	}
	return 1
}
