package private

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"parley/methods/regression/glm"
	"parley/methods/regression/options"
)

// An outcome that is a number is y = xᵀw + e, in the unit that histograms tell, with e of variance φ, the dispersion.
// Its gradients are sums of x r, r = y − xᵀm, with r clipped to ±k√φ and x shortened by itself: where e is skewed,
// what that takes from it is the same for all rows, and the intercept's alone, which the sum of y tells; where the law
// of e is stretched with the expectation, the effects have a share. Beside them stands an entry that tells φ, of
// min(r²/φ, k²) less what it is for normal e, as in Huber's proposal 2 (Annals of Mathematical Statistics 1964): a few
// far outcomes do not decide it, and clipped residuals have the variance that it gives them, whatever their law.
const (
	spreadShare = 0.09 // of a gradient's squared bound is that entry's
	// deviations are to how many standard deviations residuals are clipped where rows are shortened to the norm of one
	// whose numbers are a scale from their centre; of a clip both have the same share beyond.
	deviations = 1.5
)

// left is of a clip, for the gradient itself.
var left = math.Sqrt(1 - spreadShare)

// split divides a clip into those of a row's norm, and of a residual in standard deviations.
func (c *columns) split(clip, dispersion float64) (long, k float64) {
	clip *= left / math.Sqrt(dispersion)
	long = math.Sqrt(clip * c.reach() / deviations)
	return long, clip / long
}

// squaresTo are, for a standard normal z, E min(z², k²), its derivative by the logarithm of z's variance,
// E z² 1{|z| < k}, and how far min(z², k²) is from its mean at most.
func squaresTo(k float64) (mean, slope, most float64) {
	slope = math.Erf(k/math.Sqrt2) - k*math.Sqrt(2/math.Pi)*math.Exp(-k*k/2)
	mean = slope + k*k*math.Erfc(k/math.Sqrt2)
	return mean, slope, max(mean, k*k-mean)
}

// dispersions are the least and the largest.
func (c *columns) dispersions() (least, most float64) {
	if c.linear {
		return 1e-6, 100
	}
	return 1, 1
}

// scoresLen is the length of what [columns.scores] writes.
func (c *columns) scoresLen() int {
	if c.linear {
		return c.width() + 1
	}
	return c.pairs() * c.width()
}

// outcome is that of a row as the fit has it: a class as it is, and a number, less the row's offset, in units.
func (c *columns) outcome(m *options.Scale, x glm.Row, y float64) float64 {
	if !c.linear {
		return y
	}
	return (y - x.Offset - m.Mean) / math.Sqrt(m.Outcome)
}

// residual writes the gradient of a number's log-likelihood times φ, clipped, and what tells φ. Its norm is at most 1,
// whatever the row.
func (c *columns) residual(at *point, x glm.Row, y float64, v []float64) {
	r := y
	for i, j := range x.Index {
		r -= x.Value[i] * at.Mean[j]
	}
	long, k := c.split(at.Clip, at.Dispersion)
	r /= math.Sqrt(at.Dispersion)
	times := left * glm.Clamp(r/k, 1) / max(long, x.Norm())
	for i, j := range x.Index {
		v[j] = times * x.Value[i]
	}
	mean, _, most := squaresTo(k)
	v[c.width()] = math.Sqrt(spreadShare) * (min(r*r, k*k) - mean) / most
}

// at is where the next sum is asked for.
func (f *fit) at() point { return point{f.Mean, f.Clip, f.Dispersion} }

// phi is the dispersion, of classes 1.
func (f *fit) phi() float64 { return cmp.Or(f.Dispersion, 1) }

// disperse takes in the last entry of a gradient, with noise of standard deviation sd: residuals have the variance φ
// and what the weights were off by. It is a Kalman filter of φ itself, so that what was told where φ was taken for far
// more counts for less, and iterated, as the entry tells a φ that is far off by no straight line (Bell and Cathey, IEEE
// Transactions on Automatic Control 1993).
func (f *fit) disperse(g *gram, sum, sd, off float64) {
	_, k := g.Columns.split(f.Clipped, f.Dispersion)
	expected, _, most := squaresTo(k)
	unit := most / (math.Sqrt(spreadShare) * g.Rows)
	least, highest := g.Columns.dispersions()
	off = min(off, highest) // sums from a hostile site may be of any size
	was := 1 + off/f.Dispersion
	open := (f.Unsure + drift*off*drift*off) / (f.Dispersion * f.Dispersion)
	ratio, left := was, 1.0
	const sweeps = 20
	for range sweeps {
		t := tailOf(g.law, g.edges, k/math.Sqrt(ratio))
		weight := open * t.slope / (open*t.slope*t.slope + unit*sd*unit*sd)
		ratio = max((ratio+was+weight*(sum*unit+expected-ratio*t.square-t.slope*(was-ratio)))/2, 1e-3)
		left = 1 - weight*t.slope
	}
	f.Unsure = left * open * f.Dispersion * f.Dispersion
	f.Dispersion = min(max(ratio*f.Dispersion-off, f.Dispersion/8, least), highest)
	g.Dispersion = f.Dispersion
}

// tail is of what share of rows clipping at k deviations takes, and by how much more it takes for one more of the
// expectation, where a law is stretched with it. Then as [squaresTo] has them, the mean of min(z², k²) and its slope.
type tail struct{ share, rise, square, slope float64 }

