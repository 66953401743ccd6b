package private

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"parley/methods/regression/glm"
)

// fit climbs the posterior of a logistic regression by noised sums of clipped gradients.
// All that it knows of rows it has from those sums and a [gram].
type fit struct {
	Rounds   int       `cbor:"rounds"` // sums there will be
	Round    int       `cbor:"round"`  // sums taken in
	Mean     []float64 `cbor:"mean"`   // weights at which the next sum is asked for
	Before   []float64 `cbor:"before"`
	Gradient []float64 `cbor:"gradient"` // filtered, at Before
	Noise    float64   `cbor:"noise"`    // variance of its entries; 0 before any
	Clip     float64   `cbor:"clip"`     // of the next sum
	Clipped  float64   `cbor:"clipped"`  // of Gradient
	Trace    []float64 `cbor:"trace"`    // root mean square over rows of each step in activations
	// precision of the prior, in that of the plan, by kind of weight: at least the prior's widest
	Narrow  []float64 `cbor:"narrow"`
	Learned []float64 `cbor:"learned"` // curvature beyond the gram's, packed, for a mean slope of 1; empty before any
	Late    lateSums  `cbor:"late"`
	// Of a number, in its unit: its variance around its expectation, and the variance that noise leaves of that; 0 of
	// classes.
	Dispersion float64   `cbor:"dispersion,omitempty"`
	Unsure     float64   `cbor:"unsure,omitempty"`
	Asymmetry  asymmetry `cbor:"asymmetry"`
}

// The rule by which the fit goes; none of it looks at data.
const (
	least    = 0.5 // weight of a new gradient among the first few
	pace     = 0.8 // share of a Newton step that is made
	farthest = 1.0 // root mean square over rows of a step in activations
	drift    = 0.2 // share of the change of a gradient that may be wrong, as the model makes it out
)

// newFit begins with all weights 0 but that of an offset, for so many rounds.
func newFit(c *columns, rounds int) *fit {
	mean := make([]float64, c.width())
	if c.offset != nil {
		mean[c.width()-2] = c.offset.Scale
	}
	f := &fit{Rounds: rounds, Mean: mean, Clip: c.reach() / 2, Narrow: []float64{1, 1}}
	if c.linear {
		f.Clip, f.Dispersion, f.Unsure, f.Asymmetry.Open = 4*c.reach(), 1, 1, asymmetric
	}
	return f
}

// Forget drops the filtered gradient and what was learned: the next sum is of other rows.
func (f *fit) Forget() { f.Gradient, f.Noise, f.Learned = nil, 0, nil }

// Take takes in one sum over all rows of what [score] writes at Mean, with noise of
// standard deviation sd on every entry.
func (f *fit) Take(g *gram, p *prior, sum []float64, sd float64) {
	d := len(f.Mean)
	at := f.expect(g, f.Mean, f.Clip, 0)
	fresh := floats.ScaleTo(make([]float64, d), f.Clip, sum[:d])
	floats.Sub(fresh, at.Bias)
	f.filter(g, at, fresh, f.Clip*f.Clip*sd*sd)
	f.Clipped, f.Before = f.Clip, slices.Clone(f.Mean)
	if f.Dispersion > 0 {
		f.balance(g, at)
	}

	b := f.believe(g, p, nil)
	along := g.path(f, b)
	sure := g.sure(f.Mean, b.covariance)
	for k, h := range b.values {
		along[k] = math.Pow(h, 1-sure) * math.Pow(along[k], sure)
	}
	step, covariance := b.posterior(along)
	f.Narrow = p.narrow(b.from, step, covariance)
	far := math.Sqrt(max(mat.Inner(step, g.Matrix, step)/g.Rows, 0))
	times := pace
	if far > farthest {
		times *= farthest / far
	}
	floats.AddScaled(f.Mean, times, step.RawVector().Data)
	f.Trace = append(f.Trace, times*far)
	if f.Dispersion > 0 {
		f.disperse(g, sum[d], sd, far*far+g.spread(covariance))
	}
	f.Clip = f.choose(g, sd)
	f.Round++
}

