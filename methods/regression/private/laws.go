package private

import (
	"math"
	"sync"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// A further law is added to those of a number, up to so many, where it raises the log-likelihood by more than
// surest and holds more than fewestOfLaw of the rows: two kinds of patients, or values that are mostly 0.
const (
	mostLaws    = 3
	surest      = 8
	fewestOfLaw = 0.03
)

// What the limit may cut of a number at either side, by how much of its rows a law may be off in a bin, and in how many
// bins to either side counts are averaged for that: else those between whole numbers would decide, which are empty. And
// how many rows the first law leaves to others, and to missing values.
const beyondLimit, lawError, beside, mostMissing = 0.003, 0.1, 2, 0.5

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
		l.mean, l.logSD, l.density = append(l.mean, mean), append(l.logSD, math.Log(sd)), append(l.density, math.Log(cell))
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
// logarithm of the latter, which noise leaves.
type located struct{ centre, scale, open float64 }

// locate fits laws to the noised counts of one number, of about so many rows, by the likelihood of noise with this
// variance, of sampling and of laws that do not fit exactly. With bin probabilities P and counts h the best multiple of a
// law is a = Σ w h P / Σ w P² and its gain a Σ w h P − a² Σ w P²/2, w being inverse variances. The first law is averaged
// over its posterior, more are the best ones for what is left. The scale is the standard deviation, but at least so wide
// that [options.Farthest] scales cut hardly a row. Where noise lets moments be told from the counts alone, these decide.
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
	at := located{centre: mean / mass, open: open}
	at.scale = math.Sqrt(max(square/mass-at.centre*at.centre, 1e-12))
	reach := max(quantile(mix, 1-beyondLimit)-at.centre, at.centre-quantile(mix, beyondLimit)) - 1./bins
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
	return located{mean, math.Sqrt(square), math.Sqrt(variance*fourth) / n / square / 2}
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
	return located{w*at.centre + (1-w)*m.centre, math.Exp(w*math.Log(at.scale) + (1-w)*math.Log(m.scale)), min(at.open, m.open)}
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