// tailOf is the tail of residuals with the form of a law, of which bins of a histogram have such shares; the normal
// one's before any.
func tailOf(law, edges []float64, k float64) (t tail) {
	const parts, lowest = 8, 0.005
	if len(law) == 0 {
		t.share = math.Erfc(k / math.Sqrt2)
		t.square, t.slope, _ = squaresTo(k)
		return t
	}
	var z, w []float64
	for i, share := range law {
		for j := range parts {
			at := (float64(j) + 0.5) / parts
			z, w = append(z, (1-at)*edges[i]+at*edges[i+1]), append(w, share/parts)
		}
	}
	floats.AddConst(-floats.Dot(z, w), z)
	variance, third := 0.0, 0.0
	for i, z := range z {
		variance, third = variance+w[i]*z*z, third+w[i]*z*z*z
	}
	floats.Scale(1/math.Sqrt(variance), z)
	if third < 0 { // stretched below an upper end
		floats.Scale(-1, z)
		slices.Reverse(z)
		slices.Reverse(w)
	}
	from, below := z[0], 0.0 // where the law begins
	for i := 0; i < len(z) && below < lowest; i++ {
		from, below = z[i], below+w[i]
	}
	for i, z := range z {
		if math.Abs(z) < k {
			t.slope += w[i] * z * z
			continue
		}
		t.share += w[i]
		t.rise -= w[i] * z / from // beyond the share
	}
	t.square, t.rise = t.slope+k*k*t.share, max(t.rise, 0)
	return t
}

// expectNumber is [gram.expect] for a number. Residuals have the form of the outcome's law, and a variance that spread
// adds to. Where the truth is spread around m changes nothing on average.
func (g *gram) expectNumber(m []float64, clip, spread float64) *curvature {
	d := len(m)
	size, own := g.sizes()
	_, k := g.Columns.split(clip, g.Dispersion)
	within := 1 - tailOf(g.law, g.edges, k/math.Sqrt(1+spread/g.Dispersion)).share
	h, of := within*g.uncut(own, clip), mat.NewSymDense(d, nil)
	of.ScaleSym(h, g.Matrix)
	for j := range d { // the intercept's
		of.SetSym(d-1, j, within*g.uncut(size, clip)*g.Matrix.At(d-1, j))
	}
	cut, rise := g.clipped(m, clip)
	floats.AddScaled(floats.ScaleTo(cut, -g.asymmetry.Value, cut), -0.5, rise)
	return &curvature{Hessian: of, Bias: cut, Shift: make([]float64, d), Mean: h}
}

// uncut is the share that is left of rows of such a size.
func (g *gram) uncut(size, clip float64) (share float64) {
	long, _ := g.Columns.split(clip, g.Dispersion)
	for _, n := range norms {
		share += n.weight * min(long/(n.size*size), 1)
	}
	return share
}

// clipped is what a clip takes from a gradient: from all rows alike, if residuals have an exponential law; and as more
// is expected, if the outcome's law is stretched with the expectation, as that of costs.
func (g *gram) clipped(m []float64, clip float64) (cut, rise []float64) {
	_, own := g.sizes()
	_, k := g.Columns.split(clip, g.Dispersion)
	uncut := g.uncut(own, clip)
	_, rise, _, _ = g.activations(m)
	floats.Scale(uncut*tailOf(g.law, g.edges, k).rise*g.Rows, rise)
	cut = mat.Col(nil, len(m)-1, g.Matrix)
	floats.Scale(uncut*math.Exp(-1-k)*math.Sqrt(g.Dispersion), cut)
	return cut, rise
}

// balance tells the asymmetry by the sum of outcomes, from which no clip took: by how much more the rows lie above
// their expectations than the filtered gradient has it.
func (f *fit) balance(g *gram, at *curvature) {
	last, t := len(f.Mean)-1, g.noised.totals
	above, variance := options.Farthest*t[len(t)-2], options.Farthest*options.Farthest*g.noised.v
	for j, w := range f.Mean {
		above -= w * g.Matrix.At(j, last)
		variance += w * w * g.Error.At(j, last)
	}
	variance += math.Pow(g.Rows*math.Exp(-1-options.Farthest), 2) // what the limit takes, of an exponential law
	share := at.Hessian.At(last, last) / g.Rows                   // that a gradient has
	variance = share*share*(variance+drift*drift*above*above) + f.Noise
	cut, _ := g.clipped(f.Mean, f.Clipped)
	was, gain := f.Asymmetry.Value, cut[last]/(cut[last]*cut[last]+variance/(asymmetric*asymmetric))
	g.asymmetry = asymmetry{gain * (was*cut[last] + share*above - f.Gradient[last]),
		asymmetric * math.Sqrt(1-gain*cut[last])}
	f.Asymmetry = g.asymmetry
	floats.AddScaled(f.Gradient, g.asymmetry.Value-was, cut)
}

// own brings weights and their covariance from the units of a number to its own, and returns the unit's square.
func (c *common) own(m *options.Scale, mean, covariance []float64) (unit float64) {
	if !c.columns.linear || m.Outcome == 0 { // no histogram yet
		return 1
	}
	sd := math.Sqrt(m.Outcome)
	floats.Scale(sd, mean)
	mean[len(mean)-1] += m.Mean
	floats.Scale(m.Outcome, covariance)
	return m.Outcome
}

// free is how many degrees of freedom leave ln φ as open as noise and so many rows do.
func (f *fit) free(rows float64) float64 {
	return max(2/(f.Unsure/(f.Dispersion*f.Dispersion)+2/max(rows, 1)), 1)
}

// explained is the share of a number's variance that weights explain.
func (g *gram) explained(mean []float64) float64 {
	_, _, _, v := g.activations(mean)
	return v / (v + g.Dispersion)
}