// choose returns the clip of the next sum. A short one has less noise, a long one less bias: of some, that one is
// taken at which all rounds together tell most by what the model expects: the sum of ln(1 + information) over
// directions of weights, whose information is H² over H, the variance of their noise and the square of what may be
// wrong with the bias. An average over directions would not see those that rows tell little of. So hardly a row is
// clipped where there are many for the noise, whatever rows are like.
func (f *fit) choose(g *gram, sd float64) (clip float64) {
	best := 0.0
	_, vectors := glm.Eigen(f.expect(g, f.Mean, f.Clip, 0).Hessian)
	for longer := range clips {
		c := g.Columns.clip(f.Dispersion, longer)
		at := f.expect(g, f.Mean, c, 0)
		wrong := g.wrong(at, f.Mean, c)
		told := 0.0
		var turned mat.Dense
		turned.Mul(at.Hessian, vectors)
		for k := range f.Mean {
			u := vectors.ColView(k)
			h, off := max(mat.Dot(u, turned.ColView(k)), flattest), mat.Dot(u, wrong)
			told += math.Log1p(h * h / (f.phi()*h + c*c*sd*sd/float64(f.Rounds) + off*off))
		}
		if clip == 0 || told > best {
			best, clip = told, c
		}
	}
	return clip
}

// belief is what gradients so far say of the weights, as seen from the fit's mean.
type belief struct {
	values, noise []float64 // of the Hessian, and variance of the gradient's noise in its basis
	vectors       *mat.Dense
	spread        float64   // of activations, over rows and the density
	gradient      []float64 // less its shift
	from          []float64 // the fit's mean, less the prior's
	precision     []float64 // of the prior
	phi           float64   // dispersion: a gradient's variance is so many times its Hessian

	covariance *mat.SymDense
}

// sweeps are how often a belief enters what it follows from.
const sweeps = 4

// believe finds the density N(m + Δ, C) of the weights. With u the filtered gradient less its clip bias and its
// shift, V its noise's variance and H the Hessian, the truth w has u ~ N(H(w − m), H + V): its own sampling variance
// is H. So (Bernstein and Sheldon, 2019, in one Newton step)
//
//	Δ = C (H (H+V)⁻¹ u − Λ₀ (m − μ₀)),  C = (Λ₀ + H (H+V)⁻¹ H)⁻¹.
//
// H and the shift follow from C in turn. V holds the square of what may be wrong with the clip bias and, where doubt
// has the variance of the Gram matrix's entries, that of κ₀ (G − Ĝ)(w − m), by which the Hessian is off.
func (f *fit) believe(g *gram, p *prior, doubt *mat.Dense) *belief {
	d := len(f.Mean)
	b := &belief{noise: make([]float64, d), gradient: make([]float64, d), phi: f.phi(),
		from: floats.SubTo(make([]float64, d), f.Mean, p.mean), precision: make([]float64, d)}
	wrong := mat.NewVecDense(d, nil)
	if doubt != nil {
		wrong = g.wrong(g.expect(f.Mean, f.Clipped, 0), f.Mean, f.Clipped)
	}
	for range sweeps {
		if b.covariance != nil {
			b.spread = g.spread(b.covariance)
		}
		at := f.expect(g, f.Mean, f.Clipped, b.spread)
		b.values, b.vectors = glm.Eigen(at.Hessian)
		for k := range b.values {
			u := b.vectors.ColView(k)
			off := mat.Dot(u, wrong)
			b.values[k], b.noise[k] = max(b.values[k], flattest), (f.Noise+off*off)/b.phi
			if doubt != nil && b.covariance != nil {
				b.noise[k] += at.Mean * at.Mean * squares(u, doubt, b.covariance) / b.phi
			}
			b.gradient[k], b.precision[k] = f.Gradient[k]-at.Shift[k], p.precision[k]*p.times(f.Narrow, k)
		}
		_, b.covariance = b.posterior(b.values)
	}
	return b
}

// squares is Σ u_j² D_jk C_kk.
func squares(u mat.Vector, doubt *mat.Dense, covariance *mat.SymDense) (sum float64) {
	for j := range u.Len() {
		for k := range u.Len() {
			sum += u.AtVec(j) * u.AtVec(j) * doubt.At(j, k) * covariance.At(k, k)
		}
	}
	return sum
}

// spread is the mean over rows of the variance that a covariance of weights gives to an activation.
func (g *gram) spread(covariance *mat.SymDense) float64 {
	return max(traceOf(covariance, g.Matrix)/g.Rows, 0)
}

// sure is the share of the variance of activations over rows that is not what a covariance of
// weights makes of it. Where all rows are alike does not count: an outcome that is rare makes
// an intercept large, which says nothing of other weights.
func (g *gram) sure(mean []float64, covariance *mat.SymDense) float64 {
	d := len(mean)
	rows := mat.NewSymDense(d, nil) // their covariance
	rows.SymRankOne(g.Matrix, -1/g.Rows, mat.NewVecDense(d, mat.Row(nil, d-1, g.Matrix)))
	m := mat.NewVecDense(d, mean)
	share := traceOf(covariance, rows) / max(mat.Inner(m, rows, m), 1e-9)
	return min(max(1-share, 0), 1) // by rounding, it can be anything
}

// traceOf is the trace of the product of two symmetric matrices.
func traceOf(a, b *mat.SymDense) (trace float64) {
	for i := range a.SymmetricDim() {
		sum := 0.0
		for j := range a.SymmetricDim() {
			sum += a.At(i, j) * b.At(i, j)
		}
		trace += sum
	}
	return trace
}

// path is the Hessian averaged between all weights 0 and where the fit is, along a belief's directions. Once labels
// are nearly certain, the Hessian at the fit hardly says anything, while gradients on the way have told these
// directions well: noise is then weighed against the path's, as far as the way was not noise itself.
func (g *gram) path(f *fit, b *belief) []float64 {
	d := len(f.Mean)
	out := make([]float64, d)
	for _, q := range between {
		h := f.expect(g, floats.ScaleTo(make([]float64, d), q.at, f.Mean), f.Clipped, b.spread).Hessian
		for k := range d {
			u := b.vectors.ColView(k)
			out[k] += q.weight * max(mat.Inner(u, h, u), flattest)
		}
	}
	return out
}

// filter combines a new gradient with those before, carried to here and to this clip by the
// ratio of what it leaves: the Kalman filter of a gradient that moves about as the model says.
func (f *fit) filter(g *gram, at *curvature, fresh []float64, variance float64) {
	if f.Noise == 0 {
		f.Gradient, f.Noise = fresh, variance
		return
	}
	moved, noise := f.carried(g, at)
	if f.Clip != f.Clipped {
		ratio := at.Mean / max(g.expect(f.Mean, f.Clipped, 0).Mean, 1e-9)
		floats.Scale(ratio, moved)
		noise *= ratio * ratio
	}
	f.learn(at, floats.SubTo(make([]float64, len(moved)), moved, fresh), noise+variance)
	weight := noise / (noise + variance)
	if f.Round < burn(f.Rounds) {
		weight = max(weight, least)
	}
	floats.ScaleTo(f.Gradient, 1-weight, moved)
	floats.AddScaled(f.Gradient, weight, fresh)
	f.Noise = (1-weight)*(1-weight)*noise + weight*weight*variance
}

// carried is the filtered gradient as it is at Mean, still of its own clip, by the Hessian half
// way, and its noise, to which the error of that is added.
func (f *fit) carried(g *gram, at *curvature) (gradient []float64, noise float64) {
	d := len(f.Mean)
	before := f.expect(g, f.Before, f.Clipped, 0)
	here := at
	if f.Clip != f.Clipped {
		here = f.expect(g, f.Mean, f.Clipped, 0)
	}
	gradient, noise = slices.Clone(f.Gradient), f.Noise
	for i := range d {
		change := 0.0
		for j := range d {
			change += (here.Hessian.At(i, j) + before.Hessian.At(i, j)) / 2 * (f.Mean[j] - f.Before[j])
		}
		gradient[i] -= change
		noise += drift * drift * change * change / float64(d)
	}
	return gradient, noise
}

// expect is what the gram says of clipped gradients, with the curvature that was learned.
func (f *fit) expect(g *gram, m []float64, clip, spread float64) *curvature {
	c := g.expect(m, clip, spread)
	if len(f.Learned) > 0 {
		for i := range m {
			for j := range i + 1 {
				c.Hessian.SetSym(i, j, c.Hessian.At(i, j)+c.Mean*f.Learned[glm.Packed(i, j)])
			}
		}
	}
	return c
}

// surely is by how many standard deviations a gradient must be off, to say that curvature is other than it
// was made out.
const surely = 5

// steepest is by how many times of itself one gradient may raise the Hessian.
const steepest = 5

// learn takes from how a gradient falls short of what was carried to it, y, by how much more the Hessian is
// along the last step Δ than was made out: y yᵀ/yᵀΔ (the symmetric rank-one update, Davidon 1959), of
// y what is surely no noise, in the Hessian's directions. Without that, steps overshoot without an end where
// curvature is 2/pace times what the gram makes out, as levels of categories that overlap can have it.
//
// It is learned where the Hessian along y becomes at least twice what it is, or at most half, which it is
// then made: long steps make less by themselves, as the Hessian changes along them.
func (f *fit) learn(at *curvature, short []float64, variance float64) {
	d := len(f.Mean)
	values, vectors := glm.Eigen(at.Hessian)
	y, all := mat.NewVecDense(d, nil), mat.NewVecDense(d, short)
	step := mat.NewVecDense(d, floats.SubTo(make([]float64, d), f.Mean, f.Before))
	size, along := 0.0, 0.0 // yᵀH⁻¹y and yᵀΔ
	for k, h := range values {
		u := vectors.ColView(k)
		if x := mat.Dot(u, all); math.Abs(x) > surely*math.Sqrt(variance) {
			y.AddScaledVec(y, x, u)
			size += x * x / max(h, flattest)
			along += x * mat.Dot(u, step)
		}
	}
	ratio := size / along // by how many times of itself the Hessian grows along y
	if size == 0 || !(ratio >= 1 || ratio <= -0.5) {
		return
	}
	if len(f.Learned) == 0 {
		f.Learned = make([]float64, glm.Triangle(d))
	}
	share := min(max(ratio, -0.5), steepest) / size / max(at.Mean, 1e-9)
	for i := range d {
		for j := range i + 1 {
			f.Learned[glm.Packed(i, j)] += share * y.AtVec(i) * y.AtVec(j)
		}
	}
}

// posterior is the step and the covariance, with noise weighed against along.
func (b *belief) posterior(along []float64) (*mat.VecDense, *mat.SymDense) {
	d := len(b.values)
	informed, trusted := make([]float64, d), make([]float64, d)
	for k, h := range b.values {
		trusted[k] = along[k] / (along[k] + b.noise[k])
		informed[k] = h * trusted[k] / b.phi
	}
	p := glm.Compose(b.vectors, informed)
	var right, turned mat.VecDense
	turned.MulVec(b.vectors.T(), mat.NewVecDense(d, b.gradient))
	for k := range trusted {
		turned.SetVec(k, turned.AtVec(k)*trusted[k]/b.phi)
	}
	right.MulVec(b.vectors, &turned)
	for j, l := range b.precision {
		p.SetSym(j, j, p.At(j, j)+l)
		right.SetVec(j, right.AtVec(j)-l*b.from[j])
	}
	// By eigenvalues, which rounding cannot make smaller than the prior's: sums from a
	// hostile site may be of any size.
	least := slices.Min(b.precision)
	covariance := glm.Spectral(p, func(x float64) float64 { return 1 / max(x, least) })
	var step mat.VecDense
	step.MulVec(covariance, &right)
	return &step, covariance
}

// last is what all gradients say of the weights, in which the error of the Gram matrix counts.
func (f *fit) last(g *gram, p *prior) *belief {
	last := *f
	last.Gradient, last.Noise = f.carried(g, f.expect(g, f.Mean, f.Clip, 0))
	return last.believe(g, p, g.Error)
}

// width is the median ratio of standard deviations to those without noise, which it forgets.
func (b *belief) width() float64 {
	clear(b.noise)
	_, exact := b.posterior(b.values)
	ratios := make([]float64, len(b.values))
	for j := range ratios {
		ratios[j] = math.Sqrt(b.covariance.At(j, j) / exact.At(j, j))
	}
	slices.Sort(ratios)
	return ratios[len(ratios)/2]
}

// least is the covariance of the weights if the Hessian along each of its directions is less than the Gram
// matrix makes of it by one standard deviation of that matrix's error, which for products is two of noise.
func (b *belief) least(f *fit, g *gram) *mat.SymDense {
	values, slope := slices.Clone(b.values), f.expect(g, f.Mean, f.Clip, 0).Mean
	for k, h := range values {
		u, variance := b.vectors.ColView(k), 0.0
		for i := range f.Mean {
			for j := range i + 1 {
				x := u.AtVec(i) * u.AtVec(j)
				if i != j {
					x *= 2 // of two entries, which are one number
				}
				variance += x * x * g.Error.At(i, j)
			}
		}
		values[k] = max(h-slope*math.Sqrt(variance), 0)
	}
	less := *b
	less.values = values
	_, covariance := less.posterior(values)
	return covariance
}

// The posterior is a normal approximation where the fit is, and too sure where the Hessian falls
// quickly from there on. What the data say of a direction of weights, h, is lost in the noise where
// it is less than so many standard deviations √V of the gradients' noise.
const fewestNoises = 4

// A class is rare up to this share of rows.
const rare = 0.2

// lost says whether the rarer class is lost in the noise, how many rows are expected to be of it,
// below 0 if it is the first class, and how many of them the noise weighs as much as.
func (f *fit) lost(g *gram) (cases, noise float64, is bool) {
	share, one := g.cases(f.Mean), len(f.Mean)-1
	rarer := min(share, 1-share)
	h := f.expect(g, f.Mean, f.Clipped, 0).Hessian.At(one, one)
	cases, noise = g.Subjects*rarer, g.Subjects*rarer*math.Sqrt(f.Noise)/max(h, flattest)
	if share > 0.5 {
		cases = -cases
	}
	return cases, noise, rarer < rare && h < fewestNoises*math.Sqrt(f.Noise)
}

// unsized says whether the size of effects is lost in the noise: they are large for the prior even at
// its widest, so that nothing else holds them.
func (f *fit) unsized(g *gram, p *prior) bool {
	u, square := mat.NewVecDense(len(f.Mean), nil), 0.0
	for j, k := range p.kind {
		if w := f.Mean[j] - p.mean[j]; k != ownPrior && f.Narrow[k] == p.widest {
			u.SetVec(j, w)
			square += w * w
		}
	}
	h := mat.Inner(u, f.expect(g, f.Mean, f.Clipped, 0).Hessian, u)
	return h < fewestNoises*math.Sqrt(f.Noise)*square
}

// unsettled says whether the last step moved activations by more than a covariance of the weights leaves them
// unsure of: both are root mean squares over rows.
func (f *fit) unsettled(g *gram, covariance *mat.SymDense) (step, spread float64, is bool) {
	step, spread = f.Trace[len(f.Trace)-1], math.Sqrt(g.spread(covariance))
	return step, spread, step > spread
}
